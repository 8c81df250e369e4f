/* SPDX-License-Identifier: BSD-2-Clause
 * See migrator.h. The control thread starts the pages' thread, which is the only one that
 * looks and moves; what the program's threads do to memory meanwhile is migrate_books.c's. */
#include "migrator.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "classify/figures.h"
#include "core/control.h"
#include "core/pause.h"
#include "core/state.h"
#include "pages/migrate_beside.h"
#include "pages/migrate_books.h"
#include "pages/migrate_carry.h"
#include "pages/migrate_clock.h"
#include "pages/migrate_judge.h"
#include "pages/migrate_room.h"
#include "pages/migrate_tasks.h"
#include "pages/migrate_ways.h"
#include "pages/migrate_worth.h"
#include "pages/rules/coverage.h"
#include "pages/rules/pace.h"
#include "place/floor.h"
#include "place/policy.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "sys/log.h"
#include "sys/os.h"
#include "tasks/staging.h"

#define STACK_BYTES  ((size_t)256 << 10)
#define EMPTY_ROUNDS 4      /* a list without moves may only not have come by them */
#define VISITS       65536u /* groups in one sweep */
#define LIST         64u
#define FAULT_NS     800u          /* of a page that is armed */
#define LOOK_SHARE   100u          /* looking takes this part of the program's time at most */
#define BLOCK_NS     100000u       /* looking at one block in all rounds, until measured */
#define COMING_NS    2000000000ull /* to where the machine's clock waits for the thread, at most */

static struct {
    enum migrate_state state;
    bool started, opened, eager;
    bool there; /* the thread has come to the machine's clock */
    struct pace pace;
    struct balance balance;
    uint64_t block_ns; /* as measured */
    struct migrate_judge judge;
    struct migrate_worth worth;
    bool priced; /* in this pass */
    struct migrate_room room;
    struct migrate_view view; /* under lock */
    struct beside beside;
    struct carrier carrier;
} m;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- where and whether ------------------------------------------------------------------- */

static void turn_off(const char *why)
{
    pthread_mutex_lock(&lock);
    m.view.state = m.state = MIGRATE_IS_OFF;
    (void)snprintf(m.view.why, sizeof(m.view.why), "%s", why);
    pthread_mutex_unlock(&lock);
    log_info("pages are not moved: %s", why);
}

static bool begin(void)
{
    const struct hy_settings *s = &hy_config.set;
    struct pace_limits limits = {
        .interval_min = control_interval_ns(),
        .interval_max = HY_MAX(s->migrate_interval, s->interval),
        .bytes_per_s = s->migrate_rate,
        .core_permille = (unsigned)(s->migrate_core * 10),
    };
    if (ways_filtered()) {
        turn_off("a seccomp filter is in force, which may kill who looks at pages");
        return false;
    }
    int r = m.opened ? sampler_reopen() : ways_open_sampler();
    if (r != 0) {
        turn_off(r == -ENODEV ? "this kernel does not tell which pages are written"
                              : "written pages cannot be watched");
        return false;
    }
    m.opened = true;
    m.carrier = (struct carrier){
        .how = ways_here(), .pace = &m.pace, .judge = &m.judge, .beside = &m.beside};
    beside_begin(&m.beside, &m.carrier.how);
    if (floor_on())
        sampler_ask_places(migrator_where, &m.carrier.how);
    m.eager = s->migrate == HY_MIGRATE_EAGER;
    m.block_ns = emulator_open() ? 0 : BLOCK_NS;
    pace_init(&m.pace, &limits);
    judge_init(&m.judge);
    m.worth = (struct migrate_worth){0};
    m.room = (struct migrate_room){0};
    books_open(true);
    migrate_tasks_begin(&m.carrier);
    pthread_mutex_lock(&lock);
    m.view.state = m.state = MIGRATE_WATCHES;
    m.view.way = m.carrier.how.way == MIGRATE_NUMA ? "numa" : "emulated";
    m.view.writes = sampler_source_name(true);
    m.view.reads = sampler_source_name(false);
    m.view.eager = m.eager;
    pthread_mutex_unlock(&lock);
    log_info("pages are moved (%s); writes by %s, reads by %s", m.view.way, m.view.writes,
             m.view.reads ? m.view.reads : "nothing");
    return true;
}

