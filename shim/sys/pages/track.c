/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/pages/track.h"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/mman.h>

#include "sys/raw.h"
#include "sys/thread.h"

/* The ABI of kernels newer than the headers of the oldest supported distribution. */
#define FEATURE_WP_ASYNC ((uint64_t)1 << 15)
#define SCAN_REARM       ((uint64_t)1 << 0) /* PM_SCAN_WP_MATCHING */
#define IS_TRACKED       ((uint64_t)1 << 0) /* PAGE_IS_WPALLOWED, ... */
#define IS_WRITTEN       ((uint64_t)1 << 1)
#define IS_FILE          ((uint64_t)1 << 2)
#define IS_PRESENT       ((uint64_t)1 << 3)
#define IS_ZERO          ((uint64_t)1 << 5)
#define IS_HUGE          ((uint64_t)1 << 6)

struct scan_region {
    uint64_t start, end, is;
};
struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t inverted, all_of, any_of, wanted;
};
_Static_assert(_IOC_SIZE(OS_PAGEMAP_SCAN) == sizeof(struct scan), "the kernel looks at it");

/* Of /proc/self/pagemap, one word a page. */
#define WORD_PRESENT    ((uint64_t)1 << 63)
#define WORD_FILE       ((uint64_t)1 << 61)
#define WORD_SOFT_DIRTY ((uint64_t)1 << 55)

#define LOOK_PAGES 512u

static bool ours(const struct os_track *t)
{
    return t->pid == os_pid();
}

/* Do its numbers mean anything here? */
static bool table_is_its(const struct os_track *t)
{
    return t->apart == os_table_apart();
}

static int scan(const struct os_track *t, struct scan *s)
{
    s->size = sizeof(*s);
    return (int)raw3(SYS_ioctl, t->pagemap, OS_PAGEMAP_SCAN, s);
}

/* --- trying it out -------------------------------------------------------------- */

static int open_scan(struct os_track *t)
{
    struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_WP_ASYNC};
    struct scan s = {0};
    /* User mode only needs no privilege. Protection that the kernel resolves by itself works in
     * system calls all the same. */
    long fd = raw1(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0)
        return (int)fd;
    t->other = raw_keep((int)fd);
    int r = (int)raw3(SYS_ioctl, t->other, UFFDIO_API, &api);
    if (r == -EINVAL) /* the feature is unknown: Linux < 6.7 */
        return -EOPNOTSUPP;
    if (r == 0)
        r = scan(t, &s);
    return r == -ENOTTY ? -EOPNOTSUPP : HY_MIN(r, 0);
}

static int read_map(const struct os_track *t, uintptr_t base, uint64_t *words, size_t pages)
{
    long n = raw4(SYS_pread64, t->pagemap, words, pages * sizeof(*words),
                  base / HY_PAGE * sizeof(*words));
    if (n < 0)
        return (int)n;
    return (size_t)n == pages * sizeof(*words) ? 0 : -EIO;
}

/* A kernel without soft-dirty accepts the clearing all the same. */
static int try_soft_dirty(struct os_track *t, volatile char *page)
{
    uint64_t before, after;
    *page = 1;
    int r = os_track_clear(t);
    if (r == 0)
        r = read_map(t, (uintptr_t)page, &before, 1);
    if (r != 0)
        return r;
    *page = 2;
    r = read_map(t, (uintptr_t)page, &after, 1);
    if (r == 0 && ((before & WORD_SOFT_DIRTY) || !(after & WORD_SOFT_DIRTY)))
        r = -EOPNOTSUPP;
    return r;
}

static int open_soft_dirty(struct os_track *t)
{
    void *page;
    t->other = raw_keep(raw_open("/proc/self/clear_refs", O_WRONLY, 0));
    if (t->other < 0)
        return t->other;
    int r = os_map_anon(HY_PAGE, &page);
    if (r != 0)
        return r;
    (void)os_file_id(t->other, &t->other_is);
    r = try_soft_dirty(t, page);
    os_unmap(page, HY_PAGE);
    return r;
}

int os_track_open(enum os_track_kind kind, struct os_track *ret)
{
    struct os_track t = {
        .kind = kind, .pagemap = -1, .other = -1, .pid = os_pid(), .apart = os_table_apart()};
    t.pagemap = raw_keep(raw_open("/proc/self/pagemap", O_RDONLY, 0));
    int r = t.pagemap < 0 ? t.pagemap : kind == OS_TRACK_SCAN ? open_scan(&t) : open_soft_dirty(&t);
    if (t.pagemap >= 0)
        (void)os_file_id(t.pagemap, &t.pagemap_is);
    if (t.other >= 0)
        (void)os_file_id(t.other, &t.other_is);
    if (r != 0) {
        os_track_close(&t);
        return r;
    }
    *ret = t;
    return 0;
}

void os_track_close(struct os_track *t)
{
    bool here = table_is_its(t) && (ours(t) || !t->apart); /* a child has none of our table */
    if (here && os_file_is(t->pagemap, &t->pagemap_is))
        os_close(t->pagemap);
    if (here && os_file_is(t->other, &t->other_is))
        os_close(t->other);
    t->pagemap = t->other = -1;
}

/* --- ranges ------------------------------------------------------------------------ */

static int order(const struct os_track *t, unsigned long request, void *what)
{
    if (!ours(t))
        return -ESRCH;
    if (t->kind != OS_TRACK_SCAN)
        return 0;
    if (!os_file_is(t->other, &t->other_is))
        return -EBADF; /* never to a file of the program */
    return (int)raw3(SYS_ioctl, t->other, request, what);
}

