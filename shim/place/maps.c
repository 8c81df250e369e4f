/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/maps.h"

#include <string.h>

#include "sys/lock.h"
#include "sys/os.h"

#define WORTH_WATCHING 16 /* not a reservation of which little is used: records cost memory */
#define SLICE_PAGES    ((size_t)16384) /* looked at under one hold of the lock */

struct mapping {
    uintptr_t base;
    size_t len;
    uint64_t charged, most; /* most: that was charged at a time */
    size_t scanned;         /* bytes measured in the pass under way */
    uint64_t seen;          /* of them in memory */
    enum hy_tier tier;
    uint16_t site;
    bool watched;
    bool part; /* behind a hole: not what the site's mapping is counted by */
};

static struct hy_lock lock;
static struct mapping *table;
static unsigned n_ranges, cap_ranges;
static uintptr_t cursor; /* measuring goes on at the range that holds it */
static const struct maps_host *mappings_host;

void maps_init(const struct maps_host *h)
{
    mappings_host = h;
}

bool maps_any(void)
{
    return __atomic_load_n(&n_ranges, __ATOMIC_RELAXED) != 0;
}

/* First range that ends above p. */
static unsigned find(uintptr_t p)
{
    unsigned lo = 0, hi = n_ranges;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (table[mid].base + table[mid].len <= p)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool make_room(void)
{
    unsigned cap = cap_ranges ? cap_ranges * 2 : 128;
    void *m;
    if (n_ranges < cap_ranges)
        return true;
    if (cap > MAPS_MAX || os_map_anon(cap * sizeof(struct mapping), &m))
        return false;
    if (cap_ranges) {
        memcpy(m, table, n_ranges * sizeof(struct mapping));
        os_unmap(table, cap_ranges * sizeof(struct mapping));
    }
    table = m;
    cap_ranges = cap;
    return true;
}

static void set_count(unsigned n)
{
    __atomic_store_n(&n_ranges, n, __ATOMIC_RELAXED);
}

static bool insert(unsigned at, struct mapping r)
{
    if (!make_room())
        return false;
    memmove(table + at + 1, table + at, (n_ranges - at) * sizeof(struct mapping));
    table[at] = r;
    set_count(n_ranges + 1);
    return true;
}

static void set_charged(struct mapping *r, uint64_t bytes)
{
    uint64_t more = bytes > r->most ? bytes - r->most : 0;
    if (bytes == r->charged)
        return;
    mappings_host->account(r->tier, (int64_t)bytes - (int64_t)r->charged);
    if (r->site)
        mappings_host->resized(r->site, r->charged, bytes, more);
    r->charged = bytes;
    r->most += more;
}

static void end(struct mapping *r)
{
    set_charged(r, 0);
    if (r->site && !r->part)
        mappings_host->gone(r->site);
}

static void restart_scan(struct mapping *r)
{
    r->scanned = 0;
    r->seen = 0;
}

/* Cut [from, to) out of the range at `at`; true if the range is gone. */
static bool cut(unsigned at, uintptr_t from, uintptr_t to)
{
    struct mapping *r = &table[at];
    uintptr_t top = r->base + r->len;
    restart_scan(r);
    if (from <= r->base && to >= top) {
        end(r);
        memmove(r, r + 1, (n_ranges - at - 1) * sizeof(struct mapping));
        set_count(n_ranges - 1);
        return true;
    }
    if (from > r->base && to < top) { /* a hole: two ranges */
        struct mapping right = *r;
        right.base = to;
        right.len = top - to;
        right.part = true;
        right.charged = right.most = HY_MIN(r->charged, (uint64_t)right.len);
        r->charged -= right.charged;
        r->most -= HY_MIN(r->most, right.most);
        r->len = from - r->base;
        set_charged(r, HY_MIN(r->charged, (uint64_t)r->len));
        if (!insert(at + 1, right))
            end(&right);
        return false;
    }
    if (from <= r->base) {
        r->base = to;
        r->len = top - to;
    } else {
        r->len = from - r->base;
    }
    set_charged(r, HY_MIN(r->charged, (uint64_t)r->len));
    return false;
}

static void remove_locked(uintptr_t from, uintptr_t to)
{
    unsigned i = find(from);
    while (i < n_ranges && table[i].base < to)
        if (!cut(i, from, to))
            i++;
}

void maps_remove(void *base, size_t len)
{
    if (!maps_any())
        return;
    uintptr_t from = (uintptr_t)base;
    hy_lock_take(&lock);
    remove_locked(from, from + hy_align_up(len, HY_PAGE));
    hy_lock_release(&lock);
}

void maps_add(void *base, size_t len, enum hy_tier t, uint16_t site, uint64_t charged)
{
    struct mapping r = {.base = (uintptr_t)base, .len = hy_align_up(len, HY_PAGE), .tier = t};
    r.site = site;
    r.charged = r.most = charged;
    hy_lock_take(&lock);
    remove_locked(r.base, r.base + r.len);
    if (!insert(find(r.base), r))
        end(&r);
    hy_lock_release(&lock);
}

void maps_tell_new(void (*fn)(void *base, size_t len, enum hy_tier t))
{
    hy_lock_take(&lock);
    for (unsigned i = 0; i < n_ranges; i++) {
        struct mapping *r = &table[i];
        if (r->watched || r->charged < r->len / WORTH_WATCHING)
            continue;
        r->watched = true;
        fn((void *)r->base, r->len, r->tier);
    }
    hy_lock_release(&lock);
}

bool maps_find(const void *p, size_t len, enum hy_tier *ret_tier, uint16_t *ret_site)
{
    if (!maps_any())
        return false;
    hy_lock_take(&lock);
    unsigned i = find((uintptr_t)p);
    bool hit = i < n_ranges && table[i].base < (uintptr_t)p + len;
    if (hit) {
        *ret_tier = table[i].tier;
        *ret_site = table[i].site;
    }
    hy_lock_release(&lock);
    return hit;
}

void maps_totals(enum hy_tier t, unsigned *ret_ranges, uint64_t *ret_bytes, uint64_t *ret_charged)
{
    unsigned n = 0;
    uint64_t bytes = 0, charged = 0;
    hy_lock_take(&lock);
    for (unsigned i = 0; i < n_ranges; i++)
        if (table[i].tier == t) {
            n++;
            bytes += table[i].len;
            charged += table[i].charged;
        }
    hy_lock_release(&lock);
    *ret_ranges = n;
    *ret_bytes = bytes;
    *ret_charged = charged;
}

/* One slice of the range at the cursor; pages looked at, 0 when there is none. */
static size_t measure_slice(size_t max_pages, bool *ret_whole)
{
    size_t done = 0;
    hy_lock_take(&lock);
    unsigned i = find(cursor);
    if (i == n_ranges)
        i = 0;
    if (n_ranges) {
        struct mapping *r = &table[i];
        size_t pages = HY_MIN(HY_MIN(max_pages, SLICE_PAGES), (r->len - r->scanned) / HY_PAGE);
        size_t here = 0;
        /* Not mapped any more (a raw system call of the program): nothing there. */
        if (os_resident_pages((void *)(r->base + r->scanned), pages * HY_PAGE, &here))
            here = 0;
        r->scanned += pages * HY_PAGE;
        r->seen += here * HY_PAGE;
        cursor = r->base;
        if (r->scanned >= r->len) {
            set_charged(r, r->seen);
            restart_scan(r);
            cursor = r->base + r->len;
            *ret_whole = true;
        }
        done = HY_MAX(pages, (size_t)1);
    }
    hy_lock_release(&lock);
    return done;
}

void maps_measure(size_t max_pages)
{
    unsigned ranges = n_ranges; /* at most once around */
    while (max_pages && ranges) {
        bool whole = false; /* not by the cursor: with one range it ends where it began */
        size_t n = measure_slice(max_pages, &whole);
        if (n == 0)
            return;
        max_pages -= HY_MIN(n, max_pages);
        ranges -= whole;
    }
}

void maps_prefork(void)
{
    hy_lock_prefork(&lock);
}

void maps_postfork(void)
{
    hy_lock_postfork(&lock);
}