/* --- moving ------------------------------------------------------------------------------ */

/* Free DRAM serves nobody: what fits comes up, after the first look and at the full rate, as soon
 * as no more memory has come for an interval; so does what others leave later. Hot pages that are
 * found later change places with it. */
static bool fill_free(struct migrate_pass *pass)
{
    struct page_move list[LIST];
    uint64_t bands[HY_TIERS][BANDS], on[HY_TIERS];
    bool settled = room_settled(&m.room, sampler_blocks());
    (void)room_changed(&m.room);
    if (m.room.share.filled || m.eager || !settled || m.worth.counted)
        return false;
    for (uint64_t most; (most = pace_fill(&m.pace)) > 0 && clock_goes_on();) {
        sampler_totals(bands, on);
        struct move_limits l = {
            .dram_pages = room_pages(&m.room, on, pass), .moves = most, .fill_cold = true};
        unsigned n = l.dram_pages > on[HY_DRAM] ? sampler_moves(&l, VISITS, list, LIST, NULL) : 0;
        m.room.share.filled = n == 0;
        for (unsigned i = 0; i < n && !m.room.share.filled; i++)
            m.room.share.filled = !carry_out(&m.carrier, &list[i], pass, true);
        if (m.room.share.filled)
            break;
    }
    return pass->up_pages > 0;
}

/* Exchanges that lose more than it costs go back, before others are tried. */
static bool take_back(struct migrate_pass *pass)
{
    struct page_move list[LIST];
    uint64_t before;
    if (!m.worth.counted || !m.priced || !worth_takes_back(&m.worth))
        return false;
    do { /* as long as that changes something: pages may refuse to go */
        before = pass->up_pages;
        unsigned n = sampler_takeback(list, LIST, NULL);
        for (unsigned i = 0; i < n && clock_goes_on(); i++)
            if (!carry_out(&m.carrier, &list[i], pass, false))
                break;
    } while (pass->up_pages > before && clock_goes_on());
    worth_paid(&m.worth, pass->up_pages, pass->down_pages);
    worth_took_back(&m.worth, pass->up_pages);
    return true;
}

static void move_pages_of_pass(struct migrate_pass *pass)
{
    struct page_move list[LIST];
    uint64_t bands[HY_TIERS][BANDS], on[HY_TIERS], regret = 0;
    bool open[HY_TIERS] = {true, true};
    uint64_t swaps = pace_swaps(&m.pace, pass->on[HY_DRAM]);
    uint64_t clear = pace_clear(&m.pace, pass->on[HY_DRAM]), batch = WORTH_POOL;
    bool counted = sampler_period() > 0, trial = !judge_waits(&m.judge);
    if (trial)
        carry_begin(&m.carrier);
    if (counted) {
        clear = 0;
        uint64_t growth = share_growth(&m.room.share, pass->stats.present);
        swaps = m.priced ? share_swaps(worth_swaps(&m.worth), growth) : 0;
    } else if (!trial && m.pace.caution > 0)
        swaps = clear = 0; /* one trial at a time */
    for (int empty = 0; empty < EMPTY_ROUNDS && open[HY_PM] && clock_goes_on();) {
        sampler_totals(bands, on);
        struct move_limits l = {
            .dram_pages = open[HY_DRAM] ? room_pages(&m.room, on, pass)
                                        : HY_MIN(room_pages(&m.room, on, pass), on[HY_DRAM]),
            .moves = counted ? pace_owed(&m.pace) : pace_moves(&m.pace),
            .swaps = HY_MIN(swaps - HY_MIN(swaps, pass->down_pages), counted ? batch : swaps),
            .clear = clear - HY_MIN(clear, pass->down_pages),
            .margin = MOVE_MARGIN,
            .below = counted ? m.worth.below : NULL,
            .fill_from = m.worth.fill_from,
            .eager = m.eager && m.pace.hurry == 0, /* else too little is known of what is cold */
            .no_reads_up = m.balance.state != BALANCE_OFF && !counted,
            .shed = counted ? 0 : m.balance.step,
        };
        if (on[HY_DRAM] > l.dram_pages) /* what others are owed waits for the rate alone */
            l.moves = HY_MAX(l.moves, HY_MIN(on[HY_DRAM] - l.dram_pages, pace_owed(&m.pace)));
        unsigned n = l.moves ? sampler_moves(&l, VISITS, list, LIST, &regret) : 0;
        pass->regretted_pages = HY_MAX(pass->regretted_pages, regret);
        if (l.moves == 0)
            break;
        m.balance.step = 0;
        empty = n ? 0 : empty + 1;
        batch = HY_MIN(2 * batch, swaps); /* the first whose room others take is the last */
        for (unsigned i = 0; i < n && clock_goes_on(); i++)
            if (open[list[i].to] && !carry_out(&m.carrier, &list[i], pass, false))
                open[list[i].to] = false;
        if (!open[HY_DRAM] && n > 0 && list[n - 1].to == HY_DRAM)
            break;
    }
    if (counted)
        worth_paid(&m.worth, pass->up_pages, pass->down_pages);
    carry_end(&m.carrier, counted && pass->up_pages == pass->down_pages);
    /* There is more that is clear: the verdict on these is wanted soon. */
    if ((clear > 0 && pass->down_pages >= clear) || (counted && pass->down_pages > 0))
        pace_hurry(&m.pace);
}

