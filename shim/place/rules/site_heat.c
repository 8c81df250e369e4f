/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/site_heat.h"

#include <string.h>

/* Used less than this part of the average: hardly used at all. */
#define HARDLY 32

/* The hottest of those that have no level yet; 0: there is none that is used. */
static unsigned hottest(const struct profile_site *s, const uint8_t level[PROFILE_BINS])
{
    unsigned most = 0, sum = 0;

    for (unsigned b = 0; b < PROFILE_BINS; b++) {
        sum += s->heat[b];
        if (level[b] == 0)
            most = HY_MAX(most, s->heat[b]);
    }
    return most * HARDLY * PROFILE_BINS > sum ? most : 0;
}

bool site_heat_levels(const struct profile_site *s, uint8_t ret[PROFILE_BINS])
{
    unsigned same = 0;

    memset(ret, 0, PROFILE_BINS);
    for (unsigned level = HEAT_LEVELS; s->has_heat && level > 0; level--) {
        unsigned most = hottest(s, ret);

        for (unsigned b = 0; most > 0 && b < PROFILE_BINS; b++)
            if (ret[b] == 0 && 2 * s->heat[b] >= most)
                ret[b] = (uint8_t)level;
    }
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        same += ret[b] == ret[0];
    if (same < PROFILE_BINS)
        return true;
    memset(ret, 0, PROFILE_BINS);
    return false;
}

void site_heat_level(const struct profile_site *s, const uint8_t level[PROFILE_BINS], unsigned of,
                     double *ret_bytes, double *ret_lines)
{
    double all = 0, lines = 0, bins = 0;

    for (unsigned b = 0; b < PROFILE_BINS; b++) {
        all += s->heat[b];
        if (level[b] != of)
            continue;
        lines += s->heat[b];
        bins++;
    }
    *ret_bytes = bins / PROFILE_BINS;
    *ret_lines = all > 0 ? lines / all : *ret_bytes;
}

double site_heat_met(const struct profile_site *s, const uint8_t level[PROFILE_BINS], double bytes)
{
    double met = 0;

    for (int of = HEAT_LEVELS; of >= 0 && bytes > 0; of--) {
        double size, lines;

        site_heat_level(s, level, (unsigned)of, &size, &lines);
        if (size > bytes)
            lines *= bytes / size;
        met += lines;
        bytes -= size;
    }
    return HY_MIN(met, 1.0);
}
