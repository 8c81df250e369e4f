/* SPDX-License-Identifier: BSD-2-Clause
 * The tables of granules are made accessible as a tier's range fills. */
#include "heap/internal.h"
#include "sys/os.h"

/* Rows that the tables grow by: whole pages of each, whatever the size of a row. */
#define ROWS_GRANULE 8192u
#define ROWS_BITS    1024u
#define ROWS_MAP     65536u

static struct {
    uint32_t g, bits, from_head, site,
        map;            /* accessible below this granule; under the tier's pages lock */
    uint32_t committed; /* and what all of them are, to be read without lock */
} table_rows[HY_TIERS];

/* Rows of a table of `row` bytes each, up to one at least. */
static bool commit_rows(void *table, uint32_t *have, uint32_t want, uint32_t step, size_t row)
{
    uint32_t to = hy_align_up(want, step);
    if (want <= *have)
        return true;
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
    uint32_t want = HY_MIN(i + len + 1, end);

    if (!commit_rows(hy_hg.g, &table_rows[t].g, want, ROWS_GRANULE, sizeof(struct granule)) ||
        !commit_rows(hy_hg.bits, &table_rows[t].bits, want, ROWS_BITS, SPAN_MAX_BLOCKS / 8) ||
        !commit_rows(hy_hg.from_head, &table_rows[t].from_head, want, ROWS_MAP, 1) ||
        !commit_rows(hy_hg.site, &table_rows[t].site, want, ROWS_MAP, sizeof(*hy_hg.site)) ||
        !commit_rows(hy_heap.map, &table_rows[t].map, want, ROWS_MAP, 1))
        return false;
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
    table_rows[t].g = table_rows[t].bits = table_rows[t].from_head = table_rows[t].site =
        table_rows[t].map = table_rows[t].committed = hy_hg.first[t];
}
