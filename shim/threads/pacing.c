/* SPDX-License-Identifier: BSD-2-Clause */
#include "threads/pacing.h"

#include <pthread.h>
#include <string.h>

#include "place/policy.h"
#include "place/rules/pacing.h"
#include "settings/settings.h"
#include "sys/log.h"
#include "sys/os.h"
#include "threads/rules/pacing_search.h"
#include "threads/rules/threads.h"
#include "threads/search.h"

static struct {
    struct pacing_turn turn;
    struct pacing_search search;
    struct pacing_view view;
    /* Apart from the process's: its trials are part of what it gives up for others. */
    struct regret purse;
    double tries_ns; /* what it may cost so far, trials that ended included */
} pc;
static struct pacing_peer peers[REGISTRY_SLOTS]; /* filled before they are read */

/* For pacing_get, which the thread at exit calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool pacing_possible(void)
{
    const struct hy_settings *s = &hy_config.set;

    return s->pace != HY_OFF && s->policy != HY_POLICY_OFF && s->pm.kind != HY_PM_NONE &&
           policy_has_registry();
}

/* The user's number of threads is the user's. */
static bool may_be_paced(void)
{
    const struct hy_settings *s = &hy_config.set;

    return pacing_possible() && !s->threads.off && s->threads.count == 0;
}

unsigned pacing_count(void)
{
    return pacing_search_count(&pc.search);
}

/* --- the others ------------------------------------------------------------------------ */

static void fill(const struct registry_view *v, bool free)
{
    uint64_t now = os_now_ns();

    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_published *t = &v->entry[i].published;
        peers[i] = (struct pacing_peer){0, 0};
        if (registry_is_stopped(&v->entry[i], now)) /* nobody makes way for it */
            continue;
        peers[i].held = t->held / 1000.0;
        peers[i].writers = (free ? t->writers_free : t->writers) / 1000.0;
    }
}

static void look(void *ctx, const struct registry_view *v)
{
    struct pacing_victim found;
    struct pacing_view *now = ctx;
    unsigned self = 0;

    while (self < v->n && !v->entry[self].is_self)
        self++;
    if (self == v->n)
        return;
    fill(v, false);
    peers[self].held = now->traffic.held;
    now->hindered = pacing_hindered(peers, v->n, self);
    fill(v, true);
    peers[self].writers = now->writers_free;
    found = pacing_find(peers, v->n, self, pc.turn.paced);
    now->victim = 0;
    now->others_lose = found.lost;
    if (!found.any)
        return;
    now->victim = v->entry[found.index].pid;
    memcpy(now->name, v->entry[found.index].name, sizeof(now->name));
}

/* --- its own threads ------------------------------------------------------------------- */

static void begin_or_end(const struct pacing_view *now)
{
    if (pc.turn.paced) {
        pacing_search_begin(&pc.search, now->own_best);
        return;
    }
    pacing_search_stop(&pc.search, &pc.purse);
    log_info("pacing ends: no other program gains by it any more");
}

static void search(const struct pacing_view *now, struct work_model *m, double elapsed_ns)
{
    bool changed;

    if (pc.search.best != now->own_best) { /* its threads have changed */
        pacing_search_stop(&pc.search, &pc.purse);
        pacing_search_begin(&pc.search, now->own_best);
    }
    pc.search.others_lose = now->others_lose;
    pc.tries_ns += pacing_tries(pc.search.gain) * elapsed_ns;
    changed = pacing_search_window(&pc.search, &pc.purse, pc.tries_ns / REGRET_SHARE,
                                   work_served(m), elapsed_ns, PACING_GIVES, work_speed, m);
    if (changed)
        log_info("paced to %u of %u threads (%.2f of its own speed): more of them hold up %s (%d)",
                 pc.search.count, pc.search.best, pc.search.gain, now->name, now->victim);
}

/* What is told and reported is what is kept, not what is tried for a moment. */
static void note(struct pacing_view *now)
{
    unsigned count = pc.search.stage != PACING_OFF ? pc.search.count : 0;

    if (count == pc.search.best)
        count = 0;
    if (count && !now->paced) {
        now->times++;
        now->since_ns = os_now_ns();
    }
    if (count && (now->fewest == 0 || count < now->fewest)) {
        now->fewest = count;
        now->fewest_of = pc.search.best; /* at exit its threads have ended: own_best is 1 */
    }
    now->paced = count;
    now->most_hindered = HY_MAX(now->most_hindered, now->hindered);
    pthread_mutex_lock(&lock);
    pc.view = *now;
    pthread_mutex_unlock(&lock);
}

void pacing_window(const struct window *w, const struct machine_figures *f)
{
    struct pacing_view now = pc.view;
    double elapsed = window_get(w, WINDOW_elapsed_ns);
    unsigned running = pacing_count();
    int32_t last = now.victim;
    enum stall_known known;
    struct work k;

    if (!pacing_possible() || work_of_window(f, w, &k, &known) < 0)
        return;
    now.own_best = threadsearch_own_best();
    now.traffic = traffic_of(f, &k, elapsed);
    now.writers_free = now.traffic.writers;
    if (running && running < pc.search.best)
        now.writers_free = HY_MIN(now.writers_free * pc.search.best / running, pc.search.best);
    policy_look(look, &now);
    if (pacing_settle(&pc.turn, now.victim && may_be_paced() && now.own_best > 1))
        begin_or_end(&now);
    if (pc.turn.paced) {
        struct work_model m = {f, &k};
        if (now.victim == 0)
            now.victim = last; /* not for long: see pacing_settle */
        search(&now, &m, elapsed);
    }
    note(&now);
}

/* --- telling --------------------------------------------------------------------------- */

void pacing_get(struct pacing_view *ret)
{
    pthread_mutex_lock(&lock);
    *ret = pc.view;
    pthread_mutex_unlock(&lock);
}

void pacing_publish(const struct pacing_view *v, struct registry_published *published)
{
    published->ebw_dram = hy_milli(v->traffic.ebw[HY_DRAM]);
    published->ebw_pm = hy_milli(v->traffic.ebw[HY_PM]);
    published->pm_written = hy_milli(v->traffic.written);
    published->writers = hy_milli(v->traffic.writers);
    published->writers_free = hy_milli(v->writers_free);
    published->held = hy_milli(v->traffic.held);
    published->hindered = hy_milli(v->hindered);
    published->paced = v->paced;
    published->own_best = v->own_best;
    published->paced_for = v->paced ? (uint32_t)v->victim : 0;
    published->paced_since = v->paced ? v->since_ns : 0;
}

void pacing_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    memset(&pc, 0, sizeof(pc));
}
