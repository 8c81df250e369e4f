/* SPDX-License-Identifier: BSD-2-Clause
 * Reads and writes as the emulated machine samples them. */
#include "pages/sampler.h"
#include "sys/emulator.h"
#include "sys/pages/emulator_samples.h"

#define RING_BYTES ((size_t)16 << 20) /* touched as far as samples wait in it */

static int open_ring(void)
{
    return emulator_samples_open(SAMPLER_PERIOD, RING_BYTES);
}

static int drain(sampler_access_fn fn)
{
    return (int)emulator_samples_drain(fn);
}

/* What the machine has in use: a page that only code outside it has touched is none of its pages,
 * and makes no room there. */
static int present(void *base, uint32_t pages, struct page_set *ret)
{
    uint8_t tier[HISTORY_BLOCK];
    int r = emulator_range_tiers(base, pages * HY_PAGE, tier);
    if (r != 0)
        return sampler_present(base, pages, ret);
    *ret = (struct page_set){{0}};
    for (uint32_t i = 0; i < pages; i++)
        if (tier[i] != EMULATOR_UNUSED)
            page_set_add(ret, i);
    return 0;
}

const struct sampler_source sampler_emulated = {
    .name = "emulated-samples",
    .reads = true,
    .writes = true,
    .open = open_ring,
    .close = emulator_samples_close,
    .drain = drain,
    .period = SAMPLER_PERIOD,
    .present = present,
};
