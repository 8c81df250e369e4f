/* SPDX-License-Identifier: BSD-2-Clause */
#include "threads/rules/pacing_search.h"

/* Rounds before a number is kept, where they agree: others lose by each one more, and one that is
 * too small is found out by the next look at its own best. */
#define LEAST 2u
/* Windows before evidence counts: twice what the mean of their differences remembers. A search for
 * its own sake has time, others do not. */
#define LEARN 16u

void pacing_search_begin(struct pacing_search *s, unsigned best)
{
    unsigned rest = s->rest ? s->rest : THREADS_REST;

    *s = (struct pacing_search){.stage = PACING_DOWN,
                                .best = best,
                                .count = best,
                                .gain = 1,
                                .rest = rest,
                                .trial.at_once = s->trial.at_once};
    thread_trial_base(&s->trial, best);
}

/* The fewest above `low` that the model lets pass; 0: none. */
static unsigned guess(const struct pacing_search *s, double gives, threads_speed_fn speed,
                      void *ctx)
{
    double least = (1 - gives) * speed(ctx, s->best);

    for (unsigned n = s->low + 1; n < s->count; n++)
        if (speed(ctx, n) >= least)
            return n;
    return 0;
}

/* Share of its speed that it is predicted to lose with `n`. */
static double foreseen(const struct pacing_search *s, unsigned n, threads_speed_fn speed, void *ctx)
{
    double now = speed(ctx, s->count);

    return now > 0 ? HY_MAX(1 - speed(ctx, n) / now, 0.0) : 0;
}

static void keep(struct pacing_search *s)
{
    s->stage = PACING_KEPT;
    s->rested = 0;
    s->trial.count = 0;
}

/* Half way down, or as far as `left` pays for what the model foresees. */
static unsigned half(const struct pacing_search *s, double left, threads_speed_fn speed, void *ctx)
{
    unsigned n = s->low + (s->count - s->low) / 2;
    double worst = thread_trial_worst_ns(&s->trial);

    while (n + 1 < s->count && foreseen(s, n, speed, ctx) * worst > HY_MAX(left, 0.0))
        n++;
    return n;
}

/* By this window, and by all before it since the last round: what seems enough in one of them may
 * be too few in the next. */
static void aim(struct pacing_search *s, double left, double gives, threads_speed_fn speed,
                void *ctx)
{
    unsigned next = s->count == s->best ? guess(s, gives, speed, ctx) : 0;

    if (s->count - s->low <= 1) {
        keep(s);
        return;
    }
    if (next == 0)
        next = half(s, left, speed, ctx);
    if (s->trial.count == 0)
        thread_trial_next(&s->trial, next, 1, 0);
    if (next > s->trial.count) {
        s->trial.count = next;
        s->trial.owed_ns = 0;
    }
    s->trial.foreseen = foreseen(s, s->trial.count, speed, ctx);
    if (s->others_lose > 0) /* more is risked than the purse covers */
        thread_trial_lengthen(&s->trial);
}

/* What others would win by the next number, over its own best, less what is predicted to be lost:
 * shares of time. Writers slow DRAM down by the square of their number (place/rules/pacing.h). */
static double would_win(const struct pacing_search *s)
{
    double part = (double)s->trial.count / s->best;

    return s->others_lose * (1 - part * part) - s->trial.foreseen;
}

static bool tried(struct pacing_search *s, double gives)
{
    enum trial_verdict v = thread_trial_verdict_after(&s->trial, LEAST, (1 - gives) / s->gain);

    if (v == TRIAL_OPEN)
        return false;
    if (v == TRIAL_BETTER) {
        s->count = s->trial.count;
        s->gain = HY_MIN(s->gain * thread_trial_gain(&s->trial), 1.0);
        thread_trial_base(&s->trial, s->count);
    } else {
        s->low = s->trial.count;
    }
    s->trial.count = 0;
    if (s->count - s->low <= 1)
        keep(s);
    return v == TRIAL_BETTER;
}

/* Its own best has been looked at again beside what it is paced to. */
static bool looked(struct pacing_search *s, double gives)
{
    enum trial_verdict v = thread_trial_verdict(&s->trial, 1 / (1 - gives));

    if (v == TRIAL_OPEN)
        return false;
    if (v == TRIAL_BETTER) {
        pacing_search_begin(s, s->best);
        return true;
    }
    keep(s);
    return false;
}

static bool rested(struct pacing_search *s)
{
    if (s->trial.count != 0 || ++s->rested < s->rest)
        return false;
    s->rest = s->rest <= UINT32_MAX / 2 ? 2 * s->rest : s->rest;
    if (s->count == s->best)
        pacing_search_begin(s, s->best);
    else
        thread_trial_next(&s->trial, s->best, 1, 0);
    return true;
}

bool pacing_search_window(struct pacing_search *s, struct regret *purse, double run_ns, double work,
                          double time_ns, double gives, threads_speed_fn speed, void *ctx)
{
    bool round;

    if (s->stage == PACING_OFF)
        return false;
    if (s->stage == PACING_DOWN && (s->trial.count == 0 || s->trial.rounds == 0) &&
        !s->trial.other && !s->trial.back)
        aim(s, regret_left(purse, run_ns), gives, speed, ctx);
    if (s->stage == PACING_DOWN && s->rested++ >= LEARN)
        s->trial.owed_ns += HY_MAX(would_win(s), 0.0) * time_ns;
    round = thread_trial_window(&s->trial, purse, run_ns, work, time_ns);
    if (s->stage == PACING_KEPT && rested(s))
        return false;
    if (!round)
        return false;
    return s->stage == PACING_KEPT ? looked(s, gives) : tried(s, gives);
}

void pacing_search_stop(struct pacing_search *s, struct regret *purse)
{
    if (s->stage == PACING_OFF)
        return;
    thread_trial_stop(&s->trial, purse);
    s->stage = PACING_OFF;
}
