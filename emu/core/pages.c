/* SPDX-License-Identifier: BSD-2-Clause
 * Page table of media. See pages.h. */
#include "core/pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAF_SHIFT 32u /* a leaf covers 4 GiB: 1 MiB of bytes, touched where used */
#define LEAVES     ((size_t)1 << (48 - LEAF_SHIFT))
#define LEAF_PAGES ((size_t)1 << (LEAF_SHIFT - EMU_PAGE_SHIFT))

/* Bytes of a leaf: 0 default, else 1 + tier. */
static _Atomic(uint8_t *) leaves[LEAVES];
static enum emu_tier default_tier;

void emu_pages_default(enum emu_tier t)
{
    default_tier = t;
}

static uint8_t mark_of(uint64_t address)
{
    uint8_t *leaf;
    if (address >> 48)
        return 0;
    leaf = atomic_load_explicit(&leaves[address >> LEAF_SHIFT], memory_order_acquire);
    return leaf ? leaf[address >> EMU_PAGE_SHIFT & (LEAF_PAGES - 1)] : 0;
}

enum emu_tier emu_tier_of(uint64_t address)
{
    uint8_t m = mark_of(address);
    return m ? (enum emu_tier)(m - 1) : default_tier;
}

static uint8_t *leaf_for(size_t i, bool make)
{
    uint8_t *leaf = atomic_load_explicit(&leaves[i], memory_order_acquire), *old = NULL;
    long r;

    if (leaf || !make)
        return leaf;
    /* By system call: mmap of this process is the one that calls us. */
    r = syscall(SYS_mmap, NULL, LEAF_PAGES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    if (r == -1)
        return NULL;
    leaf = (uint8_t *)r; /* NOLINT: the kernel's address */
    if (atomic_compare_exchange_strong(&leaves[i], &old, leaf))
        return leaf;
    syscall(SYS_munmap, leaf, LEAF_PAGES);
    return old;
}

static int mark(uint64_t address, size_t bytes, uint8_t m)
{
    uint64_t page = address >> EMU_PAGE_SHIFT, end;
    const uint64_t limit = (uint64_t)1 << 48;

    if (address >= limit || bytes > limit - address)
        return -EINVAL;
    end = (address + bytes + (1u << EMU_PAGE_SHIFT) - 1) >> EMU_PAGE_SHIFT;
    while (page < end) {
        uint64_t in_leaf = page & (LEAF_PAGES - 1), n = LEAF_PAGES - in_leaf;
        uint8_t *leaf = leaf_for(page / LEAF_PAGES, m != 0);
        if (n > end - page)
            n = end - page;
        if (!leaf && m != 0)
            return -ENOMEM;
        /* Clearing must not make pages of the table where there was nothing. */
        for (uint64_t i = in_leaf; leaf && i < in_leaf + n; i++)
            if (leaf[i] != m)
                leaf[i] = m;
        page += n;
    }
    return 0;
}

int emu_pages_set(uint64_t address, size_t bytes, enum emu_tier t)
{
    return mark(address, bytes, (uint8_t)(1 + t));
}

void emu_pages_clear(uint64_t address, size_t bytes)
{
    (void)mark(address, bytes, 0);
}

void emu_pages_move(uint64_t from, size_t old_bytes, uint64_t to, size_t bytes)
{
    uint8_t m = mark_of(from);
    if (from != to)
        (void)mark(from, old_bytes, 0);
    (void)mark(to, bytes, m);
}
