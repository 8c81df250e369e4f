/* SPDX-License-Identifier: BSD-2-Clause
 * Which pages of the ranges that it is told of the program writes (and reads, where
 * something tells), pass by pass, and from their histories what should move.
 *
 * A pass takes a batch of blocks of 2 MiB, watches them for HISTORY_ROUNDS rounds and records
 * what it saw: one thread calls sampler_begin, then in its own time sampler_round for each
 * round, then sampler_end. Ranges may come and go from any thread meanwhile. Memory: two
 * bytes a page, and 700 KiB. Nothing here is on the program's paths but add and remove,
 * which wait for at most one block's look. */
#ifndef HYBRID_PAGES_SAMPLER_H
#define HYBRID_PAGES_SAMPLER_H

#include "pages/rules/movelist.h"

/* --- where it comes from ----------------------------------------------------------- */

typedef void (*sampler_access_fn)(uintptr_t address, bool store);

/* One way to see accesses. Either it is asked for the pages of a block (watch, look), or it
 * tells of single accesses (drain). Results are 0 or -errno. */
struct sampler_source {
    const char *name;
    bool reads, writes; /* what it sees */
    int (*open)(void);  /* tried out: it works from now on */
    void (*close)(void);
    /* May be NULL: */
    int (*add)(void *base, size_t bytes);
    void (*remove)(void *base, size_t bytes);
    int (*watch)(void *base, uint32_t pages, const struct page_set *set);
    int (*look)(void *base, uint32_t pages, const struct page_set *set, unsigned round,
                struct page_seen *seen);
    int (*next_round)(void); /* after all looks of one */
    int (*drain)(sampler_access_fn fn);
    unsigned period; /* of drain: one line in so many; 0: not known */
    /* Which pages are in memory. NULL: all. */
    int (*present)(void *base, uint32_t pages, struct page_set *ret);
    /* Does it still work? (The program may have closed its descriptor.) NULL: always. */
    bool (*alive)(void);
};

/* `present` by the page tables of the kernel. */
int sampler_present(void *base, uint32_t pages, struct page_set *ret);

extern const struct sampler_source sampler_scan, sampler_soft_dirty;
/* Reads, for who may: addresses of loads that missed the caches, from the processor; pages that
 * were touched (read or written), from the kernel's idle bits. */
extern const struct sampler_source sampler_loads, sampler_idle;
/* For tests: the idle bits are in files below this folder (NULL: the kernel's own). */
void sampler_idle_use(const char *root);
/* Samples of accesses that the emulated machine takes, one in SAMPLER_PERIOD lines. */
#define SAMPLER_PERIOD 16u
extern const struct sampler_source sampler_emulated;

/* --- the sampler ------------------------------------------------------------------- */

#define SAMPLER_RANGES 4096u
#define SAMPLER_BATCH  256u /* blocks: 512 MiB */

/* Opens the first of the sources (at most seven, NULL at the end) that sees writes and works, and,
 * if that one sees no reads, the first other one that does. -ENODEV: none sees writes. */
int sampler_open(const struct sampler_source *const *sources, const struct predictor *p,
                 uint64_t seed);
void sampler_close(void);
/* Name of the source of writes and of reads; NULL: there is none. */
const char *sampler_source_name(bool writes);

/* A whole mapping of private memory, all of it on one tier, its home: what is given back and
 * touched again comes there. `grows`: more memory may come right behind it (heaps), which then
 * joins. -ENOSPC: too many; -EBUSY and others: the source cannot watch it. */
int sampler_add(void *base, size_t bytes, enum hy_tier home, bool grows);
/* Unmapped or no longer ours. What is left of a range keeps its history. */
void sampler_remove(void *base, size_t bytes);
/* Given back to the system: not in memory, at home when it comes again. */
void sampler_discard(void *base, size_t bytes);
/* A part of what is watched, not in memory, has another home. By any thread. */
void sampler_rehome(void *base, size_t bytes, enum hy_tier home);
/* Pages that are on DRAM by what is known, less those whose home it is. */
int64_t sampler_extra_dram(void);

/* Blocks of all ranges. */
uint64_t sampler_blocks(void);
/* Choose and watch at most `blocks` (and SAMPLER_BATCH) blocks; how many. */
unsigned sampler_begin(uint64_t blocks);
void sampler_round(unsigned round);
void sampler_end(struct pass_stats *stats);

