/* SPDX-License-Identifier: BSD-2-Clause
 * See staging.h. */
#include "tasks/staging.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "sys/emulator.h"
#include "sys/os.h"
#include "tasks/events.h"
#include "tasks/objects.h"
#include "tasks/rules/stage_plan.h"
#include "tasks/task_types.h"

#define CHUNK      64u        /* pages between two looks whether the task has begun */
#define BUSY_NS    20000u     /* between two looks while tasks come, at least */
#define MOST_NS    1000000u   /* and at most */
#define ASK_NS     100000000u /* where an object's pages are is asked so often; emulated: a 20th */
#define LOOK_SHARE 100u       /* looks without a stage take this part of one core at most */
#define HOPE_TASKS 64u        /* between two questions whether anything can pay */

struct engine {
    struct staging_host host;
    struct shadow shadow;
    struct objects objects;
    struct task_types types;
    struct task_event needs[TASK_NEEDS_MOST]; /* of the task that is being told of */
    struct task_event made;
    unsigned needs_left;
    unsigned workers; /* tasks that ran at a time, at most */
    uint64_t ended, hope_at;
    double mean_ns; /* of all tasks */
    struct staging_view view;
};

static struct engine *e;
static struct staging_view shown; /* under lock */
static bool recorded;             /* the same: and what a later run shall know */
static struct profile_task known[PROFILE_MAX_TASKS];
static unsigned n_known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- where data are ------------------------------------------------------------------- */

static struct object *object(unsigned i)
{
    uint64_t old = emulator_open() ? ASK_NS / 20 : ASK_NS;
    objects_look(&e->objects, i, old, e->host.now_ns(), e->host.where);
    return &e->objects.object[i];
}

struct footprint {
    uint32_t pages[SHADOW_NEEDS], all, dram, staged;
    uint64_t changed_ns;
};

static struct footprint footprint(const struct shadow_task *t)
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

/* --- what tasks tell -------------------------------------------------------------------- */

static void made(void)
{
    struct shadow_need need[SHADOW_NEEDS];
    unsigned n = 0;
    for (unsigned i = 0; i < e->made.bytes; i++) {
        const struct task_event *d = &e->needs[i];
        unsigned o = objects_at(&e->objects, d->value, d->bytes);
        bool twice = o == OBJECT_NONE;
        for (unsigned j = 0; j < n && !twice; j++)
            if (need[j].object == o) {
                need[j].writes |= d->writes;
                twice = true;
            }
        if (!twice)
            need[n++] = (struct shadow_need){(uint16_t)o, d->writes};
    }
    shadow_made(&e->shadow, e->made.id, e->made.function, need, n);
}

static void ended(const struct shadow_task *t, uint64_t at_ns)
{
    struct footprint f = footprint(t);
    double ns = at_ns > t->began ? (double)(at_ns - t->began) : 0;
    unsigned k = types_of(&e->types, t->function, f.pages, t->needs);
    e->ended++;
    e->view.tasks++;
    e->mean_ns = e->mean_ns > 0 ? e->mean_ns + (ns - e->mean_ns) / 16 : ns;
    for (unsigned i = 0; i < t->needs; i++)
        e->objects.object[t->need[i].object].used = t->id;
    if (k == TYPE_NONE)
        return;
    struct task_type *type = &e->types.type[k];
    type->ran++;
    if (f.all == 0) {
        fit_add(&type->fit, 1, ns);
        return;
    }
    if (f.changed_ns > t->began)
        return; /* it ran on both */
    struct fit_line line = fit_line(&type->fit);
    if (f.staged > 0) {
        double saved = line.known ? line.pm_ns - ns : fit_saving(&type->fit, e->host.slowdown());
        saved *= (double)f.staged / HY_MAX(f.dram, f.staged); /* the rest was there before */
        e->view.hits++;
        e->view.saved_ns += (int64_t)saved;
        verdict_ran(&type->verdict, saved);
    }
    fit_add(&type->fit, (double)f.dram / f.all, ns);
}

