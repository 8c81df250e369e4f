/* SPDX-License-Identifier: BSD-2-Clause
 * See planned.h. Everything but what malloc reads (a tier a site, the list of what is kept) is
 * under a lock that malloc's slow path only tries: whoever does not get it goes on with the
 * plan as it is. */
#include "place/planned.h"

#include <string.h>

#include "classify/figures.h"
#include "core/purse.h"
#include "place/floor.h"
#include "place/policy.h"
#include "place/rules/plan_trial.h"
#include "place/rules/site_quota.h"
#include "place/rules/site_turns.h"
#include "place/rules/small_sites.h"
#include "settings/settings.h"
#include "sys/log.h"
#include "sys/os.h"

#define KEPT_MAX 256 /* smaller parts of the share are not kept: so the list is short */
/* Another share, or other sizes, make another plan if they differ by this part. */
#define OTHER_SHARE 16
#define OTHER_SCALE 16
/* Sizes in proportion are not exact, and a block that is a page too large goes elsewhere. */
#define SCALE_MARGIN (1.0 / 256)
#define SOON_SITES   64 /* a new scale makes a new plan inside malloc if that is soon done */

/* What is kept: immutable once published; two, as a reader may still be in the old. */
struct kept {
    unsigned n;
    struct {
        uint16_t site;
        uint32_t held; /* of the parts of the run that are still to come */
        uint64_t quota;
        uint64_t slack; /* what blocks may be smaller than the pages that they are charged */
        bool lapsed;    /* nothing more is kept for it; what it holds comes free again */
    } entry[KEPT_MAX];
    uint64_t lapse_at; /* of `volume`: something is to be looked at again */
};

static struct plans { /* mapped by a process that has a profile */
    bool tight, in_place;
    unsigned n_profile, n; /* sites of the profile, and with the rest of the memory */
    struct plan_times times;
    struct plan_work work;
    struct machine_figures figures;
    struct plan_site site[PLAN_MAX]; /* as in the profile */
    struct plan_site scaled[PLAN_MAX];
    struct quota_site state[PLAN_MAX];
    uint64_t stamp[PLAN_MAX];        /* volume at the last allocation; 0: none yet */
    struct site_turn turn[PLAN_MAX]; /* by the program's threads */
    uint64_t came[PLAN_MAX];         /* bytes asked for so far */
    bool unlikely[PLAN_MAX];         /* its modules are not loaded */
    struct site_plan plan;
    struct plan_scratch scratch;
    uint64_t quota[PLAN_MAX];
    struct quota_scale scale;
    double planned_scale;
    uint64_t share, footprint, total, plans;
    struct plan_trial trial; /* by the control thread */
} * pl;
static bool on, given_up; /* there is a plan; there was one */

static struct kept generation[2], *kept;
static uint64_t volume; /* bytes allocated at sites since the beginning */
static uint32_t lock;

static bool try_lock(void)
{
    return __atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) == 0;
}

static void unlock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static uint64_t load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static bool is_on(void)
{
    return __atomic_load_n(&on, __ATOMIC_ACQUIRE);
}

/* What a byte of it saves on DRAM. */
static double saves(unsigned i)
{
    return pl->plan.place[i].saves_ns / (double)HY_MAX(pl->scaled[i].bytes, 1u);
}

static bool has_levels(unsigned i)
{
    return pl->site[i].heat && pl->site[i].parts;
}

/* --- what is kept ---------------------------------------------------------------- */

static uint64_t patience(unsigned i)
{
    double all = (double)(load(&pl->stamp[i]) ? pl->footprint : pl->total) * pl->planned_scale;
    return (uint64_t)all;
}

/* The parts of the run that are still to come, with this one. */
static uint32_t times_from(uint64_t now)
{
    double all = HY_MAX((double)pl->total * pl->planned_scale, 1.0);
    return PLAN_ALWAYS << site_times_part(&pl->times, (double)now / all);
}

/* All that the recorded run asked for has been asked for: it is not expected again. Where a run is
 * longer all the same, the kernel splits what comes by what is free then; where a limit is kept by
 * whole blocks, that is too early (patience). */
