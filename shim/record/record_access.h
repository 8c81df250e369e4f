/* SPDX-License-Identifier: BSD-2-Clause
 * Lines read and dirtied by call site, between the files of record.h; all under the lock of
 * record.c. record_access.c finds whose a line is and adds up; accesses come from the emulated
 * machine or from the processor's samples (record_loads.c). */
#ifndef HYBRID_RECORD_RECORD_ACCESS_H
#define HYBRID_RECORD_RECORD_ACCESS_H

#include "record/rules/behaviours.h"

/* While the heaps are made. -errno: nothing will be known. */
int record_access_open(void);
/* By the control thread, at each of its turns. */
void record_access_tick(void);
void record_access_drain(void);
void record_access_child(void);
/* A window of counts has come. */
void record_access_window(const struct machine_figures *f, const struct window *w);
/* Adds reads and writes of the sites, of which the first belongs to site 1 and so on, the
 * behaviours, and the samples' part of the source, whose counts are known. */
void record_access_get(const struct machine_figures *f, struct profile *p);
/* Where accesses come from, with the samples that counted; the reason where they come from nowhere.
 */
uint64_t record_access_describe(bool scaled, char *buf, size_t cap);

/* --- record_loads.c ------------------------------------------------------------------------- */

/* An access stands for so many lines. */
typedef void (*record_access_fn)(uintptr_t address, const double lines[ACCESS_KINDS]);

/* May this processor tell? Nothing is opened yet, as the program's own thread asks. */
bool record_loads_possible(void);
/* Opens at first, then samples what there is, and gives fn what came. */
void record_loads_tick(record_access_fn fn);
void record_loads_drain(record_access_fn fn);
void record_loads_child(void);
/* Have loads and stores both been sampled since this was last true? */
bool record_loads_seen_both(void);
/* All but `lines` and `counted`. */
void record_loads_sums(struct access_sums *ret);
void record_loads_describe(bool scaled, char *buf, size_t cap);

#endif
