/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/site_plan_search.h"

#include <string.h>

/* Sets whose worth differs by less are equal. */
#define WORTH_EPS 1e-6
/* Items looked at in the search, at most; beyond, the best set so far is taken. */
#define SEARCH_STEPS 300000u
/* Candidates that are put into another order, at most. */
#define REORDERED 256u

static bool goes_before(const struct plan_item *x, const struct plan_item *y)
{
    if (x->density != y->density)
        return x->density > y->density;
    if (x->block != y->block)
        return x->block < y->block;
    return x->key < y->key;
}

void plan_sort(struct plan_item *it, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        struct plan_item moved = it[i];
        unsigned lo = 0, hi = i;

        while (lo < hi) {
            unsigned mid = (lo + hi) / 2;

            if (goes_before(&moved, &it[mid]))
                hi = mid;
            else
                lo = mid + 1;
        }
        memmove(it + lo + 1, it + lo, (i - lo) * sizeof(*it));
        it[lo] = moved;
    }
}

/* The most that the items from `i` on can be worth in `room`: the last one in part. */
static double bound_from(const struct plan_item *it, unsigned n, unsigned i, uint64_t room,
                         unsigned *steps)
{
    double worth = 0;

    for (; i < n && room > 0; i++, (*steps)++) {
        uint64_t all = it[i].block * it[i].count;

        if (all > room)
            return worth + it[i].density * (double)room;
        worth += it[i].worth * it[i].count;
        room -= all;
    }
    return worth;
}

/* Horowitz and Sahni's search, with more than one of each: take what fits in order of density,
 * then undo from the end, one block at a time, where the bound leaves hope. */
static bool search(struct plan_item *it, unsigned n, uint64_t room)
{
    unsigned steps = 0, i = 0;
    double worth = 0, best = -1;

    for (;;) {
        if (worth + bound_from(it, n, i, room, &steps) > best * (1 + WORTH_EPS)) {
            for (; i < n; i++, steps++) {
                uint64_t fit = HY_MIN(room / it[i].block, (uint64_t)it[i].count);

                it[i].taken = (uint16_t)fit;
                room -= fit * it[i].block;
                worth += (double)fit * it[i].worth;
            }
            if (worth > best * (1 + WORTH_EPS)) {
                best = worth;
                for (unsigned k = 0; k < n; k++)
                    it[k].best = it[k].taken;
                steps += n;
            }
        }
        while (i > 0 && it[i - 1].taken == 0) {
            i--;
            steps++;
        }
        if (i == 0)
            return true;
        if (steps > SEARCH_STEPS)
            return false;
        it[i - 1].taken--;
        room += it[i - 1].block;
        worth -= it[i - 1].worth;
    }
}

/* --- sites of different times ------------------------------------------------------------ */

static bool share_a_time(const struct plan_item *it, unsigned n)
{
    uint32_t all = PLAN_ALWAYS;

    for (unsigned i = 0; i < n; i++)
        all &= it[i].held;
    return all != 0;
}

/* Of those that are not taken yet, the one that saves most for a byte and a part of the run. */
static unsigned next_by_time(const struct plan_item *it, unsigned n)
{
    unsigned best = n;
    double most = -1;

    for (unsigned i = 0; i < n; i++) {
        double value = it[i].density / __builtin_popcount(it[i].held);

        if (it[i].taken == UINT16_MAX && value > most) {
            most = value;
            best = i;
        }
    }
    return best;
}

/* What fits of each in its order, beyond what it has in `best` already if `more`. */
static double take_greedily(struct plan_item *it, unsigned n, uint64_t room, bool by_time,
                            bool more)
{
    uint64_t free[PLAN_TIMES];
    double worth = 0;

    for (unsigned t = 0; t < PLAN_TIMES; t++)
        free[t] = room;
    for (unsigned i = 0; more && i < n; i++)
        site_plan_take(free, it[i].held, it[i].best * it[i].block);
    for (unsigned i = 0; i < n; i++)
        it[i].taken = UINT16_MAX;
    for (unsigned k = 0; k < n; k++) {
        struct plan_item *i = &it[by_time ? next_by_time(it, n) : k];
        uint64_t has = more ? i->best : 0;
        uint64_t fit = HY_MIN(site_plan_least(free, i->held) / i->block, i->count - has);

        i->taken = (uint16_t)HY_MIN(has + fit, UINT16_MAX - 1u);
        site_plan_take(free, i->held, (i->taken - has) * i->block);
        worth += i->taken * i->worth;
    }
    return worth;
}

static void keep_taken(struct plan_item *it, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        it[i].best = it[i].taken;
}

/* The best set as if all held memory at once is in `best`: never worse than that. */
static void search_times(struct plan_item *it, unsigned n, uint64_t room)
{
    double worth = take_greedily(it, n, room, false, true);

    keep_taken(it, n);
    for (int by_time = 0; by_time < (n > REORDERED ? 1 : 2); by_time++) {
        double other = take_greedily(it, n, room, by_time, false);

        if (other > worth * (1 + WORTH_EPS)) {
            worth = other;
            keep_taken(it, n);
        }
    }
}

bool plan_search(struct plan_item *it, unsigned n, uint64_t room)
{
    bool exact = search(it, n, room);

    if (share_a_time(it, n))
        return exact;
    search_times(it, n, room);
    return false;
}
