/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/predictor.h"

#define K_LEN 3

struct predictor predictor_of(unsigned window)
{
    unsigned w = HY_MIN(HY_MAX(window, 1u), PREDICT_WINDOW_MAX);
    return (struct predictor){.window = (uint8_t)w,
                              .freq_h = (uint8_t)((3 * w + 3) / 4),
                              .freq_l = (uint8_t)((3 * w + 7) / 8),
                              .k_len = (uint8_t)HY_MIN(w, (unsigned)K_LEN)};
}

static uint32_t low_bits(unsigned n)
{
    return n >= 32 ? UINT32_MAX : ((uint32_t)1 << n) - 1;
}

static enum prediction by_window(const struct predictor *p, uint32_t passes)
{
    unsigned n = (unsigned)__builtin_popcount(passes & low_bits(p->window));
    if (n >= p->freq_h)
        return WD_FREQ_H;
    return n >= p->freq_l ? WD_FREQ_L : UN_WD;
}

enum prediction predict(const struct predictor *p, uint32_t passes)
{
    enum prediction seen = by_window(p, passes);
    uint32_t last = passes & low_bits(p->k_len);
    if (p->k_len == 0)
        return seen;
    if (last == 0)
        return UN_WD;
    /* A phase that just began is not yet known to be an intensive one. */
    if (last == low_bits(p->k_len) && seen == UN_WD)
        return WD_FREQ_L;
    return seen;
}

unsigned heat_level(unsigned rounds_seen, unsigned rounds)
{
    if (rounds == 0 || rounds_seen == 0)
        return 0;
    /* Seen at all is not cold. */
    return HY_MAX(1u, (HY_MIN(rounds_seen, rounds) * 2 * HEAT_MAX + rounds) / (2 * rounds));
}

unsigned heat_smooth(unsigned heat, unsigned level)
{
    /* A quarter of the new one: a page that a sweep comes by at every fourth pass never looks hot.
     * Rounded towards the new one, so that a page that stays as it is gets there. */
    return (3 * heat + level + (level > heat ? 3 : 0)) / 4;
}

bool reuse_stable(uint32_t rounds_seen, unsigned rounds)
{
    unsigned least = UINT32_MAX, most = 0, hits = 0;
    int before = -1;
    for (unsigned i = 0; i < rounds && i < 32; i++) {
        if (!(rounds_seen >> i & 1))
            continue;
        if (before >= 0) {
            least = HY_MIN(least, i - (unsigned)before);
            most = HY_MAX(most, i - (unsigned)before);
        }
        before = (int)i;
        hits++;
    }
    return hits >= 3 && most - least <= 1 && 2 * hits >= rounds;
}

enum reuse_class reuse_class(unsigned heat, bool stable)
{
    if (heat <= 1)
        return REUSE_RARE;
    return heat >= HEAT_HOT && stable ? REUSE_THRASHING : REUSE_FREQUENT;
}

unsigned page_score(const struct predictor *p, uint32_t passes, unsigned heat)
{
    static const uint8_t bands[3][2] = {[UN_WD] = {BAND_REST, BAND_HOT_RD},
                                        [WD_FREQ_L] = {BAND_L_WARM, BAND_L_HOT},
                                        [WD_FREQ_H] = {BAND_H_WARM, BAND_H_HOT}};
    unsigned band = bands[predict(p, passes)][heat >= HEAT_HOT];
    /* Of equally hot ones, what was written in more passes. */
    unsigned often = (unsigned)__builtin_popcount(passes & low_bits(p->window));
    return band * SCORE_BAND + heat * 2 + (2 * often > p->window);
}

enum hy_tier score_tier(unsigned score)
{
    if (score >= BAND_HOT_RD * SCORE_BAND)
        return HY_DRAM;
    /* Untouched for long, or written so long ago that it is forgotten. */
    return score / 2 == 0 ? HY_PM : HY_TIERS;
}
