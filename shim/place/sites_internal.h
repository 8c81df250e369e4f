/* SPDX-License-Identifier: BSD-2-Clause
 * Between the files of the call sites: sites.c finds a stack's site, sites_steer.c says where a
 * profile wants it, sites_accounts.c counts. */
#ifndef HYBRID_PLACE_SITES_INTERNAL_H
#define HYBRID_PLACE_SITES_INTERNAL_H

#include <string.h>

#include "place/sites.h"

#define STEERED_NONE 0u

struct site {
    uint64_t id_hash;
    uint16_t n_frames, nth;
    uint32_t steered; /* STEERED_NONE, or the place in the profile + 1 */
    struct hy_frame frame[SITE_FRAMES];
    uint64_t count, bytes;
    int64_t live_count, live_bytes; /* signed: a free can be noted before its allocation */
    uint64_t peak_bytes;            /* of live_bytes */
    uint64_t from, until;           /* sites_volume() at the first block, and when none was left */
    uint64_t min_size, max_size;    /* 0: none yet */
    site_id base;                   /* of the nth: the stack's own site, where they are counted */
    int32_t large_blocks;           /* in use, of all blocks of the stack */
};

extern struct site *hy_sites; /* entry 0: other; before sites_init only that */

static inline struct site *sites_entry(site_id id)
{
    return __atomic_load_n(&hy_sites, __ATOMIC_ACQUIRE) + (id < SITE_MAX ? id : 0);
}

/* STEERED_NONE, or the place in the profile + 1. */
static inline unsigned sites_steered_of(const struct site *s)
{
    return __atomic_load_n(&s->steered, __ATOMIC_RELAXED);
}

static inline uint64_t sites_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static inline uint64_t sites_frame_hash(uint64_t h, const struct hy_frame *f)
{
    uint64_t w[3] = {0};
    memcpy(w, f->build_id, BUILD_ID_MAX);
    return sites_mix(sites_mix(sites_mix(sites_mix(h, w[0]), w[1]), w[2]), f->offset);
}

/* sites.c: whoever enters a site meanwhile has done so after this. */
void sites_settle(void);
/* sites_steer.c: the most specific site of the profile that these frames belong to. */
unsigned sites_steered_by(const struct hy_frame *frame, unsigned n, unsigned nth);
void sites_add_steered_live(unsigned by, int64_t bytes);

#endif
