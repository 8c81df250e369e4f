/* SPDX-License-Identifier: BSD-2-Clause
 * The sources of writes that the kernel has: see sys/pages/track.h. */
#include "pages/sampler.h"
#include "sys/filter.h"
#include "sys/pages/track.h"

static struct os_track track = {.pagemap = -1, .other = -1};

static int open_scan(void)
{
    return os_track_open(OS_TRACK_SCAN, &track);
}

static int open_soft_dirty(void)
{
    return os_track_open(OS_TRACK_SOFT_DIRTY, &track);
}

static void close_track(void)
{
    os_track_close(&track);
}

static int add(void *base, size_t bytes)
{
    return os_track_add(&track, base, bytes);
}

/* Also by a thread of the program that unmaps something, which a filter may kill for getpid. What it
 * unmaps is watched no more in any case. */
static void drop(void *base, size_t bytes)
{
    if (!os_calls_begin())
        return;
    (void)os_track_remove(&track, base, bytes);
    os_calls_end();
}

/* Calls fn for every run of watched pages. */
static int each_run(char *base, uint32_t pages, const struct page_set *set,
                    int (*fn)(void *base, size_t bytes, void *ctx), void *ctx)
{
    int r = 0;
    for (uint32_t i = 0; i < pages && r >= 0;) {
        if (!page_set_has(set, i)) {
            i++;
            continue;
        }
        uint32_t first = i;
        while (i < pages && page_set_has(set, i))
            i++;
        r = fn(base + first * HY_PAGE, (i - first) * HY_PAGE, ctx);
    }
    return HY_MIN(r, 0);
}

/* Arm what is written; what was armed before and is not written stays so. */
static int arm_run(void *base, size_t bytes, void *ctx)
{
    struct os_page_run runs[32];
    char *at = base, *end = at + bytes;
    int n;
    (void)ctx;
    while ((n = os_track_look(&track, at, (size_t)(end - at), true, runs, HY_ARRAY_SIZE(runs))) ==
           (int)HY_ARRAY_SIZE(runs))
        at = (char *)runs[n - 1].base + (size_t)runs[n - 1].pages * HY_PAGE;
    return n;
}

static int watch_scan(void *base, uint32_t pages, const struct page_set *set)
{
    return each_run(base, pages, set, arm_run, NULL);
}

struct look {
    char *base;
    const struct page_set *set;
    struct page_seen *seen;
    unsigned round;
    bool rearm;
};

static int look_run(void *base, size_t bytes, void *ctx)
{
    struct os_page_run runs[32];
    const struct look *l = ctx;
    char *at = base, *end = at + bytes;
    int n;
    do {
        n = os_track_look(&track, at, (size_t)(end - at), l->rearm, runs, HY_ARRAY_SIZE(runs));
        for (int i = 0; i < n; i++) {
            size_t first = (size_t)((char *)runs[i].base - l->base) / HY_PAGE;
            for (size_t k = first; k < first + runs[i].pages; k++)
                if (page_set_has(l->set, (unsigned)k))
                    l->seen[k].writes |= (uint8_t)(1u << l->round);
        }
        if (n > 0)
            at = (char *)runs[n - 1].base + (size_t)runs[n - 1].pages * HY_PAGE;
    } while (n == (int)HY_ARRAY_SIZE(runs) && at < end);
    return n;
}

static int look_scan(void *base, uint32_t pages, const struct page_set *set, unsigned round,
                     struct page_seen *seen)
{
    /* After the last round nobody looks: pages are not armed for nothing. */
    struct look l = {base, set, seen, round, round + 1 < HISTORY_ROUNDS};
    return each_run(base, pages, set, look_run, &l);
}

static int look_soft_dirty(void *base, uint32_t pages, const struct page_set *set, unsigned round,
                           struct page_seen *seen)
{
    struct look l = {base, set, seen, round, false};
    return look_run(base, pages * HY_PAGE, &l);
}

static int clear(void)
{
    return os_track_clear(&track);
}

int sampler_present(void *base, uint32_t pages, struct page_set *ret)
{
    uint8_t in[HISTORY_BLOCK];
    int r = os_pages_present(base, pages, in);
    if (r != 0)
        return r;
    *ret = (struct page_set){{0}};
    for (uint32_t i = 0; i < pages; i++)
        if (in[i] & 1)
            page_set_add(ret, i);
    return 0;
}

static bool alive(void)
{
    return os_track_alive(&track);
}

const struct sampler_source sampler_scan = {
    .name = "pagemap-scan",
    .writes = true,
    .open = open_scan,
    .close = close_track,
    .add = add,
    .remove = drop,
    .watch = watch_scan,
    .look = look_scan,
    .present = sampler_present,
    .alive = alive,
};

const struct sampler_source sampler_soft_dirty = {
    .name = "soft-dirty",
    .writes = true,
    .open = open_soft_dirty,
    .close = close_track,
    .look = look_soft_dirty,
    .next_round = clear,
    .present = sampler_present,
    .alive = alive,
};
