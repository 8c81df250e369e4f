/* SPDX-License-Identifier: BSD-2-Clause
 * One number of threads against another while a program runs, by turns: as it would be (the base),
 * for a moment the other, and back (A-B-A). Programs change by themselves, so what counts is the
 * rate beside those just before and just after. A stretch with the other number is paid from the
 * purse of regret as if nothing at all got done in it; what it really lost is known when the base
 * has been seen again, by the higher of the two rates around it. Pure. */
#ifndef HYBRID_THREADS_RULES_THREAD_TRIAL_H
#define HYBRID_THREADS_RULES_THREAD_TRIAL_H

#include "core/rules/regret.h"

/* Behind the base before by so much of a window, twice what windows differ by, and what the base
 * itself falls behind at times, after the window in which threads move: the stretch is broken off.
 */
#define TRIAL_WRONG 0.10

/* Zero bytes: nothing is tried, and nothing known. */
struct thread_trial {
    unsigned base, count; /* threads; count 0: only the base is looked at */
    unsigned
        scale; /* windows that count in a stretch with the other; twice as many with the base */
    unsigned longest;  /* the same, at most */
    bool at_once;      /* no threads move: what is tried holds from its first window on */
    bool other;        /* now with `count` */
    bool back;         /* with the base again, after it */
    bool wrong;        /* it was broken off */
    bool turned;       /* the last window with the other was unlike those before */
    unsigned windows;  /* of this stretch so far */
    double work, time; /* of those that count */
    double before;     /* the base's rate before the stretch with the other; and of that, */
    double o_work, o_time, o_rate; /* all with the way back; its measure, 0: none */
    double window_ns;              /* the longest of late */
    double part_work, part_ns;     /* windows too short to count so far */
    double level, spread;          /* the base's rate of late; by how much windows differ from it */
    /* Windows by which the base is behind in a row of slow ones, most of late; its level before. */
    double behind, pause, before_pause;
    struct regret_trial paid;
    double won_ns; /* by this count so far: it may lose that again */
    /* The caller's. What others would have won by `count` so far: as much may be risked for them
     * before the purse covers it (what is lost is paid all the same, and an overdrawn purse begins
     * nothing); and the share of its speed that `count` is predicted to lose. */
    double owed_ns, foreseen;
    /* Of rounds that tell: how many, sum of the other's rate over the base's, and of its square. */
    unsigned rounds, unclear;
    double sum, squares;
    double last; /* of the last round; below 0: the base itself had changed */
};

/* Look at the base. What was tried before is forgotten, not paid: thread_trial_stop first. at_once
 * stays as it is. */
void thread_trial_base(struct thread_trial *t, unsigned base);
/* The next count to be compared with the base, between rounds. Stretches have `scale` windows, or
 * more where windows differ much, and with the other up to `longest`. */
void thread_trial_next(struct thread_trial *t, unsigned count, unsigned scale, unsigned longest);
/* A window with thread_trial_count() threads. true: a round has ended. */
bool thread_trial_window(struct thread_trial *t, struct regret *purse, double run_ns, double work,
                         double time_ns);
/* Before it has begun: windows differ by more than was known. */
void thread_trial_lengthen(struct thread_trial *t);
/* The most that the next stretch with the other loses, if nothing gets done in it. */
double thread_trial_worst_ns(const struct thread_trial *t);
/* At once back to the base: the program does something else. */
void thread_trial_stop(struct thread_trial *t, struct regret *purse);
static inline unsigned thread_trial_count(const struct thread_trial *t)
{
    return t->other ? t->count : t->base;
}

/* Unclear: the base changed all the time. */
enum trial_verdict { TRIAL_OPEN, TRIAL_BETTER, TRIAL_WORSE, TRIAL_UNCLEAR };
/* Is it at least `wanted` times as fast as the base? Never "better" before so many rounds. */
enum trial_verdict thread_trial_verdict_after(const struct thread_trial *t, unsigned least,
                                              double wanted);
static inline enum trial_verdict thread_trial_verdict(const struct thread_trial *t, double wanted)
{
    return thread_trial_verdict_after(t, 3, wanted);
}
double thread_trial_gain(const struct thread_trial *t); /* mean over the rounds; 0: none told */

#endif
