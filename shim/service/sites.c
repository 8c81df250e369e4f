/* SPDX-License-Identifier: BSD-2-Clause
 * From a stack to a site in three steps, each rarer and dearer than the one
 * before: the stack's addresses, hashed, are looked up in `seen`; a new stack is
 * resolved to modules and looked up in `index_of`; a new site gets an entry. */
#include "service/sites.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decide/sizeclass.h"
#include "sys/dl.h"
#include "sys/modules.h"
#include "sys/os.h"
#include "sys/unwind.h"

#define SEEN_BITS  14
#define SEEN_SIZE  (1u << SEEN_BITS)
#define INDEX_SIZE (SITE_MAX * 2)
/* The last entries are kept for sites that a profile steers, so that a program
 * with many others does not push them out. */
#define SITE_RESERVED 256
#define LEAF_SET_SIZE 4096 /* power of two, > 2 * PROFILE_MAX_SITES */
#define LEAF_LOW_BITS 12   /* modules are loaded at page boundaries */
#define LOCK_SPINS    2000
#define NTH_MAX       32             /* blocks of a stack that are told apart */
#define NTH_SITES     (SITE_MAX / 4) /* as long as there are fewer sites than this */
#define TIER_NONE     0u             /* a byte of `tiers`; else the tier + 1 */
#define STEERED_NONE  0u
_Static_assert(LEAF_SET_SIZE > 2 * PROFILE_MAX_SITES, "a probe must end");
_Static_assert(MODULE_ID_BYTES == BUILD_ID_MAX, "one kind of id");

struct site {
    uint64_t id_hash;
    uint16_t n_frames, nth;
    uint32_t steered; /* STEERED_NONE, or the place in the profile + 1 */
    struct hy_frame frame[SITE_FRAMES];
    uint64_t count, bytes;
    int64_t live_count, live_bytes; /* signed: a free can be noted before its allocation */
    uint64_t peak_bytes;            /* of live_bytes */
    uint64_t min_size, max_size;    /* 0: none yet */
    site_id base;                   /* of the nth: the stack's own site, where they are counted */
    int32_t large_blocks;           /* in use, of all blocks of the stack */
};

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

static struct site table[SITE_MAX];   /* entry 0: other */
static uint64_t index_of[INDEX_SIZE]; /* id_hash with the site in its low 16 bits; 0: free */
static uint64_t seen[SEEN_SIZE];      /* hash of raw stack with the site in its low 16 bits */
static uint32_t n_sites;              /* entries in use, without entry 0 */
static uint32_t lock;
static bool ready, fork_locked;
static uintptr_t own_start, own_end;
static struct steering generation[2];
static struct steering *steering; /* NULL: nothing is steered */
/* By place in the profile. The tiers are set as a plan changes, a byte each. */
static uint8_t tiers[PROFILE_MAX_SITES];
static int64_t live[PROFILE_MAX_SITES];

/* --- hashes --------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t frame_hash(uint64_t h, const struct hy_frame *f)
{
    uint64_t w[3] = {0};
    memcpy(w, f->build_id, BUILD_ID_MAX);
    return mix(mix(mix(mix(h, w[0]), w[1]), w[2]), f->offset);
}

static bool same_frame(const struct hy_frame *a, const struct hy_frame *b)
{
    return a->offset == b->offset && memcmp(a->build_id, b->build_id, BUILD_ID_MAX) == 0;
}

/* --- the lock of the slow path --------------------------------------------- */

/* Bounded: its holder may have been preempted, or stopped by a debugger. The
 * caller then goes without a new site, this once. */
