/* SPDX-License-Identifier: BSD-2-Clause
 * Pages of a span that no block in use touches. While DRAM is short they go back to the system
 * though the span stays: a few live blocks would keep all of its pages from others. A page that has
 * gone is not charged, and comes again with the next block on it. All under the lock of the span's
 * class (central.c). */
#ifndef HYBRID_HEAP_SPAN_PAGES_H
#define HYBRID_HEAP_SPAN_PAGES_H

#include "heap/internal.h"

/* Those that may lie on DRAM go back, at most so many; how many did. */
unsigned span_pages_give(uint32_t head, unsigned most);
/* These blocks of it are handed out, or all that has gone comes back. */
void span_pages_retake(uint32_t head, void *const *blocks, unsigned n);
void span_pages_retake_all(uint32_t head);

#endif
