/* SPDX-License-Identifier: BSD-2-Clause
 * Large private anonymous mappings that the program makes itself (arenas of a
 * JVM, of Python, of an allocator linked into it): given a tier by memory policy
 * on NUMA nodes, by name on the emulated tier. What the program binds itself
 * later (mbind) overrides ours: we never ask twice. */
#include <errno.h>
#include <sys/mman.h>

#include "base/guard.h"
#include "core/control.h"
#include "core/pause.h"
#include "core/state.h"
#include "heap/heap.h"
#include "heap/hot.h"
#include "heap/spare.h"
#include "heap/supply.h"
#include "migrator.h"
#include "place/maps.h"
#include "place/planned.h"
#include "place/policy.h"
#include "place/sites.h"
#include "process/process.h"
#include "record/record.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "sys/filter.h"
#include "sys/lock.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/pages/track.h"

struct want {
    enum hy_tier tier;
    bool has_tier; /* by the profile or the plan */
};

static bool steerable(size_t len, int flags)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    int not_ours = MAP_STACK | MAP_GROWSDOWN | MAP_HUGETLB;
    return (flags & kind) == kind && !(flags & (MAP_SHARED | not_ours)) &&
           len >= hy_config.set.mmap_min &&
           (hy_machine.backend == HY_PM_NODE || hy_machine.backend == HY_PM_EMULATED ||
            (runtime_state() == HY_SERVING && hy_config.set.pm.kind != HY_PM_FILE));
}

/* --- call sites ------------------------------------------------------------------ */

static void site_resized(uint16_t site, uint64_t from, uint64_t to, uint64_t more)
{
    sites_note_resized(site, from, to, more);
    planned_free(site);
}

void mmaps_init(void)
{
    static const struct maps_host host = {policy_account, site_resized, sites_note_unmapped};
    maps_init(&host);
}

/* Whose mapping this is, and where the profile wants it. A reservation has no bytes yet. */
static site_id look_up_site(size_t len, size_t bytes, struct want *w)
{
    site_id id;
    if (!sites_ready())
        return 0;
    id = sites_nth(sites_capture(), len);
    if (id)
        sites_note_mapping(id, bytes);
    (void)planned_alloc(id, bytes, 1, &w->tier);
    w->has_tier = sites_tier(id, &w->tier);
    return id;
}

/* --- placing ---------------------------------------------------------------------- */

/* Tier for a new mapping; what was charged for it goes to ret_charged. A mapping
 * without access is a reservation: it goes where it would fit as a whole, or where the
 * profile says, and is charged as it fills (maps_measure). One that fits nowhere, a sparse
 * one, goes to PM, the larger memory, and is charged likewise. */
static enum hy_tier choose(size_t len, int prot, struct want w, size_t *ret_charged)
{
    enum hy_tier order[] = {w.tier, w.tier == HY_DRAM ? HY_PM : HY_DRAM};

    *ret_charged = 0;
    if (prot == PROT_NONE && w.has_tier)
        return w.tier;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(order); i++) {
        if (prot == PROT_NONE && policy_room(order[i]) < len)
            continue;
        if (prot != PROT_NONE && !policy_charge(order[i], len, false) &&
            !(order[i] == HY_DRAM && control_await(HY_DRAM, len) &&
              policy_charge(HY_DRAM, len, false)))
            continue;
        *ret_charged = prot == PROT_NONE ? 0 : len;
        return order[i];
    }
    return HY_PM;
}

static void steer_mapping(void *p, size_t len, int prot)
{
    static bool has_tier;
    size_t charged, bytes;
    struct want w = {.tier = heap_favour()};
    const struct runtime_machine *m = &hy_machine;

    len = hy_align_up(len, HY_PAGE);
    if (runtime_state() == HY_SERVING) { /* counted, and DRAM as all is */
        bytes = prot == PROT_NONE ? 0 : len;
        (void)policy_charge(HY_DRAM, bytes, true);
        maps_add(p, len, HY_DRAM, 0, bytes);
        return;
    }
    if (m->backend == HY_PM_NODE && os_has_foreign_mempolicy()) {
        if (!__atomic_exchange_n(&has_tier, true, __ATOMIC_RELAXED))
            log_info("a thread has a NUMA policy of its own: its mappings are left alone");
        return;
    }
    bytes = prot == PROT_NONE ? 0 : len;
    site_id site = look_up_site(len, bytes, &w);
    enum hy_tier t = choose(len, prot, w, &charged);
    if (site && charged != bytes)
        site_resized(site, bytes, charged, 0);
    if (m->backend == HY_PM_NODE) {
        uint64_t mask = t == HY_PM ? m->pm_mask : m->pin_dram ? m->dram_mask : 0;
        if (mask)
            (void)os_prefer_nodes(p, len, mask);
    }
    emulator_set_tier(p, len, t);
    maps_add(p, len, t, site, charged);
}

static void drop_mapping_now(void *base, size_t len)
{
    record_settle();
    maps_remove(base, len);
    migrate_unmapped(base, len);
}

/* A handler of a signal came while this thread was at work in the books, or in malloc: its own
 * mappings are left alone, and what it unmaps is told when the thread comes here again. */
