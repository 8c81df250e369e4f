/* SPDX-License-Identifier: BSD-2-Clause
 * Who gets the DRAM: Algorithm 1 of papers/004 (DIGEST 004) over a snapshot of
 * all participants. Pure functions over plain structs. */
#ifndef HYBRID_PLACE_RULES_PLACEMENT_H
#define HYBRID_PLACE_RULES_PLACEMENT_H

#include "base/types.h"

#define PLACE_MAX_APPS 256

struct place_app {
    enum hy_class cls;
    uint64_t dram_bytes; /* held */
    uint64_t pm_bytes;
    uint64_t wish_bytes; /* DRAM that it would like and did not get; lower it when it did */
    uint32_t writers;    /* threads with a write pending at PM, thousandths */
    uint32_t slowdown;   /* with all its data on PM, thousandths; 0: not known, as the next */
    uint64_t run_ns;     /* since it began */
    uint64_t move_ns;    /* what it costs that a page comes and another makes place for it */
    int32_t group;       /* processes that share a part (parts.h); 0: it has one for itself */
};

struct place_machine {
    uint64_t dram_budget; /* shared by all, bytes */
    unsigned n_apps;
    struct place_app app[PLACE_MAX_APPS];
};

struct place_decision {
    enum hy_tier tier;
    uint64_t wish_bytes; /* DRAM to be wished free for this request (0: none) */
};

/* Algorithm 1 for a request of `bytes` by app[self]. Free DRAM >= S: DRAM; what a
 * more sensitive program wishes for is not free. Else a bandwidth- or latency-
 * sensitive program whose S fits what CPU-bound ones hold, less the wishes
 * already made for it, wishes that much free (and gets PM until it is). Else PM.
 * Bandwidth-sensitive ones go before latency-sensitive ones, these before
 * CPU-bound ones (DESIGN 4); unknown ones rank as CPU-bound, but are asked for
 * nothing. Wishes of CPU-bound and unknown ones are not heard, nor, by a CPU-bound one, those of
 * programs that would gain less by its DRAM than it loses and the moves cost: paper 004 calls
 * CPU-bound whoever takes less than half as long again on PM, and it may be the longest of all.
 * What others tell of their class and gain cannot be checked. So a CPU-bound program keeps, of an
 * equal part (parts.h), what would cost it more than 1 % of its time by its own slowdown. */
struct place_decision placement_decide(const struct place_machine *m, unsigned self,
                                       uint64_t bytes);
/* What those wish for who go before app[self]: the more sensitive ones, and of its class those who
 * have more than twice as many threads writing to PM. Writers there slow DRAM down for all, by
 * the square of their number (004, section V): their pages are the first that should not be there.
 */
uint64_t placement_ahead(const struct place_machine *m, unsigned self);
/* DRAM that nobody holds and nobody before app[self] wishes for. */
uint64_t placement_free(const struct place_machine *m, unsigned self);
/* DRAM that app[self] can have: what it holds less what it is asked to give up, and what is free to
 * it. By one snapshot: what it has claimed or given back since stands in neither. */
uint64_t placement_share(const struct place_machine *m, unsigned self, uint64_t asked);
/* How much of `bytes` that it would like app[self] may wish for: what CPU-bound ones hold, less
 * what others of its rank and above wish for already. */
uint64_t placement_wish(const struct place_machine *m, unsigned self, uint64_t bytes);
/* May app[self] wish? */
bool placement_may_ask(const struct place_machine *m, unsigned self);
/* DRAM bytes that app[self] is asked to give up now: what others wish for and is not free, shared
 * among the CPU-bound holders in proportion to what they may lose. `free`: so much is at most, as
 * programs that nobody counts may have the rest. */
uint64_t placement_asked_of(const struct place_machine *m, unsigned self, uint64_t free);

#endif
