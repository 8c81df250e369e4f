/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/stripes.h"

/* Stripes of so many huge pages begin where one does. */
#define HUGE       ((size_t)2 * HY_MIB)
#define HUGE_LEAST 16u

__extension__ typedef unsigned __int128 wide;

static unsigned level_of(const struct stripes *s, unsigned part)
{
    return s->level ? s->level[part] : 0;
}

static bool has_levels(const struct stripes *s)
{
    for (unsigned p = 1; p < STRIPES_LEVELS; p++)
        if (level_of(s, p) != level_of(s, 0))
            return true;
    return false;
}

unsigned stripes_count(const struct stripes *s, unsigned most)
{
    size_t least = has_levels(s) ? STRIPES_LEVEL : STRIPES_LEAST;
    size_t n = HY_MIN(s->size / least, (size_t)HY_MIN(most, STRIPES_MOST));
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

/* Of its first pages, those of parts in these levels, in 32nds of a page. */
static uint64_t in_levels(const struct stripes *s, uint64_t pages, unsigned from, unsigned to)
{
    uint64_t all = s->size / HY_PAGE, sum = 0;

    for (unsigned p = 0; p < STRIPES_LEVELS; p++) {
        uint64_t begin = all * p, end = HY_MIN(all * (p + 1), pages * STRIPES_LEVELS);

        if (level_of(s, p) >= from && level_of(s, p) <= to && end > begin)
            sum += end - begin;
    }
    return sum;
}

/* Of its first pages, those on PM: all that is below a level, and of that level the same share
 * everywhere; all of `away` in the end. */
static uint64_t away_before(const struct stripes *s, uint64_t pages)
{
    uint64_t all = s->size / HY_PAGE, away = s->away / HY_PAGE * STRIPES_LEVELS, below = 0, here;
    unsigned level = 0;

    while (below + (here = in_levels(s, all, level, level)) < away) {
        below += here;
        level++;
    }
    uint64_t part = in_levels(s, pages, level, level);
    uint64_t away_here = here > 0 ? (uint64_t)((wide)part * (away - below) / here) : 0;
    uint64_t under = level > 0 ? in_levels(s, pages, 0, level - 1) : 0;
    return (under + away_here) / STRIPES_LEVELS;
}

bool stripe_away(const struct stripes *s, unsigned k, uintptr_t *ret_base, size_t *ret_bytes)
{
    uint64_t end = edge(s, k + 1), begin = edge(s, k);
    uint64_t n = away_before(s, end) - away_before(s, begin);
    *ret_base = s->base + (end - n) * HY_PAGE;
    *ret_bytes = n * HY_PAGE;
    return n > 0;
}

bool stripes_next(const struct stripes *s, unsigned *k, uintptr_t *ret_base, size_t *ret_bytes)
{
    uintptr_t at;
    size_t n, sum = 0;

    for (; *k < s->n; ++*k) {
        bool any = stripe_away(s, *k, &at, &n);

        if (sum > 0 && (!any || at != *ret_base + sum))
            break;
        if (any && sum == 0)
            *ret_base = at;
        sum += n;
    }
    *ret_bytes = sum;
    return sum > 0;
}
