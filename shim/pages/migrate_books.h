/* SPDX-License-Identifier: BSD-2-Clause
 * What moves mean for the account of DRAM, and which memory is watched: the part of
 * migrator.c that the program's own threads call. */
#ifndef HYBRID_PAGES_MIGRATE_BOOKS_H
#define HYBRID_PAGES_MIGRATE_BOOKS_H

#include "base/types.h"

/* From now on (or no longer) the calls below do something. */
void books_open(bool open);
/* Watch what the heaps took and the program mapped since the last call. */
void books_watch_new(void);
/* Charge to each tier what the histories say lies there. `paid`: bytes of DRAM that were
 * charged for it before. */
void books_settle(uint64_t paid);
void books_prefork(void);
void books_postfork(void);

#endif
