/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/rules/regret.h"

double regret_left(const struct regret *r, double run_ns)
{
    return REGRET_SHARE * (run_ns > 0 ? run_ns : 0) - r->spent_ns - r->aside_ns;
}

bool regret_begin(struct regret *r, struct regret_trial *t, double run_ns, double foreseen_ns,
                  double worst_ns)
{
    double aside = HY_MAX(foreseen_ns, worst_ns);

    if (t->running || !(foreseen_ns >= 0) || !(worst_ns >= 0) || !(aside <= regret_left(r, run_ns)))
        return false;
    *t = (struct regret_trial){.running = true, .foreseen_ns = foreseen_ns, .aside_ns = aside};
    r->aside_ns += aside;
    return true;
}

/* What is lost is gone, covered or not. */
static void put_aside(struct regret *r, struct regret_trial *t, double ns)
{
    r->aside_ns += ns - t->aside_ns;
    t->aside_ns = ns;
}

bool regret_lost(struct regret *r, struct regret_trial *t, double run_ns, double lost_ns,
                 double next_ns)
{
    double need;

    if (!t->running)
        return false;
    /* Not a number: as bad as can be. */
    t->lost_ns = lost_ns > 0 ? lost_ns : lost_ns <= 0 ? 0 : t->aside_ns;
    need = t->lost_ns + next_ns;
    if (t->lost_ns > t->aside_ns)
        put_aside(r, t, t->lost_ns);
    if (!(next_ns >= 0) || need - t->aside_ns > regret_left(r, run_ns))
        return false;
    if (need > t->aside_ns)
        put_aside(r, t, need);
    return true;
}

void regret_end(struct regret *r, struct regret_trial *t, double lost_ns)
{
    if (!t->running)
        return;
    if (!(lost_ns <= 0) && !(lost_ns > 0))
        lost_ns = t->aside_ns;
    put_aside(r, t, 0);
    r->spent_ns += HY_MAX(HY_MAX(lost_ns, t->foreseen_ns), 0.0);
    *t = (struct regret_trial){0};
}

void regret_balance(struct regret *r, struct regret_trial *t, double lost_ns)
{
    t->running = true;
    t->lost_ns = lost_ns > 0 ? lost_ns : lost_ns <= 0 ? 0 : t->aside_ns;
    put_aside(r, t, t->lost_ns);
}
