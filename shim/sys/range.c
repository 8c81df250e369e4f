/* SPDX-License-Identifier: BSD-2-Clause
 * Large address ranges that are used from their start as they fill.
 *
 * A mapping without access would do, but it counts: a program that sets
 * RLIMIT_AS for itself later (Python's resource module, test harnesses, servers)
 * would find its whole allowance gone. So a range is only chosen, in a band of
 * addresses where the kernel puts nothing by itself (it maps top-down from the
 * stack, or above the heap), and each part is mapped when it is needed, never
 * over anything else. Where there is no such band, the range is held by a
 * mapping without access. */
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "sys/os.h"
#include "sys/raw.h"

/* x86-64 and aarch64 with 48-bit addresses. Sanitizers have shadows there: an empty band. */
#define BAND_LO ((uintptr_t)0x100000000000)
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define BAND_HI BAND_LO
#else
#define BAND_HI ((uintptr_t)0x500000000000)
#endif
#define BAND_RANDOM ((uintptr_t)16 << 40) /* the first range starts within so much */
#define BAND_GAP    (2 * HY_MIB)
#define TRIES       16

static uintptr_t band_next;

static bool in_band(const void *p)
{
    return (uintptr_t)p >= BAND_LO && (uintptr_t)p < BAND_HI;
}

static long map_at(uintptr_t at, size_t bytes, int prot, int flags)
{
    return raw6(SYS_mmap, at, bytes, prot, flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
}

/* Is nothing mapped there? Looked at by its first part, or by one page where a limit forbids that:
 * what an emulator of processors (qemu-user) notes for each page of terabytes would take it minutes
 * and all its memory. A part that somebody has taken is found when it is mapped. */
#define LOOKED_AT HY_GIB

static bool is_free(uintptr_t at, size_t bytes)
{
    size_t look[] = {HY_MIN(bytes, LOOKED_AT), HY_PAGE};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(look); i++) {
        long r = map_at(at, look[i], PROT_NONE, MAP_FIXED_NOREPLACE);
        if (r > 0 || r < -4095)
            raw2(SYS_munmap, r, look[i]);
        if (r == (long)at)
            return true;
        if (r != -ENOMEM)
            return false;
    }
    return false;
}

static void *choose(size_t bytes, size_t align)
{
    if (BAND_LO == BAND_HI)
        return NULL;
    uintptr_t at = __atomic_load_n(&band_next, __ATOMIC_RELAXED);
    if (at == 0) {
        uint64_t r = 0;
        const void *seed = (const void *)getauxval(AT_RANDOM);
        if (seed)
            memcpy(&r, seed, sizeof(r));
        at = BAND_LO + r % BAND_RANDOM;
    }
    for (int i = 0; i < TRIES; i++) {
        at = hy_align_up(at, HY_MAX(align, (size_t)BAND_GAP));
        if (at + bytes < at || at + bytes > BAND_HI)
            return NULL;
        if (is_free(at, bytes)) {
            __atomic_store_n(&band_next, at + bytes + BAND_GAP, __ATOMIC_RELAXED);
            return (void *)at;
        }
        at += bytes;
    }
    return NULL;
}

static int reserve(size_t bytes, size_t align, void **ret_base)
{
    size_t slack = align > HY_PAGE ? align - HY_PAGE : 0;
    long r = map_at(0, bytes + slack, PROT_NONE, 0);
    if (r < 0 && r > -4096)
        return (int)r;
    uintptr_t from = (uintptr_t)r, at = hy_align_up(from, align);
    if (at > from)
        (void)os_unmap((void *)from, at - from);
    if (from + slack > at)
        (void)os_unmap((void *)(at + bytes), from + slack - at);
    *ret_base = (void *)at;
    return 0;
}

int os_reserve(size_t bytes, size_t align, void **ret_base)
{
    if (bytes == 0 || align == 0 || (align & (align - 1)) != 0 || align > BAND_RANDOM ||
        bytes > SIZE_MAX / 2)
        return -EINVAL;
    bytes = hy_align_up(bytes, HY_PAGE);
    align = HY_MAX(align, HY_PAGE);
    void *p = choose(bytes, align);
    if (!p)
        return reserve(bytes, align, ret_base);
    *ret_base = p;
    return 0;
}

int os_commit(void *base, size_t bytes)
{
    if (!in_band(base))
        return (int)raw3(SYS_mprotect, base, bytes, PROT_READ | PROT_WRITE);
    long r = map_at((uintptr_t)base, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
    return r == (long)base ? 0 : r < 0 && r > -4096 ? (int)r : -EEXIST;
}
