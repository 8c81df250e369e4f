/* SPDX-License-Identifier: BSD-2-Clause
 * Which tier a class is served from first, in every thread's cache: malloc finds its bin there with
 * one load, and it is the thread's own, where blocks are smaller than a line. Without a lock: this
 * is called with others held. */
#include "heap/internal.h"

static uint8_t favour;                   /* enum hy_tier */
static uint8_t tier_of[SIZECLASS_COUNT]; /* the same, of each class */
static bool turned;                      /* a class may have another tier than the one in favour */
static struct thread_cache *caches;      /* all that were ever made */
_Static_assert(HY_DRAM == 0, "DRAM is in favour from the start");

static void set_bin(uint16_t *which, uint16_t bin)
{
    if (__atomic_load_n(which, __ATOMIC_RELAXED) != bin) /* else the line stays shared */
        __atomic_store_n(which, bin, __ATOMIC_SEQ_CST);
}

/* Whoever writes last has seen the last change. */
static void set_hot(struct thread_cache *tc, unsigned cls)
{
    uint8_t t;
    do {
        t = __atomic_load_n(&tier_of[cls], __ATOMIC_SEQ_CST);
        uint16_t bin = (uint16_t)heap_hot_offset(heap_own_bin(tc, (enum hy_tier)t, cls));
        unsigned step = cls ? sizeclass_step(sizeclass_bytes[cls - 1]) + 1 : 0;
        set_bin(&tc->hot_bin[cls], bin);
        for (; step < SIZECLASS_STEPS && sizeclass_small[step] == cls; step++)
            set_bin(&tc->hot_step[step], bin);
    } while (__atomic_load_n(&tier_of[cls], __ATOMIC_SEQ_CST) != t);
}

static void set_class(unsigned cls, enum hy_tier t)
{
    if (__atomic_load_n(&tier_of[cls], __ATOMIC_RELAXED) == t)
        return;
    __atomic_store_n(&tier_of[cls], (uint8_t)t, __ATOMIC_SEQ_CST);
    for (struct thread_cache *tc = __atomic_load_n(&caches, __ATOMIC_SEQ_CST); tc;
         tc = tc->next_made)
        set_hot(tc, cls);
}

void favour_turn(unsigned cls, enum hy_tier t)
{
    __atomic_store_n(&turned, true, __ATOMIC_SEQ_CST);
    set_class(cls, t);
}

void favour_enter(struct thread_cache *tc)
{
    tc->next_made = __atomic_load_n(&caches, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&caches, &tc->next_made, tc, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    tc->hot_step[0] = UINT16_MAX; /* a page that is read before it is written costs two faults */
    for (unsigned cls = 0; cls < SIZECLASS_COUNT; cls++)
        set_hot(tc, cls);
}

enum hy_tier heap_favour(void)
{
    return (enum hy_tier)__atomic_load_n(&favour, __ATOMIC_RELAXED);
}

void heap_set_favour(enum hy_tier t)
{
    __atomic_store_n(&favour, (uint8_t)t, __ATOMIC_RELAXED);
    __atomic_store_n(&turned, false, __ATOMIC_SEQ_CST);
    for (unsigned cls = 0; cls < SIZECLASS_COUNT; cls++)
        set_class(cls, t);
}

void heap_reopen(enum hy_tier t)
{
    if (t == heap_favour() && __atomic_load_n(&turned, __ATOMIC_RELAXED))
        heap_set_favour(t);
}

/* Blocks came back to a span of the favoured tier: its class, which may have
 * turned to the other tier for lack of room, tries there first again. */
void heap_class_has_room(enum hy_tier t, unsigned cls)
{
    if (t == heap_favour())
        set_class(cls, t);
}