int os_track_add(struct os_track *t, void *base, size_t bytes)
{
    struct uffdio_register reg = {.range = {.start = (uintptr_t)base, .len = bytes},
                                  .mode = UFFDIO_REGISTER_MODE_WP};
    return order(t, UFFDIO_REGISTER, &reg);
}

int os_track_remove(struct os_track *t, void *base, size_t bytes)
{
    struct uffdio_range range = {.start = (uintptr_t)base, .len = bytes};
    if (ours(t) && !table_is_its(t))
        return -EXDEV;
    return order(t, UFFDIO_UNREGISTER, &range);
}

bool os_track_wants(unsigned long request, const void *arg, void **ret_base, size_t *ret_bytes)
{
    const struct uffdio_register *reg = arg;
    if ((uint32_t)request != UFFDIO_REGISTER || !os_can_read(&reg->range.start) ||
        !os_can_read(&reg->range.len)) /* some callers extend its sign */
        return false;
    *ret_base = (void *)(uintptr_t)reg->range.start;
    *ret_bytes = reg->range.len;
    return true;
}

/* --- looking ------------------------------------------------------------------------- */

static int look_scan(const struct os_track *t, uintptr_t base, size_t bytes, bool rearm,
                     struct os_page_run *runs, unsigned cap)
{
    struct scan_region regions[32]; /* small: stacks of ours are */
    unsigned n = 0;
    uint64_t end = base + bytes;
    /* All of these, and neither FILE nor ZERO. Asking for WRITTEN alone would find pages that
     * do not exist, and arming these costs page tables. */
    struct scan s = {.flags = rearm ? SCAN_REARM : 0,
                     .start = base,
                     .end = end,
                     .vec = (uintptr_t)regions,
                     .inverted = IS_FILE | IS_ZERO,
                     .all_of = IS_TRACKED | IS_WRITTEN | IS_PRESENT | IS_FILE | IS_ZERO,
                     .wanted = IS_HUGE};
    while (s.start < end && n < cap) {
        s.vec_len = HY_MIN((uint64_t)(cap - n), (uint64_t)HY_ARRAY_SIZE(regions));
        int r = scan(t, &s);
        if (r == -EINTR || r == -EAGAIN)
            continue;
        if (r < 0)
            return r;
        for (int i = 0; i < r; i++, n++)
            runs[n] = (struct os_page_run){
                .base = regions[i].start,
                .pages = (uint32_t)((regions[i].end - regions[i].start) / HY_PAGE),
                .huge = (regions[i].is & IS_HUGE) != 0};
        if (s.walk_end <= s.start)
            break;
        s.start = s.walk_end;
    }
    return (int)n;
}

static int look_soft_dirty(const struct os_track *t, uintptr_t base, size_t bytes,
                           struct os_page_run *runs, unsigned cap)
{
    uint64_t words[64];
    unsigned n = 0;
    size_t pages = bytes / HY_PAGE;
    for (size_t at = 0; at < pages; at += HY_ARRAY_SIZE(words)) {
        size_t here = HY_MIN(pages - at, HY_ARRAY_SIZE(words));
        int r = read_map(t, base + at * HY_PAGE, words, here);
        if (r != 0)
            return r;
        for (size_t i = 0; i < here; i++) {
            uintptr_t page = base + (at + i) * HY_PAGE;
            if ((words[i] & (WORD_PRESENT | WORD_FILE | WORD_SOFT_DIRTY)) !=
                (WORD_PRESENT | WORD_SOFT_DIRTY))
                continue;
            if (n > 0 && runs[n - 1].base + (size_t)runs[n - 1].pages * HY_PAGE == page) {
                runs[n - 1].pages++;
                continue;
            }
            if (n == cap)
                return (int)n;
            runs[n++] = (struct os_page_run){.base = page, .pages = 1};
        }
    }
    return (int)n;
}

int os_track_look(struct os_track *t, const void *base, size_t bytes, bool rearm,
                  struct os_page_run *runs, unsigned cap)
{
    if (!ours(t))
        return -ESRCH;
    if (bytes > LOOK_PAGES * HY_PAGE)
        return -EINVAL;
    if (!os_file_is(t->pagemap, &t->pagemap_is))
        return -EBADF;
    if (t->kind == OS_TRACK_SCAN)
        return look_scan(t, (uintptr_t)base, bytes, rearm, runs, cap);
    return look_soft_dirty(t, (uintptr_t)base, bytes, runs, cap);
}

int os_track_clear(struct os_track *t)
{
    if (!ours(t))
        return -ESRCH;
    if (t->kind != OS_TRACK_SOFT_DIRTY)
        return 0;
    if (!os_file_is(t->other, &t->other_is)) /* never into a file of the program */
        return -EBADF;
    return os_write_all(t->other, "4", 1);
}

bool os_track_alive(const struct os_track *t)
{
    return ours(t) && table_is_its(t) && os_file_is(t->pagemap, &t->pagemap_is) &&
           os_file_is(t->other, &t->other_is);
}

int os_pages_present(const void *base, size_t pages, uint8_t *ret)
{
    return (int)raw3(SYS_mincore, base, pages * HY_PAGE, ret);
}

int os_no_huge_pages(void *base, size_t bytes)
{
    return (int)raw3(SYS_madvise, base, bytes, MADV_NOHUGEPAGE);
}
