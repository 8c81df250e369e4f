/* SPDX-License-Identifier: BSD-2-Clause
 * What is known of the pages of one range: two bytes a page, everything included, and four more
 * where accesses are counted page by page (worth.h). Neighbours that behave alike form groups
 * (aligned powers of two, within a block of 512 pages), whose first record stands for all; the
 * second record of a group tells its size. A group is watched by few of its pages unless it is
 * cold, as cold pages cost nothing to watch.
 *
 * Pure: memory is the caller's, so is the lock; every call but the first is bounded by the
 * pages that it names. */
#ifndef HYBRID_PAGES_RULES_HISTORY_H
#define HYBRID_PAGES_RULES_HISTORY_H

#include "base/types.h"
#include "pages/rules/predictor.h"
#include "pages/rules/worth.h"

#define HISTORY_ORDER  9u
#define HISTORY_BLOCK  (1u << HISTORY_ORDER) /* pages: 2 MiB */
#define HISTORY_ROUNDS 8u
#define HISTORY_COOL   3u /* passes for which a page that was moved is left alone */

struct page_record {
    uint8_t passes; /* write domain in the last eight, the newest in bit 0 */
    uint8_t state;  /* heat, rest after a move, tier, reuse, group: see history.c */
};

/* How many pages have which score, over all ranges of a process. Only pages that may move
 * are in `movable`. */
struct heat_map {
    struct predictor predictor;
    uint64_t movable[HY_TIERS][SCORES];
    uint64_t band[HY_TIERS][BANDS]; /* the same by what they do, whatever ranks them */
    uint64_t on[HY_TIERS];
    /* Pages by which more DRAM would be free without our moves (of pages that are counted). What
     * comes to PM meanwhile would have come to DRAM, and the reverse where it is negative. */
    int64_t owed;
    /* Worth of accesses, of late, to pages that had this score before them. */
    uint64_t came[SCORES];
    struct worth_foretold foretold;   /* by the last pass */
    uint8_t score[256][HEAT_MAX + 1]; /* page_score of every record */
};

/* Where accesses are counted page by page. */
struct page_count {
    uint16_t mean;
    uint8_t score;
    bool moved : 1; /* not where it would be without our moves */
    bool gone : 1;  /* was not in memory when last looked at */
};

struct history {
    struct page_record *rec;  /* one for each page */
    struct page_count *count; /* the same; NULL: the score is that of the record */
    uint32_t pages;
    struct heat_map *map;
};

/* One group, as others see it. */
struct page_group {
    uint32_t first, pages;
    enum hy_tier tier;
    uint8_t passes, heat, score;
    bool resting; /* moved, refused or absent not long ago */
    bool moved;   /* of these the first two, and quite lately */
    enum reuse_class reuse;
};

/* Rounds of a pass in which a page was seen read and written (bit i: round i). */
struct page_seen {
    uint8_t reads, writes;
};

/* Bit i: page i of a block. */
struct page_set {
    uint64_t word[HISTORY_BLOCK / 64];
};

static inline bool page_set_has(const struct page_set *s, unsigned i)
{
    return s->word[i / 64] >> (i % 64) & 1;
}

static inline void page_set_add(struct page_set *s, unsigned i)
{
    s->word[i / 64] |= (uint64_t)1 << (i % 64);
}

/* What one pass found, in pages; adds up over blocks. */
struct pass_stats {
    uint64_t observed; /* a group counts in full */
    uint64_t watched;  /* pages looked at */
    uint64_t changed;  /* the prediction differs from the one before */
    uint64_t predicted[3];
    uint64_t reuse[3];
    uint64_t right;   /* the prediction made before was what the pass saw */
    uint64_t written; /* pages that a write was seen of */
    uint64_t groups;
    uint64_t present; /* in memory, as far as the source tells */
};

void heat_map_init(struct heat_map *m, const struct predictor *p);

/* All pages start cold, on one tier, in groups as large as can be. */
void history_init(struct history *h, struct page_record *rec, struct page_count *count,
                  uint32_t pages, enum hy_tier tier, struct heat_map *map);
/* The range has become longer; what is new is cold. rec has room for it. */
void history_grow(struct history *h, uint32_t pages, enum hy_tier tier);
/* `to` is new and stands for pages [from, from + to->pages) of h: take over what is known. */
void history_copy(struct history *to, const struct history *h, uint32_t from);
/* The range is gone: its pages leave the map. */
void history_drop(struct history *h);
static inline uint32_t history_blocks(const struct history *h)
{
    return h->pages / HISTORY_BLOCK + (h->pages % HISTORY_BLOCK != 0);
}

/* The group that holds a page; first + pages is where the next one begins. */
struct page_group history_group(const struct history *h, uint32_t page);

/* Which pages of a block to watch in the next pass; `random` picks who stands for a group. */
void history_watch(const struct history *h, uint32_t block, uint64_t random, struct page_set *ret);
/* What a pass of so many rounds saw of the watched pages of a block (seen: HISTORY_BLOCK
 * entries). Groups that no longer behave alike are split, others merged. */
void history_record(struct history *h, uint32_t block, const struct page_set *watched,
                    const struct page_seen *seen, unsigned rounds, struct pass_stats *stats);
/* What one pass was told of the pages of a block, before history_record: their means and scores.
 * Adds to *gain, in units of worth.h, what pages that were moved up are read and written on DRAM,
 * less the same of those that were moved down, on PM. */
void history_count(struct history *h, uint32_t block, const struct page_seen *accesses,
                   const struct worth_rule *rule, int64_t *gain);
/* Counts of one pass as rounds: the larger one becomes all of them, so that the ratio stays;
 * `most` is the count of a page that is always in use. */
struct page_seen seen_from_counts(uint64_t reads, uint64_t writes, uint64_t most);

/* Pages moved, or refused to: they rest for some passes. */
void history_moved(struct history *h, uint32_t first, uint32_t pages, enum hy_tier to);
void history_refused(struct history *h, uint32_t first, uint32_t pages);
/* Pages lie on this tier, where somebody else has put them, or must not be moved in this pass. */
void history_found(struct history *h, uint32_t first, uint32_t pages, enum hy_tier on);
/* Pages have come into memory on this tier: nobody has moved them. */
void history_placed(struct history *h, uint32_t first, uint32_t pages, enum hy_tier on);
void history_pin(struct history *h, uint32_t first, uint32_t pages);
/* Pages that are not in memory: they have no past, cannot move, and will come on `home`. */
void history_absent(struct history *h, uint32_t first, uint32_t pages, enum hy_tier home);
/* A page was found in memory. If it was not before, it has come. */
void history_present(struct history *h, uint32_t page);
/* What the pages did says nothing of what they will do: all are as cold as new ones. */
void history_cool(struct history *h);
/* Cut a group so that one begins at this page. */
void history_cut(struct history *h, uint32_t page);

#endif