static bool all_came(unsigned i)
{
    double in_all = (double)hy_config.profile.sites[i].bytes * pl->planned_scale;
    return (double)load(&pl->came[i]) >= in_all * (1 - SCALE_MARGIN);
}

static void update_states(uint64_t now)
{
    uint32_t times = times_from(now);
    for (unsigned i = 0; i < pl->n_profile; i++) {
        struct quota_site *s = &pl->state[i];
        s->live = sites_steered_live(i);
        /* What is there now takes DRAM, whatever the recorded run did. */
        s->held = (pl->scaled[i].held | (s->live > 0 ? times & -times : 0)) & times;
        if (s->held == 0)
            s->held = times;
        s->lapsed = now - load(&pl->stamp[i]) > patience(i) || (floor_on() && all_came(i)) ||
                    (pl->unlikely[i] && load(&pl->stamp[i]) == 0);
    }
}

static void set_tiers(void)
{
    for (unsigned i = 0; i < pl->n_profile; i++) {
        /* Room enough for all: what is idle need not go to PM. */
        bool steered = pl->site[i].fixed || pl->quota[i] > 0 || pl->tight;
        enum hy_tier t = pl->site[i].fixed ? pl->site[i].tier : pl->quota[i] ? HY_DRAM : HY_PM;
        sites_set_tier(i, steered, t);
    }
}

static void publish_kept(uint64_t now)
{
    struct kept *old = kept, *k = old == &generation[0] ? &generation[1] : &generation[0];
    k->n = 0;
    k->lapse_at = UINT64_MAX;
    for (unsigned i = 0; i < pl->n_profile && k->n < KEPT_MAX; i++) {
        if (pl->quota[i] == 0 || pl->quota[i] < pl->share / KEPT_MAX)
            continue;
        if (hy_config.profile.sites[i].max_size < hy_config.set.site_min)
            continue; /* few of its blocks are seen: it would be kept from itself */
        k->entry[k->n].site = (uint16_t)i;
        k->entry[k->n].held = pl->state[i].held;
        k->entry[k->n].slack = pl->quota[i] / HY_MAX(pl->state[i].block, 1u) * HY_PAGE;
        k->entry[k->n].lapsed = pl->state[i].lapsed;
        k->entry[k->n++].quota = pl->quota[i];
        if (!pl->state[i].lapsed)
            k->lapse_at = HY_MIN(k->lapse_at, HY_MAX(load(&pl->stamp[i]) + patience(i), now) + 1);
    }
    __atomic_store_n(&kept, k, __ATOMIC_RELEASE);
}

/* What an entry has not asked for yet. */
static uint64_t outstanding(const struct kept *k, unsigned e)
{
    uint64_t live = sites_steered_live(k->entry[e].site), quota = k->entry[e].quota;
    return !k->entry[e].lapsed && quota > live + k->entry[e].slack ? quota - live : 0;
}

/* The most that is kept in any of these parts of the run. */
static uint64_t most_kept(const struct kept *k, uint32_t times)
{
    uint64_t sum[PLAN_TIMES] = {0}, most = 0;
    for (unsigned e = 0; k && e < k->n; e++) {
        uint64_t n = outstanding(k, e);
        for (uint32_t left = n ? k->entry[e].held & times : 0; left != 0; left &= left - 1) {
            uint64_t *at = &sum[__builtin_ctz(left)];
            *at += n;
            most = HY_MAX(most, *at);
        }
    }
    return most;
}

static void keep(void)
{
    policy_keep_dram(
        most_kept(__atomic_load_n(&kept, __ATOMIC_ACQUIRE), times_from(load(&volume))));
}

/* Of it, what is kept from a block of site `i` that comes now (not what the better ones will only
 * ask for when that is gone, nor what others give back before), and what all of that saves. */