static bool try_lock(void)
{
    for (int i = 0; i < LOCK_SPINS; i++) {
        uint32_t none = 0;
        if (__atomic_compare_exchange_n(&lock, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static void unlock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* --- steering --------------------------------------------------------------- */

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
static unsigned steered_by(const struct steering *s, const struct hy_frame *frame, unsigned n,
                           unsigned nth)
{
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
    uint64_t h = frame_hash(0, f) | 1;
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
    uint64_t h = frame_hash(0, &f) | 1;
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

/* Frames are compared as build-id and offset when a stack is first seen, so
 * modules that come later need no further step here. */
void sites_steer(const struct profile_site *sites, unsigned n, const bool *small,
                 unsigned *ret_unmatched)
{
    struct steering *old = steering;
    struct steering *s = old == &generation[0] ? &generation[1] : &generation[0];
    unsigned unmatched = 0;
    memset(s, 0, sizeof(*s));
    n = HY_MIN(n, PROFILE_MAX_SITES);
    for (unsigned i = 0; i < PROFILE_MAX_SITES; i++) {
        unsigned tier = i < n && sites[i].has_tier ? (unsigned)sites[i].tier + 1 : TIER_NONE;
        __atomic_store_n(&tiers[i], (uint8_t)tier, __ATOMIC_RELAXED);
        __atomic_store_n(&live[i], 0, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < n; i++)
        if (add_site(s, &sites[i], i, small != NULL ? small[i] : sites[i].has_tier))
            unmatched += !sites_loaded(&sites[i]);
    __atomic_store_n(&steering, s->n > 0 ? s : NULL, __ATOMIC_RELEASE);
    if (try_lock()) /* a site being entered by the old profile is complete after this */
        unlock();
    uint32_t known = __atomic_load_n(&n_sites, __ATOMIC_ACQUIRE);
    for (uint32_t id = 1; id <= known; id++) {
        uint32_t by = steered_by(s, table[id].frame, table[id].n_frames, table[id].nth);
        __atomic_store_n(&table[id].steered, by, __ATOMIC_RELAXED);
    }
    if (ret_unmatched != NULL)
        *ret_unmatched = unmatched;
}

static unsigned steered(site_id id)
{
    return id < SITE_MAX ? __atomic_load_n(&table[id].steered, __ATOMIC_RELAXED) : STEERED_NONE;
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

/* --- capture ------------------------------------------------------------------ */

int sites_init(char *err, size_t err_cap)
{
    struct module own;
    uintptr_t addr[SITE_FRAMES];
    if (module_find((uintptr_t)&sites_init, &own) != 0) {
        snprintf(err, err_cap, "the loader does not know this library");
        return -ENOENT;
    }
    if (unwind_stack(addr, SITE_FRAMES, 0, 0) == 0) {
        snprintf(err, err_cap, "stacks cannot be walked here (no unwind tables, or no x86-64)");
        return -ENOTSUP;
    }
    own_start = own.start;
    own_end = own.end;
    __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
    return 0;
}

bool sites_ready(void)
{
    return __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
}

/* Site of a hash, 0 if there is none; *ret_at: where it would be entered. */
static site_id find_index(uint64_t id_hash, unsigned *ret_at)
{
    unsigned i = (unsigned)(id_hash >> 40) & (INDEX_SIZE - 1);
    uint64_t e;
    while ((e = __atomic_load_n(&index_of[i], __ATOMIC_ACQUIRE)) != 0) {
        if (((e ^ id_hash) & ~0xffffull) == 0)
            return (site_id)e;
        i = (i + 1) & (INDEX_SIZE - 1);
    }
    *ret_at = i;
    return 0;
}

/* False when it could not be tried now; else *ret (0: the table is full). */
static bool enter_site(uint64_t id_hash, const struct hy_frame *frame, unsigned n, site_id base,
                       unsigned nth, site_id *ret)
{
    unsigned at = 0;
    if (!try_lock())
        return false;
    site_id id = find_index(id_hash, &at);
    if (id == 0) {
        unsigned by = steered_by(__atomic_load_n(&steering, __ATOMIC_ACQUIRE), frame, n, nth);
        unsigned limit = by != STEERED_NONE ? SITE_MAX - 1 : SITE_MAX - 1 - SITE_RESERVED;
        if (n_sites < limit) {
            id = (site_id)(n_sites + 1);
            table[id].id_hash = id_hash;
            table[id].n_frames = (uint16_t)n;
            table[id].nth = (uint16_t)nth;
            table[id].base = base;
            table[id].steered = by;
            memcpy(table[id].frame, frame, n * sizeof(frame[0]));
            __atomic_store_n(&n_sites, id, __ATOMIC_RELEASE);
            __atomic_store_n(&index_of[at], (id_hash & ~0xffffull) | id, __ATOMIC_RELEASE);
        }
    }
    unlock();
    *ret = id;
    return true;
}

/* Modules of the addresses; number of frames that could be named. */
static unsigned resolve(const uintptr_t *addr, unsigned n, struct hy_frame *frame)
{
    struct module m = {0};
    for (unsigned i = 0; i < n; i++) {
        uintptr_t pc = addr[i] - 1; /* a call can be its module's last instruction */
        if ((pc < m.start || pc >= m.end) && module_find(pc, &m) != 0)
            return i;
        memset(&frame[i], 0, sizeof(frame[i])); /* padding too: frames are copied and compared */
        memcpy(frame[i].build_id, m.id, BUILD_ID_MAX);
        frame[i].offset = addr[i] - m.bias;
    }
    return n;
}

static HY_COLD site_id new_stack(const uintptr_t *addr, unsigned n, uint64_t raw)
{
    struct hy_frame frame[SITE_FRAMES];
    uint64_t id_hash = 0;
    unsigned at;
    n = resolve(addr, n, frame);
    if (n == 0)
        return 0;
    for (unsigned i = 0; i < n; i++)
        id_hash = frame_hash(id_hash, &frame[i]);
    if (id_hash >> 16 == 0)
        id_hash |= 1 << 16; /* all zero marks a free place */
    site_id id = find_index(id_hash, &at);
    if (id == 0 && !enter_site(id_hash, frame, n, 0, 0, &id))
        return 0;
    __atomic_store_n(&seen[raw & (SEEN_SIZE - 1)], (raw & ~0xffffull) | id, __ATOMIC_RELEASE);
    return id;
}

site_id sites_capture(void)
{
    uintptr_t addr[SITE_FRAMES];
    if (HY_UNLIKELY(!sites_ready()))
        return 0;
    unsigned n = unwind_stack(addr, SITE_FRAMES, own_start, own_end);
    if (HY_UNLIKELY(n == 0))
        return 0;
    /* The epoch: the same addresses may mean another module now. */
    uint64_t raw = modules_epoch();
    for (unsigned i = 0; i < n; i++)
        raw = mix(raw, addr[i]);
    if (raw >> 16 == 0)
        raw |= 1 << 16;
    uint64_t e = __atomic_load_n(&seen[raw & (SEEN_SIZE - 1)], __ATOMIC_ACQUIRE);
    if (HY_LIKELY(e != 0 && ((e ^ raw) & ~0xffffull) == 0))
        return (site_id)e;
    return new_stack(addr, n, raw);
}

site_id sites_nth(site_id id, uint64_t bytes)
{
    struct site *base = &table[id < SITE_MAX ? id : 0];
    int32_t nth = __atomic_load_n(&base->large_blocks, __ATOMIC_RELAXED);
    site_id found;
    unsigned at;
    if (id == 0 || bytes <= SIZECLASS_MAX || nth <= 0 || nth >= NTH_MAX)
        return id;
    uint64_t id_hash = mix(base->id_hash, (uint64_t)nth);
    if (id_hash >> 16 == 0)
        id_hash |= 1 << 16;
    found = find_index(id_hash, &at);
    if (found != 0)
        return found;
    if (__atomic_load_n(&n_sites, __ATOMIC_RELAXED) >= NTH_SITES ||
        !enter_site(id_hash, base->frame, base->n_frames, id, (unsigned)nth, &found) || found == 0)
        return id;
    return found;
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

/* --- accounts ------------------------------------------------------------------- */

/* Rarely written once a program runs. An update that meets another may be lost, once. */
static void note_most(uint64_t *field, uint64_t value)
{
    if (value > __atomic_load_n(field, __ATOMIC_RELAXED))
        __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static void note_least(uint64_t *field, uint64_t value)
{
    uint64_t now = __atomic_load_n(field, __ATOMIC_RELAXED);
    if (value > 0 && (now == 0 || value < now))
        __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* Blocks that were not sampled: those count by which the nth is told. */
static void note_large(const struct site *s, site_id id, uint64_t bytes, uint64_t weight, int by)
{
    if (bytes > SIZECLASS_MAX && weight == 1)
        __atomic_fetch_add(&table[s->base ? s->base : id].large_blocks, by, __ATOMIC_RELAXED);
}

void sites_note_alloc(site_id id, uint64_t bytes, uint64_t weight)
{
    struct site *s = &table[id < SITE_MAX ? id : 0];
    note_large(s, id < SITE_MAX ? id : 0, bytes, weight, 1);
    __atomic_fetch_add(&s->count, weight, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->bytes, bytes * weight, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->live_count, (int64_t)weight, __ATOMIC_RELAXED);
    int64_t now = __atomic_add_fetch(&s->live_bytes, (int64_t)(bytes * weight), __ATOMIC_RELAXED);
    note_most(&s->peak_bytes, (uint64_t)HY_MAX(now, (int64_t)0));
    note_most(&s->max_size, bytes);
    note_least(&s->min_size, bytes);
    if (steered(id) != STEERED_NONE)
        __atomic_fetch_add(&live[steered(id) - 1], (int64_t)(bytes * weight), __ATOMIC_RELAXED);
}

void sites_note_free(site_id id, uint64_t bytes, uint64_t weight)
{
    struct site *s = &table[id < SITE_MAX ? id : 0];
    note_large(s, id < SITE_MAX ? id : 0, bytes, weight, -1);
    __atomic_fetch_sub(&s->live_count, (int64_t)weight, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&s->live_bytes, (int64_t)(bytes * weight), __ATOMIC_RELAXED);
    if (steered(id) != STEERED_NONE)
        __atomic_fetch_sub(&live[steered(id) - 1], (int64_t)(bytes * weight), __ATOMIC_RELAXED);
}

unsigned sites_count(void)
{
    return __atomic_load_n(&n_sites, __ATOMIC_ACQUIRE) + 1;
}

bool sites_get(site_id id, struct site_info *ret)
{
    struct site *s = &table[id < SITE_MAX ? id : 0];
    if (id >= sites_count())
        return false;
    memset(ret, 0, sizeof(*ret));
    ret->id_hash = s->id_hash;
    ret->n_frames = s->n_frames;
    ret->nth = s->nth;
    memcpy(ret->frames, s->frame, sizeof(ret->frames));
    ret->count = __atomic_load_n(&s->count, __ATOMIC_RELAXED);
    ret->bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
    int64_t live_count = __atomic_load_n(&s->live_count, __ATOMIC_RELAXED);
    int64_t live_bytes = __atomic_load_n(&s->live_bytes, __ATOMIC_RELAXED);
    ret->live_count = (uint64_t)HY_MAX(live_count, (int64_t)0);
    ret->live_bytes = (uint64_t)HY_MAX(live_bytes, (int64_t)0);
    ret->peak_bytes = __atomic_load_n(&s->peak_bytes, __ATOMIC_RELAXED);
    ret->min_size = __atomic_load_n(&s->min_size, __ATOMIC_RELAXED);
    ret->max_size = __atomic_load_n(&s->max_size, __ATOMIC_RELAXED);
    ret->has_tier = sites_tier(id, &ret->tier);
    return true;
}

void sites_format_frame(const struct hy_frame *f, char *buf, size_t cap)
{
    char name[64];
    if (!is_loaded(f->build_id, name, sizeof(name)))
        build_id_format(f->build_id, 8, name, sizeof(name));
    snprintf(buf, cap, "%s!0x%llx", name, (unsigned long long)f->offset);
}

static void first_object(const struct dl_object *o, void *ctx)
{
    uintptr_t *start = ctx;
    if (*start == 0) /* the main program comes first */
        *start = o->start;
}

unsigned sites_exe_build_id(uint8_t id[BUILD_ID_MAX])
{
    uintptr_t start = 0;
    struct module m;
    dl_each_object(first_object, &start);
    if (start == 0 || module_find(start, &m) != 0 || m.build_id_len == 0)
        return 0;
    memcpy(id, m.id, BUILD_ID_MAX);
    return m.build_id_len;
}

/* --- fork -------------------------------------------------------------------------- */

/* Unlike malloc, fork may wait: else a child could find the lock taken for ever. */
void sites_prefork(void)
{
    fork_locked = try_lock();
    for (int i = 0; i < 1000 && !fork_locked; i++) {
        os_sleep_ns(1000000);
        fork_locked = try_lock();
    }
    modules_prefork();
}

void sites_postfork(void)
{
    modules_postfork();
    if (fork_locked)
        unlock();
    fork_locked = false;
}
