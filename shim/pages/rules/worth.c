/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/worth.h"

#define STEPS_PER_OCTAVE 4
/* A line is worth so many units at most: what a moment says is not to be believed more, and a mean
 * has 16 bits. */
#define MOST_UNITS 1024.0
/* A difference of so many standard deviations of two counts is no luck: there are thousands of
 * pages, so some are lucky. */
#define SIGMAS  3.0
#define OF_LATE 0.25 /* weight of a pass */

static uint32_t units(double ns)
{
    return ns > 0 ? (uint32_t)(HY_MIN(ns * WORTH_UNITS, MOST_UNITS) + 0.5) : 0;
}

struct worth_rule worth_rule(const struct line_worth *w, uint64_t pass)
{
    struct worth_rule r = {units(w->read_ns), units(w->write_ns), 1};
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

/* Is the difference of two means, each of n, no luck? A sum of accesses that are worth `most` each
 * has `most` times its own size as variance. */
static bool differ(double a, double b, double n, double most)
{
    double d = (a - b) * n;
    return d * d > SIGMAS * SIGMAS * most * ((a + b) * n + most);
}

uint16_t worth_pooled(const struct worth_rule *r, uint16_t mean, uint32_t sum, unsigned pages)
{
    uint16_t all = (uint16_t)(sum / HY_MAX(pages, 1u));
    double most = HY_MAX(HY_MAX(r->read, r->write), 1u);
    return differ(mean, all, r->passes, most) ? mean : all;
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

double worth_foretells(struct worth_foretold *late, const struct worth_foretold *pass)
{
    late->told += (pass->told - late->told) * OF_LATE;
    late->came += (pass->came - late->came) * OF_LATE;
    return late->told > 0 ? HY_MIN(late->came / late->told, 1.0) : 0;
}

double worth_move_ns(const struct machine_figures *f, enum hy_tier to, double threads)
{
    const struct medium_figures *pm = &f->medium[HY_PM], *new = &f->medium[to];
    double mbs = to == HY_PM ? pm->seq_write_mbs : pm->seq_read_mbs;
    double stream = new->stream_ns > 0 ? new->stream_ns : new->read_ns / 10;
    return HY_PAGE / 64 * stream / HY_MAX(threads, 1.0) + (mbs > 0 ? HY_PAGE * 1000 / mbs : 1);
}

/* May pages of these means change places? */
static bool pays(const struct worth_exchange *x, double hot, double cold)
{
    return hot > cold &&
           differ(hot, cold, (double)x->of_passes * x->of_pages, HY_MAX(x->most_units, 1.0)) &&
           (hot - cold) * x->unit_ns * x->passes >= x->cost_ns;
}

void worth_below(const struct worth_exchange *x, uint8_t ret[SCORES])
{
    for (unsigned s = 0; s < SCORES; s++) {
        unsigned c = s;
        /* The top of the colder rank against the bottom of the hotter one. */
        while (c > 0 && !pays(x, worth_least(s), c > 1 ? worth_least(c) : 0))
            c--;
        ret[s] = (uint8_t)(x->unit_ns > 0 ? c : 0);
    }
}

unsigned worth_fill_from(const struct worth_exchange *x)
{
    unsigned s = 1;
    while (s < SCORES && !(x->unit_ns > 0 && pays(x, worth_least(s), 0)))
        s++;
    return s;
}