static uint64_t sum_kept_from(unsigned i, const struct kept *k, uint64_t now, double *ret_saves)
{
    uint64_t sum[PLAN_TIMES] = {0}, back[PLAN_TIMES] = {0}, most = 0;
    double saved[PLAN_TIMES] = {0};
    uint32_t times = pl->state[i].held;
    for (unsigned e = 0; k && e < k->n; e++) {
        unsigned other = k->entry[e].site;
        uint64_t n = outstanding(k, e), live = sites_steered_live(other);
        if (other == i || (live == 0 && !site_turns_meet(&pl->turn[other], &pl->turn[i], now)))
            continue;
        for (uint32_t left = n ? k->entry[e].held & times : 0; left != 0; left &= left - 1) {
            sum[__builtin_ctz(left)] += n;
            saved[__builtin_ctz(left)] += saves(other) * (double)n;
        }
        for (uint32_t left = live ? times & ~k->entry[e].held : 0; left != 0; left &= left - 1)
            back[__builtin_ctz(left)] += HY_MIN(live, k->entry[e].quota);
    }
    for (unsigned t = 0; t < PLAN_TIMES; t++)
        if (sum[t] > back[t] && sum[t] - back[t] > most) {
            most = sum[t] - back[t];
            *ret_saves = saved[t] / (double)sum[t] * (double)most;
        }
    return most;
}

/* The part of a block of a site that is on DRAM: what the plan has for it, or of what is free as
 * much as is not asked for before it is gone, or saves more than that. */
static uint64_t part_on_dram(unsigned i, const struct kept *k, size_t n, uint64_t now)
{
    double lost = 0;
    uint64_t live = sites_steered_live(i), before = live - HY_MIN(live, n);
    uint64_t quota = load(&pl->quota[i]), own = quota - HY_MIN(quota, before);
    if (has_levels(i) && pl->state[i].need > n) /* the hot parts of each of its blocks */
        own = HY_MIN(own, (uint64_t)((double)n * (double)quota / (double)pl->state[i].need));
    if (own >= n || pl->plan.place[i].why == PLAN_IDLE)
        return HY_MIN(own, n);
    uint64_t from = sum_kept_from(i, k, now, &lost), left = floor_dram_left();
    uint64_t (*take)(uint64_t, uint64_t, uint64_t, double, double) =
        own > 0 && !site_turn_comes_again(&pl->turn[i]) ? site_turn_split : site_turn_part;
    return HY_MAX(own, take(n, left, from, saves(i), from ? lost / (double)from : 0));
}

static void fill(void)
{
    if (!is_on()) /* given up a moment ago */
        return;
    uint64_t now = load(&volume);
    update_states(now);
    site_quota_fill(&pl->plan, pl->state, pl->share, pl->quota);
    set_tiers();
    publish_kept(now);
    keep();
}

/* --- the plan ----------------------------------------------------------------------- */

static void make_plan(void)
{
    double scale = quota_scale_get(&pl->scale);
    double margin = scale != 1 ? 1 + SCALE_MARGIN : 1;
    uint64_t all = 0;
    for (unsigned i = 0; i < pl->n; i++) {
        struct plan_site *s = &pl->scaled[i];
        *s = pl->site[i];
        s->bytes = (uint64_t)((double)s->bytes * scale * margin);
        s->block = (uint64_t)((double)s->block * scale * margin);
        all += s->bytes;
    }
    pl->planned_scale = scale;
    pl->tight = all > pl->share;
    site_plan_make(&pl->figures, &pl->work, pl->scaled, pl->n, pl->share, &pl->scratch, &pl->plan);
    for (unsigned i = 0; i < pl->n; i++) {
        struct plan_site s = pl->scaled[i];
        s.parts = false;
        pl->state[i].need = site_plan_blocks(&s, &pl->state[i].block);
        pl->state[i].need *= pl->state[i].block;
        pl->state[i].parts = pl->scaled[i].parts;
        pl->state[i].best = has_levels(i) ? pl->plan.place[i].dram_bytes : 0;
        pl->state[i].fixed = s.fixed;
        pl->state[i].tier = s.tier;
    }
    pl->plans++;
}

