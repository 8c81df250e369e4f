/* SPDX-License-Identifier: BSD-2-Clause
 * Call sites: who allocates how much, and where a profile wants it. A site is
 * the hash of up to SITE_FRAMES return addresses as module build-id + offset,
 * so it is the same in every run of the same build (ASLR). Stacks are walked by
 * sys/unwind.h. The table is fixed (SITE_MAX); what does not fit is counted
 * under site 0, "other". Counters are relaxed atomics. */
#ifndef HYBRID_SERVICE_SITES_H
#define HYBRID_SERVICE_SITES_H

#include "base/types.h"
#include "decide/profile.h"

#define SITE_MAX    4096
#define SITE_FRAMES PROFILE_MAX_FRAMES

typedef uint16_t site_id; /* 0 = other / not known */

struct site_info {
    uint64_t id_hash; /* stable across runs */
    unsigned n_frames;
    struct hy_frame frames[SITE_FRAMES];
    uint64_t count, bytes, live_count, live_bytes; /* weighted by sampling */
    enum hy_tier tier;                             /* asked by the profile */
    bool has_tier;
};

/* Checks that stacks can be walked here. 0 or -errno with a reason. */
int sites_init(char *err, size_t err_cap);
bool sites_ready(void);
/* Sites that a profile steers; resolves frames against the loaded modules
 * again whenever modules come or go. Frames of modules that are not loaded (or
 * of another build) never match; ret_unmatched counts the sites concerned now. */
void sites_steer(const struct profile_site *sites, unsigned n, unsigned *ret_unmatched);
/* The calling stack's site: the first SITE_FRAMES return addresses outside this
 * library. Under the guard; allocates nothing, makes no system call, never
 * waits long; 0 when it cannot, now or ever. */
site_id sites_capture(void);
/* Could a call from return address `ra` (the caller of malloc) belong to a site
 * of the profile? Cheap (a hash probe): decides whether a small request is
 * unwound at all. */
bool sites_may_steer(const void *ra);
/* Tier asked for this site by the profile; false when none. */
bool sites_tier(site_id id, enum hy_tier *ret);
/* weight: how many allocations this one stands for (sampling), >= 1. */
void sites_note_alloc(site_id id, uint64_t bytes, uint64_t weight);
void sites_note_free(site_id id, uint64_t bytes, uint64_t weight);
/* Sites known, "other" included: ids are 0 .. sites_count() - 1. */
unsigned sites_count(void);
bool sites_get(site_id id, struct site_info *ret);
/* Human-readable module!offset of a frame (module base name), for reports. */
void sites_format_frame(const struct hy_frame *f, char *buf, size_t cap);
/* Locks around fork; the child keeps the table. */
void sites_prefork(void);
void sites_postfork(void);
/* Build-id of the main program; 0 when it has none. */
unsigned sites_exe_build_id(uint8_t id[BUILD_ID_MAX]);

#endif
