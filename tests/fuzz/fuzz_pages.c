/* SPDX-License-Identifier: BSD-2-Clause
 * Page histories and move lists under any sequence of passes, moves and refusals: counts
 * agree, groups tile, budgets are kept. Four bytes an operation. */
#include "../unit/pages_util.h"
#include "fuzz.h"
#include "pages/rules/movelist.h"

#define PAGES 1500u

static struct heat_map map;
static struct history history;
static struct page_record records[PAGES];

static void record(const uint8_t *op)
{
    static struct page_seen seen[HISTORY_BLOCK];
    struct pass_stats stats = {0};
    struct page_set watched;
    uint32_t block = op[1] % history_blocks(&history);
    unsigned grain = 1u << op[2] % 10;
    history_watch(&history, block, op[3], &watched);
    for (unsigned i = 0; i < HISTORY_BLOCK; i++) {
        bool mine = (i / grain & 1) == (op[1] >> 4 & 1);
        seen[i] = (struct page_seen){.reads = mine ? op[2] : 0, .writes = mine ? op[3] : 0};
    }
    history_record(&history, block, &watched, seen, op[1] % 12, &stats);
    CHECK(stats.observed <= HISTORY_BLOCK && stats.groups <= HISTORY_BLOCK && stats.groups > 0);
}

static void move_some(const uint8_t *op)
{
    static struct move_hand hand;
    struct move list[16];
    struct move_plan plan;
    struct move_limits l = {.swaps = op[3] & 1 ? UINT64_MAX : op[2],
                            .clear = op[3] & 2 ? UINT64_MAX : op[1],
                            .dram_pages = op[1] * 6u,
                            .moves = op[2] * 4u,
                            .margin = op[3] % 32,
                            .eager = op[3] & 32,
                            .no_reads_up = op[3] & 64,
                            .shed = op[3] & 128 ? op[2] : 0};
    uint64_t before = map.on[HY_DRAM];
    move_plan(&map, &l, &plan);
    CHECK(plan.up + plan.down <= l.moves);
    unsigned n = move_list(&history, 1, &plan, &hand, op[2] + 1u, list, op[3] % 16 + 1, NULL);
    for (unsigned i = 0; i < n; i++) {
        CHECK(list[i].pages > 0 && list[i].first + list[i].pages <= PAGES);
        for (uint32_t p = list[i].first; p < list[i].first + list[i].pages; p++)
            CHECK(history_group(&history, p).tier != list[i].to);
        history_moved(&history, list[i].first, list[i].pages, list[i].to);
        CHECK(map.on[HY_DRAM] <= HY_MAX(l.dram_pages, before));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct predictor p = predictor_of(size > 0 ? data[0] % 20 : 8);
    heat_map_init(&map, &p);
    history_init(&history, records, NULL, PAGES, size & 1 ? HY_PM : HY_DRAM, &map);
    for (size_t at = 1; at + 4 <= size && at < 2000; at += 4) {
        const uint8_t *op = data + at;
        uint32_t first = (op[1] << 3 | op[2] >> 5) & 2047, pages = (op[2] & 31u) << 5 | op[3];
        switch (op[0] % 6) {
        case 0:
            history_moved(&history, first, pages, op[3] & 1 ? HY_PM : HY_DRAM);
            break;
        case 1:
            history_refused(&history, first, pages);
            break;
        case 2:
            move_some(op);
            break;
        default:
            record(op);
        }
    }
    const char *wrong = histories_wrong(&history, 1, &map);
    if (wrong)
        fprintf(stderr, "%s\n", wrong);
    CHECK(!wrong);
    CHECK(map.on[HY_DRAM] + map.on[HY_PM] == PAGES);
    return 0;
}
