/* SPDX-License-Identifier: BSD-2-Clause
 * Counts by page. See page_counts.h. A table of tables, made as pages are counted: one
 * for 1 GiB of addresses takes 3 MiB of address space, and memory where it is used. */
#include "pages/page_counts.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pages/pages.h"
#include "pages/watch.h"

#define LEAF_SHIFT 30u
#define LEAVES     ((size_t)1 << (48 - LEAF_SHIFT))
#define LEAF_PAGES ((size_t)1 << (LEAF_SHIFT - EMU_PAGE_SHIFT))

struct page_count {
    _Atomic uint32_t reads, dirtied, pm_writes;
};

typedef _Atomic(struct page_count *) leaf_pointer;
static leaf_pointer *_Atomic leaves;

/* By system call: mmap of this process is ours. */
static void *map(size_t bytes)
{
    int e = errno;
    long r = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    errno = e;
    return r == -1 ? NULL : (void *)r; /* NOLINT: the kernel's address */
}

static void unmap(void *p, size_t bytes)
{
    int e = errno;
    syscall(SYS_munmap, p, bytes);
    errno = e;
}

static struct page_count *count_of(uint64_t address, bool make)
{
    leaf_pointer *t = atomic_load_explicit(&leaves, memory_order_acquire);
    struct page_count *leaf, *old = NULL;

    if (!t || address >> 48)
        return NULL;
    t += address >> LEAF_SHIFT;
    leaf = atomic_load_explicit(t, memory_order_acquire);
    if (!leaf && make) {
        leaf = map(LEAF_PAGES * sizeof(*leaf));
        if (leaf && !atomic_compare_exchange_strong(t, &old, leaf)) {
            unmap(leaf, LEAF_PAGES * sizeof(*leaf));
            leaf = old;
        }
    }
    return leaf ? leaf + (address >> EMU_PAGE_SHIFT & (LEAF_PAGES - 1)) : NULL;
}

static void add(_Atomic uint32_t *c, uint32_t n)
{
    if (n)
        atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static void see(const struct emu_seen *s)
{
    bool read = !s->hit;
    struct page_count *c = read || s->dirtied ? count_of(s->address, true) : NULL;
    if (!c)
        return;
    add(&c->reads, read);
    add(&c->dirtied, s->dirtied);
    add(&c->pm_writes, s->dirtied && s->tier == EMU_PM);
}

static const struct emu_watcher counts = {.see = see};

int emu_page_counts_start(void)
{
    leaf_pointer *old = NULL, *t;
    if (!atomic_load(&leaves)) {
        t = map(LEAVES * sizeof(*t));
        if (!t)
            return -ENOMEM;
        if (!atomic_compare_exchange_strong(&leaves, &old, t))
            unmap(t, LEAVES * sizeof(*t));
    }
    emu_watch_on(EMU_WATCH_PAGES, &counts);
    return 0;
}

void emu_page_count_wear(uint64_t address, uint32_t lines)
{
    struct page_count *c = count_of(address, true);
    if (c)
        add(&c->pm_writes, lines);
}

int emu_page_counts_get(uint64_t address, size_t bytes, struct pmemu_range_counts *ret)
{
    const uint64_t limit = (uint64_t)1 << 48;
    struct pmemu_range_counts sum = {0};
    uint64_t end;

    if (!atomic_load(&leaves))
        return -ENODATA;
    if (address >= limit || bytes > limit - address)
        return -EINVAL;
    end = address + bytes;
    for (address &= ~(EMU_PAGE_BYTES - 1); address < end; address += EMU_PAGE_BYTES) {
        const struct page_count *c = count_of(address, false);
        uint64_t wear;
        if (!c) { /* to the next table */
            address |= ((uint64_t)1 << LEAF_SHIFT) - EMU_PAGE_BYTES;
            continue;
        }
        wear = atomic_load_explicit(&c->pm_writes, memory_order_relaxed);
        sum.reads += c->reads;
        sum.writebacks += c->dirtied;
        sum.pages += c->reads || c->dirtied;
        sum.pm_writes += wear;
        sum.pages_written_pm += wear > 0;
        if (sum.most_pm_writes < wear)
            sum.most_pm_writes = wear;
    }
    *ret = sum;
    return 0;
}
