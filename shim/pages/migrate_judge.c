/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/migrate_judge.h"

#include "classifier.h"
#include "classify/figures.h"
#include "pages/sampler.h"

/* A prediction holds for about so many passes (paper 002, section 3.3): what a move brings. */
#define HORIZON 10
/* One short pass shows a part of what a program does in turns: so many are judged together, or
 * twice as many windows of counts. */
#define JUDGED 4
/* Of the shortest intervals: in so many a sweep has come by, or moves have shown by then. */
#define SWEEP 16
/* Pages that have come up are used so many times as much as those that went: nothing is doubtful.
 */
#define PLAIN 2
/* So many windows in a row with more lines from PM than of late are another phase. */
#define OTHER_WINDOWS 3
#define OTHER_WAIT    1.3
#define DIFFERENT     0.1
#define FORGET        0.01 /* a window: sweeps use one memory and the other in turns */
#define MORE_WANTED   64u  /* pages, and twice as many: where nobody counts */

void judge_init(struct migrate_judge *j)
{
    *j = (struct migrate_judge){.calm_share = -1};
}

/* Other accesses are waited for otherwise, wherever their lines come from: while nothing useful
 * is on DRAM yet, that is all there is to see of a new phase. */
static void note_waits(struct migrate_judge *j, struct pace *p)
{
    double now = payoff_line_ns(&j->last);
    if (now <= 0)
        return;
    bool known = j->most_wait > 0;
    if (known && (now > j->most_wait * OTHER_WAIT || now * OTHER_WAIT < j->least_wait))
        pace_hurry(p);
    /* Turns that a program takes again and again are soon within. */
    j->most_wait = HY_MAX(now, j->most_wait * (1 - FORGET));
    j->least_wait = known ? HY_MIN(now, j->least_wait * (1 + FORGET)) : now;
}

static void take_window(struct migrate_judge *j, struct pace *p)
{
    struct window w;
    uint64_t number;
    if (!classify_window(&w, &number) || number == j->window)
        return;
    j->window = number;
    j->last = (struct payoff){0};
    if (!payoff_add(&j->last, &w))
        return;
    (void)payoff_add(&j->now, &w);
    note_waits(j, p);
    double share = payoff_pm_share(&j->last);
    bool other = j->calm_share >= 0 && share > j->calm_share + DIFFERENT;
    j->other = other ? j->other + 1 : 0;
    if (!other && share >= 0)
        j->calm_share = HY_MAX(share, j->calm_share - FORGET);
}

void judge_gather(struct migrate_judge *j, struct pace *p)
{
    take_window(j, p);
    if (judge_counts(j) && j->other < OTHER_WINDOWS)
        return;
    if (!judge_counts(j) && (p->pause == 0 || sampler_wanted() <= 2 * j->calm_wanted + MORE_WANTED))
        return;
    pace_wake(p);
    if (judge_counts(j)) {
        sampler_cool();
        j->phases++;
    }
    /* What comes is compared with this. */
    j->before = j->last;
    j->calm_share = payoff_pm_share(&j->last);
    j->now = (struct payoff){0};
    j->moved_pages = j->moved_ns = j->regretted = 0;
    j->accesses[HY_DRAM] = j->accesses[HY_PM] = j->accesses_ns = 0;
    j->unjudged = j->other = 0;
}

static enum verdict settle(struct migrate_judge *j, struct pace *p, int64_t gain,
                           uint64_t regretted)
{
    pace_result(p, gain, j->moved_ns, j->moved_pages, regretted);
    j->moved_pages = j->moved_ns = j->regretted = 0;
    j->accesses[HY_DRAM] = j->accesses[HY_PM] = j->accesses_ns = 0;
    return p->worthless == 0 ? VERDICT_GOOD : VERDICT_BAD;
}

static enum verdict judge_by_windows(struct migrate_judge *j, struct pace *p)
{
    bool compared = j->now.lines > 0 && j->before.lines > 0;
    int64_t gain = (int64_t)j->moved_ns;
    if (compared)
        gain = payoff_gain(&j->before, &j->now, figures_here(), (double)p->interval * HORIZON);
    return settle(j, p, gain, compared ? 0 : j->regretted);
}

/* Where accesses are counted page by page, those of the pages that moved tell it, whatever else
 * the program does: at once where it is plain, else when sweeps have come by all of them. */
static enum verdict judge_by_pages(struct migrate_judge *j, struct pace *p)
{
    uint64_t up = j->accesses[HY_DRAM], down = j->accesses[HY_PM];
    bool long_enough = j->accesses_ns >= SWEEP * p->limits.interval_min;
    double horizon = (double)HY_MAX(p->interval, j->accesses_ns) * HORIZON;
    int64_t gain = payoff_of_pages(up, down, sampler_period(), (double)j->accesses_ns, &j->last,
                                   figures_here(), horizon);
    /* Moves are traffic of PM, too: what makes more than it spares wears it out. */
    uint64_t half = j->moved_pages / 2;
    bool paid = gain >= (int64_t)j->moved_ns;
    bool spares = payoff_spares_pm(up, down, sampler_period(), (double)j->accesses_ns, horizon,
                                   j->moved_pages - half, half);
    bool plain = up > PLAIN * down && paid && spares;
    if (!plain && !long_enough)
        return VERDICT_NONE;
    /* Where it saves time alone it is not gone on with; taking it back would be as much again. */
    enum verdict said = settle(j, p, spares ? gain : HY_MIN(gain, (int64_t)j->moved_ns - 1), 0);
    return paid ? VERDICT_GOOD : said;
}

enum verdict judge_pass(struct migrate_judge *j, struct pace *p)
{
    bool paused = p->pause > 0, due;
    enum verdict said = VERDICT_NONE;
    judge_gather(j, p);
    due = ++j->unjudged >= JUDGED || j->now.windows >= 2 * JUDGED;
    if (j->moved_pages > 0 && j->accesses_ns > 0)
        said = judge_by_pages(j, p);
    else if (j->moved_pages > 0 && due)
        said = judge_by_windows(j, p);
    if (due) {
        j->unjudged = 0;
        if (j->now.lines > 0)
            j->before = j->now;
        j->now = (struct payoff){0};
    }
    if (p->pause > 0 && !paused)
        j->calm_wanted = sampler_wanted();
    return said;
}

double judge_dram_use(const struct migrate_judge *j)
{
    return j->last.lines > 0 ? payoff_dram_use(&j->last, figures_here()) : -1;
}
