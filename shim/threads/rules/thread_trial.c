/* SPDX-License-Identifier: BSD-2-Clause */
#include "threads/rules/thread_trial.h"

/* The base's rates around a stretch that differ by more: the program has changed meanwhile. */
#define CHANGED 0.08
/* Rounds for a verdict, at most; such that tell nothing, at most. */
#define MOST    8u
#define UNCLEAR 6u
/* Looks at the base that last longer forget what was long ago. */
#define LOOK_MOST 4u
/* Shorter windows tell nothing by themselves (a computer that was late has some): they go with the
 * next. */
#define WHOLE 0.5
/* Windows may come out longer than the last. */
#define ROOM 1.25
/* Windows differ also as lines are counted late: what is missing in one is too much in the next. So
 * the error of a mean falls with their number. It shall be no more than that. */
#define ERROR      0.04
#define SCALE_MOST 32u
#define OF_LATE    0.125 /* weight of a window */
#define OF_PAUSE   0.01  /* the same, of pauses, which are rare */

void thread_trial_base(struct thread_trial *t, unsigned base)
{
    *t = (struct thread_trial){.base = base, .at_once = t->at_once};
}

void thread_trial_lengthen(struct thread_trial *t)
{
    unsigned needed = (unsigned)HY_MIN(t->spread / ERROR + 0.5, (double)SCALE_MOST);

    t->scale = HY_MAX(t->scale, needed);
    t->longest = HY_MAX(t->longest, t->scale);
}

void thread_trial_next(struct thread_trial *t, unsigned count, unsigned scale, unsigned longest)
{
    t->count = count;
    t->scale = HY_MAX(HY_MIN(scale, SCALE_MOST), 1u);
    thread_trial_lengthen(t);
    t->longest = HY_MAX(longest, t->scale);
    t->rounds = t->unclear = 0;
    t->sum = t->squares = t->last = t->won_ns = 0;
    t->owed_ns = t->foreseen = 0;
}

/* Windows of a whole stretch: threads move in the first, which does not count as a measure (but as
 * a loss). */
static unsigned whole(unsigned counting)
{
    return 1 + counting;
}

static double rate(const struct thread_trial *t)
{
    return t->time > 0 ? t->work / t->time : 0;
}

/* The same of a stretch with the other. */
static unsigned whole_other(const struct thread_trial *t, unsigned counting)
{
    return t->at_once ? counting : whole(counting);
}

/* To the other number, or back. */
static void turn(struct thread_trial *t, bool other)
{
    t->other = other;
    t->windows = 0;
    t->work = t->time = 0;
}

/* Of what it loses, what it has won before need not come from the purse. */
static double from_purse(const struct thread_trial *t, double ns)
{
    return HY_MAX(ns - t->won_ns, 0.0);
}

/* The same of what it may lose. */
static double at_risk(const struct thread_trial *t, double ns)
{
    return HY_MAX(from_purse(t, ns) - t->owed_ns, 0.0);
}

double thread_trial_worst_ns(const struct thread_trial *t)
{
    return ROOM * whole_other(t, t->scale) * t->window_ns;
}

static void begin_other(struct thread_trial *t, struct regret *purse, double run_ns)
{
    double worst = thread_trial_worst_ns(t);
    double risked = HY_MAX(at_risk(t, worst), t->foreseen * worst);

    if (rate(t) <= 0 || !regret_begin(purse, &t->paid, run_ns, 0, risked))
        return;
    t->before = rate(t);
    t->o_work = t->o_time = t->o_rate = 0;
    turn(t, true);
}

/* Time lost by the other number beside a base of that rate; below 0: won. */
static double lost(const struct thread_trial *t, double base)
{
    return t->o_time - t->o_work / base;
}

static void window_of_other(struct thread_trial *t, struct regret *purse, double run_ns)
{
    /* All of it may be lost: nobody sees how fast the base would be by now. */
    double risked = at_risk(t, t->o_time);
    double next = at_risk(t, t->o_time + t->window_ns) - risked;
    bool covered = regret_lost(purse, &t->paid, run_ns, risked, next);

    /* Not in the window in which threads move: it may have next to nothing, and the next the rest.
     */
    t->wrong = (t->windows > 1 || t->at_once) &&
               lost(t, t->before) > (TRIAL_WRONG + 2 * t->spread + t->pause) * t->window_ns;
    if (!t->wrong && !t->turned && covered && t->windows < whole_other(t, t->longest))
        return;
    t->o_rate = t->wrong ? HY_MIN(t->o_work / t->o_time, t->before) : rate(t);
    t->back = true;
    turn(t, false);
}

