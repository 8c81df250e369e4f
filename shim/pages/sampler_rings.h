/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of the accesses of all threads (sys/pages/loads.h), for the source of reads
 * (sampler_loads.c) and for recordings (record/record_loads.c). A ring belongs to one thread, as
 * the kernel lets no inherited event have one; where there is not enough memory for all, they take
 * turns.
 *
 * The processor has few counters, so one set of rings is open at a time in a process. One thread
 * opens and serves a set; reading may be another's, under a lock of the caller. */
#ifndef HYBRID_PAGES_SAMPLER_RINGS_H
#define HYBRID_PAGES_SAMPLER_RINGS_H

#include "pages/rules/sample_ring.h"
#include "sys/pages/loads.h"

/* One way to sample: a row of sampler_loads.def. */
struct load_event {
    struct os_load_event os;
    enum sample_filter filter;
    uint32_t unit; /* sample_period */
    uint64_t period;
    const char *meaning;
};

/* Those that this machine's kernel tells of (root: "/sys" outside tests); how many. */
unsigned load_events(const char *root, struct load_event *ret, unsigned cap);
unsigned store_events(const char *root, struct load_event *ret, unsigned cap);
#define LOAD_EVENTS 8u /* that there can be */

#define LOAD_RINGS 64u

struct load_rings {
    struct load_event e;
    uint64_t period, other; /* other: of the rings that are open */
    uint64_t random;
    /* Of the thread that opened, never read. While one event is open the kernel need not switch
     * sampling on and off, which takes it tens of milliseconds. */
    struct os_load_ring own;
    struct os_load_ring ring[LOAD_RINGS];
    unsigned rings, room;
    unsigned first;    /* thread to begin with, so that each has its turn: behind */
    unsigned served;   /* as many as had one before */
    int32_t holder;    /* process for which this is the open set */
    unsigned left_out; /* threads without a ring, for want of memory or permission */
};

/* The first of these events that works; no thread is sampled yet. -EBUSY: another set is open;
 * -EACCES: not permitted, or a seccomp filter is in force; -ENODEV: there is none. */
int load_rings_open(struct load_rings *r, const struct load_event *events, unsigned n);
void load_rings_close(struct load_rings *r);
/* Open, and in this process? */
bool load_rings_work(const struct load_rings *r);
/* Would this event work here? Opened and closed again. */
int load_rings_try(const struct load_event *e);
/* Do load samples take one of the counters that others count with? Of the set that is open, else of
 * one that could be. */
bool load_rings_take_counter(void);

/* The rings are closed; those of load_rings_serve will have another period. */
void load_rings_drop(struct load_rings *r);
/* The same, and other threads come first, where not all can have one. */
void load_rings_turn(struct load_rings *r);
/* Threads without a ring get one, a few at each call; in a new turn with another period. How many
 * it were. Closes all where a seccomp filter has come: it might kill who opens. */
unsigned load_rings_serve(struct load_rings *r);
/* What came since. -EBUSY: others want the counters, and lose as much as we: all is closed. */
int load_rings_read(struct load_rings *r, void (*fn)(void *ctx, uint64_t address, uint64_t source),
                    void *ctx, struct sample_counts *counts);
/* The period that the next turn should have after these counts since that time. */
uint64_t load_rings_period(const struct load_rings *r, const struct sample_counts *c,
                           uint64_t since_ns);
void load_counts_add(struct sample_counts *to, const struct sample_counts *c);

/* For tests: these events (NULL: the machine's). */
void load_rings_use(const struct load_event *loads, const struct load_event *stores);
/* Events of the machine, or the tests'. */
unsigned load_rings_events(bool stores, struct load_event ret[LOAD_EVENTS]);

#endif
