/* SPDX-License-Identifier: BSD-2-Clause
 * mremap of what is watched, or has been. To the kernel a mapping ends where tracking, small pages
 * or a memory policy of ours begins, and it lets none grow or, before Linux 6.17, move across such
 * a border (EFAULT). Two that the program laid side by side while the first was watched never
 * become one. So what the program would have got is done for each part on its own. */
#include <errno.h>
#include <sys/mman.h>

#include "core/pause.h"
#include "migrator.h"
#include "process/process.h"
#include "sys/lock.h"
#include "sys/next.h"
#include "sys/os.h"

#define TRIES 4
#define PLACE (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* Moves [low, high) of `from` to the same offsets of `to`, the last part first: that one becomes
 * larger, which is what can fail. Where the borders are is found by trying. How far it came. */
static size_t move_parts(char *from, char *to, size_t low, size_t high, size_t more)
{
    while (high > low) {
        size_t n = high - low;
        void *p;
        for (;;) {
            p = next_map()->mremap(from + high - n, n, n + more, MREMAP_MAYMOVE | MREMAP_FIXED,
                                   to + high - n);
            if (p != MAP_FAILED || errno != EFAULT || n == HY_PAGE)
                break;
            n = hy_align_up(n / 2, HY_PAGE);
        }
        if (p == MAP_FAILED)
            return high;
        high -= n;
        more = 0;
    }
    return high;
}

/* Never over what another thread has mapped meanwhile. */
static void move_back(char *from, char *to, size_t low, size_t high)
{
    size_t n = high - low;
    if (n &&
        next_map()->mmap(to + low, n, PROT_NONE, PLACE | MAP_FIXED_NOREPLACE, -1, 0) == to + low)
        (void)move_parts(from, to, low, high, 0);
}

static void *elsewhere(char *old, size_t old_len, size_t new_len, void *new_addr)
{
    size_t kept = HY_MIN(old_len, new_len);
    char *to = new_addr;
    if (!to)
        to = next_map()->mmap(NULL, new_len, PROT_NONE, PLACE, -1, 0);
    if (to == MAP_FAILED)
        return MAP_FAILED;
    size_t at = move_parts(old, to, 0, kept, new_len - kept);
    int why = errno;
    if (at == 0 && old_len > kept)
        (void)next_map()->munmap(old + kept, old_len - kept);
    if (at) {
        move_back(to, old, at, kept);
        if (!new_addr)
            (void)next_map()->munmap(to, new_len);
        errno = why;
        return MAP_FAILED;
    }
    return to;
}

void *remap_elsewhere(void *old, size_t old_len, size_t new_len)
{
    if (new_len > PTRDIFF_MAX)
        return MAP_FAILED;
    return elsewhere(old, hy_align_up(old_len, HY_PAGE), hy_align_up(new_len, HY_PAGE), NULL);
}

static bool apart(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a + a_len <= b || b + b_len <= a;
}

/* After the kernel's EFAULT, and as it: where there is a hole that stays the answer. */
static void *in_parts(char *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
    size_t here;
    char *end;
    old_len = hy_align_up(old_len, HY_PAGE);
    new_len = hy_align_up(new_len, HY_PAGE);
    end = old + old_len;
    bool fixed = (flags & MREMAP_FIXED) != 0;
    if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) || !old_len || !new_len ||
        (fixed && !apart(old, old_len, new_addr, new_len)) ||
        os_resident_pages(old, old_len, &here) != 0) {
        errno = EFAULT;
        return MAP_FAILED;
    }
    if (!fixed && new_len > old_len &&
        next_map()->mremap(end - HY_PAGE, HY_PAGE, HY_PAGE + new_len - old_len, 0) != MAP_FAILED)
        return old;
    return flags & MREMAP_MAYMOVE ? elsewhere(old, old_len, new_len, fixed ? new_addr : NULL)
                                  : MAP_FAILED;
}

/* The kernel lets a mapping go that moves as a whole. Across the border of a part that is watched
 * it refuses, and only our thread can undo that. */
static void *once(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
    void *p = next_map()->mremap(old, old_len, new_len, flags, new_addr);
    if (p == MAP_FAILED && errno == EFAULT && control_apart() &&
        control_ask(migrate_unmapped, old, HY_MAX(old_len, (size_t)1)))
        p = next_map()->mremap(old, old_len, new_len, flags, new_addr);
    return p;
}

void *remap_watched(void *old, size_t old_len, size_t new_len, int flags, void *new_addr)
{
    void *p = MAP_FAILED;
    bool leave = !control_apart();
    /* The pages' thread may be just about to watch some of it. */
    for (int i = 0; i < (leave ? TRIES : 1); i++) {
        if (leave) {
            hy_locks_enter();
            migrate_unmapped(old, HY_MAX(old_len, (size_t)1));
            hy_locks_leave();
        }
        p = once(old, old_len, new_len, flags, new_addr);
        if (p != MAP_FAILED || errno != EFAULT)
            return p;
    }
    return in_parts(old, old_len, new_len, flags, new_addr);
}
