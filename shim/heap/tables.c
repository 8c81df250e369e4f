/* SPDX-License-Identifier: BSD-2-Clause
 * The tables of granules are made accessible as a tier's range fills. */
#include "heap/internal.h"
#include "sys/os.h"

/* Rows that are whole pages of a table, if a row is a multiple of 8 bytes; of any. */
#define ROWS_OF_WORDS 512u
#define ROWS_OF_BYTES 4096u
#define ROWS_AT_ONCE  16u /* of these, at most, beyond what is needed */

static struct {
    uint32_t g, from_head, site,
        map;            /* accessible below this granule; under the tier's pages lock */
    uint32_t committed; /* and what all of them are, to be read without lock */
} table_rows[HY_TIERS];

/* Rows [*have, want) of a table of `row` bytes each, and as many as the tier has so far, for few
 * calls: mlockall locks them all, and a small process has few. */
static bool commit_rows(void *table, uint32_t *have, uint32_t want, enum hy_tier t, size_t row)
{
    uint32_t first = hy_hg.first[t], unit = row % 8 ? ROWS_OF_BYTES : ROWS_OF_WORDS;
    uint32_t more = heap_is_all_resident() ? 0 : HY_MIN(*have - first, ROWS_AT_ONCE * unit);
    if (want <= *have)
        return true;
    uint32_t to = HY_MIN(hy_align_up(want + more, unit), first + hy_hg.count[t]);
    if (os_commit((char *)table + *have * row, (to - *have) * row))
        return false;
    *have = to;
    return true;
}

/* Tables are made accessible as the range fills, in steps; one granule beyond
 * a new run, as neighbours are looked at. */
bool tables_commit(enum hy_tier t, uint32_t i, uint32_t len)
{
    uint32_t end = hy_hg.first[t] + hy_hg.count[t];
    uint32_t want = HY_MIN(i + len + 1, end), had = table_rows[t].g;

    if (!commit_rows(hy_hg.g, &table_rows[t].g, want, t, sizeof(struct granule)) ||
        !commit_rows(hy_hg.from_head, &table_rows[t].from_head, want, t, 1) ||
        !commit_rows(hy_hg.site, &table_rows[t].site, want, t, sizeof(*hy_hg.site)) ||
        !commit_rows(hy_heap.map, &table_rows[t].map, want, t, 1))
        return false;
    if (table_rows[t].g > had) /* a page that is read before it is written costs two faults */
        *(volatile uint8_t *)&hy_hg.g[had].state = RUN_NONE;
    __atomic_store_n(&table_rows[t].committed, HY_MIN(table_rows[t].g, table_rows[t].map),
                     __ATOMIC_RELEASE);
    return true;
}

uint32_t tables_committed(enum hy_tier t)
{
    return __atomic_load_n(&table_rows[t].committed, __ATOMIC_ACQUIRE);
}

void tables_init(enum hy_tier t)
{
    table_rows[t].g = table_rows[t].from_head = table_rows[t].site = table_rows[t].map =
        table_rows[t].committed = hy_hg.first[t];
}
