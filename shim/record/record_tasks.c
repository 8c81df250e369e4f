/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/record_tasks.h"

#include <string.h>

#include "pages/migrate_clock.h"
#include "pages/migrate_ways.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "tasks/staging.h"

static struct migrator here;
static bool tried, watches;

/* Only the books tell the two memories apart: all times are of DRAM. */
static bool is_emulated_here(void)
{
    return here.way == MIGRATE_EMULATED && !emulator_open();
}

static int where(void *base, unsigned pages, int8_t *ret_tier)
{
    void *page[MIGRATE_PAGES];
    for (unsigned i = 0; i < pages && i < MIGRATE_PAGES; i++)
        page[i] = (char *)base + i * HY_PAGE;
    if (is_emulated_here()) {
        memset(ret_tier, HY_DRAM, pages);
        return 0;
    }
    return migrator_where(&here, page, pages, ret_tier);
}

static uint64_t no_pages(void)
{
    return 0;
}

static bool no_move(void *base, unsigned pages, enum hy_tier to)
{
    (void)base;
    (void)pages;
    (void)to;
    return false;
}

static double nothing(void)
{
    return 0;
}

static void lose_nothing(double ns)
{
    (void)ns;
}

static void open_once(void)
{
    static const struct staging_host host = {.now_ns = clock_now_ns,
                                             .spent_ns = clock_spent_ns,
                                             .may_move = no_pages,
                                             .free_pages = no_pages,
                                             .where = where,
                                             .move = no_move,
                                             .move_ns = nothing,
                                             .may_lose = nothing,
                                             .lose = lose_nothing,
                                             .slowdown = nothing};
    tried = true;
    if (!hy_config.set.tasks)
        return;
    staging_record();
    here = ways_here();
    watches = hy_config.set.migrate == HY_MIGRATE_OFF;
    if (watches)
        staging_open(&host);
}

void record_tasks_tick(void)
{
    if (!tried)
        open_once();
    if (watches)
        (void)staging_serve();
}

void record_tasks_get(struct profile *p)
{
    p->n_tasks = watches || !is_emulated_here() ? staging_known(p->tasks) : 0;
}

void record_tasks_child(void)
{
    tried = watches = false;
}
