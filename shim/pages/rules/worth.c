/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/worth.h"

#define STEPS_PER_OCTAVE 4
/* Writes count for so many reads at most, and reads for a part of one at least: prices of a
 * moment are not to be believed more. */
#define MOST_RATIO 16.0
/* A difference of so many standard deviations of two counts is no luck: there are thousands of
 * pages, so some are lucky. */
#define SIGMAS 3.0

struct worth_rule worth_rule(const struct line_worth *w, uint64_t pass)
{
    double ratio = 1;
    if (w->read_ns > 0)
        ratio = w->write_ns / w->read_ns;
    else if (w->write_ns > 0)
        ratio = MOST_RATIO;
    ratio = HY_MIN(HY_MAX(ratio, 1 / MOST_RATIO), MOST_RATIO);
    struct worth_rule r = {WORTH_UNIT, WORTH_UNIT, 1};
    r.write = (uint32_t)(WORTH_UNIT * ratio + 0.5);
    r.passes = (uint32_t)HY_MIN(HY_MAX(pass, (uint64_t)1), (uint64_t)WORTH_PASSES);
    return r;
}

uint16_t worth_mean(const struct worth_rule *r, uint16_t mean, unsigned reads, unsigned writes)
{
    int32_t now = (int32_t)HY_MIN(reads * r->read + writes * r->write, 1u << 24);
    int32_t d = now - mean, n = (int32_t)r->passes;
    /* Rounded away from zero: a mean gets to where it belongs. */
    int32_t next = mean + (d >= 0 ? (d + n - 1) / n : -((-d + n - 1) / n));
    return (uint16_t)HY_MIN(HY_MAX(next, 0), UINT16_MAX);
}

unsigned worth_score(uint16_t mean)
{
    if (mean == 0)
        return 0;
    unsigned octave = 31u - (unsigned)__builtin_clz(mean);
    unsigned part = octave >= 2 ? (mean >> (octave - 2)) & 3 : (mean << (2 - octave)) & 3;
    return 1 + octave * STEPS_PER_OCTAVE + part;
}

double worth_least(unsigned score)
{
    if (score == 0)
        return 0;
    unsigned octave = (score - 1) / STEPS_PER_OCTAVE, part = (score - 1) % STEPS_PER_OCTAVE;
    return (double)(1u << octave) * (1 + part / (double)STEPS_PER_OCTAVE);
}

/* May pages of these means change places? */
static bool pays(const struct worth_exchange *x, double hot, double cold)
{
    double told = 1.0 / WORTH_UNIT, n = x->of_passes;
    double d = (hot - cold) * told;
    double variance = (hot + cold) * told * n + 1;
    return d > 0 && d * n * d * n > SIGMAS * SIGMAS * variance &&
           d * x->read_ns * x->passes >= x->cost_ns;
}

void worth_below(const struct worth_exchange *x, uint8_t ret[SCORES])
{
    for (unsigned s = 0; s < SCORES; s++) {
        unsigned c = s;
        /* The top of the colder rank against the bottom of the hotter one. */
        while (c > 0 && !pays(x, worth_least(s), c > 1 ? worth_least(c) : 0))
            c--;
        ret[s] = (uint8_t)(x->read_ns > 0 ? c : 0);
    }
}

unsigned worth_fill_from(const struct worth_exchange *x)
{
    unsigned s = 1;
    while (s < SCORES && !(x->read_ns > 0 && pays(x, worth_least(s), 0)))
        s++;
    return s;
}
