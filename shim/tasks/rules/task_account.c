/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/rules/task_account.h"

static enum hy_tier kind_of(double share)
{
    return share < 0.5 ? HY_PM : HY_DRAM;
}

static void count(struct account_kind *k, double ns)
{
    k->all += ns;
    if (k->n <= ACCOUNT_MOST)
        return;
    k->n /= 2;
    k->t /= 2;
    k->all /= 2;
}

void account_quiet(struct task_account *a, double share, double ns)
{
    struct account_kind *k = &a->kind[kind_of(share)];
    if (k->quiet >= ACCOUNT_QUIET) {
        double keep = 1 - 1.0 / ACCOUNT_QUIET;
        k->quiet *= keep;
        k->quiet_t *= keep;
        k->quiet_tt *= keep;
    }
    k->quiet += 1;
    k->quiet_t += ns;
    k->quiet_tt += ns * ns;
    count(k, ns);
}

void account_staged(struct task_account *a, double share, double ns)
{
    struct account_kind *k = &a->kind[kind_of(share)];
    k->n += 1;
    k->t += ns;
    count(k, ns);
}

bool account_knows(const struct task_account *a, double share)
{
    return a->kind[kind_of(share)].quiet >= ACCOUNT_LEAST;
}

void account_add(struct account_sum *s, const struct task_account *a)
{
    for (unsigned i = 0; i < HY_ARRAY_SIZE(a->kind); i++) {
        const struct account_kind *k = &a->kind[i];
        s->all += k->all;
        s->staged += k->t;
        if (k->quiet < ACCOUNT_LEAST)
            continue;
        double mean = k->quiet_t / k->quiet;
        double var = HY_MAX(k->quiet_tt - mean * k->quiet_t, 0.0) / (k->quiet - 1);
        s->judged += k->t;
        s->lost += k->t - mean * k->n;
        s->doubt2 += var * (k->n + k->n * k->n / k->quiet);
    }
}

bool account_allows(const struct account_sum *s, bool now)
{
    double quiet = s->all - s->staged;
    if (s->judged > 0) {
        double scale = s->staged / s->judged, doubt2 = 4 * scale * scale * s->doubt2;
        double left = TASK_LOSS * s->all - s->lost * scale;
        if (left < 0)
            return false;
        if (doubt2 <= left * left)
            return true;
    }
    return now ? s->staged < 2 * quiet : s->staged <= quiet;
}