static void judge(struct migrate_pass *pass)
{
    const uint64_t *dram = pass->pages[HY_DRAM];
    bool paused = m.pace.pause > 0;
    carry_count(&m.carrier, pass->look_ns);
    if (m.worth.counted) {
        unsigned phases = m.judge.phases;
        judge_gather(&m.judge, &m.pace);
        if (m.judge.phases != phases)
            m.worth.passes = 0;
        else if (m.priced)
            worth_end(&m.worth);
    } else if (judge_pass(&m.judge, &m.pace) == VERDICT_BAD)
        carry_back(&m.carrier, pass);
    balance_window(&m.balance, judge_dram_use(&m.judge),
                   dram[BAND_HOT_RD] + dram[BAND_L_HOT] + dram[BAND_H_HOT]);
    pass->paused = pace_paused(&m.pace);
    m.view.pauses += m.pace.pause > 0 && !paused;
}

/* --- a pass ------------------------------------------------------------------------------ */

/* How long to look. Samples cost the same however long: all of the interval, so that a program
 * whose sweeps are in step with the passes is seen as it is. */
static uint64_t look_ns(void)
{
    return emulator_open() ? m.pace.interval : m.pace.limits.interval_min;
}

/* false: it is time to end. */
static bool look(struct migrate_pass *pass)
{
    uint64_t blocks = sampler_blocks(), start = clock_now_ns(), spent = clock_spent_ns();
    uint64_t budget = m.pace.interval / 1000 * m.pace.limits.core_permille;
    m.priced = worth_begin(&m.worth);
    unsigned n = sampler_begin(coverage_share(blocks, m.block_ns, budget));
    for (unsigned i = 0; i < HISTORY_ROUNDS; i++) {
        if (!clock_rest_until(start + (i + 1) * look_ns() / HISTORY_ROUNDS))
            return false;
        judge_gather(&m.judge, &m.pace);
        sampler_round(i);
    }
    pass->look_ns = clock_now_ns() - start;
    sampler_end(&pass->stats);
    books_settle(0); /* pages that have gone */
    spent = clock_spent_ns() - spent;
    if (n > 0)
        m.block_ns = (3 * m.block_ns + spent / n) / 4;
    m.view.look_ns += spent;
    pace_elapsed(&m.pace, clock_now_ns() - start, spent);
    /* Where counts tell of a new phase (judge_gather), pages that change all the time are a
     * sweep seen in parts: looking more often would only show smaller ones. */
    pace_pass(&m.pace, pass->stats.observed, judge_counts(&m.judge) ? 0 : pass->stats.changed);
    /* The program pays for looking, too: a fault for each written page and round. */
    uint64_t cost = spent + (emulator_open() ? 0 : pass->stats.written * HISTORY_ROUNDS * FAULT_NS);
    if (cost > m.pace.interval / LOOK_SHARE)
        m.pace.interval = HY_MIN(cost * LOOK_SHARE, m.pace.limits.interval_max);
    return true;
}

