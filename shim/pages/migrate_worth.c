/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/migrate_worth.h"

#include "classifier.h"
#include "classify/figures.h"
#include "core/purse.h"
#include "pages/sampler.h"

/* An exchange shall pay in this part of the time that the program has run: it may end at any
 * moment, and is as likely to run for as long again as not. */
#define PAYS_IN 0.5
/* Of one phase; fewer passes take luck for heat. */
#define EVIDENCE 8u

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
    v->threads = work.threads;
    v->rule = worth_rule(&v->line, ++v->passes);
    sampler_price(&v->rule);
    return true;
}

static double move_ns(const struct migrate_worth *v, enum hy_tier to)
{
    return worth_move_ns(figures_here(), to, v->threads);
}

double worth_exchange_ns(const struct migrate_worth *v)
{
    return move_ns(v, HY_DRAM) + move_ns(v, HY_PM);
}

bool worth_is_evidence(const struct migrate_worth *v)
{
    return v->counted && v->passes >= EVIDENCE;
}

uint64_t worth_wanted(const struct migrate_worth *v)
{
    return v->counted && v->rule.passes > 0 ? sampler_ranked(v->fill_from) : sampler_wanted();
}

/* A unit of what was told of, in a pass. */
static double unit_ns(void)
{
    return (double)sampler_period() / WORTH_UNITS;
}

static double purse_left(void)
{
    double run_ns;
    struct regret *r = purse_open(&run_ns);
    double left = regret_left(r, run_ns);
    purse_close();
    return left;
}

/* The purse of regret covers what all exchanges together have lost by now. */
static void balance(struct migrate_worth *v)
{
    double run_ns;
    regret_balance(purse_open(&run_ns), &v->trial, -v->account.balance_ns);
    purse_close();
}

void worth_end(struct migrate_worth *v)
{
    double most = HY_MAX(v->rule.read, v->rule.write), n = v->rule.passes;
    v->most_units = v->passes > 1 ? HY_MAX(most, v->most_units * (1 - 1 / n)) : most;
    struct worth_exchange x = {.unit_ns = unit_ns(),
                               .cost_ns = worth_exchange_ns(v),
                               .passes = PAYS_IN * (double)v->passes,
                               .most_units = v->most_units,
                               .of_passes = v->rule.passes,
                               .of_pages = WORTH_POOL};
    exchange_gained(&v->account, (double)sampler_gain() * unit_ns());
    balance(v);
    struct worth_foretold pass = sampler_foretold();
    x.unit_ns *= worth_foretells(&v->foretold, &pass);
    worth_below(&x, v->below);
    x.cost_ns = move_ns(v, HY_DRAM); /* free DRAM: nobody is displaced */
    v->fill_from = (uint8_t)worth_fill_from(&x);
}

uint64_t worth_swaps(const struct migrate_worth *v)
{
    /* Of the purse, the way back as well. */
    double pairs =
        exchange_may_spend(&v->account, PAYS_IN * (double)v->passes) / worth_exchange_ns(v) +
        HY_MAX(purse_left(), 0.0) / (2 * worth_exchange_ns(v));
    return (uint64_t)pairs;
}

bool worth_takes_back(const struct migrate_worth *v)
{
    uint64_t pairs = 0;
    if (v->account.losing_ns > 0)
        (void)sampler_takeback(NULL, 0, &pairs);
    return exchange_loses(&v->account, (double)pairs * worth_exchange_ns(v));
}

void worth_paid(struct migrate_worth *v, uint64_t up, uint64_t down)
{
    exchange_paid(&v->account, (double)up * move_ns(v, HY_DRAM) + (double)down * move_ns(v, HY_PM));
    balance(v);
}

void worth_took_back(struct migrate_worth *v, uint64_t pairs)
{
    v->account.losing_ns = HY_MAX(v->account.losing_ns - (double)pairs * worth_exchange_ns(v), 0.0);
}
