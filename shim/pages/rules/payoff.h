/* SPDX-License-Identifier: BSD-2-Clause
 * What moves of pages have brought, from windows of counts before and after them: fewer lines
 * from PM, at what a line from there costs more than one from DRAM, as measured. Pure. */
#ifndef HYBRID_PAGES_RULES_PAYOFF_H
#define HYBRID_PAGES_RULES_PAYOFF_H

#include "classify/rules/machine_figures.h"
#include "classify/rules/window.h"

/* One stretch of time; windows add up. */
struct payoff {
    double elapsed_ns, lines, pm_lines, stall_ns;
    bool stall_known;
    double windows, share, share_squared; /* sums, over windows, of the share from PM */
};

/* False: the window does not tell which memory the lines were from. */
bool payoff_add(struct payoff *p, const struct window *w);
/* Share of lines that were from PM; < 0: there were none. */
double payoff_pm_share(const struct payoff *p);
/* What a line was waited for; < 0: not known. */
double payoff_line_ns(const struct payoff *p);
/* Time of the program's threads saved in the next `horizon_ns` by what lies between the two;
 * may be negative. A difference that windows have among themselves counts for nothing. */
int64_t payoff_gain(const struct payoff *before, const struct payoff *after,
                    const struct machine_figures *f, double horizon_ns);
/* The same where accesses to the pages that were moved are counted, in `elapsed_ns` of time: `up`
 * to those that came to DRAM, `down` to those that went, each of which stands for `lines`. `now`:
 * what a line costs. Not more than the luck of counting counts for nothing. */
int64_t payoff_of_pages(uint64_t up, uint64_t down, double lines, double elapsed_ns,
                        const struct payoff *now, const struct machine_figures *f,
                        double horizon_ns);
/* Do those moves keep as many lines from PM as they brought there themselves? `to_dram` pages were
 * read from it, `to_pm` written to it. */
bool payoff_spares_pm(uint64_t up, uint64_t down, double lines, double elapsed_ns,
                      double horizon_ns, uint64_t to_dram, uint64_t to_pm);
/* DRAM's bandwidth in use, 0 to 1; < 0: not known. */
double payoff_dram_use(const struct payoff *p, const struct machine_figures *f);

#endif
