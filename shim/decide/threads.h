/* SPDX-License-Identifier: BSD-2-Clause
 * How many threads a program should use on a medium. Pure.
 *
 * Offline, from a measured curve: Algorithm 2 of paper 004 (section IV). Online, without
 * one: the knee where the threads' demand meets the medium's bandwidth (feedback-driven
 * threading), then a short search around it by measured progress. */
#ifndef HYBRID_DECIDE_THREADS_H
#define HYBRID_DECIDE_THREADS_H

#include "base/types.h"

#define THREADS_MAX 1024u

/* --- offline ---------------------------------------------------------------- */

/* time[i]: run time with i + 1 threads, any unit, > 0. The paper's rule to the letter: the
 * first T at which one thread more raises the speed-up by less than `min_gain` (0.1 there) of
 * what it is; n if there is none. 0 when n is 0 or a time is not > 0. A program that
 * scales perfectly stops at 1 / min_gain + 1 by this rule: see threads_fewest. */
unsigned threads_algorithm2(const double *time, unsigned n, double min_gain);
/* The fewest threads whose time is within `slack` (0.05) of the best one of the curve;
 * points that were not measured are 0. 0 when none was. */
unsigned threads_fewest(const double *time, unsigned n, double slack);

/* --- online ----------------------------------------------------------------- */

/* Threads of `demand` bytes/s each that saturate `bandwidth` bytes/s, rounded up, within
 * [1, max]. `max` when the demand or the bandwidth is not known (not > 0). */
unsigned threads_knee(double bandwidth, double demand, unsigned max);

/* A rate from windows of work and time that jitter (what is counted late in one is too much in
 * the next): the mean over them, once it has come to rest within 3 %, the later the more single
 * ones differ, at the latest after THREADS_MEAN_MOST. Zero bytes are a valid beginning. */
#define THREADS_MEAN_MOST 16u

struct threads_mean {
    double work, time;
    double means[3]; /* the last ones */
    double lo, hi;   /* of single windows */
    unsigned n;
};

/* true: *ret is the rate, and *m is empty again. */
bool threads_mean_add(struct threads_mean *m, double work, double time, double *ret);

/* A search for the fewest threads that progress as fast as any number does. It takes one
 * rate (work a second: higher is better) for each count that it asks for, at most
 * THREADS_PROBES of them, then rests, and begins anew when the rate at its choice has
 * changed for good. A program that changes all the time would be searched all the time: each
 * search is followed by a rest of at least THREADS_REST rates, twice as many after
 * each further one. State is the caller's; zero bytes are not a valid one. */
#define THREADS_PROBES 10u
#define THREADS_REST   32u

struct threads_search {
    unsigned max;         /* all that there are */
    unsigned best;        /* count of the best rate so far; 0: none measured */
    unsigned worse, idle; /* below and above `best`: counts known not to be better */
    unsigned next;        /* to be measured now */
    unsigned probes;      /* used in this search */
    unsigned off;         /* rates in a row in which a resting rate was off */
    unsigned rested;      /* rates since it rests */
    unsigned rest;        /* how many it shall, at least */
    bool resting;
    double best_rate;
    double max_rate; /* with `max` threads, as it was before the search; 0: not known */
};

void threads_search_begin(struct threads_search *s, unsigned first, unsigned max, double max_rate);
/* The same for another phase of the same program: what was learnt of how long to rest stays. */
void threads_search_again(struct threads_search *s, unsigned first, unsigned max, double max_rate);
/* The rate measured with threads_search_count() threads; the count to use from now on. */
unsigned threads_search_rate(struct threads_search *s, double rate);
/* What to use now: the count under test, or the choice. */
static inline unsigned threads_search_count(const struct threads_search *s)
{
    return s->next;
}

#endif
