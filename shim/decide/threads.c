/* SPDX-License-Identifier: BSD-2-Clause
 * Thread counts. See threads.h. */
#include "decide/threads.h"

/* Rates that differ by less are the same: windows of a real program are noisy. */
#define SAME 0.03
/* Fewer threads are taken at this loss: they free cores and disturb others less. */
#define WORTH 0.02
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

void threads_search_begin(struct threads_search *s, unsigned first, unsigned max)
{
    max = HY_MIN(HY_MAX(max, 1u), THREADS_MAX);
    first = HY_MIN(HY_MAX(first, 1u), max);
    *s = (struct threads_search){.max = max, .idle = max + 1, .next = first};
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
    s->resting = (above == 0 && below == 0) || s->probes >= THREADS_PROBES;
    if (s->resting)
        s->off = 0;
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
    if (change > -OFF_RATE && change < OFF_RATE)
        s->off = 0;
    else if (++s->off >= OFF_WINDOWS)
        threads_search_begin(s, s->best, s->max);
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
        s->best = count;
        s->best_rate = rate;
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
