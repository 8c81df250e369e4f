/* SPDX-License-Identifier: BSD-2-Clause
 * Counts of this process by windows of time, from the best source that there is: PAPI's
 * software events of the emulated machine (there the processor's own would count another
 * machine), PAPI's hardware events, a recording, or what the kernel tells everybody.
 *
 * One thread uses it, never from malloc: PAPI is loaded when it is first needed, allocates,
 * and opens descriptors. All threads are counted: those that are there when counting
 * begins, and whom they create. A program that has PAPI loaded itself is left alone: one
 * PAPI serves a process, and it is the program's. Under a seccomp filter, or when nobody
 * tells whether there is one, no hardware counter is opened: it might kill the program. */
#ifndef HYBRID_CLASSIFY_COUNTERS_H
#define HYBRID_CLASSIFY_COUNTERS_H

#include "classify/rules/window.h"
#include "settings/rules/options.h"

enum counters_source {
    COUNTERS_OFF,
    COUNTERS_KERNEL,   /* CPU time, faults, growth: hints */
    COUNTERS_REPLAY,   /* a recording */
    COUNTERS_HARDWARE, /* PAPI */
    COUNTERS_SOFTWARE, /* PAPI, of the emulated machine */
};

struct counters_info {
    enum counters_source source;
    char what[160]; /* "hardware (PAPI): 5 events of 8 threads" */
    char why[160];  /* why it is nothing better; empty */
};

/* `spec`: auto, off, kernel, hardware, software or replay:FILE. What cannot be had falls
 * back to the kernel's hints, and counters_describe says why. -EINVAL: a recording that is
 * none, with a message; then nothing is open. */
int counters_open(const char *spec, hy_diag_fn diag, void *ctx);
/* From the next opening on: load samples want one of the processor's counters. An event that can be
 * done without is left out where there is none to spare. */
void counters_spare(bool one);
/* Counts since the last window, or the opening. -ENODATA: nothing (more) to be had. */
int counters_window(struct window *ret);
void counters_close(void);
/* In a forked child: the counters are the parent's; nothing is open here. */
void counters_after_fork_child(void);
void counters_describe(struct counters_info *ret);

/* For tests: this PAPI instead of the system's. */
void counters_use_papi(const char *soname);

#endif
