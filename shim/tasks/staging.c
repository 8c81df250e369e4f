/* SPDX-License-Identifier: BSD-2-Clause
 * See staging.h. */
#include "tasks/staging.h"

#include <pthread.h>
#include <string.h>

#include "sys/os.h"
#include "tasks/staging_internal.h"

#define BUSY_NS    20000u   /* between two looks while tasks come, at least */
#define MOST_NS    1000000u /* and at most */
#define LOOK_SHARE 100u     /* looks without a stage take this part of one core at most */
#define HOPE_TASKS 64u      /* between two questions whether anything can pay */

struct engine *hy_staging;
static struct staging_host served;
static bool watches;
static struct staging_view shown; /* under lock */
static bool recorded;             /* the same: and what a later run shall know */
static struct profile_task known[PROFILE_MAX_TASKS];
static unsigned n_known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- what tasks tell -------------------------------------------------------------------- */

static void made(void)
{
    struct shadow_need need[SHADOW_NEEDS];
    unsigned n = 0;
    for (unsigned i = 0; i < hy_staging->made.bytes; i++) {
        const struct task_event *d = &hy_staging->needs[i];
        unsigned o = objects_at(&hy_staging->objects, d->value, d->bytes);
        bool twice = o == OBJECT_NONE;
        for (unsigned j = 0; j < n && !twice; j++)
            if (need[j].object == o) {
                need[j].writes |= d->writes;
                twice = true;
            }
        if (!twice)
            need[n++] = (struct shadow_need){(uint16_t)o, d->writes};
    }
    shadow_made(&hy_staging->shadow, hy_staging->made.id, hy_staging->made.function, need, n);
}

/* Quiet is a task whose data are where they were, with nothing moved since as long before it as it
 * took. */
static void account(struct task_type *type, const struct shadow_task *t, const struct footprint *f,
                    double ns)
{
    double share = staging_untouched(f);
    bool quiet = hy_staging->moved_ns == 0 ||
                 (!f->touched && (double)t->began - (double)hy_staging->moved_ns > ns);
    if (f->carried_ns > t->began)
        return; /* where its data were meanwhile is not known */
    (quiet ? account_quiet : account_staged)(&type->account, share, ns);
}

static void ended(const struct shadow_task *t, uint64_t at_ns)
{
    struct footprint f = staging_footprint(t);
    double ns = at_ns > t->began ? (double)(at_ns - t->began) : 0;
    unsigned k = types_of(&hy_staging->types, t->function, f.pages, t->needs);
    hy_staging->ended++;
    hy_staging->view.tasks++;
    hy_staging->mean_ns =
        hy_staging->mean_ns > 0 ? hy_staging->mean_ns + (ns - hy_staging->mean_ns) / 16 : ns;
    for (unsigned i = 0; i < t->needs; i++)
        hy_staging->objects.object[t->need[i].object].used = hy_staging->ended;
    if (k == TYPE_NONE)
        return;
    struct task_type *type = &hy_staging->types.type[k];
    type->ran++;
    account(type, t, &f, ns);
    if (f.all == 0) {
        fit_add(&type->fit, 1, ns);
        return;
    }
    struct fit_line line = fit_line(&type->fit);
    bool both = f.changed_ns > t->began; /* its data moved while it ran */
    if (f.staged > 0) {
        double saved =
            line.known ? line.pm_ns - ns : fit_saving(&type->fit, hy_staging->host.slowdown());
        if (both && !line.known)
            saved *= at_ns > f.changed_ns ? (double)(at_ns - f.changed_ns) / ns : 0;
        saved *= (double)f.staged / HY_MAX(f.dram, f.staged); /* the rest was there before */
        hy_staging->view.hits++;
        hy_staging->view.saved_ns += (int64_t)saved;
        verdict_ran(&type->verdict, saved);
    }
    if (both)
        return;
    fit_add(&type->fit, (double)f.dram / f.all, ns);
}

static void event(void *ctx, const struct task_event *v)
{
    struct shadow_task t;
    (void)ctx;
    switch ((enum task_event_kind)v->kind) {
    case TASK_MADE:
        hy_staging->made = *v;
        hy_staging->needs_left = (unsigned)HY_MIN(v->bytes, (uint64_t)TASK_NEEDS_MOST);
        break;
    case TASK_NEEDS:
        if (hy_staging->needs_left == 0 || v->id != hy_staging->made.id)
            break;
        hy_staging->needs[hy_staging->made.bytes - hy_staging->needs_left] = *v;
        if (--hy_staging->needs_left == 0)
            made();
        break;
    case TASK_BEGAN:
        shadow_began(&hy_staging->shadow, v->id, v->value);
        hy_staging->workers = HY_MAX(hy_staging->workers, hy_staging->shadow.running);
        break;
    case TASK_ENDED:
        if (shadow_ended(&hy_staging->shadow, v->id, &t))
            ended(&t, v->value);
        break;
    }
}

