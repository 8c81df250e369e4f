/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/payoff.h"

#define LINE 64
/* Of a read's latency, where it is not counted how long threads waited (independent misses). */
#define EXPOSED 0.25
/* Two standard deviations of counts, squared. */
#define LUCK 4

bool payoff_add(struct payoff *p, const struct window *w)
{
    if (!window_has(w, WINDOW_elapsed_ns) || !window_has(w, WINDOW_reads) ||
        !window_has(w, WINDOW_reads_pm))
        return false;
    double lines = window_get(w, WINDOW_reads) + window_get(w, WINDOW_writes);
    double pm = window_get(w, WINDOW_reads_pm) + window_get(w, WINDOW_writes_pm);
    double share = lines > 0 ? pm / lines : 0;
    p->elapsed_ns += window_get(w, WINDOW_elapsed_ns);
    p->lines += lines;
    p->pm_lines += pm;
    p->windows += lines > 0;
    p->share += share;
    p->share_squared += share * share;
    p->stall_ns += window_get(w, WINDOW_stall_ns) + window_get(w, WINDOW_wait_ns);
    p->stall_known = window_has(w, WINDOW_stall_ns);
    return true;
}

double payoff_pm_share(const struct payoff *p)
{
    return p->lines > 0 ? p->pm_lines / p->lines : -1;
}

double payoff_line_ns(const struct payoff *p)
{
    return p->lines > 0 && p->stall_known ? p->stall_ns / p->lines : -1;
}

/* What a line costs more on PM. The measured stall is that of a mix; each line's part in it
 * goes by the latency of its memory. */
static double extra_ns(const struct payoff *p, const struct machine_figures *f)
{
    double dram = f->medium[HY_DRAM].read_ns, pm = f->medium[HY_PM].read_ns;
    double mix = p->lines > 0 ? dram + (pm - dram) * payoff_pm_share(p) : 0;
    double exposed = p->stall_known && mix > 0 ? p->stall_ns / p->lines / mix : EXPOSED;
    return exposed * (pm - dram);
}

/* Variance of the mean share. */
static double doubt(const struct payoff *p)
{
    double mean = p->share / p->windows;
    double of_one = HY_MAX(p->share_squared / p->windows - mean * mean, 0.0);
    return p->windows > 1 ? of_one / (p->windows - 1) : 0;
}

int64_t payoff_gain(const struct payoff *before, const struct payoff *after,
                    const struct machine_figures *f, double horizon_ns)
{
    if (before->lines <= 0 || after->lines <= 0 || after->elapsed_ns <= 0)
        return 0;
    double less = payoff_pm_share(before) - payoff_pm_share(after);
    if (less > 0 && less * less <= doubt(before) + doubt(after))
        return 0;
    double gain = less * (after->lines / after->elapsed_ns) * extra_ns(after, f) * horizon_ns;
    return (int64_t)HY_MAX(HY_MIN(gain, 9e18), -9e18);
}

int64_t payoff_of_pages(uint64_t up, uint64_t down, double lines, double elapsed_ns,
                        const struct payoff *now, const struct machine_figures *f,
                        double horizon_ns)
{
    double more = (double)up - (double)down;
    if (elapsed_ns <= 0 || (more > 0 && more * more <= LUCK * ((double)up + (double)down)))
        return 0;
    double gain = more * lines / elapsed_ns * extra_ns(now, f) * horizon_ns;
    return (int64_t)HY_MAX(HY_MIN(gain, 9e18), -9e18);
}

bool payoff_spares_pm(uint64_t up, uint64_t down, double lines, double elapsed_ns,
                      double horizon_ns, uint64_t to_dram, uint64_t to_pm)
{
    double made = ((double)to_dram + (double)to_pm) * HY_PAGE / LINE;
    return elapsed_ns > 0 && ((double)up - (double)down) * lines / elapsed_ns * horizon_ns >= made;
}

double payoff_dram_use(const struct payoff *p, const struct machine_figures *f)
{
    double mbs = f->medium[HY_DRAM].seq_read_mbs;
    if (p->elapsed_ns <= 0 || mbs <= 0)
        return -1;
    /* bytes a ns are 1000 times 10^6 bytes a second */
    return (p->lines - p->pm_lines) * LINE / p->elapsed_ns * 1000 / mbs;
}
