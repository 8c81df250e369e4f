/* SPDX-License-Identifier: BSD-2-Clause
 * How many threads a program should use on a medium. Pure.
 *
 * Offline, from a measured curve: Algorithm 2 of paper 004 (section IV). Online, without
 * one: the knee where the threads' demand meets the medium's bandwidth (feedback-driven
 * threading) tells where fewer may do, a search by measured progress whether they do. */
#ifndef HYBRID_THREADS_RULES_THREADS_H
#define HYBRID_THREADS_RULES_THREADS_H

#include "classify/rules/slowdown.h"
#include "threads/rules/thread_trial.h"

#define THREADS_MAX 1024u

/* Threads of `demand` bytes/s each that saturate `bandwidth` bytes/s, rounded up, within
 * [1, max]. `max` when the demand or the bandwidth is not known (not > 0). */
unsigned threads_knee(double bandwidth, double demand, unsigned max);

/* A search for fewer threads that progress at least as fast as all, and the keeping of what it
 * found. In small steps from all of them on: the lower neighbour that the model predicts to gain
 * most, each compared with all (thread_trial.h), until one does not progress as fast as the best so
 * far; then, once, between the best and the next above that was tried. If the first neighbour of
 * all is no better, that is the end. Everything is paid from the purse of regret.
 *
 * The number found is kept for as long as the purse and what it has won cover that it has become
 * wrong meanwhile; then all threads are looked at for a moment, and so on. One that proves slower
 * is given up. Searches are followed by rests, each twice as long as the one before. A program
 * whose rate changes too much to compare is searched with longer windows the next time. State is
 * the caller's; zero bytes are not a valid one. */
#define THREADS_SAME 0.002 /* not told apart by measures */
#define THREADS_REST 64u   /* windows, the first time */
/* Windows with all threads before the first trial: by how much do they differ? */
#define THREADS_LEARN 32u

/* Predicted speed with so many threads, any unit. */
typedef double (*threads_speed_fn)(void *ctx, unsigned count);

enum threads_stage { THREADS_DOWN, THREADS_UP, THREADS_KEPT, THREADS_RESTS };
enum threads_event {
    THREADS_NOTHING,
    THREADS_BEGUN,    /* a search, again after a rest */
    THREADS_TRIED,    /* s->tried has been compared with all, s->tried_gain */
    THREADS_FOUND,    /* the same, and s->best is kept from now on */
    THREADS_ENDED,    /* the same, and it stays at all of them */
    THREADS_GIVEN_UP, /* what was kept is slower by now */
};

struct threads_search {
    unsigned max;     /* all that there are */
    unsigned best;    /* == max: none better is known */
    unsigned above;   /* the next greater that was tried */
    double best_gain; /* speed over that with all */
    enum threads_stage stage;
    struct thread_trial trial;
    unsigned scale; /* of its stretches: higher after a search that could not tell */
    unsigned tried;
    double tried_gain;
    double kept_gain;      /* of late */
    unsigned rested, rest; /* windows */
};

void threads_search_begin(struct threads_search *s, unsigned max);
/* A window with threads_search_count() threads: what it got done, and its time. */
enum threads_event threads_search_window(struct threads_search *s, struct regret *purse,
                                         double run_ns, double work, double time_ns,
                                         threads_speed_fn speed, void *ctx);
/* The program does something else: all threads, at once, and a rest before the next search. */
void threads_search_stop(struct threads_search *s, struct regret *purse);
/* How many may run now. */
static inline unsigned threads_search_count(const struct threads_search *s)
{
    return thread_trial_count(&s->trial);
}

/* Progress as the searches see it, from the work of a window. */
struct work_model {
    const struct machine_figures *f;
    const struct work *k;
};
/* A threads_speed_fn: predicted speed with so many threads, the data as they lie. ctx: struct
 * work_model. */
double work_speed(void *ctx, unsigned threads);
/* The time that the memories need for the lines of the window: its measure of progress. */
double work_served(const struct work_model *m);

#endif
