/* SPDX-License-Identifier: BSD-2-Clause
 * Memory held for memkind. Its destructor and its fork handlers run in threads that it may not have
 * met before. It makes records for such a thread, and crashes where the kernel has no memory for
 * them any more (RLIMIT_AS, RLIMIT_DATA, no overcommit). What is held was mapped while there was
 * some. */
#ifndef HYBRID_HEAP_SPARE_H
#define HYBRID_HEAP_SPARE_H

#include "base/types.h"

/* Before memkind is used. false: there is no memory for it even now. */
bool spare_hold(void);
/* From here on, mappings that this thread is refused are of what is held; or no more, and what was
 * used is held again. One thread at a time. */
void spare_serves(bool on);
/* A mapping was refused: memory in its place; NULL: there is none, or not for this thread. */
void *spare_take(size_t bytes);
/* mlockall has come: what is left need not be in memory. While nobody is served. */
void spare_unlock(void);

#endif
