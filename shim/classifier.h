/* SPDX-License-Identifier: BSD-2-Clause
 * The class of this process, found while it runs: windows of counts to the classifier, its
 * answer to the policy, and to a recording. All but classify_get by the control thread. */
#ifndef HYBRID_CLASSIFIER_H
#define HYBRID_CLASSIFIER_H

#include "classify/counters.h"
#include "classify/rules/classes.h"
#include "classify/rules/tally.h"

struct classify_view {
    struct classification found;
    struct counters_info counters;
    struct tally tally;
    char machine[FIGURES_NAME_CAP];
    uint64_t cost_ns; /* CPU time spent here */
};

/* Who has a use for counts: what they want is asked, what is found is told, all by the control
 * thread. */
struct classify_users {
    bool (*want_all)(void);       /* every window counts: a recording */
    bool (*want_counts)(void);    /* even if the class is known */
    bool (*take_a_counter)(void); /* of the processor's */
    void (*opened)(const char *source, const struct machine_figures *f,
                   const struct class_rules *rules);
    void (*tried)(void);            /* after it, or when there are no counters */
    void (*here)(struct window *w); /* adds what no counter knows: threads, bytes of each tier */
    void (*decided)(enum hy_class cls); /* another class, sure enough to go by */
    void (*window)(const struct window *w, const struct classification *now,
                   const struct machine_figures *f);
};
/* Before the first look. */
void classify_begin(const struct classify_users *u);

/* How long to sleep at most before the next look; UINT64_MAX: nothing to look at. */
uint64_t classify_period_ns(void);
/* A look, if a window is over. */
void classify_tick(void);
/* The control thread ends for a while: its counters close, and are opened by the next tick. */
void classify_pause(void);
void classify_get(struct classify_view *ret);
/* The last window of counts and its running number; false: there is none. Any thread. */
bool classify_window(struct window *ret, uint64_t *ret_number);
void classify_child(void);

#endif
