/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/migrate_judge.h"

#include "runtime/classify.h"
#include "runtime/figures.h"
#include "service/sampler.h"

/* A prediction holds for about so many passes (paper 002, section 3.3): what a move brings. */
#define HORIZON 10
/* One short pass shows a part of what a program does in turns: so many are judged together, or
 * twice as many windows of counts. */
#define JUDGED 4
/* So many windows in a row with more lines from PM than of late are another phase. */
#define OTHER_WINDOWS 3
#define DIFFERENT     0.1
#define FORGET        0.01 /* a window: sweeps use one memory and the other in turns */
#define MORE_WANTED   64u  /* pages, and twice as many: where nobody counts */

void judge_init(struct migrate_judge *j)
{
    *j = (struct migrate_judge){.calm_share = -1};
}

static void take_window(struct migrate_judge *j)
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
    double share = payoff_pm_share(&j->last);
    bool other = j->calm_share >= 0 && share > j->calm_share + DIFFERENT;
    j->other = other ? j->other + 1 : 0;
    if (!other && share >= 0)
        j->calm_share = HY_MAX(share, j->calm_share - FORGET);
}

void judge_gather(struct migrate_judge *j, struct pace *p)
{
    take_window(j);
    if (judge_counts(j) && j->other < OTHER_WINDOWS)
        return;
    if (!judge_counts(j) && (p->pause == 0 || sampler_wanted() <= 2 * j->calm_wanted + MORE_WANTED))
        return;
    pace_wake(p);
    /* What comes is compared with this. */
    j->before = j->last;
    j->calm_share = payoff_pm_share(&j->last);
    j->now = (struct payoff){0};
    j->moved_pages = j->moved_ns = j->regretted = 0;
    j->unjudged = j->other = 0;
}

static void judge_moves(struct migrate_judge *j, struct pace *p)
{
    bool told = j->now.lines > 0 && j->before.lines > 0;
    int64_t gain = (int64_t)j->moved_ns;
    if (j->moved_pages == 0)
        return;
    if (told)
        gain = payoff_gain(&j->before, &j->now, figures_here(), (double)p->interval * HORIZON);
    pace_result(p, gain, j->moved_ns, j->moved_pages, told ? 0 : j->regretted);
    j->moved_pages = j->moved_ns = j->regretted = 0;
}

void judge_pass(struct migrate_judge *j, struct pace *p)
{
    bool paused = p->pause > 0;
    judge_gather(j, p);
    if (++j->unjudged < JUDGED && j->now.windows < 2 * JUDGED)
        return;
    j->unjudged = 0;
    judge_moves(j, p);
    if (j->now.lines > 0)
        j->before = j->now;
    j->now = (struct payoff){0};
    if (p->pause > 0 && !paused)
        j->calm_wanted = sampler_wanted();
}

double judge_dram_use(const struct migrate_judge *j)
{
    return j->last.lines > 0 ? payoff_dram_use(&j->last, figures_here()) : -1;
}
