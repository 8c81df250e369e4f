/* SPDX-License-Identifier: BSD-2-Clause
 * Call sites: who allocates how much, and where a profile wants it. A site is
 * the hash of up to SITE_FRAMES return addresses as module build-id + offset,
 * so it is the same in every run of the same build (ASLR). Stacks are walked by
 * sys/walk/unwind.h. The table is fixed (SITE_MAX); what does not fit is counted
 * under site 0, "other". Counters are relaxed atomics. */
#ifndef HYBRID_PLACE_SITES_H
#define HYBRID_PLACE_SITES_H

#include "base/types.h"
#include "settings/rules/profile.h"

#define SITE_MAX    4096
#define SITE_FRAMES PROFILE_MAX_FRAMES

typedef uint16_t site_id; /* 0 = other / not known */

struct site_info {
    uint64_t id_hash;       /* stable across runs */
    unsigned n_frames, nth; /* nth: sites_nth */
    struct hy_frame frames[SITE_FRAMES];
    uint64_t count, bytes, live_count, live_bytes; /* weighted by sampling */
    uint64_t peak_bytes;                           /* most live bytes at a time */
    double from, until; /* as in struct profile_site; until 1 where it holds memory still */
    uint64_t min_size, max_size;
    enum hy_tier tier; /* asked by the profile or the plan */
    bool has_tier;
};

/* Checks that stacks can be walked here. 0 or -errno with a reason. */
int sites_init(char *err, size_t err_cap);
bool sites_ready(void);
/* The sites of a profile, known from now on by their place in it; a tier that the profile
 * names is theirs at once. Frames of modules that are not loaded (or of another build) never
 * match, module by module; ret_unmatched counts the sites concerned now. small[i]: requests
 * too small to be always unwound shall be found too (sites_may_steer); NULL: of those with a
 * tier. */
void sites_steer(const struct profile_site *sites, unsigned n, const bool *small,
                 unsigned *ret_unmatched);
/* Are all modules of its frames loaded now, of the same builds? */
bool sites_loaded(const struct profile_site *p);
/* The place in the profile of the site that this stack belongs to; -1: none. */
int sites_steered(site_id id);
/* By place: where it shall go from now on, and bytes of it in use as far as they were noted. */
void sites_set_tier(unsigned index, bool has_tier, enum hy_tier tier);
uint64_t sites_steered_live(unsigned index);
/* The calling stack's site: the first SITE_FRAMES return addresses outside this
 * library. Under the guard; allocates nothing, makes no system call, never
 * waits long; 0 when it cannot, now or ever. */
site_id sites_capture(void);
/* A loop that makes several large blocks is one stack, but they are several objects: while k of
 * them are in use, the next one, of `bytes`, has a site of its own, number k (1 to 31). */
site_id sites_nth(site_id id, uint64_t bytes);
/* Could a call from return address `ra` (the caller of malloc) belong to a site
 * of the profile? Cheap (a hash probe): decides whether a small request is
 * unwound at all. */
bool sites_may_steer(const void *ra);
/* Tier asked for this site by the profile or the plan; false when none. */
bool sites_tier(site_id id, enum hy_tier *ret);
/* weight: how many allocations this one stands for (sampling), >= 1. */
void sites_note_alloc(site_id id, uint64_t bytes, uint64_t weight);
void sites_note_free(site_id id, uint64_t bytes, uint64_t weight);
/* A mapping is an allocation whose bytes are those that are charged for it; `more`: by so many
 * they are more than ever. */
void sites_note_mapping(site_id id, uint64_t bytes);
void sites_note_resized(site_id id, uint64_t from, uint64_t to, uint64_t more);
void sites_note_unmapped(site_id id);
/* Sites known, "other" included: ids are 0 .. sites_count() - 1. */
unsigned sites_count(void);
bool sites_get(site_id id, struct site_info *ret);
/* Human-readable module!offset of a frame (module base name), for reports. */
void sites_format_frame(const struct hy_frame *f, char *buf, size_t cap);
/* Locks around fork; the child keeps the table. */
void sites_prefork(void);
void sites_postfork(void);

#endif