unsigned staging_drain(void)
{
    unsigned n = tasks_drain(event, NULL);
    uint64_t dropped = tasks_dropped();
    if (dropped != hy_staging->view.dropped)
        shadow_lost(&hy_staging->shadow);
    hy_staging->view.dropped = dropped;
    return n;
}

/* --- the plan ---------------------------------------------------------------------------- */

struct candidate {
    struct stage stage;
    uint32_t there;
    double untouched; /* share on DRAM, had nothing been moved for tasks */
    struct task_type *type;
};

/* How often tasks that have not begun use its data, by pages: what they share may be little of
 * them. */
static double uses_of(const struct shadow_task *t, uint32_t pages, const uint64_t *ids, unsigned n)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct shadow_task *u = shadow_find(&hy_staging->shadow, ids[i]);
        for (unsigned k = 0; u && u->state == SHADOW_WAITS && k < t->needs; k++)
            for (unsigned j = 0; j < u->needs; j++)
                if (u->need[j].object == t->need[k].object)
                    used += hy_staging->objects.object[t->need[k].object].pages;
    }
    return (double)used / pages;
}

static bool candidate(uint64_t id, const uint64_t *ids, unsigned n, struct candidate *ret)
{
    const struct shadow_task *t = shadow_find(&hy_staging->shadow, id);
    if (!t)
        return false;
    struct footprint f = staging_footprint(t);
    unsigned number = types_of(&hy_staging->types, t->function, f.pages, t->needs);
    if (number == TYPE_NONE || f.all == 0)
        return false;
    struct task_type *type = &hy_staging->types.type[number];
    double uses = uses_of(t, f.all, ids, n) + (t->state == SHADOW_RUNS);
    type->uses = HY_MAX(type->uses, uses);
    ret->stage = (struct stage){.id = id, .uses = uses};
    ret->stage.of =
        (struct stage_task){.pm_ns = fit_line(&type->fit).pm_ns,
                            .saving = fit_saving(&type->fit, hy_staging->host.slowdown()),
                            .pages = f.all,
                            .type = number};
    ret->stage.whole_ns = ret->stage.of.pm_ns - ret->stage.of.saving * f.dram / f.all;
    ret->there = f.dram;
    ret->untouched = staging_untouched(&f);
    ret->type = type;
    return !type->verdict.off;
}

/* As many as run at a time share the DRAM. */
static void share_among(const struct candidate *c, unsigned n, unsigned waiting, uint32_t *ret)
{
    struct stage_task task[STAGE_TASKS];
    uint32_t room = staging_room(FOR_RUNNING);
    unsigned together = HY_MAX(hy_staging->workers, 1u);
    bool many = hy_staging->shadow.waiting > together;
    for (unsigned i = 0; i < n; i++)
        task[i] = c[i].stage.of;
    for (unsigned i = 0; i < waiting; i += together)
        stage_share(task + i, HY_MIN(waiting - i, together), room, many, ret + i);
    stage_share(task + waiting, n - waiting, many ? UINT32_MAX : room, many, ret + waiting);
}

/* What is not measured yet is a trial: paid by what stages have saved so far, or by what trials may
 * lose. */
static bool covered(double cost_ns)
{
    double owed = (double)(hy_staging->view.cost_ns - hy_staging->view.saved_ns) + cost_ns;
    return owed <= 0 || owed <= hy_staging->host.may_lose();
}

/* The next tasks and then those that run; how many, and how many of them wait. */
static unsigned candidates(struct candidate *ret, unsigned *ret_waiting)
{
    uint64_t ids[STAGE_TASKS];
    unsigned waiting, n = staging_next(ids, &waiting), k = 0;
    *ret_waiting = 0;
    for (unsigned i = 0; i < n; i++)
        if (candidate(ids[i], ids, n, &ret[k])) {
            ret[k++].stage.number = i < waiting ? i + 1 : FOR_RUNNING;
            *ret_waiting += i < waiting;
        }
    return k;
}

static bool worth(struct candidate *c, uint32_t come)
{
    const struct staging_host *host = &hy_staging->host;
    c->stage.cost =
        (struct stage_cost){.move_ns = host->move_ns(), .evicts = host->free_pages() < come};
    return come > 0 && come <= host->may_move() && staging_pays(&c->stage, come) &&
           (fit_line(&c->type->fit).known || covered(stage_ns(come, &c->stage.cost))) &&
           account_knows(&c->type->account, c->untouched) && types_allow(&hy_staging->types);
}