static void log_plan(void)
{
    struct planned_view v;
    planned_get(&v);
    log_info("profile: a plan for %u call sites: %u of them get %llu of %llu KiB of DRAM; "
             "slowdown by the machine's figures %.2f",
             v.sites, v.on_dram, (unsigned long long)(v.quota >> 10),
             (unsigned long long)(v.share >> 10), v.slowdown);
}

static void begin_plan(const struct profile *p)
{
    void *m;
    if (os_map_table(sizeof(*pl), &m)) {
        log_warn("profile: no memory for a plan; placing by the tiers that it names");
        return;
    }
    pl = m;
    pl->figures = *figures_here();
    pl->n_profile = p->n_sites;
    pl->n = site_plan_sites(p, pl->site);
    site_times_make(p, &pl->times);
    if (floor_on())
        site_plan_split(p, pl->site);
    for (unsigned i = 0; i < pl->n; i++) {
        pl->footprint += pl->site[i].bytes;
        pl->total += i < p->n_sites ? p->sites[i].bytes : 0;
    }
    pl->total = HY_MAX(pl->total, pl->footprint);
    pl->share = policy_dram_share();
    if (hy_config.set.policy == HY_POLICY_AUTO && pl->n_profile > 0 &&
        hy_config.set.dram_allocator == HY_DRAM_MEMKIND &&
        site_plan_work(p, &pl->figures, &pl->work) == 0) {
        make_plan();
        __atomic_store_n(&on, true, __ATOMIC_RELEASE);
    }
}

bool planned_begin(void)
{
    static bool small[PROFILE_MAX_SITES];
    const struct profile *p = &hy_config.profile;
    unsigned unmatched = 0;

    begin_plan(p);
    bool any_small = small_sites_choose(p, is_on() && pl->tight ? &pl->plan : NULL,
                                        pl ? pl->site : NULL, hy_config.set.site_min, small);
    sites_steer(p->sites, p->n_sites, small, &unmatched);
    if (unmatched)
        log_info("profile: %u of %u call sites are of modules that are not loaded, or of "
                 "another build",
                 unmatched, p->n_sites);
    if (is_on()) {
        for (unsigned i = 0; unmatched && i < p->n_sites; i++)
            pl->unlikely[i] = !sites_loaded(&p->sites[i]);
        fill();
        log_plan();
    }
    return any_small;
}

/* --- while the program runs ------------------------------------------------------------ */

static bool other_scale(void)
{
    double scale = quota_scale_get(&pl->scale);
    double off = scale > pl->planned_scale ? scale - pl->planned_scale : pl->planned_scale - scale;
    return off * OTHER_SCALE > pl->planned_scale;
}

/* The first block of a site that has only one tells how large this run is; not a reservation. */
static void note_size(unsigned i, size_t n)
{
    const struct plan_site *s = &pl->site[i];
    if (n == 0 || s->block == 0 || s->bytes > s->block + s->block / 2 ||
        s->bytes < pl->share / KEPT_MAX)
        return;
    quota_scale_note(&pl->scale, n, s->block);
    if (other_scale() && pl->n <= SOON_SITES)
        make_plan();
}

uint64_t planned_alloc(site_id id, size_t n, uint32_t weight, enum hy_tier *tier)
{
    int i = sites_steered(id);
    uint64_t part = 0;
    if (HY_LIKELY(!is_on())) {
        (void)sites_tier(id, tier);
        return 0;
    }
    uint64_t now = __atomic_add_fetch(&volume, (uint64_t)n * weight, __ATOMIC_RELAXED);
    const struct kept *k = __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
    bool first = false, look = k && now >= k->lapse_at;
    if (i >= 0) {
        __atomic_add_fetch(&pl->came[i], (uint64_t)n * weight, __ATOMIC_RELAXED);
        if (sites_steered_live((unsigned)i) <= (uint64_t)n * weight)
            site_turn_begin(&pl->turn[i], now);
        first = __atomic_exchange_n(&pl->stamp[i], now, __ATOMIC_RELAXED) == 0;
        look |= first || sites_steered_live((unsigned)i) > load(&pl->quota[i]);
    }
    if (look && try_lock()) {
        if (first)
            note_size((unsigned)i, n);
        fill();
        unlock();
    } else if (i >= 0) {
        keep();
    }
    if (!sites_tier(id, tier) || i < 0 || !floor_on() || pl->site[i].fixed ||
        (*tier == HY_DRAM && sites_steered_live((unsigned)i) <= load(&pl->quota[i])) || !try_lock())
        return 0;
    part = part_on_dram((unsigned)i, k, n, now);
    *tier = part < n ? HY_PM : HY_DRAM;
    unlock();
    return part < n ? part : 0;
}

