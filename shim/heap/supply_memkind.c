/* SPDX-License-Identifier: BSD-2-Clause
 * The stock of PM: segments of the tier's range, each one fixed kind of memkind that gives all it
 * has as one block. Only one thread at a time fills it, with no lock of the heaps held, so
 * memkind's locks and the heaps' never nest (docs/DESIGN.md, "memkind as supplier"). */
#include <errno.h>
#include <memkind.h>
#include <string.h>

#include "base/guard.h"
#include "heap/spare.h"
#include "heap/supply_internal.h"
#include "sys/dl.h"
#include "sys/emulator.h"
#include "sys/lock.h"
#include "sys/next.h"

#define SEGMENT_MIN (32 * HY_MIB)
/* The arena of a kind (env_hook.c) takes 2 MiB of the range for itself. */
#define ARENA_BYTES     (2 * HY_MIB)
#define RESERVE_SHARE   4 /* of what is open, kept ready */
#define CLOSE_WAITS     20000
#define CLOSE_WAIT_NS   100000ull
#define ROOM_FOR_OTHERS (64 * HY_MIB)
#define MEMKIND_RECORDS (16 * HY_MIB)
/* Its calls of malloc can make glibc map 128 MiB first, for an arena of the thread. */
#define MEMKIND_ROOM (128 * HY_MIB + MEMKIND_RECORDS)

static struct {
    int (*create_fixed)(void *, size_t, memkind_t *);
    int (*posix_memalign)(memkind_t, void **, size_t, size_t);
    void (*free)(memkind_t, void *);
} mk;
static bool loaded, closed;
static bool strict_overcommit;
static struct hy_lock gate; /* held while memkind is inside; fork takes it before memkind's own */
static uint32_t inside;     /* a thread may be in memkind */

/* memkind's destructor pulls away what a fill is using. exit() calls first what was registered
 * last, and the libc registers what runs the destructors only when the libraries' constructors are
 * done: what is registered in one of those comes too late, in the children as well. So it is
 * registered again before each segment, of which there are few, and in a child. `said`: in vain so
 * far. */
static bool said;

/* What was taken stays valid, as memkind never unmaps a fixed range. */
static void before_memkind_ends(void *unused)
{
    (void)unused;
    __atomic_store_n(&closed, true, __ATOMIC_SEQ_CST);
    for (int i = 0; i < CLOSE_WAITS && __atomic_load_n(&inside, __ATOMIC_SEQ_CST) != 0; i++)
        os_sleep_ns(CLOSE_WAIT_NS);
    spare_serves(true);
}

static void wait_at_exit(void)
{
    if (!said)
        said = next_at_exit(before_memkind_ends) == 0;
}

int supply_load(char *err, size_t err_cap)
{
    static const char lacks[] = "libmemkind lacks memkind_create_fixed (1.13 or newer is needed)";
    if (loaded)
        return 0;
    void *h = dl_open_private("libmemkind.so.0", err, err_cap);
    if (!h)
        return -ENOENT;
    strict_overcommit = os_overcommit_is_strict();
    mk.create_fixed = (int (*)(void *, size_t, memkind_t *))dl_symbol(h, "memkind_create_fixed");
    mk.posix_memalign =
        (int (*)(memkind_t, void **, size_t, size_t))dl_symbol(h, "memkind_posix_memalign");
    mk.free = (void (*)(memkind_t, void *))dl_symbol(h, "memkind_free");
    if (mk.create_fixed && mk.posix_memalign && mk.free) {
        emulator_ignore_code_of((const void *)(uintptr_t)mk.create_fixed);
        if (!spare_hold())
            return -ENOMEM; /* no kind has been made yet, so there is none to destroy */
        wait_at_exit();
        __atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
        return 0;
    }
    if (err_cap) {
        size_t n = HY_MIN(sizeof(lacks) - 1, err_cap - 1);
        memcpy(err, lacks, n);
        err[n] = '\0';
    }
    return -ENOSYS;
}

bool supply_loaded(void)
{
    return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
}

