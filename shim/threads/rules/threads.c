/* SPDX-License-Identifier: BSD-2-Clause
 * Thread counts. See threads.h. */
#include "threads/rules/threads.h"

/* Predicted speeds that differ by less are the same. */
#define ALIKE 0.01
/* A neighbour that is predicted to lose more is not tried. */
#define HOPELESS 0.03
/* Windows for which what was found is kept between two looks at all, at most. */
#define KEEP_MOST 256u
/* What is kept is given up when it is slower than all by so much, on average of late. */
#define SLOWER 0.004
/* Longest windows of a restless program, in shortest ones. */
#define SCALE_MOST 16u

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

void threads_search_begin(struct threads_search *s, unsigned max)
{
    max = HY_MIN(HY_MAX(max, 1u), THREADS_MAX);
    *s = (struct threads_search){.max = max,
                                 .best = max,
                                 .above = max,
                                 .best_gain = 1,
                                 .stage = max > 1 ? THREADS_DOWN : THREADS_RESTS,
                                 .rest = THREADS_REST};
    s->scale = 1;
    thread_trial_base(&s->trial, max);
}

static void again(struct threads_search *s)
{
    struct threads_search was = *s;

    threads_search_begin(s, was.max);
    s->rest = was.rest;
    s->scale = was.scale;
    s->trial.level = was.trial.level;
    s->trial.spread = was.trial.spread;
    s->trial.pause = was.trial.pause;
}

static void rest(struct threads_search *s)
{
    s->stage = THREADS_RESTS;
    s->best = s->max;
    s->best_gain = 1;
    s->rested = 0;
    s->trial.count = 0;
}

/* The neighbour of the best within [from, to) that is predicted to be the fastest, of such that are
 * alike the fewest; 0: all lose. */
static unsigned promising(const struct threads_search *s, unsigned from, unsigned to,
                          threads_speed_fn speed, void *ctx)
{
    double least = (1 - HOPELESS) * speed(ctx, s->best), most = 0;
    unsigned found = 0;

    for (unsigned n = to; n-- > from;) {
        double v = speed(ctx, n);
        if (v >= least && v >= (1 - ALIKE) * most)
            found = n;
        most = HY_MAX(most, v);
    }
    return found;
}

static void keep(struct threads_search *s)
{
    s->stage = THREADS_KEPT;
    s->kept_gain = s->best_gain;
    thread_trial_next(&s->trial, s->best, s->scale, KEEP_MOST);
}

/* The next to be tried, or what was found is kept, or there was nothing to find. */
static void aim(struct threads_search *s, threads_speed_fn speed, void *ctx)
{
    unsigned next = 0;

    if (s->stage == THREADS_DOWN) {
        next = promising(s, (s->best + 1) / 2, s->best, speed, ctx);
        if (next == 0 && s->best < s->max)
            s->stage = THREADS_UP;
    }
    if (s->stage == THREADS_UP && s->above - s->best > 1) {
        unsigned middle = s->best + (s->above - s->best) / 2;
        next = promising(s, middle, middle + 1, speed, ctx);
    }
    if (next)
        thread_trial_next(&s->trial, next, s->scale, 0);
    else if (s->best < s->max)
        keep(s);
    else
        rest(s);
}

/* `count` is as fast as all, and as the best. */
static void take(struct threads_search *s, unsigned count)
{
    if (count < s->best)
        s->above = s->best;
    s->best = count;
    s->best_gain = HY_MAX(s->best_gain, s->tried_gain);
}

static enum threads_event tried(struct threads_search *s, threads_speed_fn speed, void *ctx)
{
    enum trial_verdict v = thread_trial_verdict(&s->trial, s->best_gain - THREADS_SAME);
    bool down = s->stage == THREADS_DOWN;

    if (v == TRIAL_OPEN)
        return THREADS_NOTHING;
    s->tried = s->trial.count;
    s->tried_gain = thread_trial_gain(&s->trial);
    if (v == TRIAL_BETTER)
        take(s, s->tried);
    if (v == TRIAL_UNCLEAR)
        s->scale = HY_MIN(2 * s->trial.scale, SCALE_MOST);
    if (down && v != TRIAL_BETTER)
        s->stage = THREADS_UP;
    if (!down || s->best == s->max) {
        /* Both neighbours are known, or fewer are no better. */
        if (s->best < s->max)
            keep(s);
        else
            rest(s);
    } else {
        aim(s, speed, ctx);
    }
    return s->stage == THREADS_KEPT    ? THREADS_FOUND
           : s->stage == THREADS_RESTS ? THREADS_ENDED
                                       : THREADS_TRIED;
}

static enum threads_event kept(struct threads_search *s)
{
    if (s->trial.last < 0)
        return THREADS_NOTHING; /* nothing could be told */
    s->kept_gain += (s->trial.last - s->kept_gain) / 4;
    if (s->kept_gain >= 1 - SLOWER)
        return THREADS_NOTHING;
    rest(s);
    return THREADS_GIVEN_UP;
}

static enum threads_event rests(struct threads_search *s)
{
    if (++s->rested < s->rest || s->max < 2)
        return THREADS_NOTHING;
    s->rest = s->rest <= UINT32_MAX / 2 ? 2 * s->rest : s->rest;
    again(s);
    return THREADS_BEGUN;
}

enum threads_event threads_search_window(struct threads_search *s, struct regret *purse,
                                         double run_ns, double work, double time_ns,
                                         threads_speed_fn speed, void *ctx)
{
    bool round = thread_trial_window(&s->trial, purse, run_ns, work, time_ns);

    if (s->stage == THREADS_RESTS)
        return rests(s);
    if (s->stage == THREADS_DOWN && s->trial.count == 0) {
        if (++s->rested < THREADS_LEARN)
            return THREADS_NOTHING;
        aim(s, speed, ctx);
        return s->stage == THREADS_RESTS ? THREADS_ENDED : THREADS_NOTHING;
    }
    if (!round)
        return THREADS_NOTHING;
    return s->stage == THREADS_KEPT ? kept(s) : tried(s, speed, ctx);
}

void threads_search_stop(struct threads_search *s, struct regret *purse)
{
    thread_trial_stop(&s->trial, purse);
    if (s->stage != THREADS_RESTS)
        rest(s);
}

static struct work_time time_with(const struct work_model *m, double threads)
{
    return work_time(m->f, m->k, m->k->pm_reads, m->k->pm_writes, threads);
}

double work_speed(void *ctx, unsigned threads)
{
    double ns = time_with(ctx, threads).total_ns;
    return ns > 0 ? 1 / ns : 0;
}

double work_served(const struct work_model *m)
{
    return time_with(m, 1).service_ns;
}