static void event(void *ctx, const struct task_event *v)
{
    struct shadow_task t;
    (void)ctx;
    switch ((enum task_event_kind)v->kind) {
    case TASK_MADE:
        e->made = *v;
        e->needs_left = (unsigned)HY_MIN(v->bytes, (uint64_t)TASK_NEEDS_MOST);
        break;
    case TASK_NEEDS:
        if (e->needs_left == 0 || v->id != e->made.id)
            break;
        e->needs[e->made.bytes - e->needs_left] = *v;
        if (--e->needs_left == 0)
            made();
        break;
    case TASK_BEGAN:
        shadow_began(&e->shadow, v->id, v->value);
        e->workers = HY_MAX(e->workers, e->shadow.running);
        break;
    case TASK_ENDED:
        if (shadow_ended(&e->shadow, v->id, &t))
            ended(&t, v->value);
        break;
    }
}

static unsigned drain(void)
{
    unsigned n = tasks_drain(event, NULL);
    uint64_t dropped = tasks_dropped();
    if (dropped != e->view.dropped)
        shadow_lost(&e->shadow);
    e->view.dropped = dropped;
    return n;
}

/* --- moving ---------------------------------------------------------------------------------- */

/* Moves what of these pages is on the other tier; how many, UINT32_MAX: it cannot be done now. */
static uint32_t move(struct object *x, uint32_t at, uint32_t n, enum hy_tier to)
{
    int8_t tier[OBJECTS_ASK];
    void *base = (void *)(x->base + at * HY_PAGE);
    uint32_t wrong = 0;
    if (e->host.where(base, n, tier) != 0)
        return UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        wrong += tier[i] >= 0 && tier[i] != (int8_t)to;
    if (wrong == 0)
        return 0;
    if (!e->host.move(base, n, to))
        return UINT32_MAX;
    x->dram = to == HY_DRAM ? HY_MIN(x->dram + wrong, x->pages) : x->dram - HY_MIN(x->dram, wrong);
    x->changed_ns = e->host.now_ns();
    return wrong;
}

/* Which of the next tasks (from 0) an object is for; NEVER: for none of them. */
#define NEVER   0xffu
#define RUNNING 0xfeu
static uint8_t wanted[OBJECTS_MOST];

static void note_wanted(const uint64_t *ids, unsigned n)
{
    memset(wanted, NEVER, sizeof(wanted));
    for (unsigned i = n; i-- > 0;) {
        const struct shadow_task *t = shadow_find(&e->shadow, ids[i]);
        for (unsigned j = 0; t && j < t->needs; j++)
            wanted[t->need[j].object] = (uint8_t)i;
    }
    for (unsigned i = 0; i < e->shadow.looked; i++) {
        const struct shadow_task *t = shadow_find(&e->shadow, e->shadow.look[i]);
        for (unsigned j = 0; t && t->state == SHADOW_RUNS && j < t->needs; j++)
            wanted[t->need[j].object] = RUNNING;
    }
}

/* May x make room for the data of task `i`, and rather than y? Those of tasks that run and of
 * earlier ones stay; of the others the one goes that ran longest ago (a queue of footprints, 003,
 * III.E), and what a later task is going to use goes last. */
static bool goes_before(unsigned x, unsigned y, unsigned i)
{
    const struct object *o = e->objects.object;
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
    for (unsigned k = 0; k < e->objects.n; k++)
        if (goes_before(k, victim, i))
            victim = k;
    if (victim == OBJECT_NONE)
        return false;
    struct object *x = &e->objects.object[victim];
    for (uint32_t at = 0; at < x->pages && gone < pages; at += CHUNK) {
        uint32_t n = move(x, at, HY_MIN(x->pages - at, CHUNK), HY_PM);
        if (n == UINT32_MAX)
            break;
        gone += n;
    }
    e->view.evicted_pages += gone;
    if (gone == 0)
        x->dram = 0; /* as far as can be seen; it will be asked again */
    x->staged = HY_MIN(x->staged, x->dram);
    return gone > 0;
}

/* Up to `pages` of the data of the task, the so-manieth of the next ones, come; false: it began, or
 * there is no more room. */
static bool stage(uint64_t id, unsigned number, uint32_t pages)
{
    struct shadow_task *t = shadow_find(&e->shadow, id);
    for (unsigned i = 0; t && i < t->needs && pages > 0; i++) {
        struct object *x = object(t->need[i].object);
        for (uint32_t at = 0; at < x->pages && pages > 0; at += CHUNK) {
            uint32_t n = HY_MIN(HY_MIN(x->pages - at, CHUNK), pages);
            if (x->dram == x->pages)
                break;
            (void)drain();
            if (!(t = shadow_find(&e->shadow, id)) || t->state != SHADOW_WAITS) {
                e->view.late++;
                return false;
            }
            while (e->host.free_pages() < n && make_room(n, number))
                ;
            uint32_t came = move(x, at, n, HY_DRAM);
            if (came == UINT32_MAX)
                return false;
            x->staged = HY_MIN(x->staged + came, x->dram);
            e->view.staged_pages += came;
            pages -= HY_MIN(came, pages);
        }
    }
    return true;
}