struct page_move {
    void *base;
    size_t bytes;
    enum hy_tier to;
};
/* What to move now (movelist.h), at most `cap`. */
unsigned sampler_moves(const struct move_limits *l, uint64_t visits, struct page_move *list,
                       unsigned cap, uint64_t *ret_regret);
/* Moves that go back (takeback.h). */
unsigned sampler_takeback(struct page_move *list, unsigned cap, uint64_t *ret_pairs);
/* Where accesses are counted by page: how they are priced from the next pass on; what the pages
 * that we have moved were used more in the last one on DRAM than on PM, in units of worth.h; and
 * how far their means foretold it. */
void sampler_price(const struct worth_rule *rule);
int64_t sampler_gain(void);
struct worth_foretold sampler_foretold(void);
/* The program has turned to something else: what pages did is forgotten, where they are is not. */
void sampler_cool(void);
/* Are the first pages of this on PM by what is known? *bytes becomes those that are alike. */
bool sampler_far(const void *base, size_t *bytes);
/* Is all of this still watched, and on that tier? */
bool sampler_all_on(const void *base, size_t bytes, enum hy_tier t);
/* Pages were moved by what the histories say, for others that know better (tasks), or refused to
 * (then they are where they were). */
enum sampler_outcome { SAMPLER_MOVED, SAMPLER_SERVED, SAMPLER_REFUSED };
void sampler_moved(void *base, size_t bytes, enum hy_tier to, enum sampler_outcome o);
/* Others move pages, too. sampler_places asks `where` about a part of the pages, about so
 * many (OTHERS_MOST where many are elsewhere), and goes on from there the next time; what is not
 * where it was believed to be is from now on believed to be there, and told: at most `cap` runs,
 * not fewer than HISTORY_BLOCK. */
typedef int (*sampler_where_fn)(void *arg, void *const *page, unsigned n, int8_t *ret_tier);
struct sampler_found {
    void *base;
    size_t bytes;
    enum hy_tier on;
    bool home; /* this is the tier that they belong to */
};
/* Where memory comes is the kernel's choice (first touch): each pass asks `where` about the pages
 * that it watches, before it watches them. NULL: it is known. Set before the first pass. */
void sampler_ask_places(sampler_where_fn where, void *arg);
unsigned sampler_places(uint64_t budget, sampler_where_fn where, void *arg,
                        struct sampler_found *ret, unsigned cap, uint64_t *ret_asked);
/* These must not be moved in this pass. */
void sampler_pin(void *base, size_t bytes);
/* Pages of the ranges, by tier and score band, of those that may move; all by tier. */
void sampler_totals(uint64_t ret_pages[HY_TIERS][BANDS], uint64_t ret_on[HY_TIERS]);
/* Pages of PM that would be on DRAM if there were room. */
uint64_t sampler_wanted(void);

/* Where accesses are counted by page: ret[k] is the share of them, by their price, that does not go
 * to the hottest k eighths of the pages, in thousandths. *ret_pages: pages in all. false: nothing
 * was counted. */
#define SAMPLER_PARTS 8u
bool sampler_cold(uint32_t ret[SAMPLER_PARTS], uint64_t *ret_pages);
/* Pages of PM of this rank and above: they may come to free DRAM (worth.h). */
uint64_t sampler_ranked(unsigned from);

/* A part of the footprint; of a sample of its pages: */
struct sampler_bin {
    uintptr_t base;
    uint64_t pages;     /* in all */
    uint32_t looked;    /* of them in the sample, */
    uint32_t on_pm;     /* on PM, */
    uint32_t heat;      /* sum of heats, 0 to HEAT_MAX each */
    uint32_t writes;    /* sum of passes of write domain, 0 to 8 each */
    uint32_t predicted; /* predicted to be written */
};
/* The footprint in bins of equal size, in the order of addresses; how many. */
unsigned sampler_bins(struct sampler_bin *bins, unsigned cap);

/* Around fork. A child has the histories but watches nothing until sampler_reopen. */
void sampler_prefork(void);
void sampler_postfork(void);
int sampler_reopen(void);
/* Nothing is watched until then; the histories stay. By the thread that opened it. */
void sampler_suspend(void);
/* False: the source of writes has lost its descriptor; sampler_reopen may help. That of reads is
 * looked after at the start of each pass. */
bool sampler_alive(void);
/* Adds the accesses to these pages that the last pass was told of; false: not all were looked at.
 */
bool sampler_accesses(const void *base, size_t bytes, uint64_t *sum);
/* One access told of stands for so many lines, reads and writes; 0: nobody counts them. */
unsigned sampler_period(void);

#endif