static void publish(struct migrate_pass *pass)
{
    sampler_totals(pass->pages, pass->on);
    pass->wanted_pages = worth_wanted(&m.worth);
    if (m.priced)
        pass->exchange_ns = worth_exchange_ns(&m.worth);
    if (worth_is_evidence(&m.worth) && sampler_cold(pass->cold, &pass->cold_pages))
        pass->takes_pages = sampler_ranked(m.worth.fill_from);
    pass->tracked_pages = pass->stats.observed;
    pass->written_pages = pass->stats.written;
    pass->interval_ns = m.pace.interval;
    pass->end_ns = clock_now_ns();
    pthread_mutex_lock(&lock);
    pass->number = ++m.view.passes;
    m.view.up_bytes += pass->up_pages * HY_PAGE;
    m.view.down_bytes += pass->down_pages * HY_PAGE;
    m.view.refused_pages += pass->refused_pages;
    m.view.regretted_pages += pass->regretted_pages;
    m.view.beside = m.beside.view;
    m.view.balance = m.balance.state;
    m.view.reads = sampler_source_name(false); /* it may have given way */
    m.view.last = *pass;
    pthread_mutex_unlock(&lock);
    /* What would still come up waits for others' DRAM. */
    policy_want(pass->wanted_pages * HY_PAGE);
}

/* Until the next pass is due, others ask for DRAM or leave some, or the counts tell that the
 * program has turned to something else. */
static bool rest_between(uint64_t start)
{
    uint64_t now;
    while ((now = clock_now_ns()) < start + m.pace.interval) {
        if (!clock_rest_until(HY_MIN(now + m.pace.limits.interval_min, start + m.pace.interval)))
            return false;
        judge_gather(&m.judge, &m.pace);
        if (room_changed(&m.room))
            break;
    }
    return clock_goes_on();
}

/* What others have moved meanwhile; at its cost. */
static void look_beside(void)
{
    uint64_t spent = clock_spent_ns();
    beside_look(&m.beside, &m.carrier.how, &m.pace);
    spent = clock_spent_ns() - spent;
    pace_elapsed(&m.pace, 0, spent);
    pthread_mutex_lock(&lock);
    m.view.look_ns += spent;
    m.view.beside = m.beside.view;
    pthread_mutex_unlock(&lock);
}

static bool one_pass(void)
{
    struct migrate_pass pass = {0};
    m.pace.limits.interval_min = control_interval_ns();
    m.pace.interval = HY_MAX(m.pace.interval, m.pace.limits.interval_min);
    uint64_t start = clock_now_ns(), slept, moving;
    if (!sampler_alive()) {
        bool killing = ways_filtered(); /* before the calls that open it anew */
        if (killing || sampler_reopen() != 0) {
            turn_off(killing
                         ? "a seccomp filter has come into force, which may kill who looks at pages"
                         : "the program closed the descriptor");
            return false;
        }
    }
    books_watch_new();
    if (sampler_blocks() == 0)
        return clock_rest_until(start + m.pace.limits.interval_min);
    if (!m.eager && room_for_all()) {
        /* Unless others have moved something to PM. A filter is found by the next pass. */
        if (beside_due(&m.beside) && !ways_filtered())
            look_beside();
        return clock_rest_until(start + m.pace.limits.interval_min);
    }
    if (!look(&pass))
        return false;
    if (ways_filtered()) {
        turn_off("a seccomp filter has come into force, which may kill who moves pages");
        return false;
    }
    look_beside();
    room_note_free(&m.room, (int64_t)(m.view.up_bytes - m.view.down_bytes));
    migrate_tasks_pin();
    bool fills = fill_free(&pass);
    sampler_totals(pass.pages, pass.on);
    judge(&pass);
    moving = clock_now_ns();
    if (!fills && !take_back(&pass)) /* what those bring is not mixed with it */
        move_pages_of_pass(&pass);
    slept = clock_now_ns();
    m.judge.regretted = HY_MAX(m.judge.regretted, pass.regretted_pages);
    m.view.move_ns += slept - moving;
    publish(&pass);
    bool on = rest_between(start);
    pace_elapsed(&m.pace, clock_now_ns() - slept, 0);
    return on;
}

