/* SPDX-License-Identifier: BSD-2-Clause
 * See staging_internal.h. */
#include <string.h>

#include "sys/emulator.h"
#include "tasks/staging_internal.h"

#define CHUNK  64u        /* pages between two looks whether the task has begun */
#define ASK_NS 100000000u /* where an object's pages are is asked so often; emulated: a 20th */

/* --- where data are ------------------------------------------------------------------- */

static struct object *object(unsigned i)
{
    uint64_t old = emulator_open() ? ASK_NS / 20 : ASK_NS;
    objects_look(&hy_staging->objects, i, old, hy_staging->host.now_ns(), hy_staging->host.where);
    return &hy_staging->objects.object[i];
}

struct footprint staging_footprint(const struct shadow_task *t)
{
    struct footprint f = {0};
    for (unsigned i = 0; i < t->needs; i++) {
        const struct object *x = object(t->need[i].object);
        f.pages[i] = x->pages;
        f.all += x->pages;
        f.dram += HY_MIN(x->dram, x->pages);
        f.changed_ns = HY_MAX(f.changed_ns, x->changed_ns);
        f.carried_ns = HY_MAX(f.carried_ns, x->carried_ns);
        f.staged += HY_MIN(x->staged, x->pages);
        f.more += x->more;
        f.touched |= x->more != 0;
    }
    return f;
}

double staging_untouched(const struct footprint *f)
{
    return f->all > 0 ? (double)(f->dram - f->more) / f->all : 1;
}

/* --- what comes and goes ---------------------------------------------------------------- */

/* Moves what of these pages is on the other tier; how many, UINT32_MAX: it cannot be done now. */
static uint32_t move(struct object *x, uint32_t at, uint32_t n, enum hy_tier to)
{
    int8_t tier[OBJECTS_ASK];
    void *base = (void *)(x->base + at * HY_PAGE);
    uint32_t wrong = 0;
    if (hy_staging->host.where(base, n, tier) != 0)
        return UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        wrong += tier[i] >= 0 && tier[i] != (int8_t)to;
    if (wrong == 0)
        return 0;
    if (!hy_staging->host.move(base, n, to))
        return UINT32_MAX;
    x->dram = to == HY_DRAM ? HY_MIN(x->dram + wrong, x->pages) : x->dram - HY_MIN(x->dram, wrong);
    x->changed_ns = hy_staging->moved_ns = hy_staging->host.now_ns();
    return wrong;
}

static uint8_t wanted[OBJECTS_MOST];

unsigned staging_next(uint64_t *ids, unsigned *ret_waiting)
{
    struct shadow *s = &hy_staging->shadow;
    unsigned workers = HY_MIN(HY_MAX(hy_staging->workers, 1u), STAGE_TASKS / 3);
    unsigned waiting = shadow_next(s, ids, 2 * workers), n = waiting;
    memset(wanted, FOR_NONE, sizeof(wanted));
    for (unsigned i = waiting; i-- > 0;) {
        const struct shadow_task *t = shadow_find(s, ids[i]);
        for (unsigned j = 0; t && j < t->needs; j++)
            wanted[t->need[j].object] = (uint8_t)(i + 1);
    }
    for (unsigned i = 0; i < s->looked; i++) {
        const struct shadow_task *t = shadow_find(s, s->look[i]);
        if (!t || t->state != SHADOW_RUNS)
            continue;
        for (unsigned j = 0; j < t->needs; j++)
            wanted[t->need[j].object] = FOR_RUNNING;
        if (n < waiting + workers)
            ids[n++] = t->id;
    }
    *ret_waiting = waiting;
    return n;
}

/* The data of tasks that run and of earlier ones stay, for one that runs those of all the next
 * ones; of the others the one goes that ran longest ago (a queue of footprints, 003, III.E), and
 * what a later task is going to use goes last. */
static bool may_go(unsigned x, unsigned number)
{
    const struct object *o = &hy_staging->objects.object[x];
    unsigned stay = number == FOR_RUNNING ? FOR_NONE - 1 : number;
    return o->dram > 0 && o->pages > 0 && o->asked_ns > 0 && wanted[x] > stay;
}

