/* SPDX-License-Identifier: BSD-2-Clause
 * Which call sites get the DRAM: the placement that makes the program fastest by the machine's
 * figures, found from what a profile knows of its sites. Pure.
 *
 * What a line is worth is the slope of the predicted time (slowdown.h), so it is latency that
 * counts for a program that waits for it, and the bandwidth of PM, where writes are dear, for
 * one that fills it. That is another one in each behaviour of the program: what is written in
 * bursts fills PM while they last, though it would not if it came evenly. Sites are ranked by what
 * a byte of DRAM saves; the sites that get DRAM are the best set that fits, found by branch and
 * bound, which is exact for as many sites as matter. Blocks are placed as a whole, a site of many
 * blocks also in part; where the system splits large blocks, so are these, taken as read and
 * written alike in all their pages, or where the profile tells of hot parts (site_heat.h), these
 * first.
 *
 * Sites that do not hold memory at the same time can have the same DRAM. The run is cut into
 * PLAN_TIMES parts by what it has allocated; where no part is common to all sites, the set is the
 * best of three: that of sites that all hold memory at once, filled up, and those of two greedy
 * orders, by what a byte saves and by what a byte saves for as long as it is taken. */
#ifndef HYBRID_PLACE_RULES_SITE_PLAN_H
#define HYBRID_PLACE_RULES_SITE_PLAN_H

#include "classify/rules/slowdown.h"
#include "settings/rules/profile.h"
#include "place/rules/site_heat.h"
#include "place/rules/site_times.h"

#define PLAN_MAX (PROFILE_MAX_SITES + 1) /* and the rest of the memory */
/* What a large block is split into, in a plan. Smaller parts would be no better plan. */
#define PLAN_SPLIT ((uint64_t)64 * HY_KIB)
/* Levels of sites whose parts are not alike, in all, beyond one for each; of others they are taken
 * as alike. */
#define PLAN_LEVELS 256
#define PLAN_ITEMS  (PLAN_MAX + PLAN_LEVELS)

/* The work of a run: as one, and its behaviours, one after the other. */
struct plan_work {
    struct work all;
    struct work in[PROFILE_BEHAVIOURS];
    unsigned n; /* at least 1; where it is 1, that is all */
};

struct plan_site {
    uint64_t bytes;       /* most of it in use at a time */
    uint64_t block;       /* its largest block; 0: not known, taken as all */
    double reads, writes; /* lines, over the whole run */
    /* Of these, the part in each behaviour, where the work has more than one. */
    float reads_in[PROFILE_BEHAVIOURS], writes_in[PROFILE_BEHAVIOURS];
    uint32_t held; /* a bit for each part of the run in which it holds memory; 0: all */
    bool parts;    /* its blocks can be split: only their first pages may be on DRAM */
    const struct profile_site *heat; /* where its parts are not alike; NULL: they are */
    uint8_t level[PROFILE_BINS];     /* then */
    bool fixed;                      /* somebody has named its tier */
    enum hy_tier tier;
    uint64_t key; /* breaks ties: the order of sites must not matter */
};

enum plan_why {
    PLAN_CHOSEN,    /* best use of the DRAM */
    PLAN_PART,      /* some of its blocks are */
    PLAN_NAMED,     /* its tier is in the profile */
    PLAN_IDLE,      /* nothing was counted there, or DRAM would save nothing */
    PLAN_NO_ROOM,   /* better ones take the DRAM */
    PLAN_TOO_LARGE, /* one block is more than the DRAM there is */
};

struct plan_tier {
    enum hy_tier tier;
    enum plan_why why;
    uint16_t rank;       /* 0 is first; every site has one */
    uint64_t dram_bytes; /* of it on DRAM, as they will be charged */
    double saves_ns;     /* were all of it on DRAM, in a run with the rest on PM */
};

struct site_plan {
    unsigned n;
    uint64_t share, dram_bytes;
    double read_ns, write_ns; /* what a line on DRAM saves, on average */
    bool exact;               /* no better set exists by these figures */
    uint16_t order[PLAN_MAX]; /* best first: those that get DRAM, then the others */
    struct plan_tier place[PLAN_MAX];
};

struct plan_item {               /* a site in the search, or a level of it */
    uint16_t index, taken, best; /* blocks taken, and in the best set */
    uint8_t level;
    uint32_t count, held;
    uint64_t block;
    double worth, density; /* of a block, of a byte */
    uint64_t key;
};
struct plan_scratch {
    struct plan_item item[2 * PLAN_ITEMS];
    struct site_plan other;
};

/* Bytes that a block is charged with. */
uint64_t site_plan_charge(uint64_t block);
/* Large blocks of a profile's sites can be split, as site_plan_sites has made them. Not those whose
 * tier is named, nor those that are used less than once through before they are freed: what is
 * split is touched anew, and that costs more than it saves. */
void site_plan_split(const struct profile *p, struct plan_site *site);
/* How many blocks a site has, 1 to 65535, and what each is charged; of one in parts, how many of
 * these. */
unsigned site_plan_blocks(const struct plan_site *s, uint64_t *ret_block);
/* The work that a profile tells of: lines of its sites, the rest from its slowdown and class
 * where it does not say more. -ENODATA: no site has counts, so there is nothing to plan by. */
int site_plan_work(const struct profile *p, const struct machine_figures *f, struct plan_work *ret);
/* Sites of a profile as the plan wants them, index by index, and behind them the rest of its
 * memory, if it tells of more than its sites hold. A site that begins with the frames of one
 * whose tier is named has that tier. Returns how many. */
unsigned site_plan_sites(const struct profile *p, struct plan_site site[PLAN_MAX]);
/* work NULL: only what is named is placed. The best set for lines as they are worth on average with
 * all on PM, or one that is predicted to be faster by more than predictions err. Never more than
 * `share` bytes but for what is named. Two milliseconds up to a hundred sites, 10 at worst. */
void site_plan_make(const struct machine_figures *f, const struct plan_work *work,
                    const struct plan_site *site, unsigned n, uint64_t share,
                    struct plan_scratch *scratch, struct site_plan *ret);
/* All lines of the work, and the shares of them that the plan leaves on PM; no more is set. */
struct work site_plan_lines(const struct plan_work *work, const struct plan_site *site,
                            const struct site_plan *plan);
/* The predicted time of the work under the plan, and with this share of all lines on PM; ns. */
double site_plan_time(const struct machine_figures *f, const struct plan_work *work,
                      const struct plan_site *site, const struct site_plan *plan);
double site_plan_time_at(const struct machine_figures *f, const struct plan_work *work, double pm);

#endif