/* If it is worth it; false: nothing came. */
static bool bring(struct candidate *c, uint32_t come)
{
    const struct staging_host *host = &hy_staging->host;
    if (!worth(c, come))
        return false;
    uint64_t began = host->now_ns(), before = hy_staging->view.staged_pages;
    staging_bring(&c->stage, come);
    uint64_t ns = host->now_ns() - began;
    hy_staging->view.cost_ns += (int64_t)ns;
    if (hy_staging->view.staged_pages == before)
        return false;
    hy_staging->view.stages++;
    host->lose(verdict_staged(&c->type->verdict, (double)ns));
    return true;
}

/* Data for the first for whom it is worth it: what comes before a task is used all the time that it
 * runs, so those that run come last; but what is enough for these only is theirs, as the data of
 * others would lie there unused until then. */
static bool plan(void)
{
    struct candidate c[STAGE_TASKS];
    uint32_t come[STAGE_TASKS], room = 0;
    unsigned waiting, n = candidates(c, &waiting);
    share_among(c, n, waiting, come);
    for (unsigned i = 0; i < n; i++)
        come[i] -= HY_MIN(come[i], c[i].there);
    if (waiting > 0)
        room = staging_room(FOR_RUNNING + 1);
    for (unsigned i = waiting; i < n && room > 0; i++)
        room -= worth(&c[i], come[i]) ? HY_MIN(room, come[i]) : 0;
    for (unsigned i = 0; i < waiting && c[i].there + come[i] <= room; i++) {
        if (bring(&c[i], come[i]))
            return true;
        room -= c[i].there + come[i];
    }
    if (waiting < n)
        room = staging_room(FOR_NONE);
    for (unsigned i = waiting; i < n; i++)
        if (bring(&c[i], HY_MIN(come[i], room)))
            return true;
    return false;
}

/* Functions whose tasks can never gain are no longer watched: what is left is a test. */
static void drop_hopeless(void)
{
    double slowdown = hy_staging->host.slowdown(), move_ns = hy_staging->host.move_ns();
    hy_staging->hope_at = hy_staging->ended + HOPE_TASKS;
    for (unsigned f = 1; f <= TASK_FUNCTIONS; f++)
        if (types_hopeless(&hy_staging->types, f, slowdown, move_ns))
            tasks_drop_function(f);
}

/* --- its life ---------------------------------------------------------------------------- */

static void show(void)
{
    struct staging_view *v = &hy_staging->view;
    v->types = hy_staging->types.n;
    v->types_off = types_view(&hy_staging->types, v->type, STAGING_TYPES);
    pthread_mutex_lock(&lock);
    shown = *v;
    if (recorded)
        n_known = types_tell(&hy_staging->types, known);
    pthread_mutex_unlock(&lock);
}

void staging_open(const struct staging_host *host)
{
    served = *host;
    watches = true;
    if (hy_staging) {
        hy_staging->host = *host;
        hy_staging->view.watched = true;
    }
    tasks_open();
    pthread_mutex_lock(&lock);
    shown.watched = true;
    pthread_mutex_unlock(&lock);
}

/* For the first task: most programs have none. */
static bool begin(void)
{
    void *base;
    if (hy_staging || !tasks_told())
        return hy_staging != NULL;
    if (os_map_anon(sizeof(*hy_staging), &base) != 0)
        return false;
    hy_staging = base;
    hy_staging->host = served;
    hy_staging->view.watched = true;
    return true;
}

void staging_close(void)
{
    if (!watches)
        return;
    tasks_close();
    watches = false;
    pthread_mutex_lock(&lock);
    shown.watched = false;
    pthread_mutex_unlock(&lock);
    if (!hy_staging)
        return;
    hy_staging->view.watched = false;
    memset(&hy_staging->shadow, 0, sizeof(hy_staging->shadow)); /* tasks will come and go unseen */
    show();
}

uint64_t staging_serve(void)
{
    if (!watches || !begin())
        return UINT64_MAX;
    uint64_t spent = hy_staging->host.spent_ns();
    unsigned n = staging_drain();
    if (n == 0 && hy_staging->shadow.running + hy_staging->shadow.waiting == 0)
        return UINT64_MAX; /* the next look at pages is soon enough */
    bool staged = hy_staging->shadow.waiting + hy_staging->shadow.running > 0 && plan();
    if (hy_staging->ended >= hy_staging->hope_at)
        drop_hopeless();
    if (n > 0)
        show();
    if (staged)
        return 1;
    spent = hy_staging->host.spent_ns() - spent;
    uint64_t next = (uint64_t)(hy_staging->mean_ns / 8 / HY_MAX(hy_staging->workers, 1u));
    next = HY_MIN(HY_MAX(next, (uint64_t)BUSY_NS), (uint64_t)MOST_NS);
    return HY_MAX(next, spent * LOOK_SHARE);
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
    recorded = watches = false;
    n_known = 0;
    if (hy_staging)
        memset(hy_staging, 0, sizeof(*hy_staging));
}
