/* SPDX-License-Identifier: BSD-2-Clause
 * What a profile wants of call sites: which of its sites a stack belongs to, and its tier. */
#include <stdio.h>
#include <string.h>

#include "place/sites_internal.h"
#include "sys/dl.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/walk/modules.h"

#define LEAF_SET_SIZE 4096 /* power of two, > 2 * PROFILE_MAX_SITES */
#define LEAF_LOW_BITS 12   /* modules are loaded at page boundaries */
#define TIER_NONE     0u   /* a byte of `tiers`; else the tier + 1 */
_Static_assert(LEAF_SET_SIZE > 2 * PROFILE_MAX_SITES, "a probe must end");

/* What a profile asks for; immutable once published. Two of them: a reader
 * that is still in the old one while the next is made sees it whole. */
struct steering {
    unsigned n;
    struct {
        uint16_t n_frames, index;
        uint8_t nth;
        bool has_tier;
        struct hy_frame frame[SITE_FRAMES];
    } site[PROFILE_MAX_SITES];
    uint64_t low_bits[1 << (LEAF_LOW_BITS - 6)]; /* first filter: bit of address & 0xfff */
    uint64_t leaf[LEAF_SET_SIZE];                /* hashes of leaf frames; 0: free */
};

static struct steering *generation[2]; /* mapped by a process that has a profile */
static struct steering *steering;      /* NULL: nothing is steered */
/* By place in the profile. The tiers are set as a plan changes, a byte each. */
static uint8_t tiers[PROFILE_MAX_SITES];
static int64_t live[PROFILE_MAX_SITES];

static bool same_frame(const struct hy_frame *a, const struct hy_frame *b)
{
    return a->offset == b->offset && memcmp(a->build_id, b->build_id, BUILD_ID_MAX) == 0;
}

static bool is_prefix(const struct hy_frame *part, unsigned n, const struct hy_frame *all,
                      unsigned n_all)
{
    if (n == 0 || n > n_all)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (!same_frame(&part[i], &all[i]))
            return false;
    }
    return true;
}

/* The most specific site of the profile wins; one that has a tier, over those without. */
unsigned sites_steered_by(const struct hy_frame *frame, unsigned n, unsigned nth)
{
    const struct steering *s = __atomic_load_n(&steering, __ATOMIC_ACQUIRE);
    unsigned best = 0, found = STEERED_NONE;
    for (unsigned i = 0; s != NULL && i < s->n; i++) {
        unsigned rank = 2u * s->site[i].n_frames + (s->site[i].nth != 0) +
                        (s->site[i].has_tier ? 4 * SITE_FRAMES : 0);
        if (rank > best && (s->site[i].nth == 0 || s->site[i].nth == nth) &&
            is_prefix(s->site[i].frame, s->site[i].n_frames, frame, n)) {
            best = rank;
            found = s->site[i].index + 1u;
        }
    }
    return found;
}

static void add_leaf(struct steering *s, const struct hy_frame *f)
{
    uint64_t h = sites_frame_hash(0, f) | 1;
    unsigned low = f->offset & ((1u << LEAF_LOW_BITS) - 1);
    unsigned i = (unsigned)(h >> 32) & (LEAF_SET_SIZE - 1);
    while (s->leaf[i] != 0 && s->leaf[i] != h)
        i = (i + 1) & (LEAF_SET_SIZE - 1);
    s->leaf[i] = h;
    s->low_bits[low >> 6] |= 1ull << (low & 63);
}

bool sites_may_steer(const void *ra)
{
    const struct steering *s = __atomic_load_n(&steering, __ATOMIC_ACQUIRE);
    struct module m;
    struct hy_frame f;
    unsigned low = (uintptr_t)ra & ((1u << LEAF_LOW_BITS) - 1);
    if (HY_LIKELY(s == NULL || (s->low_bits[low >> 6] >> (low & 63) & 1) == 0))
        return false;
    if (module_find((uintptr_t)ra - 1, &m) != 0)
        return false;
    memcpy(f.build_id, m.id, BUILD_ID_MAX);
    f.offset = (uintptr_t)ra - m.bias;
    uint64_t h = sites_frame_hash(0, &f) | 1;
    unsigned i = (unsigned)(h >> 32) & (LEAF_SET_SIZE - 1);
    while (s->leaf[i] != 0) {
        if (s->leaf[i] == h)
            return true;
        i = (i + 1) & (LEAF_SET_SIZE - 1);
    }
    return false;
}

/* --- which modules are loaded (control path, under the loader's lock) -------- */

struct wanted {
    const uint8_t *id;
    bool found;
    char *name; /* base name goes here */
    size_t cap;
};

static void match_module(const struct dl_object *o, void *ctx)
{
    struct wanted *w = ctx;
    struct module m;
    if (w->found || module_find(o->start, &m) != 0 || memcmp(m.id, w->id, BUILD_ID_MAX) != 0)
        return;
    w->found = true;
    if (w->name == NULL)
        return;
    char exe[HY_PATH_MAX];
    const char *path = o->name;
    if (path[0] == '\0' && os_exe_path(exe, sizeof(exe)) == 0)
        path = exe;
    const char *slash = strrchr(path, '/');
    snprintf(w->name, w->cap, "%s", slash != NULL ? slash + 1 : path);
}

