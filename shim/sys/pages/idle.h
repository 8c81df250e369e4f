/* SPDX-License-Identifier: BSD-2-Clause
 * Which pages of this process were touched since they were marked, by the kernel's idle page
 * tracking: a part of the contract for kernel calls (os.h), with its conventions. For root only
 * (frame numbers need CAP_SYS_ADMIN), and only in kernels that are built with it.
 *
 * A frame has one bit, whoever maps it; marking moves no page and does not change what the kernel
 * thinks of its age. The processor sets a page's accessed bit when it looks the page up: what is
 * in its translation cache at that moment is seen only when it has been looked up anew. */
#ifndef HYBRID_SYS_PAGES_IDLE_H
#define HYBRID_SYS_PAGES_IDLE_H

#include "sys/os.h"

struct os_idle {
    int fd[3]; /* pagemap, kpageflags, bitmap */
    int pid;
    bool apart;              /* the numbers are of our threads' table */
    struct os_file_id is[3]; /* a program may close what it did not open */
};

/* root: "" outside tests. -ENOENT: this kernel has it not; -EACCES, -EPERM, -EROFS: not
 * permitted. Everything below is -ESRCH in a forked child, -EBADF when the program has closed
 * our files. */
int os_idle_open(const char *root, struct os_idle *ret);
void os_idle_close(struct os_idle *t);
bool os_idle_alive(const struct os_idle *t);

struct os_idle_page {
    uint64_t frame; /* whose bit it is: of a huge page its first one */
    uint16_t page;  /* of the block */
    bool idle;
};
#define OS_IDLE_PAGES 512u

/* Of pages [first, first + n) of a block, n at most OS_IDLE_PAGES, those that are in memory, added
 * behind the `have` that are in ret; how many are there then. */
int os_idle_pages(struct os_idle *t, const void *block, unsigned first, unsigned n,
                  struct os_idle_page *ret, unsigned have);
/* Sorts them by frame, finds the frames of huge pages, and drops those that have no bit at the
 * moment (not on the kernel's lists: new, pinned by nothing but a CPU's cache); how many are left.
 */
int os_idle_resolve(struct os_idle *t, struct os_idle_page *pages, unsigned n);
/* What os_idle_resolve left: sets `idle` of those that were not touched since they were marked. */
int os_idle_look(struct os_idle *t, struct os_idle_page *pages, unsigned n);
int os_idle_mark(struct os_idle *t, const struct os_idle_page *pages, unsigned n);

#endif
