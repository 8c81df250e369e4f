/* SPDX-License-Identifier: BSD-2-Clause
 * Which pages of this process were written: a part of the contract for kernel calls (os.h),
 * with its conventions. Two ways, both without privileges:
 *
 * OS_TRACK_SCAN (Linux 6.7): asynchronous write protection by userfaultfd. The kernel itself
 * lifts the protection at a write and remembers it: no signal, no thread, nothing fails,
 * neither a store nor a system call that writes. A range belongs to one userfaultfd only:
 * a program that registers the same memory with one of its own gets EBUSY (os_track_wants). What
 * devices write through long-term pins (io_uring's fixed buffers) is not seen, nor are pages in
 * which nothing was ever written. Ranges lose it by mremap and munmap, and in children.
 *
 * OS_TRACK_SOFT_DIRTY: one bit a page, for the whole process: whoever else uses it (CRIU) is
 * disturbed, and clearing it walks over all memory of the process. It may tell too much: a
 * mapping that is new or was joined by another counts as written as a whole. */
#ifndef HYBRID_SYS_PAGES_TRACK_H
#define HYBRID_SYS_PAGES_TRACK_H

#include "sys/os.h"

/* The ioctl PAGEMAP_SCAN, for headers older than Linux 6.7. */
#define OS_PAGEMAP_SCAN _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, 12 * sizeof(uint64_t))

enum os_track_kind { OS_TRACK_SCAN, OS_TRACK_SOFT_DIRTY };

struct os_track {
    enum os_track_kind kind;
    int pagemap, other;                     /* other: userfaultfd, or clear_refs */
    int pid;                                /* of the process that it is about */
    bool apart;                             /* the numbers are of our threads' table */
    struct os_file_id pagemap_is, other_is; /* a program may close what it did not open */
};

/* Try it out and open it; -ENOSYS, -EPERM or -EOPNOTSUPP where the kernel does not do it.
 * Everything below is -ESRCH in a forked child. */
int os_track_open(enum os_track_kind kind, struct os_track *ret);
/* Stops all tracking. In a child it leaves the parent's alone. */
void os_track_close(struct os_track *t);
/* Whole mappings only: the kernel splits a mapping where tracking begins, and mremap across
 * such a border fails. -EBUSY: somebody else's userfaultfd is there. */
int os_track_add(struct os_track *t, void *base, size_t bytes);
/* -EXDEV: this thread does not have its descriptors. */
int os_track_remove(struct os_track *t, void *base, size_t bytes);

/* After a call of the program's that failed with EBUSY: did it want a range for a userfaultfd of
 * its own? */
bool os_track_wants(unsigned long request, const void *arg, void **ret_base, size_t *ret_bytes);

/* Pages of the range that were written since they were armed (always when they never were), of
 * those that can be tracked: private, anonymous, in memory. */
struct os_page_run {
    uintptr_t base;
    uint32_t pages;
    bool huge; /* parts of huge pages; arming splits these, at once or at the next write */
};
/* In order, as many as fit; how many, or -errno. `rearm`: those count as not written from now on,
 * without a gap in which a write could get lost (SCAN; for SOFT_DIRTY see os_track_clear). At
 * most 2 MiB at a time. */
int os_track_look(struct os_track *t, const void *base, size_t bytes, bool rearm,
                  struct os_page_run *runs, unsigned cap);
/* SOFT_DIRTY: all pages of the process are clean from now on. Nothing with SCAN. */
int os_track_clear(struct os_track *t);

/* Are its descriptors still those that were opened? Programs close what they do not know. */
bool os_track_alive(const struct os_track *t);
/* Which pages are in memory: bit 0 of a byte for each. */
int os_pages_present(const void *base, size_t pages, uint8_t *ret);

/* Small pages in this range from now on (MADV_NOHUGEPAGE). */
int os_no_huge_pages(void *base, size_t bytes);

#endif
