/* SPDX-License-Identifier: BSD-2-Clause
 * Places for runs are shared by the threads of one number in 16, so a place is anybody's to empty:
 * the control thread for threads that sleep, a forked child for threads that it has not. */
#include "heap/parked.h"

#include "heap/free_runs.h"

#define ROWS    16u
#define LENGTHS 8u /* more than there are, for a mask */
#define EACH    4u

#define PLACES (ROWS * LENGTHS * EACH)

/* What a place is: shut, open, or open with the run of index place - HELD. */
enum { SHUT, OPEN, HELD };

static struct row {
    uint32_t place[LENGTHS][EACH];
} __attribute__((aligned(64))) parking[HY_TIERS][ROWS];

static uint32_t *places_for(enum hy_tier t, uint32_t len)
{
    return parking[t][hy_cache->number % ROWS].place[len % LENGTHS];
}

static bool change(uint32_t *place, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(place, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

uint32_t parked_take(enum hy_tier t, uint32_t len)
{
    if (__atomic_load_n(&hy_pages[t].parked, __ATOMIC_RELAXED) == 0)
        return NO_GRANULE;
    uint32_t *place = places_for(t, len);
    for (unsigned k = 0; k < EACH; k++) {
        uint32_t v = __atomic_load_n(&place[k], __ATOMIC_RELAXED);
        if (v >= HELD && change(&place[k], v, OPEN))
            return v - HELD;
    }
    return NO_GRANULE;
}

/* Only a run that serves the next request as it is: used in full, none of it charged otherwise. */
bool parked_put(uint32_t head)
{
    const struct granule *g = &hy_hg.g[head];
    enum hy_tier t = granule_tier(head);
    if (!parked_is_for(g->len) || g->size != (uint64_t)g->len << HEAP_GRANULE_SHIFT)
        return false;
    uint32_t *place = places_for(t, g->len);
    for (unsigned k = 0; k < EACH; k++)
        if (__atomic_load_n(&place[k], __ATOMIC_RELAXED) == OPEN &&
            change(&place[k], OPEN, head + HELD))
            return true;
    return false;
}

void parked_widen(enum hy_tier t, uint32_t len)
{
    struct pages *p = &hy_pages[t];
    uint32_t *place = places_for(t, len);
    unsigned k = 0;
    while (k < EACH && __atomic_load_n(&place[k], __ATOMIC_RELAXED) != SHUT)
        k++;
    if (k == EACH || !free_may_park(t, len)) /* most often the first */
        return;
    __atomic_store_n(&place[k], OPEN, __ATOMIC_RELEASE); /* under the lock: nobody else opens it */
    __atomic_store_n(&p->parked, p->parked + len, __ATOMIC_RELAXED);
}

void parked_drain(enum hy_tier t)
{
    struct pages *p = &hy_pages[t];
    uint32_t *place = parking[t][0].place[0];
    if (p->parked == 0)
        return;
    __atomic_store_n(&p->parked, 0, __ATOMIC_RELAXED);
    for (size_t k = 0; k < PLACES; k++) {
        uint32_t v = __atomic_exchange_n(&place[k], SHUT, __ATOMIC_ACQ_REL);
        if (v >= HELD)
            pages_free_locked(t, v - HELD);
    }
}

void parked_count(enum hy_tier t, uint64_t *ret_runs, uint64_t *ret_pages)
{
    const uint32_t *place = parking[t][0].place[0];
    *ret_runs = *ret_pages = 0;
    for (size_t k = 0; hy_pages[t].parked && k < PLACES; k++) {
        uint32_t v = __atomic_load_n(&place[k], __ATOMIC_RELAXED);
        *ret_runs += v >= HELD;
        *ret_pages += v >= HELD ? hy_hg.g[v - HELD].len : 0;
    }
}
