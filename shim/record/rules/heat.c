/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rules/heat.h"

/* The sum of squares that scatter makes of so many parts, and what it stays below but once in some
 * ten thousand sites: four standard deviations more. */
#define FREEDOM (PROFILE_BINS - 1)
#define CHANCE  (FREEDOM + 4 * 7.87)

/* Of what was found, at most this part may have been missed. */
#define MISSED 16

void heat_add(struct heat *h, size_t offset, size_t block, const double lines[ACCESS_KINDS])
{
    size_t bin = HY_MIN(offset / HY_MAX(block / PROFILE_BINS, (size_t)1), PROFILE_BINS - 1u);

    for (int k = 0; k < ACCESS_KINDS; k++) {
        h->lines[k][bin] += (float)lines[k];
        h->squares[k] += lines[k] * lines[k];
        h->found += lines[k];
    }
}

void heat_miss(struct heat *h, const double lines[ACCESS_KINDS])
{
    for (int k = 0; k < ACCESS_KINDS; k++)
        h->missed += lines[k];
}

bool heat_get(const struct heat *h, const double cost[ACCESS_KINDS], uint16_t ret[PROFILE_BINS])
{
    double sum[PROFILE_BINS] = {0}, mean = 0, scatter = 0, spread = 0;

    for (int k = 0; k < ACCESS_KINDS; k++) {
        scatter += cost[k] * cost[k] * h->squares[k] / PROFILE_BINS;
        for (unsigned b = 0; b < PROFILE_BINS; b++) {
            sum[b] += cost[k] * (double)h->lines[k][b];
            mean += cost[k] * (double)h->lines[k][b] / PROFILE_BINS;
        }
    }
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        spread += (sum[b] - mean) * (sum[b] - mean);
    if (mean <= 0 || h->missed * MISSED > h->found || spread <= CHANCE * scatter)
        return false;
    double keep = 1 - FREEDOM * scatter / spread;
    for (unsigned b = 0; b < PROFILE_BINS; b++) {
        double part = (mean + (sum[b] - mean) * keep) / (mean * PROFILE_BINS);
        ret[b] = (uint16_t)HY_MIN(part * PROFILE_HEAT_MOST + 0.5, (double)PROFILE_HEAT_MOST);
    }
    return true;
}