static bool goes_before(unsigned x, unsigned y)
{
    const struct object *o = hy_staging->objects.object;
    if (y == OBJECT_NONE || wanted[x] != wanted[y])
        return y == OBJECT_NONE || wanted[x] > wanted[y];
    return o[x].used < o[y].used;
}

static bool make_room(uint32_t pages, unsigned number)
{
    unsigned victim = OBJECT_NONE;
    uint32_t gone = 0;
    for (unsigned k = 0; k < hy_staging->objects.n; k++)
        if (may_go(k, number) && goes_before(k, victim))
            victim = k;
    if (victim == OBJECT_NONE)
        return false;
    struct object *x = &hy_staging->objects.object[victim];
    for (uint32_t at = 0; at < x->pages && gone < pages; at += CHUNK) {
        uint32_t n = move(x, at, HY_MIN(x->pages - at, CHUNK), HY_PM);
        if (n == UINT32_MAX)
            break;
        gone += n;
    }
    hy_staging->view.evicted_pages += gone;
    if (gone == 0)
        x->dram = 0; /* as far as can be seen; it will be asked again */
    x->more -= (int32_t)gone;
    x->staged = HY_MIN(x->staged, x->dram);
    return gone > 0;
}

bool staging_pays(const struct stage *s, uint32_t pages)
{
    const struct shadow_task *t = shadow_find(&hy_staging->shadow, s->id);
    double late = stage_ns(pages, &s->cost);
    if (t && t->state == SHADOW_RUNS)
        late += (double)(hy_staging->host.now_ns() - t->began);
    else
        late -= stage_starts_ns(s->number - 1, hy_staging->workers, hy_staging->mean_ns);
    return stage_pays(&s->of, pages, s->of.pages, s->uses - 1 + stage_left(late, s->whole_ns),
                      &s->cost);
}

/* It may have begun meanwhile, or have ended. */
static bool goes_on(const struct stage *s, uint32_t pages)
{
    const struct shadow_task *t;
    (void)staging_drain();
    t = shadow_find(&hy_staging->shadow, s->id);
    if (t && (t->state == SHADOW_WAITS || (t->state == SHADOW_RUNS && staging_pays(s, pages))))
        return true;
    hy_staging->view.late++;
    return false;
}

void staging_bring(const struct stage *s, uint32_t pages)
{
    struct shadow_task *t = shadow_find(&hy_staging->shadow, s->id);
    struct shadow_task of = t ? *t : (struct shadow_task){0}; /* which may end, and its place go */
    for (unsigned i = 0; i < of.needs && pages > 0; i++) {
        struct object *x = object(of.need[i].object);
        for (uint32_t at = 0; at < x->pages && pages > 0; at += CHUNK) {
            uint32_t n = HY_MIN(HY_MIN(x->pages - at, CHUNK), pages);
            if (x->dram == x->pages)
                break;
            if (!goes_on(s, pages))
                return;
            while (hy_staging->host.free_pages() < n && make_room(n, s->number))
                ;
            uint32_t came = move(x, at, n, HY_DRAM);
            if (came == UINT32_MAX)
                return;
            x->staged = HY_MIN(x->staged + came, x->dram);
            x->more += (int32_t)came;
            hy_staging->view.staged_pages += came;
            pages -= HY_MIN(came, pages);
        }
    }
}

uint32_t staging_room(unsigned from)
{
    uint64_t room = hy_staging->host.free_pages();
    for (unsigned i = 0; i < hy_staging->objects.n; i++)
        if (wanted[i] >= from)
            room += hy_staging->objects.object[i].dram;
    return (uint32_t)HY_MIN(room, (uint64_t)UINT32_MAX);
}

void staging_each(void (*fn)(void *base, size_t bytes))
{
    uint64_t ids[STAGE_TASKS];
    unsigned waiting, n = hy_staging && staging_next(ids, &waiting) > 0 ? hy_staging->objects.n : 0;
    for (unsigned i = 0; i < n; i++) {
        const struct object *x = &hy_staging->objects.object[i];
        if (x->staged > 0 && x->pages > 0 && wanted[i] != FOR_NONE)
            fn((void *)x->base, x->pages * HY_PAGE);
    }
}
