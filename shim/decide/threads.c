/* SPDX-License-Identifier: BSD-2-Clause
 * Thread counts. See threads.h. */
#include "decide/threads.h"

/* Rates that differ by less are the same: windows of a real program are noisy. */
#define SAME 0.03
/* Fewer threads are taken at this loss: they free cores and disturb others less. */
#define WORTH 0.04
/* Windows more for a mean, by so much as the highest is above the lowest. */
#define MORE 20
/* Counts nearer to the best than a so-manieth of it are not told apart. */
#define FINE 8u
/* A resting search looks again after so many windows in a row that are off by so much:
 * another phase of the program. */
#define OFF_RATE    0.25
#define OFF_WINDOWS 3

unsigned threads_algorithm2(const double *time, unsigned n, double min_gain)
{
    for (unsigned i = 0; i < n; i++)
        if (!(time[i] > 0))
            return 0;
    for (unsigned t = 1; t < n; t++) {
        double speed = time[0] / time[t - 1], next = time[0] / time[t];
        if ((next - speed) / speed < min_gain)
            return t;
    }
    return n;
}

unsigned threads_fewest(const double *time, unsigned n, double slack)
{
    double best = 0;
    for (unsigned i = 0; i < n; i++)
        if (time[i] > 0 && (best == 0 || time[i] < best))
            best = time[i];
    for (unsigned i = 0; i < n; i++)
        if (time[i] > 0 && time[i] <= best * (1 + slack))
            return i + 1;
    return 0;
}

unsigned threads_knee(double bandwidth, double demand, unsigned max)
{
    double t;
    if (max < 1)
        max = 1;
    if (!(bandwidth > 0) || !(demand > 0))
        return max;
    t = bandwidth / demand;
    if (t >= max)
        return max;
    return (unsigned)t + (t > (unsigned)t ? 1 : 0);
}

bool threads_mean_add(struct threads_mean *m, double work, double time, double *ret)
{
    double lo, hi, least;

    if (!(time > 0) || !(work >= 0))
        return false;
    m->lo = m->n ? HY_MIN(m->lo, work / time) : work / time;
    m->hi = HY_MAX(m->hi, work / time);
    m->work += work;
    m->time += time;
    m->means[m->n++ % HY_ARRAY_SIZE(m->means)] = m->work / m->time;
    if (m->n < HY_ARRAY_SIZE(m->means))
        return false;
    lo = hi = m->means[0];
    for (size_t i = 1; i < HY_ARRAY_SIZE(m->means); i++) {
        lo = HY_MIN(lo, m->means[i]);
        hi = HY_MAX(hi, m->means[i]);
    }
    /* Means of windows that differ much can agree by chance. */
    least = HY_ARRAY_SIZE(m->means) + (m->lo > 0 ? MORE * (m->hi / m->lo - 1) : THREADS_MEAN_MOST);
    if ((hi > lo * (1 + SAME) || m->n < least) && m->n < THREADS_MEAN_MOST)
        return false;
    *ret = m->work / m->time;
    *m = (struct threads_mean){0};
    return true;
}

void threads_search_begin(struct threads_search *s, unsigned first, unsigned max, double max_rate)
{
    max = HY_MIN(HY_MAX(max, 1u), THREADS_MAX);
    first = HY_MIN(HY_MAX(first, 1u), max);
    *s = (struct threads_search){.max = max,
                                 .idle = max + 1,
                                 .next = first,
                                 .rest = THREADS_REST,
                                 .max_rate = max_rate > 0 ? max_rate : 0};
}

void threads_search_again(struct threads_search *s, unsigned first, unsigned max, double max_rate)
{
    unsigned rest = s->rest <= UINT32_MAX / 2 ? 2 * s->rest : s->rest;

    threads_search_begin(s, first, max, max_rate);
    s->rest = HY_MAX(rest, THREADS_REST);
}

/* Fewer threads may lose a little, more must win. */
static bool better(const struct threads_search *s, unsigned count, double rate)
{
    return count < s->best ? rate >= s->best_rate * (1 - WORTH) : rate > s->best_rate * (1 + SAME);
}

/* Upwards by doubling until that gains nothing, then halve the wider gap beside the best. */
static void aim(struct threads_search *s)
{
    unsigned above = s->idle - s->best - 1, below = s->best - s->worse - 1;

    s->next = s->best;
    s->resting = HY_MAX(above, below) <= s->best / FINE || s->probes >= THREADS_PROBES;
    if (s->resting)
        s->off = s->rested = 0;
    else if (s->idle > s->max && above > 0)
        s->next = HY_MIN(2 * s->best, s->max);
    else if (above > below)
        s->next = s->best + (above + 1) / 2;
    else
        s->next = s->best - (below + 1) / 2;
}

static void watch(struct threads_search *s, double rate)
{
    double change = rate / s->best_rate - 1;

    s->rested += s->rested < UINT32_MAX;
    if (change > -OFF_RATE && change < OFF_RATE)
        s->off = 0;
    else if (++s->off >= OFF_WINDOWS && s->rested >= s->rest)
        threads_search_again(s, s->best, s->max, 0);
}

/* The first rate. With all threads it was known before: one of the two is the best so far. */
static void start(struct threads_search *s, unsigned count, double rate)
{
    s->best = count;
    s->best_rate = rate;
    if (s->max_rate <= 0 || count == s->max)
        return;
    if (s->max_rate > rate * (1 + SAME)) {
        s->worse = count;
        s->best = s->max;
        s->best_rate = s->max_rate;
    } else {
        s->idle = s->max;
        s->best_rate = HY_MAX(rate, s->max_rate);
    }
}

unsigned threads_search_rate(struct threads_search *s, double rate)
{
    unsigned count = s->next;

    if (!(rate > 0))
        return s->next; /* a program that waits tells nothing */
    if (s->resting) {
        watch(s, rate);
        return s->next;
    }
    s->probes++;
    if (s->best == 0) {
        start(s, count, rate);
    } else if (better(s, count, rate)) {
        if (count > s->best)
            s->worse = s->best;
        else
            s->idle = s->best;
        s->best = count;
        /* The yardstick stays the highest, or many small losses would add up. */
        s->best_rate = HY_MAX(rate, s->best_rate);
    } else if (count > s->best) {
        s->idle = count;
    } else {
        s->worse = count;
    }
    aim(s);
    return s->next;
}
