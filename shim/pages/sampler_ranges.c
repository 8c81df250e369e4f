/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "pages/sampler_internal.h"
#include "sys/os.h"

struct sampler *hy_sampler;
struct hy_lock hy_sampler_lock;

/* --- ranges -------------------------------------------------------------------------- */

unsigned sampler_find(uintptr_t at)
{
    unsigned lo = 0, hi = hy_sampler->ranges;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (hy_sampler->range[mid].base + hy_sampler->range[mid].bytes <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct sampler_part_of sampler_part(unsigned at, uintptr_t from, uintptr_t to)
{
    const struct watched_range *r = &hy_sampler->range[at];
    uintptr_t lo = HY_MAX(from, r->base), hi = HY_MIN(to, r->base + r->bytes);
    return (struct sampler_part_of){(uint32_t)((lo - r->base) / HY_PAGE),
                                    (uint32_t)((hi - lo) / HY_PAGE)};
}

/* Records, and behind them counts where accesses are counted. */
static size_t counts_at(size_t bytes)
{
    return hy_align_up(bytes / HY_PAGE * sizeof(struct page_record), HY_PAGE);
}

static size_t record_bytes(size_t bytes)
{
    size_t counts = sampler_counts() ? bytes / HY_PAGE * sizeof(struct page_count) : 0;
    return hy_align_up(counts_at(bytes) + counts, HY_PAGE);
}

static struct page_count *counts_of(void *records, size_t bytes)
{
    return sampler_counts() ? (struct page_count *)((char *)records + counts_at(bytes)) : NULL;
}

static int source_add(void *base, size_t bytes)
{
    int r = 0;
    if (hy_sampler->writes && hy_sampler->writes->add)
        r = hy_sampler->writes->add(base, bytes);
    if (r == 0 && hy_sampler->reads && hy_sampler->reads->add)
        r = hy_sampler->reads->add(base, bytes);
    return r;
}

static void source_remove(void *base, size_t bytes)
{
    if (hy_sampler->writes && hy_sampler->writes->remove)
        hy_sampler->writes->remove(base, bytes);
    if (hy_sampler->reads && hy_sampler->reads->remove)
        hy_sampler->reads->remove(base, bytes);
}

static int insert(uintptr_t base, size_t bytes, enum hy_tier home, bool grows)
{
    void *records;
    if (hy_sampler->ranges == SAMPLER_RANGES)
        return -ENOSPC;
    if (bytes / HY_PAGE > UINT32_MAX / 2)
        return -E2BIG;
    int r = os_map_anon(record_bytes(bytes), &records);
    if (r != 0)
        return r;
    unsigned at = sampler_find(base), behind = hy_sampler->ranges - at;
    memmove(&hy_sampler->range[at + 1], &hy_sampler->range[at],
            behind * sizeof(hy_sampler->range[0]));
    memmove(&hy_sampler->history[at + 1], &hy_sampler->history[at],
            behind * sizeof(hy_sampler->history[0]));
    hy_sampler->range[at] = (struct watched_range){base, bytes, bytes, home, grows};
    history_init(&hy_sampler->history[at], records, counts_of(records, bytes),
                 (uint32_t)(bytes / HY_PAGE), home, &hy_sampler->map);
    hy_sampler->home[home] += bytes / HY_PAGE;
    hy_sampler->ranges++;
    return 0;
}

/* Records double, so that a heap that grows copies each of them once, on average; what is
 * not used yet takes no memory. */
static int extend(unsigned at, size_t more)
{
    struct watched_range *r = &hy_sampler->range[at];
    struct history *h = &hy_sampler->history[at];
    size_t bytes = r->bytes + more;
    if (bytes / HY_PAGE > UINT32_MAX / 2)
        return -E2BIG;
    if (bytes > r->room) {
        void *records;
        int e = os_map_anon(record_bytes(2 * bytes), &records);
        if (e != 0)
            return e;
        memcpy(records, h->rec, h->pages * sizeof(h->rec[0]));
        struct page_count *count = counts_of(records, 2 * bytes);
        if (count)
            memcpy(count, h->count, h->pages * sizeof(h->count[0]));
        h->count = count;
        os_unmap(h->rec, record_bytes(r->room));
        h->rec = records;
        r->room = 2 * bytes;
    }
    history_grow(h, (uint32_t)(bytes / HY_PAGE), r->home);
    hy_sampler->home[r->home] += more / HY_PAGE;
    r->bytes = bytes;
    return 0;
}

/* The range that memory at `base` would join; false: none. */
static bool joins(uintptr_t base, enum hy_tier home, unsigned *ret_at)
{
    unsigned at = sampler_find(base - 1);
    if (at == hy_sampler->ranges || !hy_sampler->range[at].grows ||
        hy_sampler->range[at].home != home ||
        hy_sampler->range[at].base + hy_sampler->range[at].bytes != base)
        return false;
    *ret_at = at;
    return true;
}

/* Out of the table; its records are still there. */
static void detach(unsigned at)
{
    unsigned behind = hy_sampler->ranges - at - 1;
    hy_sampler->home[hy_sampler->range[at].home] -= hy_sampler->range[at].bytes / HY_PAGE;
    history_drop(&hy_sampler->history[at]);
    memmove(&hy_sampler->range[at], &hy_sampler->range[at + 1],
            behind * sizeof(hy_sampler->range[0]));
    memmove(&hy_sampler->history[at], &hy_sampler->history[at + 1],
            behind * sizeof(hy_sampler->history[0]));
    hy_sampler->ranges--;
}

static void erase(unsigned at)
{
    void *records = hy_sampler->history[at].rec;
    size_t bytes = record_bytes(hy_sampler->range[at].room);
    detach(at);
    os_unmap(records, bytes);
}

/* What is left of a range, as one of its own. No room: it is forgotten. */
static void keep_piece(const struct watched_range *r, const struct history *h, uintptr_t from,
                       uintptr_t to)
{
    if (from >= to || insert(from, to - from, r->home, r->grows) != 0)
        return;
    history_copy(&hy_sampler->history[sampler_find(from)], h,
                 (uint32_t)((from - r->base) / HY_PAGE));
}

static void remove_locked(uintptr_t from, uintptr_t to)
{
    unsigned at;
    while ((at = sampler_find(from)) < hy_sampler->ranges && hy_sampler->range[at].base < to) {
        struct watched_range r = hy_sampler->range[at];
        uintptr_t end = r.base + r.bytes;
        struct history old = hy_sampler->history[at];
        detach(at);
        keep_piece(&r, &old, r.base, from);
        keep_piece(&r, &old, to, end);
        os_unmap(old.rec, record_bytes(r.room));
    }
    for (unsigned i = 0; i < hy_sampler->slots; i++)
        hy_sampler->slot[i].gone |=
            hy_sampler->slot[i].base < to &&
            hy_sampler->slot[i].base + (size_t)hy_sampler->slot[i].pages * HY_PAGE > from;
}

int sampler_add(void *base, size_t bytes, enum hy_tier home, bool grows)
{
    uintptr_t from = (uintptr_t)base;
    unsigned at;
    if (!hy_sampler)
        return -ENODEV;
    if (bytes < HY_PAGE || (from | bytes) % HY_PAGE)
        return -EINVAL;
    hy_lock_take(&hy_sampler_lock);
    remove_locked(from, from + bytes);
    int r = source_add(base, bytes);
    if (r == 0) {
        r = grows && joins(from, home, &at) ? extend(at, bytes) : insert(from, bytes, home, grows);
        if (r != 0)
            source_remove(base, bytes);
    }
    hy_lock_release(&hy_sampler_lock);
    return r;
}

void sampler_remove(void *base, size_t bytes)
{
    uintptr_t from = (uintptr_t)base;
    if (!hy_sampler)
        return;
    hy_lock_take(&hy_sampler_lock);
    bytes = hy_align_up(bytes, HY_PAGE);
    /* What is between may be watched by a userfaultfd of the program's. */
    for (unsigned at = sampler_find(from);
         at < hy_sampler->ranges && hy_sampler->range[at].base < from + bytes; at++) {
        const struct watched_range *r = &hy_sampler->range[at];
        uintptr_t lo = HY_MAX(from, r->base), hi = HY_MIN(from + bytes, r->base + r->bytes);
        source_remove((void *)lo, hi - lo);
    }
    remove_locked(from, from + bytes);
    hy_lock_release(&hy_sampler_lock);
}

void sampler_discard(void *base, size_t bytes)
{
    uintptr_t from = (uintptr_t)base, to = from + bytes;
    if (!hy_sampler)
        return;
    hy_lock_take(&hy_sampler_lock);
    for (unsigned at = sampler_find(from);
         at < hy_sampler->ranges && hy_sampler->range[at].base < to; at++) {
        struct sampler_part_of p = sampler_part(at, from, to);
        history_absent(&hy_sampler->history[at], p.first, p.pages, hy_sampler->range[at].home);
    }
    hy_lock_release(&hy_sampler_lock);
}

void sampler_rehome(void *base, size_t bytes, enum hy_tier home)
{
    uintptr_t from = (uintptr_t)base;
    unsigned at;
    hy_lock_take(&hy_sampler_lock);
    /* The sources go on watching it: nothing is asked of the kernel but memory for records. */
    if (hy_sampler && (at = sampler_find(from)) < hy_sampler->ranges &&
        hy_sampler->range[at].base <= from) {
        remove_locked(from, from + bytes);
        if (home == HY_PM || !joins(from, home, &at) || extend(at, bytes) != 0)
            (void)insert(from, bytes, home, home == HY_DRAM);
    }
    hy_lock_release(&hy_sampler_lock);
}

int64_t sampler_extra_dram(void)
{
    int64_t n = 0;
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler)
        n = (int64_t)(hy_sampler->map.on[HY_DRAM] - hy_sampler->home[HY_DRAM]);
    hy_lock_release(&hy_sampler_lock);
    return n;
}

/* --- life ---------------------------------------------------------------------------------- */

static const struct sampler_source *open_first(const struct sampler_source *const *sources,
                                               bool writes, const struct sampler_source *but)
{
    for (; *sources; sources++)
        if (*sources != but && (writes ? (*sources)->writes : (*sources)->reads) &&
            (*sources)->open() == 0)
            return *sources;
    return NULL;
}

/* Beside a source of writes that sees reads as well there need be no other. */
static const struct sampler_source *open_reads(const struct sampler_source *const *sources,
                                               const struct sampler_source *writes)
{
    return writes->reads ? NULL : open_first(sources, false, writes);
}

int sampler_open(const struct sampler_source *const *sources, const struct predictor *p,
                 uint64_t seed)
{
    const struct sampler_source *writes = open_first(sources, true, NULL);
    void *m;
    if (!writes)
        return -ENODEV;
    int r = os_map_anon(sizeof(*hy_sampler), &m);
    if (r != 0) {
        writes->close();
        return r;
    }
    struct sampler *fresh = m;
    heat_map_init(&fresh->map, p);
    coverage_init(&fresh->coverage, seed);
    fresh->writes = writes;
    for (unsigned i = 0; i + 1 < SOURCES && sources[i]; i++)
        fresh->source[i] = sources[i];
    fresh->reads = open_reads(fresh->source, writes);
    hy_lock_take(&hy_sampler_lock);
    hy_sampler = fresh;
    hy_lock_release(&hy_sampler_lock);
    return 0;
}

void sampler_close(void)
{
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler) {
        if (hy_sampler->writes)
            hy_sampler->writes->close();
        if (hy_sampler->reads)
            hy_sampler->reads->close();
        while (hy_sampler->ranges > 0)
            erase(hy_sampler->ranges - 1);
        os_unmap(hy_sampler, sizeof(*hy_sampler));
        hy_sampler = NULL;
    }
    hy_lock_release(&hy_sampler_lock);
}

