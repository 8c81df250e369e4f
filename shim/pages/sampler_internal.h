/* SPDX-License-Identifier: BSD-2-Clause
 * Between the files of the sampler: sampler_ranges.c has what is watched and the life of it all,
 * sampler.c the passes and moves, sampler_places.c where pages really are,
 * sampler_view.c what others want to know. Everything below is
 * under the lock. */
#ifndef HYBRID_PAGES_SAMPLER_INTERNAL_H
#define HYBRID_PAGES_SAMPLER_INTERNAL_H

#include "pages/rules/coverage.h"
#include "pages/sampler.h"
#include "sys/lock.h"

#define BLOCK_BYTES (HISTORY_BLOCK * HY_PAGE)

#define SOURCES 8u

struct watched_range {
    uintptr_t base;
    size_t bytes;
    size_t room; /* bytes for which there are records */
    enum hy_tier home;
    bool grows;
};

/* One block of the batch. By address: ranges shift in their table. */
struct slot {
    uintptr_t base;
    uint32_t pages;
    bool gone; /* unmapped since, or the source failed */
    struct page_set watched;
    struct page_seen seen[HISTORY_BLOCK];     /* of rounds; */
    struct page_seen accesses[HISTORY_BLOCK]; /* accesses told of, counts up to 255 */
};

struct sampler {
    struct watched_range range[SAMPLER_RANGES]; /* sorted */
    struct history history[SAMPLER_RANGES];
    struct slot slot[SAMPLER_BATCH];
    unsigned ranges, slots, counted; /* counted: slots of the pass that is over */
    uint64_t home[HY_TIERS];         /* pages */
    struct heat_map map;
    struct coverage coverage;
    struct move_hand hand;
    sampler_where_fn where; /* NULL: pages come to their home */
    void *where_arg;
    struct worth_rule rule; /* of the pass under way */
    int64_t gain;           /* of the pass that is over: history_count's */
    uintptr_t places;       /* asked about up to here, */
    unsigned places_round;  /* for so many times */
    const struct sampler_source *writes, *reads;
    const struct sampler_source *source[SOURCES]; /* all there may be, NULL at the end */
};

extern struct sampler *hy_sampler; /* mapped when opened: a passive process has no use for it */
/* Threads of the program take it as well, when memory goes. */
extern struct hy_lock hy_sampler_lock;

/* Are accesses counted page by page? Settled when the sampler is opened. */
static inline bool sampler_counts(void)
{
    return hy_sampler->writes->drain && hy_sampler->writes->period > 0;
}
/* Where the pages of a block really are goes into the histories. */
void sampler_place_block(uintptr_t base, uint32_t pages);
/* A source of reads that does not work any more, or has given way, makes place for the next. */
void sampler_renew_reads(void);
/* Index of the first range that ends above `at`. */
unsigned sampler_find(uintptr_t at);
/* The pages that [from, to) and a range have in common. */
struct sampler_part_of {
    uint32_t first, pages;
};
struct sampler_part_of sampler_part(unsigned at, uintptr_t from, uintptr_t to);

#endif
