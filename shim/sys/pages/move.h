/* SPDX-License-Identifier: BSD-2-Clause
 * Moving pages between NUMA nodes: a part of the contract for kernel calls (os.h), with its
 * conventions. The kernel itself keeps every write, of threads and of system calls. */
#ifndef HYBRID_SYS_PAGES_MOVE_H
#define HYBRID_SYS_PAGES_MOVE_H

/* Move `n` pages to a node; where each is afterwards, or its -errno, by page: -ENOENT is not in
 * memory, -EACCES another process has it too, -EBUSY and -EAGAIN perhaps later, -ENOMEM
 * the node is full. With huge pages -EBUSY may be told of pages that did move: ask. What
 * pages that the kernel did not come to have is 'untouched'. Result 0 or -errno. */
int os_move_pages(void *const *pages, unsigned n, int node, int *ret_where, int untouched);
/* Only ask. */
int os_page_nodes(void *const *pages, unsigned n, int *ret_where);

#endif