/* The base has been seen again: pay, and compare. */
static void judge(struct thread_trial *t, struct regret *purse)
{
    double after = rate(t), high = HY_MAX(t->before, after), low = HY_MIN(t->before, after);
    double loss = lost(t, high);

    t->back = false;
    regret_end(purse, &t->paid, from_purse(t, loss));
    t->won_ns = HY_MAX(t->won_ns - loss, 0.0);
    t->last = -1;
    if (low < (1 - CHANGED) * high || (t->o_rate <= 0 && !t->wrong)) {
        t->unclear++;
        return;
    }
    t->last = 2 * t->o_rate / (high + low);
    t->rounds++;
    t->sum += t->last;
    t->squares += t->last * t->last;
}

/* How far the base falls behind in a row of slow windows, after which it is as fast as before: such
 * a pause of the program's would be taken for the other's fault. One that does not come back is
 * another phase, not a pause. */
static void learn_pause(struct thread_trial *t, double now)
{
    t->pause *= 1 - OF_PAUSE;
    if (now < (1 - t->spread) * t->level) {
        t->before_pause = t->behind > 0 ? t->before_pause : t->level;
        t->behind += 1 - now / t->before_pause;
        return;
    }
    if (now >= (1 - CHANGED) * t->before_pause)
        t->pause = HY_MAX(t->pause, t->behind);
    t->behind = 0;
}

/* What windows of the base differ by, without any reason. */
static void learn_spread(struct thread_trial *t, double now)
{
    double off = t->level > 0 ? now / t->level - 1 : 0;

    learn_pause(t, now);
    t->level += t->level > 0 ? OF_LATE * (now - t->level) : now;
    t->spread += OF_LATE * (HY_MIN(off < 0 ? -off : off, 1.0) - t->spread);
}

static void count_window(struct thread_trial *t, double work, double time_ns)
{
    double now = work / time_ns, own = rate(t);

    t->window_ns = HY_MAX(time_ns, 0.9 * t->window_ns);
    /* In a long stretch: the program does something else, and only the base tells what the other is
     * worth in it. */
    t->turned = t->other && own > 0 && t->windows >= whole_other(t, t->scale) &&
                (now > (1 + CHANGED + 2 * t->spread) * own ||
                 now < (1 - CHANGED - 2 * t->spread - t->pause) * own);
    if (t->other || (t->back && t->windows == 0)) {
        t->o_work += work;
        t->o_time += time_ns;
    }
    if (t->windows++ > 0 || (t->other && t->at_once)) {
        t->work += work;
        t->time += time_ns;
        if (!t->other)
            learn_spread(t, now);
    }
}

bool thread_trial_window(struct thread_trial *t, struct regret *purse, double run_ns, double work,
                         double time_ns)
{
    if (!(time_ns > 0) || !(work >= 0))
        return false;
    t->part_work += work;
    t->part_ns += time_ns;
    if (t->part_ns < WHOLE * t->window_ns)
        return false;
    count_window(t, t->part_work, t->part_ns);
    t->part_work = t->part_ns = 0;
    if (t->other) {
        window_of_other(t, purse, run_ns);
        return false;
    }
    if (t->windows < whole(2 * t->scale))
        return false;
    if (t->back) {
        judge(t, purse);
        return true;
    }
    if (t->windows >= LOOK_MOST * whole(2 * t->scale)) {
        t->windows /= 2;
        t->work /= 2;
        t->time /= 2;
    }
    if (t->count)
        begin_other(t, purse, run_ns);
    return false;
}

void thread_trial_stop(struct thread_trial *t, struct regret *purse)
{
    if (t->paid.running)
        regret_end(purse, &t->paid, from_purse(t, lost(t, t->before)));
    t->back = false;
    turn(t, false);
}

double thread_trial_gain(const struct thread_trial *t)
{
    return t->rounds ? t->sum / t->rounds : 0;
}

enum trial_verdict thread_trial_verdict_after(const struct thread_trial *t, unsigned least,
                                              double wanted)
{
    double mean = thread_trial_gain(t), doubt;

    if (t->unclear >= UNCLEAR)
        return TRIAL_UNCLEAR;
    if (t->rounds == 0)
        return TRIAL_OPEN;
    if (t->last >= 0 && (t->wrong || t->last < wanted - TRIAL_WRONG - t->pause / t->scale))
        return TRIAL_WORSE;
    if (t->rounds < least)
        return TRIAL_OPEN;
    /* Twice the standard error of the mean, squared. */
    doubt = 4 * HY_MAX(t->squares / t->rounds - mean * mean, 0.0) / (t->rounds - 1);
    if (t->rounds < MOST && (mean - wanted) * (mean - wanted) < doubt)
        return TRIAL_OPEN;
    return mean >= wanted ? TRIAL_BETTER : TRIAL_WORSE;
}
