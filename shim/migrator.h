/* SPDX-License-Identifier: BSD-2-Clause
 * Pages in motion: a thread of its own watches the pages of the heaps and of steered mappings,
 * pass by pass, and moves what the histories say, within the DRAM that the policy grants, the
 * rate, and as long as it pays. The thread is there only where pages can be moved and
 * there is something to watch; a passive process, one memory, or HYBRID_MIGRATE=off
 * have neither the thread nor a descriptor nor memory for it. */
#ifndef HYBRID_MIGRATOR_H
#define HYBRID_MIGRATOR_H

#include "pages/migrate_beside.h"
#include "pages/rules/balance.h"
#include "pages/sampler.h"

enum migrate_state {
    MIGRATE_IDLE,    /* nothing to watch yet */
    MIGRATE_WATCHES, /* the thread runs */
    MIGRATE_IS_OFF   /* `why` tells */
};

/* One pass, complete. Times are of the machine's clock where the machine is emulated. */
struct migrate_pass {
    uint64_t number, end_ns, interval_ns;
    uint64_t pages[HY_TIERS][BANDS]; /* that may move, by where they are and what they are like */
    uint64_t on[HY_TIERS];           /* watched pages, all of them */
    uint64_t tracked_pages, written_pages; /* looked at in this pass; of them written */
    uint64_t look_ns;                      /* how long it was looked */
    struct pass_stats stats;
    uint64_t up_pages, down_pages; /* moved to DRAM, to PM */
    uint64_t refused_pages;        /* that did not want to */
    uint64_t regretted_pages;      /* moved not long ago, would have to go back */
    uint64_t wanted_pages;         /* of PM, would be on DRAM if there were room */
    /* What DRAM brings, once enough accesses were counted (sampler_cold); no pages: not known. */
    uint32_t cold[SAMPLER_PARTS];
    uint64_t cold_pages;
    uint64_t takes_pages; /* of PM, would come to free DRAM, as they are worth the move */
    double exchange_ns;   /* what it costs that two pages change places */
    bool paused;          /* moves did not pay, or others undid them: none now */
};

struct migrate_view {
    enum migrate_state state;
    char why[96];
    const char *way;            /* "numa", "emulated"; "" */
    const char *writes, *reads; /* sources; "": none */
    bool eager;
    uint64_t passes, up_bytes, down_bytes, refused_pages, regretted_pages;
    uint64_t look_ns, move_ns; /* time that they took, of one thread */
    uint64_t pauses;           /* how often moves stopped as they did not pay */
    struct beside_view beside; /* what others moved */
    enum balance_state balance;
    struct migrate_pass last;
};

/* The control thread: start what is due. */
void migrate_tick(void);
/* Any thread, never from malloc. */
void migrate_get(struct migrate_view *ret);
/* Heat by address: at most `cap` bins of equal numbers of pages, in the order of addresses, by a
 * sample of pages; how many bins. About 0.3 ms for 256. */
unsigned migrate_heat(struct sampler_bin *bins, unsigned cap);
/* Threads of ours beside the control thread. */
unsigned migrate_threads(void);
/* Would counts help, even if the class is known? */
bool migrate_wants_counters(void);

/* Memory of a heap went back to the system, is zero and of its own tier again. */
void migrate_discarded(void *base, size_t bytes, enum hy_tier home);
/* Do the first pages of a part of a heap of DRAM lie on PM by what is known? *bytes becomes those
 * that are alike. */
bool migrate_lies_far(const void *base, size_t *bytes);
/* A mapping of the program is about to go, or to be replaced, or its own userfaultfd shall have
 * it: it is not watched any more, and counts to its home. */
void migrate_unmapped(void *base, size_t bytes);

/* `away` bytes of a block of DRAM, without pages so far, shall lie on PM, and are charged there:
 * its end, or parts of its stripes by their level (pages/rules/stripes.h); false: they cannot. Its
 * pages may move as all others. join: those go back to the system, and all of the block is DRAM's.
 */
bool migrate_split(void *block, size_t size, size_t away, const uint8_t *level);
void migrate_join(void *block);

void migrate_prefork(void);
void migrate_postfork(bool child);

#endif
