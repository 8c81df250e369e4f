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
        f.staged += HY_MIN(x->staged, x->pages);
    }
    return f;
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
    x->changed_ns = hy_staging->host.now_ns();
    return wrong;
}

/* Which of the next tasks (from 0) an object is for; NEVER: for none of them. */
#define NEVER   0xffu
#define RUNNING 0xfeu
static uint8_t wanted[OBJECTS_MOST];

void staging_note_wanted(const uint64_t *ids, unsigned n)
{
    memset(wanted, NEVER, sizeof(wanted));
    for (unsigned i = n; i-- > 0;) {
        const struct shadow_task *t = shadow_find(&hy_staging->shadow, ids[i]);
        for (unsigned j = 0; t && j < t->needs; j++)
            wanted[t->need[j].object] = (uint8_t)i;
    }
    for (unsigned i = 0; i < hy_staging->shadow.looked; i++) {
        const struct shadow_task *t = shadow_find(&hy_staging->shadow, hy_staging->shadow.look[i]);
        for (unsigned j = 0; t && t->state == SHADOW_RUNS && j < t->needs; j++)
            wanted[t->need[j].object] = RUNNING;
    }
}

/* May x make room for the data of task `i`, and rather than y? Those of tasks that run and of
 * earlier ones stay; of the others the one goes that ran longest ago (a queue of footprints, 003,
 * III.E), and what a later task is going to use goes last. */
static bool goes_before(unsigned x, unsigned y, unsigned i)
{
    const struct object *o = hy_staging->objects.object;
    if (o[x].dram == 0 || o[x].pages == 0 || o[x].asked_ns == 0 || wanted[x] == RUNNING ||
        wanted[x] <= i)
        return false;
    if (y == OBJECT_NONE || (wanted[x] != wanted[y] && (wanted[x] == NEVER || wanted[y] == NEVER)))
        return y == OBJECT_NONE || wanted[x] == NEVER;
    return wanted[x] == NEVER ? o[x].used < o[y].used : wanted[x] > wanted[y];
}

static bool make_room(uint32_t pages, unsigned i)
{
    unsigned victim = OBJECT_NONE;
    uint32_t gone = 0;
    for (unsigned k = 0; k < hy_staging->objects.n; k++)
        if (goes_before(k, victim, i))
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
    x->staged = HY_MIN(x->staged, x->dram);
    return gone > 0;
}

bool staging_bring(uint64_t id, unsigned number, uint32_t pages)
{
    struct shadow_task *t = shadow_find(&hy_staging->shadow, id);
    for (unsigned i = 0; t && i < t->needs && pages > 0; i++) {
        struct object *x = object(t->need[i].object);
        for (uint32_t at = 0; at < x->pages && pages > 0; at += CHUNK) {
            uint32_t n = HY_MIN(HY_MIN(x->pages - at, CHUNK), pages);
            if (x->dram == x->pages)
                break;
            (void)staging_drain();
            if (!(t = shadow_find(&hy_staging->shadow, id)) || t->state != SHADOW_WAITS) {
                hy_staging->view.late++;
                return false;
            }
            while (hy_staging->host.free_pages() < n && make_room(n, number))
                ;
            uint32_t came = move(x, at, n, HY_DRAM);
            if (came == UINT32_MAX)
                return false;
            x->staged = HY_MIN(x->staged + came, x->dram);
            hy_staging->view.staged_pages += came;
            pages -= HY_MIN(came, pages);
        }
    }
    return true;
}

uint32_t staging_room(bool running)
{
    uint64_t room = hy_staging->host.free_pages();
    for (unsigned i = 0; i < hy_staging->objects.n; i++)
        if (running || wanted[i] != RUNNING)
            room += hy_staging->objects.object[i].dram;
    return (uint32_t)HY_MIN(room, (uint64_t)UINT32_MAX);
}

void staging_each(void (*fn)(void *base, size_t bytes))
{
    for (unsigned i = 0; hy_staging && i < hy_staging->objects.n; i++) {
        const struct object *x = &hy_staging->objects.object[i];
        if (x->staged > 0 && x->pages > 0)
            fn((void *)x->base, x->pages * HY_PAGE);
    }
}
