/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HYBRID_TESTS_SITES_PLUGIN_H
#define HYBRID_TESTS_SITES_PLUGIN_H

typedef unsigned capture_fn(void);

unsigned plugin_walk(capture_fn *capture, unsigned depth, unsigned path);
unsigned plugin_alloca(capture_fn *capture, unsigned bytes);
unsigned plugin_realigned(capture_fn *capture, unsigned bytes);
unsigned plugin_qsort(capture_fn *capture, unsigned unused);
unsigned plugin_noreturn(capture_fn *capture, unsigned unused);
unsigned plugin_huge_frame(capture_fn *capture, unsigned unused);

#endif
