/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/stripes.h"

/* Stripes of so many huge pages begin where one does. */
#define HUGE       ((size_t)2 * HY_MIB)
#define HUGE_LEAST 16u

unsigned stripes_count(size_t size, unsigned most)
{
    size_t n = HY_MIN(size / STRIPES_LEAST, (size_t)HY_MIN(most, STRIPES_MOST));
    return n > 0 ? (unsigned)n : 1;
}

/* Where stripe `k` begins, in pages from the base. */
static uint64_t edge(const struct stripes *s, unsigned k)
{
    if (k == 0 || k == s->n)
        return k == 0 ? 0 : s->size / HY_PAGE;
    uintptr_t at = s->base + s->size / s->n * k;
    size_t unit = s->size / s->n >= HUGE_LEAST * HUGE ? HUGE : HY_PAGE;
    return ((at & ~(uintptr_t)(unit - 1)) - s->base) / HY_PAGE;
}

/* Of its first pages, those on PM: the same share everywhere, and all of `away` in the end. */
static uint64_t away_before(const struct stripes *s, uint64_t pages)
{
    return pages * (s->away / HY_PAGE) / (s->size / HY_PAGE);
}

bool stripe_away(const struct stripes *s, unsigned k, uintptr_t *ret_base, size_t *ret_bytes)
{
    uint64_t end = edge(s, k + 1);
    uint64_t n = away_before(s, end) - away_before(s, edge(s, k));
    *ret_base = s->base + (end - n) * HY_PAGE;
    *ret_bytes = n * HY_PAGE;
    return n > 0;
}
