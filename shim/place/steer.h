/* SPDX-License-Identifier: BSD-2-Clause
 * Allocation while memory is placed: which heap serves a request. */
#ifndef HYBRID_PLACE_STEER_H
#define HYBRID_PLACE_STEER_H

#include "sys/next.h"

extern const struct alloc_ops steer_ops;      /* steer.c */
extern const struct alloc_ops steer_site_ops; /* steer.c: small sites of a profile */
extern const struct alloc_ops steer_next_ops; /* steer_next.c: DRAM from the next allocator */
/* DRAM use by measurement, for steer_next_ops. */
void steer_next_measure(void);

/* steer.c, shared with steer_next.c */
void *steer_malloc(size_t n);
void steer_free(void *p);
void *steer_calloc(size_t count, size_t size);
void *steer_realloc(void *p, size_t n);
void *steer_memalign(size_t align, size_t n);
size_t steer_usable_size(void *p);
void steer_enable_sites(size_t unwind_from);

#endif
