/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HYBRID_PAGES_SAMPLER_IDLE_H
#define HYBRID_PAGES_SAMPLER_IDLE_H

/* For tests: the kernel's files below this folder (NULL: the kernel's own). */
void sampler_idle_use(const char *root);

#endif
