/* SPDX-License-Identifier: BSD-2-Clause
 * Pacing: a program whose writes to PM hold up another participant of the registry runs with the
 * fewest threads that cost it 4 % of its own speed at most (place/rules/pacing.h: whom, and whether
 * at all; threads/rules/pacing_search.h: how many). Each also tells its traffic and what the
 * others' writers cost it. By the control thread, but for pacing_get. */
#ifndef HYBRID_THREADS_PACING_H
#define HYBRID_THREADS_PACING_H

#include "classify/rules/machine_figures.h"
#include "classify/rules/traffic.h"
#include "place/registry.h"

struct pacing_view {
    struct traffic traffic; /* of the last window */
    double writers_free;    /* as traffic.writers, if it were not paced */
    double hindered;        /* predicted time beside the others' writers over alone, 0: not known */
    double most_hindered;   /* in any window */
    double others_lose;     /* predicted, by its writers: shares of their time, added up */
    unsigned own_best, paced;          /* paced 0: not now */
    unsigned fewest, fewest_of, times; /* since the start; of so many when it was the fewest */
    int32_t victim;                    /* pid and name of the last */
    char name[16];
    uint64_t since_ns; /* CLOCK_MONOTONIC */
};

/* Could it ever be wanted? Then windows are. */
bool pacing_possible(void);
void pacing_window(const struct window *w, const struct machine_figures *f);
/* Threads that may run now; 0: not paced. */
unsigned pacing_count(void);
void pacing_get(struct pacing_view *ret);
/* What the others are told of it. */
void pacing_publish(const struct pacing_view *v, struct registry_published *published);
void pacing_child(void);

#endif
