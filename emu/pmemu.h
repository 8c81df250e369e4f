/* SPDX-License-Identifier: BSD-2-Clause
 * What an emulated program, an allocator, a policy or a sampler may ask of the machine;
 * none of it is needed. Declare the functions weak, or find them by dlsym(RTLD_DEFAULT),
 * to run outside the emulated machine as well.
 *
 * Tiers: 0 DRAM, 1 PM. Results are >= 0 or -errno. All functions may be called by any
 * thread at any time, from a malloc and from signal handlers too, and keep errno. */
#ifndef PMEMU_H
#define PMEMU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMEMU_PAGE 4096

/* The calling thread's virtual clock, ns; of a thread that is not emulated, the time that
 * all threads of the machine have reached. */
int64_t pmemu_vtime_ns(void);

/* Around a wait that the machine does not see (a raw futex, a file that another program
 * writes): in between the calling thread holds nobody up. It goes on at `vtime_ns` unless
 * it is later already; -1: when the slowest running thread is. `key` is what it waits for,
 * such as an address; with PMEMU_SHARED_KEY in it, one and the same for all processes. */
void pmemu_away(uint64_t key);
void pmemu_back(int64_t vtime_ns);
/* All who are away at `key` run on from `vtime_ns` at the earliest, before they know of
 * it: whoever wakes first must not run ahead as if the others were not there. */
void pmemu_release(uint64_t key, int64_t vtime_ns);
#define PMEMU_SHARED_KEY ((uint64_t)1 << 63)

/* Once in a program, at file scope: how many percent of the time that call-outs of its
 * accesses and basic blocks stand for (access_ps, block_ps) is right for it; 0.1 to
 * 10000, HYBRID_EMU_COMPUTE wins. The QEMU front end counts instructions instead. */
#ifdef __cplusplus
#define PMEMU_COMPUTE_PERCENT(p) extern "C" const unsigned pmemu_compute_milli = (p)*1000 + 0.5
#else
#define PMEMU_COMPUTE_PERCENT(p) const unsigned pmemu_compute_milli = (p)*1000 + 0.5
#endif
extern const unsigned pmemu_compute_milli;

/* --- which memory a page is on ------------------------------------------------------- */

/* Put the pages of a range on a tier, what they hold included, at no cost: for
 * allocators that own fresh memory. Pages that the range touches are meant wholly. A
 * page named DRAM is on PM all the same while the machine has no DRAM left. PMEMU_NO_TIER:
 * nobody names them any more; they stay where they are, and when next used for the first time
 * go where the machine puts what nobody names (HYBRID_EMU_PLACE). */
int pmemu_set_tier(const void *address, size_t bytes, int tier);
#define PMEMU_NO_TIER (-1)
/* The same for pages in use, at the cost of moving them (reads on one medium, writes on
 * the other, a fixed time for each page and call), which the calling thread spends. How
 * many pages moved: those that were never used do not, nor those for which DRAM has no
 * room. A thread that is not emulated takes part for as long as the call lasts. */
int64_t pmemu_move(const void *address, size_t bytes, int tier);
/* Where a page is, or would be if it were used now and there was room. */
int pmemu_tier_of(const void *address);
/* Of each page that the range touches, a byte: its tier, or PMEMU_UNUSED for one that nobody has
 * used (or not since it was given back). No page is in use for having been asked for. 0, -EINVAL,
 * -EFAULT. */
int pmemu_range_tiers(const void *address, size_t bytes, uint8_t *ret_tier);
#define PMEMU_UNUSED 0xff
/* Their contents are gone (madvise by a raw system call): unused, still of their tier. */
void pmemu_discard(const void *address, size_t bytes);
/* Capacity of the machine; 0: no limit. */
uint64_t pmemu_tier_bytes(int tier);
/* DRAM that no process of the machine uses now; INT64_MAX: no limit. What killed processes had
 * and what libc has unmapped inside itself may count as used until there is no other. */
int64_t pmemu_dram_free(void);

/* --- its share of the last-level cache ---------------------------------------------------- */

/* From now on the process' lines fill so many ways of the last-level cache only, 1 to all of them,
 * as in a resource group of resctrl; it finds its lines in any. 0: only asks. How many ways there
 * are; -EINVAL: not so many; -ESRCH: not on a machine; -ENOSYS. */
int pmemu_fill_ways(int ways);

/* --- who is not the program ------------------------------------------------------------ */