/* What is taken is never unmapped. Under RLIMIT_AS and RLIMIT_DATA a part of the allowance stays
 * for what gives it back: thread stacks, libraries, the next allocator. So does a part of
 * the memory where the kernel promises no more than there is. */
static bool leaves_room(const struct tier_supply *s, size_t bytes)
{
    if (strict_overcommit ? !os_could_map(bytes + ROOM_FOR_OTHERS, true)
                          : !supply_is_promised(s, bytes))
        return false;
    return os_limits_leave(bytes + HY_MAX(os_address_limit() / 4, MEMKIND_ROOM),
                           bytes + HY_MAX(os_data_limit() / 4, MEMKIND_RECORDS));
}

/* memkind makes records for each thread and arena that it meets, and crashes where there is no room
 * for them. */
static bool memkind_has_room(void)
{
    return (!strict_overcommit || os_could_map(MEMKIND_RECORDS, true)) &&
           os_limits_leave(MEMKIND_ROOM, MEMKIND_RECORDS);
}

/* jemalloc has four sizes to a doubling: the largest within `bytes`. */
static size_t size_within(size_t bytes)
{
    size_t unit = (size_t)1 << (63 - __builtin_clzl(bytes));
    unit = HY_MAX(unit / 4, SUPPLY_UNIT);
    return bytes & ~(unit - 1);
}

/* All that a kind has, in one block. */
static char *whole_of(memkind_t kind, char *base, size_t avail, size_t least, size_t *ret_bytes)
{
    for (size_t n = size_within(avail); n >= least && n > 0; n = size_within(n - 1)) {
        void *p = NULL;
        if (mk.posix_memalign(kind, &p, SUPPLY_UNIT, n) || !p)
            continue;
        /* In a thread whose jemalloc state is gone, memkind serves any kind from
         * its default arena: never trust the kind, check the address. */
        if ((uintptr_t)p - (uintptr_t)base < avail && n <= avail - (size_t)((char *)p - base)) {
            *ret_bytes = n;
            return p;
        }
        mk.free(NULL, p);
        return NULL;
    }
    return NULL;
}

/* Segments double, so that few kinds are needed (memkind's arenas are limited). */
static int open_segment(struct tier_supply *s, size_t bytes)
{
    size_t least = hy_align_up(bytes + ARENA_BYTES + bytes / 4 + 4 * HY_MIB, 2 * HY_MIB), got = 0;
    size_t want = HY_MAX((size_t)SEGMENT_MIN, s->opened);
    want = HY_MIN(HY_MAX(want, least), s->bytes - s->opened);
    /* All of it would be in memory at once, or missing elsewhere: until addresses run out
     * (supply_release_stock). Each segment has records of its own that stay. */
    if (os_locks_future())
        want = HY_MIN(want, least);
    else if (os_is_limited())
        want = HY_MIN(want, HY_MAX(least, (size_t)SEGMENT_MIN));
    if (want < least || s->n_pieces == SUPPLY_PIECES || !memkind_has_room())
        return -ENOMEM;

    char *base = s->base + s->opened;
    if (!leaves_room(s, want) && !leaves_room(s, want = least))
        return -ENOMEM;
    if (os_commit(base, want) && os_commit(base, want = least))
        return -ENOMEM;
    if (s->backing.nodes)
        (void)os_prefer_nodes(base, want, s->backing.nodes);
    emulator_set_tier(base, want, HY_PM);
    s->opened += want; /* also when the kind fails: its pages may be touched */
    memkind_t kind = NULL;
    if (mk.create_fixed(base, want, &kind))
        return -ENOMEM;
    char *p = whole_of(kind, base, want, bytes, &got);
    if (!p)
        return -ENOMEM;
    said = false;
    s->piece[s->n_pieces] = (struct piece){.at = p, .end = p + got};
    __atomic_store_n(&s->n_pieces, s->n_pieces + 1, __ATOMIC_RELEASE);
    return 0;
}

static size_t left_in(const struct piece *p)
{
    return (size_t)(p->end - __atomic_load_n(&p->at, __ATOMIC_RELAXED));
}

