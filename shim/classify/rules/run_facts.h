/* SPDX-License-Identifier: BSD-2-Clause
 * What a whole run says of a program, from its windows of counts and what the classifier made
 * of each: the facts of a profile's [app], [phases], [behaviours] and [recorded]. Pure.
 *
 * The class and the work are those of all windows taken as one; the slowdown is the time of
 * all windows with the data on PM over that on DRAM. So a short phase that PM would slow a lot
 * counts for what it costs, and no more. */
#ifndef HYBRID_CLASSIFY_RULES_RUN_FACTS_H
#define HYBRID_CLASSIFY_RULES_RUN_FACTS_H

#include "classify/rules/classes.h"
#include "classify/rules/tally.h"
#include "settings/rules/profile.h"

/* Windows taken together. */
struct run_sum {
    struct tally all;
    struct window most; /* largest values of what cannot be added up */
};

void run_sum_add(struct run_sum *s, const struct machine_figures *f, const struct window *w);
void run_sum_merge(struct run_sum *s, const struct run_sum *more);
/* All that their counts tell; -errno: the lines only (work_of_window). */
int run_sum_get(const struct run_sum *s, const struct machine_figures *f,
                struct profile_behaviour *ret);

/* Zero bytes: nothing yet. */
struct run_facts {
    struct run_sum run;
    struct tally phase;    /* of the last phase, but for its last window, */
    struct window pending; /* as a new phase is known by its second one */
    double confidence_ns, judged_ns;
    struct profile_phase phases[PROFILE_MAX_PHASES];
    unsigned n_phases;
    uint32_t last_phase; /* the classifier's number of it */
};

/* `now`: the classifier's answer after this window. */
void run_facts_add(struct run_facts *r, const struct machine_figures *f, const struct window *w,
                   const struct classification *now);
/* Sets what is known, leaves the rest of *ret as it is. A class that is only a hint is not. */
void run_facts_get(const struct run_facts *r, const struct machine_figures *f,
                   const struct class_rules *rules, struct profile *ret);

#endif
