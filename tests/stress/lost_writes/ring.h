/* SPDX-License-Identifier: BSD-2-Clause
 * As much of io_uring as one read at a time needs. */
#ifndef LOST_WRITES_RING_H
#define LOST_WRITES_RING_H

#include <stddef.h>
#include <sys/types.h>

struct ring;
/* NULL: not to be had here (errno). */
struct ring *ring_open(void);
void ring_close(struct ring *r);
/* The kernel keeps hold of these pages from now on; 0 or an errno. */
int ring_register(struct ring *r, void *base, size_t bytes);
/* Bytes read or -errno. `fixed`: into the registered buffer. */
int ring_read(struct ring *r, int fd, void *to, unsigned bytes, off_t at, int fixed);

#endif
