/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/migrate_worth.h"

#include "classifier.h"
#include "classify/figures.h"
#include "core/purse.h"
#include "pages/sampler.h"

/* An exchange shall pay in this part of the time that the program has run: it may end at any
 * moment, and is as likely to run for as long again as not. */
#define PAYS_IN 0.5

bool worth_begin(struct migrate_worth *v)
{
    struct window w;
    struct work work;
    uint64_t number;
    enum stall_known known;
    v->counted = sampler_period() > 0;
    if (!v->counted || !classify_window(&w, &number) ||
        work_of_window(figures_here(), &w, &work, &known) != 0)
        return false;
    v->line = work_line_worth(figures_here(), &work, work.pm_reads, work.pm_writes);
    v->rule = worth_rule(&v->line, ++v->passes);
    sampler_price(&v->rule);
    return true;
}

/* What an exchange costs the program at most: its transfers, if PM is what it waits for. */
static double up_cost_ns(void)
{
    double mbs = figures_here()->medium[HY_PM].seq_read_mbs;
    return mbs > 0 ? HY_PAGE * 1000 / mbs : 1;
}

static double cost_ns(void)
{
    const struct medium_figures *pm = &figures_here()->medium[HY_PM];
    double write = pm->seq_write_mbs > 0 ? HY_PAGE * 1000 / pm->seq_write_mbs : 0;
    return up_cost_ns() + write;
}

/* What one read that was told of stands for. */
static double told_ns(const struct migrate_worth *v)
{
    return sampler_period() * (v->line.read_ns > 0 ? v->line.read_ns : v->line.write_ns / 16);
}

static double purse_left(void)
{
    double run_ns;
    struct regret *r = purse_open(&run_ns);
    double left = regret_left(r, run_ns);
    purse_close();
    return left;
}

/* Lost for good. */
static void purse_charge(double ns)
{
    struct regret_trial t = {.running = true};
    double run_ns;
    regret_end(purse_open(&run_ns), &t, ns);
    purse_close();
}

void worth_end(struct migrate_worth *v)
{
    struct worth_exchange x = {.read_ns = told_ns(v),
                               .cost_ns = cost_ns(),
                               .passes = PAYS_IN * (double)v->passes,
                               .of_passes = v->rule.passes};
    v->earned_ns += (double)sampler_gain() / WORTH_UNIT * told_ns(v);
    if (v->earned_ns < 0) {
        purse_charge(-v->earned_ns);
        v->earned_ns = 0;
    }
    worth_below(&x, v->below);
    x.cost_ns = up_cost_ns();
    v->fill_from = (uint8_t)worth_fill_from(&x);
}

uint64_t worth_swaps(const struct migrate_worth *v)
{
    double left = v->earned_ns + HY_MAX(purse_left(), 0.0);
    return (uint64_t)(left / cost_ns());
}

void worth_paid(struct migrate_worth *v, uint64_t up, uint64_t down)
{
    double cost = (double)up * up_cost_ns() + (double)down * (cost_ns() - up_cost_ns()),
           own = HY_MIN(cost, v->earned_ns);
    v->earned_ns -= own;
    if (cost > own)
        purse_charge(cost - own);
}
