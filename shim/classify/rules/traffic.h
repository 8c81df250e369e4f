/* SPDX-License-Identifier: BSD-2-Clause
 * What a program asks of both memories, and what others at PM do to it: what participants tell each
 * other. Pure.
 *
 * The effective bandwidth is paper 000's: lines times DRAM's latency, a line read from PM counting
 * gamma times and one written delta times as much (its latency over DRAM's); here for each ns of
 * the run. How writers at PM slow DRAM down is 004's, section V: by the square of their number. */
#ifndef HYBRID_CLASSIFY_RULES_TRAFFIC_H
#define HYBRID_CLASSIFY_RULES_TRAFFIC_H

#include "classify/rules/slowdown.h"

struct traffic {
    double ebw[HY_TIERS]; /* effective bandwidth: ns of latency for each ns of the run */
    double written;       /* share of the lines on PM that are written, 0 to 1 */
    double writers;       /* threads that have a write pending at PM, on average */
    double held;          /* predicted time beside a PM queue full of others' writes, over alone */
};

/* `work` was done in `elapsed_ns`, > 0. */
struct traffic traffic_of(const struct machine_figures *f, const struct work *work,
                          double elapsed_ns);

#endif
