/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/pages/idle.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sys/raw.h"
#include "sys/thread.h"

enum { PAGEMAP, FLAGS, BITMAP, FILES };

/* Documentation/admin-guide/mm/pagemap.rst */
#define MAP_PRESENT ((uint64_t)1 << 63)
#define MAP_FRAME   (((uint64_t)1 << 55) - 1)
#define FLAG_LRU    ((uint64_t)1 << 5)
#define FLAG_HEAD   ((uint64_t)1 << 15)
#define FLAG_TAIL   ((uint64_t)1 << 16)
#define FLAG_NOPAGE ((uint64_t)1 << 20)

/* Words read in one call. A word of flags costs the kernel about 30 ns, one of the bitmap up to
 * 64 lookups, a call 300: gaps up to these are read as well. */
#define SPAN       512u
#define HEAD_SPAN  64u
#define FLAGS_GAP  8u
#define BITMAP_GAP 1u
#define MARK_GAP   16u /* zeros mark nothing and cost little */

int os_idle_open(const char *root, struct os_idle *ret)
{
    static const struct {
        const char *path;
        int flags;
    } file[FILES] = {[PAGEMAP] = {"/proc/self/pagemap", O_RDONLY},
                     [FLAGS] = {"/proc/kpageflags", O_RDONLY},
                     [BITMAP] = {"/sys/kernel/mm/page_idle/bitmap", O_RDWR}};
    struct os_idle t = {.fd = {-1, -1, -1}, .pid = os_pid(), .apart = os_table_apart()};
    int r = 0;
    /* The bitmap first: whether the kernel has it is more telling than whether we may. */
    for (int i = FILES - 1; i >= 0 && r == 0; i--) {
        char path[256];
        int n = snprintf(path, sizeof(path), "%s%s", root, file[i].path);
        int fd = n < (int)sizeof(path) ? raw_open(path, file[i].flags, 0) : -ENAMETOOLONG;
        t.fd[i] = raw_keep(fd);
        r = fd < 0 ? fd : os_file_id(t.fd[i], &t.is[i]);
    }
    if (r != 0)
        os_idle_close(&t);
    else
        *ret = t;
    return r;
}

void os_idle_close(struct os_idle *t)
{
    bool here = t->apart == os_table_apart() && (t->pid == os_pid() || !t->apart);
    for (int i = 0; i < FILES; i++) {
        if (here && os_file_is(t->fd[i], &t->is[i]))
            os_close(t->fd[i]);
        t->fd[i] = -1;
    }
}

bool os_idle_alive(const struct os_idle *t)
{
    bool all = t->pid == os_pid() && t->apart == os_table_apart();
    for (int i = 0; i < FILES && all; i++)
        all = os_file_is(t->fd[i], &t->is[i]);
    return all;
}

/* What lies beyond the last frame reads as nothing. */
static int read_words(int fd, uint64_t at, uint64_t *words, size_t n)
{
    memset(words, 0, n * sizeof(*words));
    long r = raw4(SYS_pread64, fd, words, n * sizeof(*words), at * sizeof(*words));
    return (int)HY_MIN(r, 0);
}

int os_idle_pages(struct os_idle *t, const void *block, unsigned first, unsigned n,
                  struct os_idle_page *ret, unsigned have)
{
    uint64_t words[SPAN];
    if (t->pid != os_pid())
        return -ESRCH;
    if (first + n > OS_IDLE_PAGES || have + n > OS_IDLE_PAGES)
        return -EINVAL;
    for (unsigned at = first; at < first + n; at += SPAN) {
        unsigned here = HY_MIN(first + n - at, SPAN);
        int r = read_words(t->fd[PAGEMAP], (uintptr_t)block / HY_PAGE + at, words, here);
        if (r != 0)
            return r;
        for (unsigned i = 0; i < here; i++)
            if (words[i] & MAP_PRESENT && words[i] & MAP_FRAME)
                ret[have++] =
                    (struct os_idle_page){words[i] & MAP_FRAME, (uint16_t)(at + i), false};
    }
    return (int)have;
}

/* Mostly in order already, as neighbours often are; no allocation, as qsort may make. */
static void sort(struct os_idle_page *p, unsigned n)
{
    for (unsigned gap = n / 2; gap > 0; gap /= 2)
        for (unsigned i = gap; i < n; i++) {
            struct os_idle_page x = p[i];
            unsigned k = i;
            for (; k >= gap && p[k - gap].frame > x.frame; k -= gap)
                p[k] = p[k - gap];
            p[k] = x;
        }
}

