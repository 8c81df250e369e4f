/* SPDX-License-Identifier: BSD-2-Clause */
#include "llc/share.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/purse.h"
#include "core/state.h"
#include "llc/group.h"
#include "llc/rules/share.h"
#include "place/policy.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "sys/log.h"

#define OWN_GROUP "/proc/self/cpu_resctrl_groups"
#define WHY_CAP   sizeof(((struct llc_view *)NULL)->where)

static struct {
    bool asked, emulated;
    struct llc_group group;
    struct llc_share share;
    struct llc_view view;
} lc;
static uint32_t few_ways; /* read by threads that start a program */

/* For llc_get, which the thread at exit calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- where ----------------------------------------------------------------------------- */

static bool is_few(void)
{
    return __atomic_load_n(&few_ways, __ATOMIC_ACQUIRE) != 0;
}

static int move(bool few, char *why, size_t cap)
{
    if (!lc.emulated)
        return llc_group_move(&lc.group, few, why, cap);
    snprintf(why, cap, "the emulated machine refuses");
    return HY_MIN(emulator_fill_ways(few ? lc.view.few : lc.view.of), 0);
}

/* A sixteenth, as of any cache; one way at least. */
static bool open_emulated(void)
{
    int ways = emulator_open() ? emulator_fill_ways(0) : -1;

    if (ways <= 1)
        return false;
    lc.emulated = true;
    lc.view.few = ((unsigned)ways + 15) / 16;
    lc.view.of = (unsigned)ways;
    snprintf(lc.view.where, WHY_CAP, "the emulated machine");
    return true;
}

static bool open_group(const char *dir, bool asked_for)
{
    char why[WHY_CAP] = "";

    if (llc_group_open(dir, OWN_GROUP, &lc.group, why, sizeof(why)) < 0) {
        memcpy(lc.view.where, why, sizeof(why));
        if (asked_for)
            log_warn("HYBRID_CACHE=group:%s: %s; the program keeps all of the cache", dir, why);
        return false;
    }
    lc.view.few = lc.group.few;
    lc.view.of = lc.group.of;
    snprintf(lc.view.where, WHY_CAP, "%s", dir);
    /* The program that started this one had the group, and had no time to leave it. */
    (void)move(false, why, sizeof(why));
    return true;
}

bool llc_possible(void)
{
    const struct hy_settings *s = &hy_config.set;
    bool named = strncmp(s->cache, "group:", 6) == 0;

    if (lc.asked)
        return lc.view.possible;
    if (strcmp(s->cache, "off") == 0 || s->policy == HY_POLICY_OFF ||
        runtime_state() != HY_STEERING)
        return false;
    lc.asked = true;
    if (!policy_has_registry())
        snprintf(lc.view.where, WHY_CAP, "without a registry nobody knows of neighbours");
    else if (named)
        lc.view.possible = open_group(s->cache + 6, true);
    else
        lc.view.possible = open_emulated() || open_group(LLC_GROUP, false);
    return lc.view.possible;
}

static void set(bool few)
{
    char why[WHY_CAP];
    int e;

    if (few == is_few())
        return;
    e = move(few, why, sizeof(why));
    if (e == 0) {
        __atomic_store_n(&few_ways, few, __ATOMIC_RELEASE);
        return;
    }
    log_warn("the share of the last-level cache cannot be changed (%s); it is left as it is", why);
    (void)move(false, why, sizeof(why)); /* those that were moved already */
    __atomic_store_n(&few_ways, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    lc.view.possible = lc.view.now = false;
    pthread_mutex_unlock(&lock);
}

/* --- when ------------------------------------------------------------------------------ */

static void look(void *ctx, const struct registry_view *v)
{
    *(unsigned *)ctx = v->n;
}

static bool has_neighbours(void)
{
    unsigned n = 0;

    policy_look(look, &n);
    return n > 1;
}

/* What is told is what is kept, not what is tried for a moment. */
static void note(double elapsed_ns, enum registry_reuse reuse)
{
    bool kept = llc_share_kept(&lc.share), before = lc.view.now;

    pthread_mutex_lock(&lock);
    lc.view.now = kept;
    lc.view.reuse = reuse;
    lc.view.times += kept && !before;
    lc.view.given_back = lc.share.given_back;
    if (is_few())
        lc.view.few_ns += (uint64_t)elapsed_ns;
    if (kept)
        lc.view.speed_milli = hy_milli(lc.share.search.gain);
    pthread_mutex_unlock(&lock);
    if (kept && !before)
        log_info("%u of %u ways of the last-level cache are enough for what the program streams "
                 "(%.2f of its speed)",
                 lc.view.few, lc.view.of, lc.share.search.gain);
    else if (before && !kept)
        log_info("all ways of the last-level cache again");
}

void llc_window(const struct window *w, const struct classification *c, uint64_t thrashing,
                uint64_t touched)
{
    double elapsed = window_get(w, WINDOW_elapsed_ns), run_ns;
    enum registry_reuse reuse;
    struct regret *purse;
    bool streams, wanted;

    if (!llc_possible())
        return;
    streams = llc_streams(c, w, thrashing, touched);
    wanted = streams && has_neighbours();
    purse = purse_open(&run_ns);
    llc_share_window(&lc.share, wanted, purse, run_ns, window_get(w, WINDOW_instructions), elapsed);
    purse_close();
    reuse = c->weak ? REGISTRY_REUSE_UNKNOWN : streams ? REGISTRY_STREAMS : REGISTRY_REUSES;
    note(elapsed, reuse); /* the window was as it was before */
    set(llc_share_few(&lc.share));
}

void llc_tick(void)
{
    char why[WHY_CAP];

    if (is_few() && !lc.emulated)
        (void)llc_group_move(&lc.group, true, why, sizeof(why));
}

void llc_pause(void)
{
    set(false);
}

/* --- the rest -------------------------------------------------------------------------- */

void llc_get(struct llc_view *ret)
{
    pthread_mutex_lock(&lock);
    *ret = lc.view;
    pthread_mutex_unlock(&lock);
}

bool llc_open(void)
{
    if (HY_LIKELY(!is_few()) || lc.emulated)
        return false;
    llc_group_move_caller(&lc.group, false);
    return true;
}

void llc_close(bool opened)
{
    if (opened && is_few())
        llc_group_move_caller(&lc.group, true);
}

void llc_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    if (is_few() && lc.emulated)
        (void)emulator_fill_ways(lc.view.of);
    else if (is_few())
        llc_group_move_caller(&lc.group, false);
    lock = fresh;
    if (lc.asked)
        memset(&lc, 0, sizeof(lc));
}