/* The calling thread has no virtual time and holds nobody up: for helper threads. */
void pmemu_ignore_thread(void);
/* Such a thread (from now on, if it was none) has something to do at this time: the others get no
 * further until it has called again, for another one or (< 0) for none. By pmemu_vtime_ns it sees
 * when they have come up: its time is theirs but not past that one, and a pmemu_move of its own
 * takes of it. It has to ask from time to time: if it sleeps for 100 ms, or blocks after it has
 * been there, nobody waits any more. 0; -EAGAIN: too many threads; -ESRCH: not on a machine;
 * -ENOSYS. */
int pmemu_hold(int64_t vtime_ns);
/* Calls of memcpy and its kin from code in this range are not the program's: for libraries
 * that stand in its place. -ENOSPC: more than eight. */
int pmemu_ignore_code(const void *start, const void *end);

/* --- counts of this process --------------------------------------------------------------- */

/* name, what. The same numbers are PAPI's software-defined events 'sde:::pmemu::NAME' when
 * libsde.so.1 can be loaded, for any PAPI user. The caller's are exact, those of other
 * threads lag by up to one batch (20 us of virtual time each). */
#define PMEMU_EVENTS(X)                                                                            \
    X(TOT_INS, "instructions")                                                                     \
    X(TOT_CYC, "cycles in which threads ran or stalled, of PMEMU_CYCLE_PS")                        \
    X(VTIME_NS, "virtual time since the process came to the machine")                              \
    X(ACCESSES, "loads and stores")                                                                \
    X(L1_MISS, "accesses that missed the first level cache")                                       \
    X(LLC_RD_DRAM, "lines read from DRAM")                                                         \
    X(LLC_RD_PM, "lines read from PM")                                                             \
    X(WB_DRAM, "lines of DRAM that turned dirty: future write-backs")                              \
    X(WB_PM, "lines of PM that turned dirty")                                                      \
    X(PM_BYTES_RD, "bytes that PM read, by its blocks")                                            \
    X(PM_BYTES_WR, "bytes that PM wrote, by its blocks")                                           \
    X(FORESEEN, "lines read in an order that a prefetcher foresees")                               \
    X(COMPUTE_NS, "computing, over all threads")                                                   \
    X(STALL_NS, "waiting for an idle memory")                                                      \
    X(WAIT_NS, "more waiting, as memory was busy")                                                 \
    X(DRAM_BUSY_NS, "DRAM transfers for this process")                                             \
    X(PM_BUSY_NS, "PM transfers for this process")                                                 \
    X(DRAM_UJ, "energy of DRAM accesses")                                                          \
    X(PM_UJ, "energy of PM accesses")                                                              \
    X(DRAM_PAGES, "pages on DRAM now")                                                             \
    X(PM_PAGES, "pages on PM now")                                                                 \
    X(PAGES_UP, "pages moved to DRAM")                                                             \
    X(PAGES_DOWN, "pages moved to PM")                                                             \
    X(MOVE_NS, "time of the threads that moved them")                                              \
    X(CACHE_NS, "of STALL_NS, waiting for hits in the last-level cache")                           \
    X(CORE_UJ, "energy of the cores while threads ran or stalled there")

enum pmemu_event {
#define PMEMU_X(name, what) PMEMU_##name,
    PMEMU_EVENTS(PMEMU_X)
#undef PMEMU_X
        PMEMU_EVENT_COUNT
};

#define PMEMU_CYCLE_PS 400 /* 2.5 GHz */

/* PAPI will find the events from here on; not from a malloc or a signal handler. Before the
 * first use of PAPI under QEMU, where only programs linked with libpapi have them from the
 * start; instrumented ones always do. -ENOENT: no libsde.so.1. */
int pmemu_offer_events(void);

/* The process' count so far; -EINVAL: no such event. Settles the caller, never waits. */
int64_t pmemu_event(int event);

/* Counts by page, from the call on (HYBRID_EMU_PAGE_COUNTS=1: from the start); it takes 12
 * bytes of memory for each page in use. 0 or -ENOMEM. */
int pmemu_count_pages(void);
struct pmemu_range_counts {
    uint64_t pages;            /* pages of the range that were read or written */
    uint64_t reads;            /* lines read, from either medium */
    uint64_t writebacks;       /* lines that turned dirty */
    uint64_t pm_writes;        /* of these, on PM; with the lines that moves wrote there */
    uint64_t pages_written_pm; /* pages of which there are some */
    uint64_t most_pm_writes;   /* on a single page: wear without levelling */
};
/* Sums over the pages of a range, whatever they were used for; -ENODATA: not counted. */
int pmemu_range_counts(const void *address, size_t bytes, struct pmemu_range_counts *ret);

#ifdef __cplusplus
}
#endif

#include "pmemu_samples.h"

#endif