/* How many of the sorted pages have their words within one read, and how many words that is.
 * `per`: frames in a word. */
static unsigned span_of(const struct os_idle_page *p, unsigned n, unsigned per, unsigned gap,
                        unsigned *ret_words)
{
    uint64_t first = p[0].frame / per, last = first;
    unsigned k = 1;
    for (; k < n; k++) {
        uint64_t word = p[k].frame / per;
        if (word > last + 1 + gap || word - first >= SPAN)
            break;
        last = word;
    }
    *ret_words = (unsigned)(last - first + 1);
    return k;
}

/* The first frame of the huge page that this one is in the middle of; 0: not found. */
static uint64_t head_of(const struct os_idle *t, uint64_t frame, uint64_t *ret_flags)
{
    uint64_t words[HEAD_SPAN];
    for (uint64_t end = frame; end > 0 && frame - end < OS_IDLE_PAGES;) {
        uint64_t from = (end - 1) / HEAD_SPAN * HEAD_SPAN; /* aligned, as huge pages are */
        if (read_words(t->fd[FLAGS], from, words, (size_t)(end - from)) != 0)
            return 0;
        for (uint64_t i = end - from; i-- > 0;) {
            if (words[i] & FLAG_HEAD) {
                *ret_flags = words[i];
                return from + i;
            }
            if (!(words[i] & FLAG_TAIL))
                return 0;
        }
        end = from;
    }
    return 0;
}

int os_idle_resolve(struct os_idle *t, struct os_idle_page *pages, unsigned n)
{
    uint64_t words[SPAN], last = 0, head = 0, head_flags = 0; /* of the last huge page */
    unsigned left = 0;
    if (t->pid != os_pid())
        return -ESRCH;
    sort(pages, n);
    for (unsigned i = 0; i < n;) {
        unsigned here, k = span_of(pages + i, n - i, 1, FLAGS_GAP, &here);
        uint64_t from = pages[i].frame;
        int r = read_words(t->fd[FLAGS], from, words, here);
        if (r != 0)
            return r;
        for (unsigned end = i + k; i < end; i++) {
            struct os_idle_page p = pages[i];
            uint64_t flags = words[p.frame - from];
            if (flags & FLAG_TAIL) {
                /* The frame behind a tail or a head that is a tail itself is of the same one. */
                if (head == 0 || last + 1 != p.frame)
                    head = head_of(t, p.frame, &head_flags);
                last = p.frame;
                p.frame = head;
                flags = head ? head_flags : 0;
            } else if (flags & FLAG_HEAD) {
                head = last = p.frame;
                head_flags = flags;
            }
            if (flags & FLAG_LRU && !(flags & FLAG_NOPAGE))
                pages[left++] = p;
        }
    }
    sort(pages, left); /* tails have become heads */
    return (int)left;
}

int os_idle_look(struct os_idle *t, struct os_idle_page *pages, unsigned n)
{
    uint64_t words[SPAN];
    if (t->pid != os_pid())
        return -ESRCH;
    if (!os_file_is(t->fd[BITMAP], &t->is[BITMAP]))
        return -EBADF;
    for (unsigned i = 0; i < n;) {
        unsigned here, k = span_of(pages + i, n - i, 64, BITMAP_GAP, &here);
        uint64_t from = pages[i].frame / 64;
        int r = read_words(t->fd[BITMAP], from, words, here);
        if (r != 0)
            return r;
        for (unsigned end = i + k; i < end; i++)
            pages[i].idle = words[pages[i].frame / 64 - from] >> (pages[i].frame % 64) & 1;
    }
    return 0;
}

int os_idle_mark(struct os_idle *t, const struct os_idle_page *pages, unsigned n)
{
    if (t->pid != os_pid())
        return -ESRCH;
    if (!os_file_is(t->fd[BITMAP], &t->is[BITMAP])) /* never into a file of the program */
        return -EBADF;
    for (unsigned i = 0; i < n;) {
        uint64_t words[SPAN] = {0};
        unsigned here, k = span_of(pages + i, n - i, 64, MARK_GAP, &here);
        uint64_t from = pages[i].frame / 64;
        for (unsigned end = i + k; i < end; i++)
            words[pages[i].frame / 64 - from] |= (uint64_t)1 << (pages[i].frame % 64);
        long r = raw4(SYS_pwrite64, t->fd[BITMAP], words, here * sizeof(words[0]),
                      from * sizeof(words[0]));
        if (r < 0)
            return (int)r;
    }
    return 0;
}
