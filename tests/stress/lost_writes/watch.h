/* SPDX-License-Identifier: BSD-2-Clause
 * The sampler watches the pages while they move, as it does in libhybrid: what it arms and
 * what is moved meet. */
#ifndef LOST_WRITES_WATCH_H
#define LOST_WRITES_WATCH_H

#include <stddef.h>

/* 0, or -errno when this kernel tells of no writes. */
int watch_start(void *memory, size_t bytes);
void watch_round(void);
const char *watch_source(void);

#endif
