/* SPDX-License-Identifier: BSD-2-Clause
 * What a page will do next, from what it did in the last passes (paper 002, sections 3.1
 * to 3.3 and 5.2): write domain, prediction with Reverse, reuse class, the score that ranks
 * pages for DRAM, and where a page belongs. Pure. */
#ifndef HYBRID_PAGES_RULES_PREDICTOR_H
#define HYBRID_PAGES_RULES_PREDICTOR_H

#include "base/types.h"

#define PREDICT_WINDOW     8u
#define PREDICT_WINDOW_MAX 16u

enum prediction { UN_WD, WD_FREQ_L, WD_FREQ_H };

/* The paper names the states and leaves the numbers to experiment; docs/pages.md has ours. */
struct predictor {
    uint8_t window; /* passes that count, 1 to PREDICT_WINDOW_MAX */
    uint8_t freq_h; /* of them write domain: from so many on WD_FREQ_H, */
    uint8_t freq_l; /* from so many on WD_FREQ_L */
    uint8_t k_len;  /* passes in a row that outweigh the window; 0: never */
};

/* The thresholds scale with the window: 3/4 and 3/8 of it. */
struct predictor predictor_of(unsigned window);

/* In one pass, by counts of any unit. */
static inline bool write_domain(uint64_t reads, uint64_t writes)
{
    return writes > 0 && writes >= reads - reads / 2; /* 2 * writes >= reads, for any counts */
}

/* `passes`: bit i is the pass i passes ago, 1 for write domain. */
enum prediction predict(const struct predictor *p, uint32_t passes);

/* How hot, 0 to HEAT_MAX: the share of a pass' rounds that saw the page accessed, smoothed
 * over passes. The paper's hot pages are those that most rounds saw. */
#define HEAT_MAX 7u
#define HEAT_HOT 4u
unsigned heat_level(unsigned rounds_seen, unsigned rounds);
unsigned heat_smooth(unsigned heat, unsigned level);

enum reuse_class { REUSE_RARE, REUSE_FREQUENT, REUSE_THRASHING };
/* `rounds_seen`: bit i is round i. A short interval that hardly varies? */
bool reuse_stable(uint32_t rounds_seen, unsigned rounds);
enum reuse_class reuse_class(unsigned heat, bool stable);

/* Rank for DRAM, in bands: first what will be written (FREQ_H before FREQ_L), in each band
 * the hotter; a band of its own for hot pages of the read domain, below what is hot and
 * written. */
enum score_band { BAND_REST, BAND_L_WARM, BAND_HOT_RD, BAND_L_HOT, BAND_H_WARM, BAND_H_HOT, BANDS };
#define SCORE_BAND 16u
#define SCORES     (BANDS * SCORE_BAND)

unsigned page_score(const struct predictor *p, uint32_t passes, unsigned heat);

static inline enum score_band score_band(unsigned score)
{
    return (enum score_band)(score / SCORE_BAND);
}

/* Where a page of this score belongs when there is room: PM for cold ones, DRAM for hot or
 * written ones; HY_TIERS: where it is. */
enum hy_tier score_tier(unsigned score);

#endif
