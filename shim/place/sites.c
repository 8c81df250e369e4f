/* SPDX-License-Identifier: BSD-2-Clause
 * From a stack to a site in three steps, each rarer and dearer than the one
 * before: the stack's addresses, hashed, are looked up in `seen`; a new stack is
 * resolved to modules and looked up in `index_of`; a new site gets an entry. */
#include "place/sites_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heap/rules/sizeclass.h"
#include "sys/os.h"
#include "sys/walk/modules.h"
#include "sys/walk/unwind.h"

#define SEEN_BITS  14
#define SEEN_SIZE  (1u << SEEN_BITS)
#define INDEX_SIZE (SITE_MAX * 2)
/* The last entries are kept for sites that a profile steers, so that a program
 * with many others does not push them out. */
#define SITE_RESERVED 256
#define LOCK_SPINS    2000
#define NTH_MAX       32             /* blocks of a stack that are told apart */
#define NTH_SITES     (SITE_MAX / 4) /* as long as there are fewer sites than this */
_Static_assert(MODULE_ID_BYTES == BUILD_ID_MAX, "one kind of id");

/* Most processes know no sites: the tables are mapped by who begins with them. */
struct tables {
    struct site site[SITE_MAX];
    uint64_t index_of[INDEX_SIZE]; /* id_hash with the site in its low 16 bits; 0: free */
    uint64_t seen[SEEN_SIZE];      /* hash of raw stack with the site in its low 16 bits */
};
static struct tables *tables;
static struct site other;
struct site *hy_sites = &other;
static uint32_t n_sites; /* entries in use, without entry 0 */
static uint32_t lock;
static bool ready;
static __thread bool fork_locked __attribute__((tls_model("initial-exec"))); /* by this fork */
static uintptr_t own_start, own_end;

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

void sites_settle(void)
{
    if (try_lock())
        unlock();
}

static bool map_tables(void)
{
    void *m;
    if (tables)
        return true;
    if (os_map_table(sizeof(struct tables), &m))
        return false;
    tables = m;
    tables->site[0] = other;
    __atomic_store_n(&hy_sites, tables->site, __ATOMIC_RELEASE);
    return true;
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
    if (unwind_open(err, err_cap))
        return -ENOTSUP;
    if (unwind_stack(addr, SITE_FRAMES, 0, 0) == 0) {
        snprintf(err, err_cap, "stacks cannot be walked here (no unwind tables)");
        return -ENOTSUP;
    }
    if (!map_tables()) {
        snprintf(err, err_cap, "no memory for a table of them");
        return -ENOMEM;
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
    while ((e = __atomic_load_n(&tables->index_of[i], __ATOMIC_ACQUIRE)) != 0) {
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
        unsigned by = sites_steered_by(frame, n, nth);
        unsigned limit = by != STEERED_NONE ? SITE_MAX - 1 : SITE_MAX - 1 - SITE_RESERVED;
        if (n_sites < limit) {
            id = (site_id)(n_sites + 1);
            struct site *s = &tables->site[id];
            s->id_hash = id_hash;
            s->n_frames = (uint16_t)n;
            s->nth = (uint16_t)nth;
            s->base = base;
            s->steered = by;
            memcpy(s->frame, frame, n * sizeof(frame[0]));
            __atomic_store_n(&n_sites, id, __ATOMIC_RELEASE);
            __atomic_store_n(&tables->index_of[at], (id_hash & ~0xffffull) | id, __ATOMIC_RELEASE);
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
        id_hash = sites_frame_hash(id_hash, &frame[i]);
    if (id_hash >> 16 == 0)
        id_hash |= 1 << 16; /* all zero marks a free place */
    site_id id = find_index(id_hash, &at);
    if (id == 0 && !enter_site(id_hash, frame, n, 0, 0, &id))
        return 0;
    __atomic_store_n(&tables->seen[raw & (SEEN_SIZE - 1)], (raw & ~0xffffull) | id,
                     __ATOMIC_RELEASE);
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
        raw = sites_mix(raw, addr[i]);
    if (raw >> 16 == 0)
        raw |= 1 << 16;
    uint64_t e = __atomic_load_n(&tables->seen[raw & (SEEN_SIZE - 1)], __ATOMIC_ACQUIRE);
    if (HY_LIKELY(e != 0 && ((e ^ raw) & ~0xffffull) == 0))
        return (site_id)e;
    return new_stack(addr, n, raw);
}

site_id sites_nth(site_id id, uint64_t bytes)
{
    struct site *base = sites_entry(id);
    int32_t nth = __atomic_load_n(&base->large_blocks, __ATOMIC_RELAXED);
    site_id found;
    unsigned at;
    if (id == 0 || bytes <= SIZECLASS_MAX || nth <= 0 || nth >= NTH_MAX)
        return id;
    uint64_t id_hash = sites_mix(base->id_hash, (uint64_t)nth);
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

unsigned sites_count(void)
{
    return __atomic_load_n(&n_sites, __ATOMIC_ACQUIRE) + 1;
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
    unwind_prefork();
}

void sites_postfork(void)
{
    unwind_postfork();
    modules_postfork();
    if (fork_locked)
        unlock();
    fork_locked = false;
}