const char *sampler_source_name(bool writes)
{
    const char *name = NULL;
    hy_lock_take(&hy_sampler_lock);
    const struct sampler_source *of = !hy_sampler ? NULL
                                      : writes    ? hy_sampler->writes
                                                  : hy_sampler->reads;
    if (of)
        name = of->name;
    else if (hy_sampler && !writes && hy_sampler->writes && hy_sampler->writes->reads)
        name = hy_sampler->writes->name;
    hy_lock_release(&hy_sampler_lock);
    return name;
}

void sampler_prefork(void)
{
    hy_lock_prefork(&hy_sampler_lock);
}

void sampler_postfork(void)
{
    hy_lock_postfork(&hy_sampler_lock);
}

void sampler_suspend(void)
{
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler) {
        hy_sampler->slots = 0;
        if (hy_sampler->writes)
            hy_sampler->writes->close();
        if (hy_sampler->reads)
            hy_sampler->reads->close();
        hy_sampler->reads = NULL;
    }
    hy_lock_release(&hy_sampler_lock);
}

int sampler_reopen(void)
{
    int r = 0;
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler) {
        hy_sampler->slots = 0;
        hy_sampler->writes->close();
        if (hy_sampler->reads)
            hy_sampler->reads->close();
        r = hy_sampler->writes->open();
        /* Another than before, maybe: sources give way, and permission comes and goes. */
        hy_sampler->reads = r == 0 ? open_reads(hy_sampler->source, hy_sampler->writes) : NULL;
        for (unsigned i = 0; r == 0 && i < hy_sampler->ranges; i++)
            if (source_add((void *)hy_sampler->range[i].base, hy_sampler->range[i].bytes) != 0)
                erase(i--); /* not in this process */
        if (r != 0)
            hy_sampler->writes = NULL;
    }
    hy_lock_release(&hy_sampler_lock);
    return r;
}

void sampler_renew_reads(void)
{
    if (!hy_sampler->reads || !hy_sampler->reads->alive || hy_sampler->reads->alive())
        return;
    hy_sampler->reads->close();
    hy_sampler->reads = open_reads(hy_sampler->source, hy_sampler->writes);
    if (hy_sampler->reads && hy_sampler->reads->add)
        for (unsigned i = 0; i < hy_sampler->ranges; i++)
            (void)hy_sampler->reads->add((void *)hy_sampler->range[i].base,
                                         hy_sampler->range[i].bytes);
}

bool sampler_alive(void)
{
    hy_lock_take(&hy_sampler_lock);
    bool ok = hy_sampler && hy_sampler->writes &&
              (!hy_sampler->writes->alive || hy_sampler->writes->alive());
    hy_lock_release(&hy_sampler_lock);
    return ok;
}