static size_t most_left(const struct tier_supply *s)
{
    size_t most = supply_own_left(s);
    unsigned n = __atomic_load_n(&s->n_pieces, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++)
        most = HY_MAX(most, left_in(&s->piece[i]));
    return most;
}

bool supply_is_short(size_t bytes)
{
    return most_left(&hy_supply[HY_PM]) < bytes;
}

bool supply_runs_low(void)
{
    const struct tier_supply *s = &hy_supply[HY_PM];
    return s->opened && most_left(s) < s->opened / RESERVE_SHARE;
}

/* The next segment is made before the last one is used up, unless all of it would be in memory or
 * missing elsewhere: segments are small there, so it would be one after the other. */
static bool wants_next(const struct tier_supply *s)
{
    return s->n_pieces == 0 ||
           (supply_runs_low() && !strict_overcommit && !os_is_limited() && !os_locks_future());
}

int supply_fill(size_t bytes)
{
    struct tier_supply *s = &hy_supply[HY_PM];
    int e = 0;
    if (!supply_loaded() || !s->bytes)
        return -ENODEV;
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&closed, __ATOMIC_SEQ_CST))
        e = -ECANCELED;
    if (e == 0) {
        hy_guard_enter();
        hy_lock_take(&gate);
        if (most_left(s) < bytes || wants_next(s)) {
            wait_at_exit(); /* with the gate: no fork meets the libc's lock */
            e = open_segment(s, bytes);
            e = e ? e : 1;
        }
        hy_lock_release(&gate);
        hy_guard_leave();
    }
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return e;
}

static bool unlocked; /* the stock, or some of it; under the pages lock */

int supply_unlock_stock(void *base, size_t bytes, bool unused)
{
    struct tier_supply *s = &hy_supply[HY_PM];
    unsigned n = __atomic_load_n(&s->n_pieces, __ATOMIC_ACQUIRE);
    (void)unused;
    for (unsigned i = 0; i < n; i++) {
        char *at = HY_MAX(s->piece[i].at, (char *)base);
        char *end = HY_MIN(s->piece[i].end, (char *)base + bytes);
        if (at < end && os_unlock(at, (size_t)(end - at)) == 0) {
            unlocked = !s->backing.dir; /* pages of a file are mapped as they are taken */
            (void)os_purge(at, (size_t)(end - at)); /* nobody has had it */
        }
    }
    if (!__atomic_load_n(&closed, __ATOMIC_SEQ_CST) && hy_lock_try(&gate)) { /* no fork uses it */
        spare_unlock();
        hy_lock_release(&gate);
    }
    return 0;
}

char *supply_from_stock(struct tier_supply *s, size_t bytes, struct piece **ret_from)
{
    unsigned n = __atomic_load_n(&s->n_pieces, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++) {
        struct piece *p = &s->piece[i];
        if (left_in(p) < bytes)
            continue;
        char *at = p->at;
        if (HY_UNLIKELY(p->released) && !supply_map_again(s, at, bytes))
            continue;
        __atomic_store_n(&p->at, at + bytes, __ATOMIC_RELAXED);
        *ret_from = p;
        if (HY_UNLIKELY(unlocked) && os_locks_future())
            (void)os_lock(at, bytes);
        return at;
    }
    return NULL;
}

void supply_release_stock(struct tier_supply *s)
{
    unsigned n = __atomic_load_n(&s->n_pieces, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < n; i++) {
        struct piece *p = &s->piece[i];
        if (left_in(p) && os_unmap(p->at, left_in(p)) == 0)
            p->released = true;
    }
}

void supply_gate_take(void)
{
    hy_lock_take(&gate);
}

bool supply_gate_try(void)
{
    return hy_lock_try(&gate);
}

void supply_gate_release(void)
{
    hy_lock_release(&gate);
}

void supply_child(void)
{
    if (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) != 0)
        __atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
    if (supply_loaded()) {
        said = false;
        hy_guard_enter();
        wait_at_exit();
        hy_guard_leave();
    }
    if (hy_supply[HY_PM].n_chunks > 0)
        hy_supply[HY_PM].inherited = true;
}

void supply_abandon(void)
{
    __atomic_store_n(&closed, true, __ATOMIC_SEQ_CST);
}