/* --- the plan ---------------------------------------------------------------------------- */

struct candidate {
    uint64_t id;
    unsigned number; /* which of the next tasks */
    double uses;     /* of its data by them */
    uint32_t there;
    struct task_type *type;
};

/* DRAM for tasks: what is free, and what holds data that tasks have named. */
static uint32_t room_of(bool running)
{
    uint64_t room = e->host.free_pages();
    for (unsigned i = 0; i < e->objects.n; i++)
        if (running || wanted[i] != RUNNING)
            room += e->objects.object[i].dram;
    return (uint32_t)HY_MIN(room, (uint64_t)UINT32_MAX);
}

/* How often the next tasks use its data, by pages: what they share may be little of them. */
static double uses_of(const struct shadow_task *t, uint32_t pages, const uint64_t *ids, unsigned n)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct shadow_task *u = shadow_find(&e->shadow, ids[i]);
        for (unsigned k = 0; u && k < t->needs; k++)
            for (unsigned j = 0; j < u->needs; j++)
                if (u->need[j].object == t->need[k].object)
                    used += e->objects.object[t->need[k].object].pages;
    }
    return (double)used / pages;
}

static unsigned candidates(const uint64_t *ids, unsigned n, struct candidate *ret,
                           struct stage_task *ret_task)
{
    unsigned k = 0;
    double slowdown = e->host.slowdown();
    for (unsigned i = 0; i < n; i++) {
        const struct shadow_task *t = shadow_find(&e->shadow, ids[i]);
        if (!t)
            continue;
        struct footprint f = footprint(t);
        unsigned number = types_of(&e->types, t->function, f.pages, t->needs);
        if (number == TYPE_NONE || f.all == 0)
            continue;
        struct task_type *type = &e->types.type[number];
        double uses = uses_of(t, f.all, ids, n);
        type->uses = HY_MAX(type->uses, uses);
        if (type->verdict.off)
            continue;
        ret[k] = (struct candidate){ids[i], i, uses, f.dram, type};
        ret_task[k++] = (struct stage_task){.pm_ns = fit_line(&type->fit).pm_ns,
                                            .saving = fit_saving(&type->fit, slowdown),
                                            .pages = f.all,
                                            .type = number};
    }
    return k;
}

/* As many as run at a time share the DRAM. */
static void share_among(const struct stage_task *task, unsigned n, uint32_t *ret_pages)
{
    uint32_t room = room_of(true);
    unsigned together = HY_MAX(e->workers, 1u);
    for (unsigned i = 0; i < n; i += together)
        stage_share(task + i, HY_MIN(n - i, together), room, ret_pages + i);
}

/* What is not measured yet is a trial: paid by what stages have saved so far, or by what trials may
 * lose. */
static bool covered(double cost_ns)
{
    double owed = (double)(e->view.cost_ns - e->view.saved_ns) + cost_ns;
    return owed <= 0 || owed <= e->host.may_lose();
}

/* Stages for the first of the next tasks for whom it is worth it and not too late. */
static bool plan(void)
{
    uint64_t ids[STAGE_TASKS];
    struct candidate c[STAGE_TASKS];
    struct stage_task task[STAGE_TASKS];
    uint32_t pages[STAGE_TASKS];
    unsigned n =
        shadow_next(&e->shadow, ids, HY_MIN(2 * HY_MAX(e->workers, 1u), (unsigned)STAGE_TASKS));
    note_wanted(ids, n);
    n = candidates(ids, n, c, task);
    if (n == 0)
        return false;
    uint64_t free = e->host.free_pages(), may = e->host.may_move();
    uint32_t room = room_of(false);
    share_among(task, n, pages);
    for (unsigned i = 0; i < n; i++) {
        uint32_t come = pages[i] > c[i].there ? pages[i] - c[i].there : 0;
        struct stage_cost cost = {.move_ns = e->host.move_ns(), .evicts = free < come};
        if (c[i].there + come > room)
            break; /* the data of those that run leave no more */
        room -= c[i].there + come;
        if (come == 0 || come > may ||
            !stage_pays(&task[i], come, task[i].pages, c[i].uses, &cost) ||
            stage_ns(come, &cost) > stage_starts_ns(c[i].number, e->workers, e->mean_ns) ||
            (!fit_line(&c[i].type->fit).known && !covered(stage_ns(come, &cost))))
            continue;
        uint64_t began = e->host.now_ns(), before = e->view.staged_pages;
        (void)stage(c[i].id, c[i].number, come);
        uint64_t ns = e->host.now_ns() - began;
        e->view.cost_ns += (int64_t)ns;
        if (e->view.staged_pages == before)
            continue;
        e->view.stages++;
        e->host.lose(verdict_staged(&c[i].type->verdict, (double)ns));
        return true;
    }
    return false;
}