/* --- the thread -------------------------------------------------------------------------- */

/* The histories stay. */
static void end_for_pause(void)
{
    if (m.opened)
        sampler_suspend();
    if (m.state == MIGRATE_WATCHES)
        m.state = MIGRATE_IDLE;
}

static void *pages_main(void *unused)
{
    sigset_t none;
    (void)unused;
    hy_guard_enter();
    policy_thread_is_ours();
    emulator_ignore_thread();
    __atomic_store_n(&m.there, true, __ATOMIC_RELEASE);
    if (begin())
        while (clock_goes_on() && one_pass())
            ;
    migrate_tasks_end();
    emulator_let_go();
    bool pause = pause_wanted();
    if (pause)
        end_for_pause();
    __atomic_store_n(&m.started, false, __ATOMIC_RELEASE);
    hy_guard_leave();
    if (pause)
        return NULL;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return NULL;
}

/* On an emulated machine it begins at this moment of its clock, which the calling thread holds,
 * however late the computer lets it run. */
static void await_thread(void)
{
    uint64_t end = os_now_ns() + COMING_NS;
    while (emulator_open() && !__atomic_load_n(&m.there, __ATOMIC_ACQUIRE) && os_now_ns() < end)
        os_sleep_ns(50000);
}

void migrate_tick(void)
{
    const char *why;
    if (m.state != MIGRATE_IDLE || __atomic_load_n(&m.started, __ATOMIC_ACQUIRE) || pause_wanted())
        return;
    if ((why = ways_against()) != NULL) {
        turn_off(why);
        return;
    }
    (void)figures_here(); /* found by this thread, read by the other */
    __atomic_store_n(&m.started, true, __ATOMIC_RELEASE);
    __atomic_store_n(&m.there, false, __ATOMIC_RELAXED);
    if (!control_start_thread(pages_main, STACK_BYTES)) {
        __atomic_store_n(&m.started, false, __ATOMIC_RELEASE);
        if (pause_wanted())
            return;
        turn_off("no thread can be started");
        return;
    }
    await_thread();
}

unsigned migrate_threads(void)
{
    return __atomic_load_n(&m.started, __ATOMIC_ACQUIRE);
}

bool migrate_wants_counters(void)
{
    return ways_against() == NULL;
}

unsigned migrate_heat(struct sampler_bin *bins, unsigned cap)
{
    return sampler_bins(bins, cap);
}

void migrate_get(struct migrate_view *ret)
{
    pthread_mutex_lock(&lock);
    *ret = m.view;
    pthread_mutex_unlock(&lock);
    if (runtime_is_sandboxed() && ret->state != MIGRATE_IS_OFF) {
        ret->state = MIGRATE_IS_OFF;
        (void)snprintf(ret->why, sizeof(ret->why),
                       "the program confined itself (seccomp, landlock)");
    }
    ret->way = ret->way ?: "";
    ret->writes = ret->writes ?: "";
    ret->reads = ret->reads ?: "";
}

void migrate_prefork(void)
{
    pthread_mutex_lock(&lock);
    books_prefork();
}

void migrate_postfork(bool child)
{
    books_postfork();
    pthread_mutex_unlock(&lock);
    beside_forked(&m.beside);
    if (!child)
        return;
    /* It has the histories, but no thread yet; where migration was off it stays off. */
    m.started = false;
    if (m.state == MIGRATE_WATCHES)
        m.state = MIGRATE_IDLE;
    m.balance = (struct balance){0};
    judge_init(&m.judge);
    m.beside.view = (struct beside_view){0};
    staging_child();
    m.view = (struct migrate_view){.state = m.state};
}
