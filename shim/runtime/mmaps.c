/* SPDX-License-Identifier: BSD-2-Clause
 * Large private anonymous mappings that the program makes itself (arenas of a
 * JVM, of Python, of an allocator linked into it): given a tier by memory policy
 * on NUMA nodes, by name on the emulated tier. What the program binds itself
 * later (mbind) overrides ours: we never ask twice. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "base/guard.h"
#include "runtime/internal.h"
#include "runtime/migrate.h"
#include "service/heap/heap.h"
#include "service/maps.h"
#include "sys/emulator.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/track.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static bool steerable(size_t len, int flags)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    int not_ours = MAP_STACK | MAP_GROWSDOWN | MAP_HUGETLB;
    return (flags & kind) == kind && !(flags & (MAP_SHARED | not_ours)) &&
           len >= hy_config.set.mmap_min &&
           (hy_machine.backend == HY_PM_NODE || hy_machine.backend == HY_PM_EMULATED);
}

/* Tier for a new mapping; what was charged for it goes to ret_charged. A mapping
 * without access is a reservation: it goes where it would fit as a whole and is
 * charged as it fills (maps_measure). One that fits nowhere, a sparse one, goes
 * to PM, the larger memory, and is charged likewise. */
static enum hy_tier choose(size_t len, int prot, size_t *ret_charged)
{
    enum hy_tier first = heap_favour();
    enum hy_tier order[] = {first, first == HY_DRAM ? HY_PM : HY_DRAM};

    *ret_charged = 0;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(order); i++) {
        if (!policy_charge(order[i], len, false))
            continue;
        if (prot == PROT_NONE)
            policy_discharge(order[i], len);
        else
            *ret_charged = len;
        return order[i];
    }
    return HY_PM;
}

static void place(void *p, size_t len, int prot)
{
    static bool told;
    size_t charged;
    const struct runtime_machine *m = &hy_machine;

    len = hy_align_up(len, HY_PAGE);
    if (m->backend == HY_PM_NODE && os_has_foreign_mempolicy()) {
        if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
            log_info("a thread has a NUMA policy of its own: its mappings are left alone");
        return;
    }
    enum hy_tier t = choose(len, prot, &charged);
    if (m->backend == HY_PM_NODE) {
        uint64_t mask = t == HY_PM ? m->pm_mask : m->pin_dram ? m->dram_mask : 0;
        if (mask)
            (void)os_prefer_nodes(p, len, mask);
    }
    emulator_set_tier(p, len, t);
    maps_add(p, len, t, charged);
}

static void forget(void *base, size_t len)
{
    maps_remove(base, len);
    migrate_unmapped(base, len);
}

static bool active(void)
{
    return runtime_state() == HY_STEERING && !hy_guarded();
}

void *runtime_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    void *p = next_map()->mmap(addr, len, prot, flags, fd, off);
    if (p == MAP_FAILED)
        return p;
    int saved = errno;
    if (active()) {
        if ((flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE))
            forget(p, len);
        if (steerable(len, flags))
            place(p, len, prot);
    } else if (flags & MAP_ANONYMOUS) {
        watch_note(len);
    }
    errno = saved;
    return p;
}

/* A range has one userfaultfd: where ours watches the program's own has precedence. */
int runtime_ioctl(int fd, unsigned long request, void *arg)
{
    void *base;
    size_t bytes;
    int r = next_map()->ioctl(fd, request, arg);
    if (HY_LIKELY(r != -1 || errno != EBUSY || !os_track_wants(request, arg, &base, &bytes)) ||
        !active())
        return r;
    migrate_unmapped(base, bytes);
    return next_map()->ioctl(fd, request, arg);
}

int runtime_munmap(void *addr, size_t len)
{
    /* Told before it happens: afterwards another thread may own the address. */
    if (maps_any() && !hy_guarded() && ((uintptr_t)addr & (HY_PAGE - 1)) == 0 && len)
        forget(addr, len);
    return next_map()->munmap(addr, len);
}

void *runtime_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
    enum hy_tier t;
    bool tracked = maps_any() && !hy_guarded() && maps_find(old, &t);
    if (tracked) /* a part of it must not be watched when it moves */
        migrate_unmapped(old, HY_MAX(old_len, (size_t)1));
    void *p = next_map()->mremap(old, old_len, new_len, flags, new_addr);
    if (p == MAP_FAILED)
        return p;
    int saved = errno;
    if ((flags & MREMAP_FIXED) && !hy_guarded())
        forget(p, new_len);
    if (tracked) {
        if (old_len)
            maps_remove(old, old_len);
        size_t len = hy_align_up(new_len, HY_PAGE);
        (void)policy_charge(t, len, true);
        maps_add(p, len, t, len);
    }
    errno = saved;
    return p;
}
