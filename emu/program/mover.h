/* SPDX-License-Identifier: BSD-2-Clause
 * Moving pages in use from one medium to the other, by a thread that spends the time. */
#ifndef EMU_MOVER_H
#define EMU_MOVER_H

#include <stddef.h>

#include "model/cache.h"

/* Pages moved, or -EINVAL, -ENOMEM. */
int64_t emu_move(uint64_t address, size_t bytes, enum emu_tier t);

#endif
