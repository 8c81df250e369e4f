/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/rules/task_fit.h"

/* Sum of squared distances from the mean share, below which shares are all alike: two instances
 * of each kind are 1. */
#define SPREAD 0.75
#define ALL_ON 0.95 /* of the data; the rest is pages at the borders */

static double root(double v)
{
    double r = v > 1 ? v : 1;
    for (int i = 0; i < 64 && v > 0; i++)
        r = (r + v / r) / 2;
    return v > 0 ? r : 0;
}

void fit_add(struct task_fit *f, double share, double ns)
{
    if (f->n >= FIT_MOST) {
        double keep = 1 - 1.0 / FIT_MOST;
        f->n *= keep;
        f->x *= keep;
        f->xx *= keep;
        f->t *= keep;
        f->xt *= keep;
        f->tt *= keep;
    }
    f->n += 1;
    f->x += share;
    f->xx += share * share;
    f->t += ns;
    f->xt += share * ns;
    f->tt += ns * ns;
}

void fit_recall(struct task_fit *f, double dram_ns, double pm_ns)
{
    for (unsigned i = 0; i < FIT_LEAST / 2; i++) {
        if (dram_ns > 0)
            fit_add(f, 1, dram_ns);
        if (pm_ns > 0)
            fit_add(f, 0, pm_ns);
    }
}

void fit_tell(const struct task_fit *f, double *ret_dram_ns, double *ret_pm_ns)
{
    struct fit_line l = fit_line(f);
    double share = f->n > 0 ? f->x / f->n : 0.5;
    *ret_dram_ns = *ret_pm_ns = 0;
    if (l.known) {
        *ret_dram_ns = HY_MAX(l.pm_ns - l.saving, 0.0);
        *ret_pm_ns = l.pm_ns;
    } else if (share > ALL_ON)
        *ret_dram_ns = fit_mean(f);
    else if (share < 1 - ALL_ON)
        *ret_pm_ns = fit_mean(f);
}

double fit_mean(const struct task_fit *f)
{
    return f->n > 0 ? f->t / f->n : 0;
}

struct fit_line fit_line(const struct task_fit *f)
{
    struct fit_line l = {.pm_ns = fit_mean(f)};
    double sxx = f->n > 0 ? f->xx - f->x * f->x / f->n : 0;
    if (f->n < FIT_LEAST || sxx < SPREAD)
        return l;
    double sxt = f->xt - f->x * f->t / f->n, stt = f->tt - f->t * f->t / f->n;
    double slope = sxt / sxx, rest = HY_MAX(stt - slope * sxt, 0.0);
    l.known = true;
    l.saving = -slope;
    l.pm_ns = (f->t - slope * f->x) / f->n;
    l.doubt = root(rest / (f->n - 2) / sxx);
    return l;
}

double fit_saving(const struct task_fit *f, double slowdown)
{
    struct fit_line l = fit_line(f);
    if (l.known)
        return HY_MAX(l.saving - 2 * l.doubt, 0.0);
    if (f->n <= 0 || slowdown <= 1)
        return 0;
    double share = f->x / f->n; /* mean time = dram + (pm - dram) * (1 - share) */
    double dram = l.pm_ns / (share + slowdown * (1 - share));
    return dram * (slowdown - 1);
}
