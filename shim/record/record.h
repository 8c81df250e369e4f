/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_RECORD: the counts of each window to a recording (classify/rules/recording.h), or, if the
 * file's name ends in .ini, what this run tells of the program to a profile. Written after
 * 16, 32, 64 ... windows and at the end, so that of a program that is killed the last one
 * stays. Nothing here is on the program's paths. */
#ifndef HYBRID_RECORD_RECORD_H
#define HYBRID_RECORD_RECORD_H

#include "classify/rules/classes.h"
#include "settings/rules/profile.h"

bool record_wanted(void);
/* To a profile: call sites are needed. */
bool record_wants_sites(void);
/* While the heaps are made, if sites are known: samples of accesses from here on. */
void record_prepare(void);
/* By the control thread. Counts come from `source` and are judged by `f`, which stays. */
void record_begin(const char *source, const struct machine_figures *f,
                  const struct class_rules *rules);
/* A program may be over before its counters are open, so it waits for them, a second at most.
 * In the constructor only: in malloc it may hold locks that opening them needs. */
void record_await_counts(void);
void record_counts_open(void); /* or will not be */
/* By any thread, before memory goes or is given to another site: whose lines these are is not known
 * afterwards. */
void record_settle(void);
/* `now`: the class after this window. */
void record_window(const struct window *w, const struct classification *now);
/* By the control thread, at each of its turns: accesses are sampled. */
void record_tick(void);
/* At the end of the program, by any thread. */
void record_finish(void);
void record_child(void);

/* For the report. */
struct record_view {
    uint32_t windows;
    bool sites;                      /* to a profile */
    uint64_t samples;                /* of accesses, */
    char accesses[PROFILE_TEXT_CAP]; /* by what; where there are none, why; empty */
};
void record_get(struct record_view *ret);

#endif
