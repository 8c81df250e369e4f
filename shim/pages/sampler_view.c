/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "pages/rules/demand.h"
#include "pages/sampler_internal.h"

void sampler_totals(uint64_t ret_pages[HY_TIERS][BANDS], uint64_t ret_on[HY_TIERS])
{
    memset(ret_pages, 0, HY_TIERS * sizeof(ret_pages[0]));
    memset(ret_on, 0, HY_TIERS * sizeof(ret_on[0]));
    hy_lock_take(&hy_sampler_lock);
    for (unsigned t = 0; hy_sampler && t < HY_TIERS; t++) {
        ret_on[t] = hy_sampler->map.on[t];
        for (unsigned band = 0; band < BANDS; band++)
            ret_pages[t][band] = hy_sampler->map.band[t][band];
    }
    hy_lock_release(&hy_sampler_lock);
}

uint64_t sampler_wanted(void)
{
    uint64_t n = 0;
    hy_lock_take(&hy_sampler_lock);
    for (unsigned band = BAND_HOT_RD; hy_sampler && band < BANDS; band++)
        n += hy_sampler->map.band[HY_PM][band];
    hy_lock_release(&hy_sampler_lock);
    return n;
}

bool sampler_cold(uint32_t ret[SAMPLER_PARTS], uint64_t *ret_pages)
{
    bool counted;
    hy_lock_take(&hy_sampler_lock);
    counted = hy_sampler && sampler_counts() && demand_cold(&hy_sampler->map, SAMPLER_PARTS, ret);
    if (counted)
        demand_age(&hy_sampler->map);
    *ret_pages = counted ? hy_sampler->map.on[HY_DRAM] + hy_sampler->map.on[HY_PM] : 0;
    hy_lock_release(&hy_sampler_lock);
    return counted;
}

uint64_t sampler_ranked(unsigned from)
{
    uint64_t n = 0;
    hy_lock_take(&hy_sampler_lock);
    for (unsigned s = from; hy_sampler && s < SCORES; s++)
        n += hy_sampler->map.movable[HY_PM][s];
    hy_lock_release(&hy_sampler_lock);
    return n;
}

#define BIN_LOOKS 32u

static void look_at_bin(unsigned at, uint32_t first, uint32_t pages, struct sampler_bin *bin)
{
    uint32_t step = HY_MAX(pages / BIN_LOOKS, 1u);
    for (uint32_t i = first; i < first + pages; i += step) {
        struct page_group g = history_group(&hy_sampler->history[at], i);
        bin->looked++;
        bin->on_pm += g.tier == HY_PM;
        bin->heat += g.heat;
        bin->writes += (uint32_t)__builtin_popcount(g.passes);
        bin->predicted += predict(&hy_sampler->map.predictor, g.passes) != UN_WD;
    }
}

unsigned sampler_bins(struct sampler_bin *bins, unsigned cap)
{
    unsigned n = 0;
    uint64_t all = 0, each, in_bin = 0;
    hy_lock_take(&hy_sampler_lock);
    for (unsigned i = 0; hy_sampler && i < hy_sampler->ranges; i++)
        all += hy_sampler->history[i].pages;
    each = cap ? (all + cap - 1) / cap : 0;
    for (unsigned at = 0; all && at < hy_sampler->ranges; at++)
        for (uint32_t first = 0; first < hy_sampler->history[at].pages;) {
            if (in_bin == 0)
                bins[n++] = (struct sampler_bin){.base = hy_sampler->range[at].base +
                                                         (size_t)first * HY_PAGE};
            uint32_t pages = (uint32_t)HY_MIN(each - in_bin, hy_sampler->history[at].pages - first);
            look_at_bin(at, first, pages, &bins[n - 1]);
            bins[n - 1].pages += pages;
            in_bin = (in_bin + pages) % each;
            first += pages;
        }
    hy_lock_release(&hy_sampler_lock);
    return n;
}

bool sampler_far(const void *base, size_t *bytes)
{
    uintptr_t from = (uintptr_t)base, at = from, to = from + *bytes;
    int first = -1;
    hy_lock_take(&hy_sampler_lock);
    for (unsigned r = hy_sampler ? sampler_find(at) : 0; at < to; r++) {
        if (!hy_sampler || r == hy_sampler->ranges || hy_sampler->range[r].base > at)
            break;
        const struct watched_range *w = &hy_sampler->range[r];
        uintptr_t end = HY_MIN(to, w->base + w->bytes);
        while (at < end) {
            struct page_group g =
                history_group(&hy_sampler->history[r], (uint32_t)((at - w->base) / HY_PAGE));
            if (first >= 0 && (int)g.tier != first)
                break;
            first = (int)g.tier;
            at = HY_MIN(end, w->base + (size_t)(g.first + g.pages) * HY_PAGE);
        }
        if (at < end)
            break;
    }
    hy_lock_release(&hy_sampler_lock);
    if (first >= 0)
        *bytes = at - from;
    return first == HY_PM;
}