const uint8_t *planned_levels(site_id id)
{
    int i = is_on() ? sites_steered(id) : -1;
    return i >= 0 ? pl->site[i].level : NULL;
}

void planned_free(site_id id)
{
    int i = is_on() ? sites_steered(id) : -1;
    if (i < 0)
        return;
    if (sites_steered_live((unsigned)i) == 0)
        site_turn_end(&pl->turn[i], load(&volume));
    keep();
}

void planned_tick(void)
{
    if (!is_on() || !try_lock())
        return;
    uint64_t share = policy_dram_share();
    uint64_t less = HY_MIN(share, pl->share), more = HY_MAX(share, pl->share);
    bool other = more - less > more / OTHER_SHARE;
    if (other || other_scale()) {
        pl->share = share;
        make_plan();
    }
    fill();
    unlock();
    if (other)
        log_plan();
}

/* Until all have come once that the plan has DRAM for, its promise is not for what there is. Of
 * small blocks few are seen (publish_kept): they are not waited for. */
static bool is_in_place(void)
{
    for (unsigned i = 0; i < pl->n_profile && !pl->in_place; i++)
        if (pl->plan.place[i].dram_bytes > 0 && load(&pl->stamp[i]) == 0 &&
            hy_config.profile.sites[i].max_size >= hy_config.set.site_min)
            return false;
    pl->in_place = true;
    return true;
}

/* What is named stays; all else is placed as if there were no profile. */
static void give_up(void)
{
    __atomic_store_n(&on, false, __ATOMIC_RELAXED);
    __atomic_store_n(&given_up, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < pl->n_profile; i++)
        sites_set_tier(i, pl->site[i].fixed, pl->site[i].tier);
    __atomic_store_n(&kept, NULL, __ATOMIC_RELEASE);
    policy_keep_dram(0);
    log_info("profile: the plan is given up: it takes %.2f of the time that it promised",
             plan_trial_ratio(&pl->trial));
}

void planned_window(const struct window *w)
{
    double run_ns;
    if (!is_on() || !is_in_place() || !try_lock())
        return;
    struct work promised = site_plan_lines(&pl->work, pl->scaled, &pl->plan);
    struct regret *purse = purse_open(&run_ns);
    bool holds = plan_trial_window(&pl->trial, purse, run_ns, &pl->figures, w, &promised);
    purse_close();
    if (!holds)
        give_up();
    unlock();
}

/* The thread that held the lock is not in the child, whose purse is another. */
void planned_child(void)
{
    if (pl)
        pl->trial = (struct plan_trial){0};
    unlock();
}

void planned_get(struct planned_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->on = is_on();
    ret->given_up = __atomic_load_n(&given_up, __ATOMIC_RELAXED);
    if (!ret->on)
        return;
    ret->sites = pl->n_profile;
    ret->share = pl->share;
    ret->kept = most_kept(__atomic_load_n(&kept, __ATOMIC_ACQUIRE), times_from(load(&volume)));
    ret->plans = (uint32_t)pl->plans;
    ret->scale = pl->planned_scale;
    for (unsigned i = 0; i < pl->n_profile; i++) {
        ret->on_dram += pl->quota[i] > 0;
        ret->quota += pl->quota[i];
    }
    double dram = site_plan_time_at(&pl->figures, &pl->work, 0);
    ret->slowdown =
        site_plan_time(&pl->figures, &pl->work, pl->scaled, &pl->plan) / HY_MAX(dram, 1);
}
