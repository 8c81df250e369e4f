/* SPDX-License-Identifier: BSD-2-Clause
 * What registry.c (taking part) and registry_read.c (looking) have in common. */
#ifndef HYBRID_PLACE_REGISTRY_INTERNAL_H
#define HYBRID_PLACE_REGISTRY_INTERNAL_H

#include <pthread.h>

#include "place/registry_file.h"

#define MAX_THREADS (1u << 22)
#define MAX_RATIO   1000000u /* a thousand times slower: nothing is */

/* The fields of registry_published: in the slot, in the struct, the most that is believed. The
 * class is one more. */
#define TOLD_FIELDS(X)                                                                             \
    X(threads, threads, MAX_THREADS)                                                               \
    X(cap, cap, MAX_THREADS)                                                                       \
    X(confidence, confidence, 1000u)                                                               \
    X(slowdown, slowdown, MAX_RATIO)                                                               \
    X(placed_slowdown, placed_slowdown, MAX_RATIO)                                                 \
    X(pm, pm_bytes, REGISTRY_MAX_BYTES)                                                            \
    X(wish, wish_bytes, REGISTRY_MAX_BYTES)                                                        \
    X(asked, asked_bytes, REGISTRY_MAX_BYTES)                                                      \
    X(promoted, promoted_bytes, REGISTRY_MAX_BYTES)                                                \
    X(demoted, demoted_bytes, REGISTRY_MAX_BYTES)                                                  \
    X(written, written_bytes, REGISTRY_MAX_BYTES)                                                  \
    X(tracked, tracked_bytes, REGISTRY_MAX_BYTES)                                                  \
    X(arrived, arrived_ns, UINT64_MAX / 2)                                                         \
    X(marks, marks, REGISTRY_WRITES | REGISTRY_ON_PM | REGISTRY_ASKED)                             \
    X(ebw_dram, ebw_dram, MAX_RATIO)                                                               \
    X(ebw_pm, ebw_pm, MAX_RATIO)                                                                   \
    X(pm_written, pm_written, 1000u)                                                               \
    X(writers, writers, MAX_RATIO)                                                                 \
    X(writers_free, writers_free, MAX_RATIO)                                                       \
    X(held, held, MAX_RATIO)                                                                       \
    X(hindered, hindered, MAX_RATIO)                                                               \
    X(paced, paced, MAX_THREADS)                                                                   \
    X(own_best, own_best, MAX_THREADS)                                                             \
    X(paced_for, paced_for, MAX_THREADS)                                                           \
    X(paced_since, paced_since, (uint64_t)INT64_MAX)                                               \
    X(time_at[0], time_at[0], MAX_RATIO)                                                           \
    X(time_at[1], time_at[1], MAX_RATIO)                                                           \
    X(time_at[2], time_at[2], MAX_RATIO)                                                           \
    X(time_at[3], time_at[3], MAX_RATIO)                                                           \
    X(time_at[4], time_at[4], MAX_RATIO)                                                           \
    X(time_at[5], time_at[5], MAX_RATIO)                                                           \
    X(time_at[6], time_at[6], MAX_RATIO)                                                           \
    X(time_at[7], time_at[7], MAX_RATIO)                                                           \
    X(curve_bytes, curve_bytes, REGISTRY_MAX_BYTES)                                                \
    X(curve_dram, curve_dram, REGISTRY_MAX_BYTES)                                                  \
    X(curve_takes, curve_takes, REGISTRY_MAX_BYTES)                                                \
    X(need, need_bytes, REGISTRY_MAX_BYTES)                                                        \
    X(run_ns, run_ns, (uint64_t)INT64_MAX)                                                         \
    X(curve_now, curve_now, MAX_RATIO)                                                             \
    X(weight, weight, 10000u)                                                                      \
    X(move_ns, move_ns, MAX_RATIO)                                                                 \
    X(cache_class, cache_class, 255u)                                                              \
    X(cache_ways, cache_ways, 64u)

enum { SLOT_NONE = -1 };

struct registry {
    int used; /* atomic, as slot: other registries of this process look at both */
    int slot; /* whose lock we hold, and what `own` was written to */
    pthread_mutex_t lock;
    uint64_t want_budget;
    uint64_t owed; /* atomic: returned while nobody could enter; whoever enters next takes it off */
    uint64_t me;   /* reg_identity() when we joined, 0: not joined yet */
    int32_t pid;   /* that joined: a raw clone's child is not it */
    uint64_t next_sweep; /* os_now_ns() */
    struct reg_access io;
    struct reg_slot own;
};

/* One operation at a time: the lock, and a descriptor that is the file's. False: neither. */
bool registry_enter(struct registry *r);
void registry_exit(struct registry *r);
/* Between the two: do we have a slot? Asks the file. */
bool registry_has_slot(struct registry *r);
/* Is slot `i`, as last seen, held by somebody alive? A dead one's is freed. */
bool registry_held_by_living(struct registry *r, int i, bool *freed);
/* Bytes of a slot; more than the budget was never granted to anybody: not believed. */
uint64_t registry_believed_dram(const struct reg_slot *s, uint64_t budget);

#endif
