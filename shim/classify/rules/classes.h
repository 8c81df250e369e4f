/* SPDX-License-Identifier: BSD-2-Clause
 * What limits a program, from windows of counts (papers/DIGEST.md, 004, 000). A window is
 * turned into the work behind it, wherever the data were and whoever else loaded the
 * media; the work into its time with all data on DRAM and all on PM (slowdown.h).
 *
 * Class and mark are those of the program run with at least `threads` threads, so that
 * they do not change with their number; the slowdown is that of the threads that ran.
 * Little slowdown: CPU-bound. Else bandwidth-sensitive if PM's bandwidth bounds that
 * run or its misses are independent, so that more threads or deeper prefetching would
 * make it so; latency-sensitive if threads wait for one miss after the other. Pure. */
#ifndef HYBRID_CLASSIFY_RULES_CLASSES_H
#define HYBRID_CLASSIFY_RULES_CLASSES_H

#include "classify/rules/slowdown.h"

struct class_rules {
    double slowdown;    /* from which a program is memory-bound; 1.5 */
    double write_share; /* of PM's write bandwidth, from which it is write-intensive; 0.25 */
    double threads;     /* 8 */
};

struct classification {
    enum hy_class cls;
    double confidence; /* 0 to 1 */
    bool weak;         /* a hint only: there were no counts */
    bool write_intensive;
    double slowdown;                             /* all on PM against all on DRAM */
    double latency_slowdown, bandwidth_slowdown; /* each term alone */
    double write_share;                          /* of PM's write bandwidth, were all on PM */
    /* Effective bandwidth as the data lie: how long the medium's accesses take one after
     * the other, for each ns (000: N_D T_D; gamma N_R T_D + delta N_W T_D). */
    double ebw[HY_TIERS];
    uint32_t windows; /* judged in this phase */
    uint32_t phases;  /* changes of class */
};

struct classifier {
    struct class_rules rules;
    struct classification now;
    uint32_t against;    /* windows in a row that say otherwise */
    enum hy_class other; /* the last of them */
    uint32_t agree_other;
};

/* The defaults of options.def. */
struct class_rules class_rules_default(void);
void classifier_init(struct classifier *c, const struct class_rules *rules);
/* Judge one window. A window in which next to nothing ran changes nothing. The result is
 * c->now. */
void classifier_feed(struct classifier *c, const struct machine_figures *f, const struct window *w);

#endif