/* Functions whose tasks can never gain are no longer watched: what is left is a test. */
static void drop_hopeless(void)
{
    double slowdown = e->host.slowdown(), move_ns = e->host.move_ns();
    e->hope_at = e->ended + HOPE_TASKS;
    for (unsigned f = 1; f <= TASK_FUNCTIONS; f++)
        if (types_hopeless(&e->types, f, slowdown, move_ns))
            tasks_drop_function(f);
}

/* --- its life ---------------------------------------------------------------------------- */

static void show(void)
{
    struct staging_view *v = &e->view;
    v->types = e->types.n;
    v->types_off = types_view(&e->types, v->type, STAGING_TYPES);
    pthread_mutex_lock(&lock);
    shown = *v;
    if (recorded)
        n_known = types_tell(&e->types, known);
    pthread_mutex_unlock(&lock);
}

int staging_open(const struct staging_host *host)
{
    void *base;
    if (!e) {
        if (os_map_anon(sizeof(*e), &base) != 0)
            return -ENOMEM;
        e = base;
    }
    e->host = *host;
    int r = tasks_open();
    e->view.watched = r == 0;
    show();
    return r;
}

void staging_close(void)
{
    if (!e)
        return;
    tasks_close();
    e->view.watched = false;
    memset(&e->shadow, 0, sizeof(e->shadow)); /* tasks will come and go unseen */
    show();
}

uint64_t staging_serve(void)
{
    if (!e || !e->view.watched)
        return UINT64_MAX;
    uint64_t spent = e->host.spent_ns();
    unsigned n = drain();
    if (n == 0 && e->shadow.running + e->shadow.waiting == 0)
        return UINT64_MAX; /* the next look at pages is soon enough */
    bool staged = e->shadow.waiting > 0 && plan();
    if (e->ended >= e->hope_at)
        drop_hopeless();
    if (n > 0)
        show();
    if (staged)
        return 1;
    spent = e->host.spent_ns() - spent;
    uint64_t next = (uint64_t)(e->mean_ns / 8 / HY_MAX(e->workers, 1u));
    next = HY_MIN(HY_MAX(next, (uint64_t)BUSY_NS), (uint64_t)MOST_NS);
    return HY_MAX(next, spent * LOOK_SHARE);
}

void staging_each(void (*fn)(void *base, size_t bytes))
{
    for (unsigned i = 0; e && i < e->objects.n; i++) {
        const struct object *x = &e->objects.object[i];
        if (x->staged > 0 && x->pages > 0)
            fn((void *)x->base, x->pages * HY_PAGE);
    }
}

void staging_get(struct staging_view *ret)
{
    pthread_mutex_lock(&lock);
    *ret = shown;
    pthread_mutex_unlock(&lock);
    ret->loops = tasks_loops(); /* which nobody has to read */
}

void staging_record(void)
{
    pthread_mutex_lock(&lock);
    recorded = true;
    pthread_mutex_unlock(&lock);
}

unsigned staging_known(struct profile_task *ret)
{
    pthread_mutex_lock(&lock);
    unsigned n = n_known;
    memcpy(ret, known, n * sizeof(*ret));
    pthread_mutex_unlock(&lock);
    return n;
}

/* Its tasks, if it goes on with any, are told of anew. */
void staging_child(void)
{
    tasks_child();
    (void)pthread_mutex_init(&lock, NULL);
    memset(&shown, 0, sizeof(shown));
    recorded = false;
    n_known = 0;
    if (e)
        memset(e, 0, sizeof(*e));
}
