/* SPDX-License-Identifier: BSD-2-Clause
 * The calls for which a seccomp filter might kill: those that ordinary programs do not make. */
#ifndef HYBRID_SYS_FILTER_H
#define HYBRID_SYS_FILTER_H

#include "base/types.h"

/* Makes the n-th of them so that it has no effect: with the registers that filters look at, and
 * memory or descriptors that are none. Whether it is refused does not matter. false: there is
 * no n-th. For a process that may be lost. */
bool os_try_filtered(unsigned n);

#endif
