/* SPDX-License-Identifier: BSD-2-Clause
 * For the tests of move lists: a map, a list, a pass over a history and the moves of a list. */
#ifndef HYBRID_TESTS_MOVELIST_UTIL_H
#define HYBRID_TESTS_MOVELIST_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pages/rules/coverage.h"
#include "pages/rules/movelist.h"

#define MOVES 4096

static struct heat_map map;
static struct move list[MOVES];

static inline void new_map(void)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    heat_map_init(&map, &p);
}

static inline struct history new_history(uint32_t pages, enum hy_tier tier)
{
    struct history h;
    history_init(&h, malloc((size_t)pages * sizeof(struct page_record)), NULL, pages, tier, &map);
    return h;
}

/* One pass of eight rounds over a whole range: page i is written and read so often. */
typedef void (*does_fn)(uint32_t page, void *ctx, struct page_seen *ret);

static inline void run_pass(struct history *h, uint64_t *random, does_fn does, void *ctx)
{
    static struct page_seen seen[HISTORY_BLOCK];
    struct pass_stats stats = {0};
    for (uint32_t b = 0; b < history_blocks(h); b++) {
        struct page_set watched;
        history_watch(h, b, random_next(random), &watched);
        for (uint32_t i = 0; i < HISTORY_BLOCK; i++) {
            seen[i] = (struct page_seen){0, 0};
            if (page_set_has(&watched, i))
                does(b * HISTORY_BLOCK + i, ctx, &seen[i]);
        }
        history_record(h, b, &watched, seen, HISTORY_ROUNDS, &stats);
    }
}

/* Do as the list says; DRAM must never be over the budget on the way. */
static inline void apply(struct history *h, unsigned n, uint64_t budget)
{
    for (unsigned i = 0; i < n; i++) {
        history_moved(&h[list[i].range], list[i].first, list[i].pages, list[i].to);
        if (list[i].to == HY_DRAM && map.on[HY_DRAM] > budget)
            fail_msg("%lu pages on DRAM, allowed %lu", map.on[HY_DRAM], budget);
    }
}

#endif