static bool is_loaded(const uint8_t *id, char *name, size_t cap)
{
    struct wanted w = {id, false, name, cap};
    dl_each_object(match_module, &w);
    return w.found;
}

bool sites_loaded(const struct profile_site *p)
{
    for (unsigned i = 0; i < p->n_frames; i++) {
        bool again =
            i > 0 && memcmp(p->frames[i].build_id, p->frames[i - 1].build_id, BUILD_ID_MAX) == 0;
        if (!again && !is_loaded(p->frames[i].build_id, NULL, 0))
            return false;
    }
    return true;
}

static bool add_site(struct steering *s, const struct profile_site *p, unsigned index, bool small)
{
    if (p->n_frames == 0 || p->n_frames > SITE_FRAMES)
        return false;
    s->site[s->n].n_frames = p->n_frames;
    s->site[s->n].index = (uint16_t)index;
    s->site[s->n].nth = p->nth;
    s->site[s->n].has_tier = p->has_tier;
    memcpy(s->site[s->n].frame, p->frames, p->n_frames * sizeof(p->frames[0]));
    s->n++;
    if (small)
        add_leaf(s, &p->frames[0]);
    return true;
}

/* Not the one that readers may be in, empty. */
static struct steering *next_generation(const struct steering *old)
{
    struct steering **g = &generation[old && old == generation[0]];
    void *m;
    if (*g) {
        memset(*g, 0, sizeof(**g));
    } else if (os_map_table(sizeof(**g), &m) == 0) {
        *g = m;
    } else {
        log_warn("profile: no memory for its call sites; placing without them");
    }
    return *g;
}

/* Frames are compared as build-id and offset when a stack is first seen, so
 * modules that come later need no further step here. */
void sites_steer(const struct profile_site *sites, unsigned n, const bool *small,
                 unsigned *ret_unmatched)
{
    struct steering *old = steering;
    struct steering *s = next_generation(old);
    unsigned unmatched = 0;
    n = s ? HY_MIN(n, PROFILE_MAX_SITES) : 0;
    for (unsigned i = 0; i < PROFILE_MAX_SITES; i++) {
        unsigned tier = i < n && sites[i].has_tier ? (unsigned)sites[i].tier + 1 : TIER_NONE;
        __atomic_store_n(&tiers[i], (uint8_t)tier, __ATOMIC_RELAXED);
        __atomic_store_n(&live[i], 0, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < n; i++)
        if (add_site(s, &sites[i], i, small != NULL ? small[i] : sites[i].has_tier))
            unmatched += !sites_loaded(&sites[i]);
    __atomic_store_n(&steering, n > 0 && s->n > 0 ? s : NULL, __ATOMIC_RELEASE);
    sites_settle(); /* those entered by the old profile */
    unsigned end = sites_count();
    for (unsigned id = 1; id < end; id++) {
        struct site *e = sites_entry((site_id)id);
        uint32_t by = sites_steered_by(e->frame, e->n_frames, e->nth);
        __atomic_store_n(&e->steered, by, __ATOMIC_RELAXED);
    }
    if (ret_unmatched != NULL)
        *ret_unmatched = unmatched;
}

static unsigned steered(site_id id)
{
    return id < SITE_MAX ? sites_steered_of(sites_entry(id)) : STEERED_NONE;
}

int sites_steered(site_id id)
{
    return (int)steered(id) - 1;
}

void sites_set_tier(unsigned index, bool has_tier, enum hy_tier tier)
{
    if (index < PROFILE_MAX_SITES)
        __atomic_store_n(&tiers[index], has_tier ? (uint8_t)(tier + 1) : TIER_NONE,
                         __ATOMIC_RELAXED);
}

uint64_t sites_steered_live(unsigned index)
{
    int64_t bytes = index < PROFILE_MAX_SITES ? __atomic_load_n(&live[index], __ATOMIC_RELAXED) : 0;
    return (uint64_t)HY_MAX(bytes, (int64_t)0);
}

bool sites_tier(site_id id, enum hy_tier *ret)
{
    unsigned by = steered(id);
    unsigned tier =
        by != STEERED_NONE ? __atomic_load_n(&tiers[by - 1], __ATOMIC_RELAXED) : TIER_NONE;
    if (tier == TIER_NONE)
        return false;
    *ret = (enum hy_tier)(tier - 1);
    return true;
}

void sites_add_steered_live(unsigned by, int64_t bytes)
{
    if (by != STEERED_NONE)
        __atomic_fetch_add(&live[by - 1], bytes, __ATOMIC_RELAXED);
}

/* --- names of modules ---------------------------------------------------------------- */

void sites_format_frame(const struct hy_frame *f, char *buf, size_t cap)
{
    char name[64];
    if (!is_loaded(f->build_id, name, sizeof(name)))
        build_id_format(f->build_id, 8, name, sizeof(name));
    snprintf(buf, cap, "%s!0x%llx", name, (unsigned long long)f->offset);
}
