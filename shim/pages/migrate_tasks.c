/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/migrate_tasks.h"

#include "classifier.h"
#include "core/purse.h"
#include "pages/migrate_books.h"
#include "pages/migrate_clock.h"
#include "pages/migrate_ways.h"
#include "place/policy.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "tasks/staging.h"

/* A filter may come into force at any time; asking is a read of a file. */
#define FILTER_NS 100000000u
#define LATELY    512u /* pages */

static struct carrier *carrier;
static struct migrate_pass moved; /* for the sake of carry_out's callee */
static uint64_t asked_ns;
static bool filtered;
/* What moves for tasks took lately: few pages at a time, or while the program fills the memory,
 * cost several times what the pace has measured. */
static double moves_ns = PACE_MOVE_NS * LATELY / 8, moves_pages = LATELY / 8.0;

static uint64_t may_move(void)
{
    uint64_t now = clock_now_ns();
    if (asked_ns == 0 || now - asked_ns > FILTER_NS) {
        filtered = ways_filtered();
        asked_ns = now;
        books_watch_new();
    }
    return filtered ? 0 : pace_owed(carrier->pace);
}

static uint64_t free_pages(void)
{
    return policy_room(HY_DRAM) / HY_PAGE;
}

static int where(void *base, unsigned pages, int8_t *ret_tier)
{
    void *page[MIGRATE_PAGES];
    for (unsigned i = 0; i < pages && i < MIGRATE_PAGES; i++)
        page[i] = (char *)base + i * HY_PAGE;
    return migrator_where(&carrier->how, page, pages, ret_tier);
}

static bool move(void *base, unsigned pages, enum hy_tier to)
{
    struct page_move m = {.base = base, .bytes = pages * HY_PAGE, .to = to};
    uint64_t start = clock_now_ns();
    if (!carry_now(carrier, &m, &moved))
        return false;
    moves_ns += (double)(clock_now_ns() - start);
    moves_pages += pages;
    if (moves_pages > LATELY) {
        moves_ns /= 2;
        moves_pages /= 2;
    }
    return true;
}

static double move_ns(void)
{
    return moves_ns / moves_pages;
}

/* Beside the process's purse, whose trials may cost 1 % without tasks: this is what tasks may cost
 * against a run that ignores them. */
static struct regret purse;

static double may_lose(void)
{
    return regret_left(&purse, purse_run_ns());
}

static void lose(double ns)
{
    struct regret_trial t = {.running = true};
    if (ns > 0)
        regret_end(&purse, &t, ns);
}

static double slowdown(void)
{
    struct classify_view v;
    classify_get(&v);
    return v.found.windows > 0 && !v.found.weak ? v.found.slowdown : 0;
}

void migrate_tasks_begin(struct carrier *c)
{
    static const struct staging_host host = {
        .now_ns = clock_now_ns,
        .spent_ns = clock_spent_ns,
        .may_move = may_move,
        .free_pages = free_pages,
        .where = where,
        .move = move,
        .move_ns = move_ns,
        .may_lose = may_lose,
        .lose = lose,
        .slowdown = slowdown,
    };
    if (!hy_config.set.tasks)
        return;
    carrier = c;
    asked_ns = 0;
    staging_open(&host);
    clock_meanwhile(staging_serve);
}

void migrate_tasks_end(void)
{
    clock_meanwhile(NULL);
    staging_close();
}

void migrate_tasks_pin(void)
{
    staging_each(sampler_pin);
}
