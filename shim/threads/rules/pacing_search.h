/* SPDX-License-Identifier: BSD-2-Clause
 * The fewest threads that cost a program at most PACING_GIVES of its own best speed: for one that
 * holds up another (place/rules/pacing.h). Pure.
 *
 * From its own best number down by halves, the model's guess first; each is compared with what is
 * kept so far (thread_trial.h), paid from a purse of regret: without money nothing is tried. But
 * what can be lost at worst need not be in the purse as far as others have lost as much already by
 * waiting for it (`others_lose`): then only what is predicted to be lost must be, and no fewer are
 * tried than it pays for. This counts from when it is known by how much its windows differ. What
 * passes is kept from then on. After a rest its own best is looked at again, and if that has become
 * faster by more than was to be given, it begins anew. State is the caller's; zero bytes: off. */
#ifndef HYBRID_THREADS_RULES_PACING_SEARCH_H
#define HYBRID_THREADS_RULES_PACING_SEARCH_H

#include "threads/rules/threads.h"

struct pacing_search {
    enum { PACING_OFF, PACING_DOWN, PACING_KEPT } stage;
    unsigned best;  /* its own, without company */
    unsigned count; /* it is paced to that; == best: not yet */
    unsigned low;   /* so few are too slow, 0: not known of any */
    double gain;    /* speed with `count` over that with `best` */
    unsigned rested, rest;
    double others_lose; /* the caller's: by `best` threads, shares of their time added up */
    struct thread_trial trial;
};

void pacing_search_begin(struct pacing_search *s, unsigned best);
/* A window with pacing_search_count() threads; `gives`: share of its speed that it gives up at
 * most. true: `count` has changed. */
bool pacing_search_window(struct pacing_search *s, struct regret *purse, double run_ns, double work,
                          double time_ns, double gives, threads_speed_fn speed, void *ctx);
/* Nobody is held up any more: its own best at once. */
void pacing_search_stop(struct pacing_search *s, struct regret *purse);
/* Threads that may run now; 0: off. */
static inline unsigned pacing_search_count(const struct pacing_search *s)
{
    return s->stage == PACING_OFF ? 0 : thread_trial_count(&s->trial);
}

#endif
