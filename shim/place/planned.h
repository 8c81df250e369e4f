/* SPDX-License-Identifier: BSD-2-Clause
 * The profile's call sites while the program runs: the plan (place/rules/site_plan.h) for the DRAM
 * that this process may have, and the DRAM that is kept for sites still to come. A site that
 * outgrows what it had in the profile takes from those of lesser rank. What is kept for a site
 * that does not come lapses when the program has allocated as much as the profile's run in all,
 * and for one that is gone, as much as the profile's footprint. */
#ifndef HYBRID_PLACE_PLANNED_H
#define HYBRID_PLACE_PLANNED_H

#include "classify/rules/window.h"
#include "place/sites.h"

struct planned_view {
    bool on;
    bool given_up;               /* it was on, and did not hold what it promised */
    unsigned sites, on_dram;     /* of the profile; that get DRAM */
    uint64_t share, quota, kept; /* bytes; of it given to sites; not yet asked for */
    uint32_t plans;              /* made so far */
    double scale;                /* sizes of this run over the profile's */
    double slowdown;             /* predicted, against all on DRAM; 0: not known */
};

/* Once memory is placed: steers the profile's sites. True if small blocks are among those that
 * must be told apart. */
bool planned_begin(void);
/* After sites_note_alloc for a block of n bytes: *tier, which has the default, becomes where it
 * shall go. Of a block for PM, returns the bytes of DRAM that it shall have. No lock is waited
 * for, no system call. */
uint64_t planned_alloc(site_id id, size_t n, uint32_t weight, enum hy_tier *tier);
/* Which parts of such a block shall have it first (PROFILE_BINS, higher is better, equal ones are
 * alike), for as long as the process lives; NULL: there is no plan any more. */
const uint8_t *planned_levels(site_id id);
/* After sites_note_free. */
void planned_free(site_id id);
/* By the control thread: what was counted last; a plan that does worse than it promised ends. */
void planned_window(const struct window *w);
/* By the control thread: the share may have changed. */
void planned_tick(void);
void planned_child(void);
void planned_get(struct planned_view *ret);

#endif