#define PUT_OFF 8
static __thread struct {
    void *base;
    size_t len;
} put_off[PUT_OFF] __attribute__((tls_model("initial-exec")));
static __thread unsigned n_put_off __attribute__((tls_model("initial-exec")));
static void drop_put_off(void)
{
    while (n_put_off) {
        unsigned n = n_put_off - 1;
        void *base = put_off[n].base;
        size_t len = put_off[n].len;
        n_put_off = n;
        drop_mapping_now(base, len);
    }
}

static void drop_mapping(void *base, size_t len)
{
    if (runtime_is_sandboxed())
        return;
    if (hy_locks_held()) {
        if (n_put_off < PUT_OFF) {
            put_off[n_put_off].base = base;
            put_off[n_put_off].len = len;
            n_put_off++;
        }
        return;
    }
    hy_locks_enter();
    drop_mapping_now(base, len);
    drop_put_off();
    hy_locks_leave();
}

static bool active(void)
{
    enum hy_state now = runtime_state();
    return (now == HY_STEERING || now == HY_SERVING) && !hy_guarded();
}

/* memkind's, while it works for fork or for exit. */
static HY_COLD void *refused(const void *addr, size_t len, int flags)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    void *p = !addr && errno == ENOMEM && (flags & kind) == kind ? spare_take(len) : NULL;
    return p ? p : MAP_FAILED;
}

void *runtime_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    bool fixed = (flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE);
    if (fixed)
        alter_pages(addr, len);
    void *p = next_map()->mmap(addr, len, prot, flags, fd, off);
    if (p == MAP_FAILED)
        return refused(addr, len, flags);
    int saved = errno;
    if (active()) {
        if (fixed)
            drop_mapping(p, len);
        if (steerable(len, flags) && !hy_locks_held()) {
            hy_locks_enter();
            steer_mapping(p, len, prot);
            drop_put_off();
            hy_locks_leave();
        }
    }
    errno = saved;
    return p;
}

/* A range has one userfaultfd: where ours watches the program's own has precedence. */
int runtime_ioctl(int fd, unsigned long request, void *arg)
{
    void *base;
    size_t bytes;
    bool wants = HY_UNLIKELY(os_track_wants(request, arg, &base, &bytes));
    if (wants) /* of blocks, too: on ordinary memory, and not for whoever has the pages next */
        alter_pages(base, bytes);
    int r = next_map()->ioctl(fd, request, arg);
    if (HY_LIKELY(!wants || r != -1 || errno != EBUSY) || !active() || hy_locks_held())
        return r;
    hy_locks_enter();
    if (!control_ask(migrate_unmapped, base, bytes))
        migrate_unmapped(base, bytes);
    hy_locks_leave();
    return next_map()->ioctl(fd, request, arg);
}

/* What lies ready for it is not the program's. */
void runtime_all_locked(int flags)
{
    int saved = errno;
    if (!(flags & MCL_CURRENT) || (flags & MCL_ONFAULT) || !active() || hy_locks_held())
        return;
    heap_all_resident(os_locks_future());
    if (os_calls_begin()) {
        (void)heap_under_lock(HY_PM, (char *)hy_heap.base, hy_heap.len, false, supply_unlock_stock);
        os_calls_end();
    }
    errno = saved;
}

/* Blocks on files become what the kernel does this for. After MADV_FREE nothing need be there. */
void runtime_advised(void *addr, size_t len, int advice)
{
    if (alter_is_by(advice))
        alter_pages(addr, len);
    if (!(advice == MADV_DONTNEED || advice == MADV_FREE) || !supply_has_files() || !active() ||
        hy_locks_held() || ((uintptr_t)addr & (HY_PAGE - 1)) || len == 0 || len > PTRDIFF_MAX)
        return;
    int saved = errno;
    (void)heap_under_lock(HY_PM, addr, hy_align_up(len, HY_PAGE), false, supply_leave_file);
    errno = saved;
}

/* Told before it happens: afterwards another thread may own the address. */
void runtime_unmaps(void *addr, size_t len)
{
    if (((uintptr_t)addr & (HY_PAGE - 1)) || !len)
        return;
    alter_pages(addr, len);
    if (maps_any() && !hy_guarded())
        drop_mapping(addr, len);
}

int runtime_munmap(void *addr, size_t len)
{
    runtime_unmaps(addr, len);
    return next_map()->munmap(addr, len);
}

void *runtime_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
    enum hy_tier t;
    site_id site;
    bool tracked = maps_any() && !hy_guarded() && !hy_locks_held() &&
                   maps_find(old, HY_MAX(old_len, (size_t)1), &t, &site);
    bool apart = control_apart();
    void *p;
    if (alter_by_mremap(old, old_len, new_len, flags, new_addr, &p))
        return p;
    if (tracked)
        p = remap_watched(old, old_len, new_len, flags, new_addr);
    else
        p = next_map()->mremap(old, old_len, new_len, flags, new_addr);
    if (p == MAP_FAILED)
        return p;
    int saved = errno;
    if (tracked && apart)
        migrate_unmapped(old, HY_MAX(old_len, (size_t)1));
    if ((flags & MREMAP_FIXED) && !hy_guarded())
        drop_mapping(p, new_len);
    if (tracked) {
        hy_locks_enter();
        if (old_len)
            maps_remove(old, old_len);
        size_t len = hy_align_up(new_len, HY_PAGE);
        if (site)
            sites_note_mapping(site, len);
        (void)policy_charge(t, len, true);
        maps_add(p, len, t, site, len);
        hy_locks_leave();
    }
    errno = saved;
    return p;
}
