/* SPDX-License-Identifier: BSD-2-Clause
 * Probes of the doctor: each tries the real thing in this process or a child of
 * its own and leaves nothing behind. Where a result is an int: 0 works, else
 * -errno (or -ENODATA: the call succeeds but the answer is wrong). */
#ifndef HYBRID_TOOLS_CTL_PROBE_H
#define HYBRID_TOOLS_CTL_PROBE_H

#include "base/types.h"

/* Page writes, asynchronously: userfaultfd WP_ASYNC and PAGEMAP_SCAN together
 * must name the one page that was written. */
int probe_pagemap_scan(void); /* the ioctl alone */
int probe_wp_async(void);
/* Reset by /proc/self/clear_refs, read from /proc/self/pagemap. */
int probe_soft_dirty(void);
/* As the library uses them: pages are marked and found; an event is opened, which one is told. */
int probe_idle_bitmap(void);
int probe_load_samples(const char **ret_meaning);
/* DAMON with its operations for the addresses of a process. */
int probe_damon(void);

/* A hardware counter (instructions of this thread, user mode). */
int probe_hardware_counter(void);
/* A software one: tells a missing PMU from a missing permission. */
int probe_software_counter(void);

/* Placement of pages: policy of a range, query of a page's node. */
int probe_mbind(void);
int probe_move_pages(void);

struct probe_memkind {
    bool present;
    int version;     /* 1014000: 1.14.0 */
    int dax_kmem;    /* memkind_check_available(MEMKIND_DAX_KMEM), 0: yes */
    bool crashed;    /* the child that asked did not answer */
    char error[256]; /* of the loader */
};
void probe_memkind(struct probe_memkind *ret);
/* Can the loader find it? A reason in err if not. */
bool probe_library(const char *soname, char *err, size_t err_cap);

#endif
