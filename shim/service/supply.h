/* SPDX-License-Identifier: BSD-2-Clause
 * Memory for the heaps, from memkind. Each tier's part of the reserved range is
 * opened in segments, as it fills; a segment is one memkind fixed kind with the
 * tier's placement (a NUMA policy, or pages of a file). The only user of
 * memkind.h. Calls come under a heap's pages lock, one at a time per tier. */
#ifndef HYBRID_SERVICE_SUPPLY_H
#define HYBRID_SERVICE_SUPPLY_H

#include "base/types.h"

struct supply_backing {
    uint64_t nodes;  /* prefer these NUMA nodes; 0: the kernel's default */
    const char *dir; /* pages of an unlinked file in this directory; NULL: anonymous */
};

/* Open libmemkind. Not from malloc. 0 or -errno with a reason. */
int supply_load(char *err, size_t err_cap);
/* [base, base+bytes) belongs to the tier from now on; `dir` must stay valid. */
void supply_open(enum hy_tier t, void *base, size_t bytes, const struct supply_backing *b);

/* struct heap_host's take, purge and restore. A file's blocks go back to its file system and
 * are reserved again by restore, as a store into a hole of a full one would be SIGBUS. */
void *supply_take(enum hy_tier t, size_t bytes);
int supply_purge(enum hy_tier t, void *base, size_t bytes);
bool supply_restore(enum hy_tier t, void *base, size_t bytes);

/* No call into memkind from here on, and none under way (waits up to 2 s): its destructor is about
 * to run, and what was taken stays valid after it (memkind never unmaps a fixed range). */
void supply_close(void);

/* The i-th chunk that was taken; false: there are fewer. From any thread. */
bool supply_chunk(enum hy_tier t, size_t i, void **ret_base, size_t *ret_bytes);
/* Bytes in memory of what was taken (a walk; not for hot paths). */
uint64_t supply_resident_bytes(enum hy_tier t);
/* Bytes of a file tier that fork has made private: their next writes go to DRAM. */
uint64_t supply_private_bytes(enum hy_tier t);

/* fork. Before it, chunks that are shared file pages become private views of
 * the same file, so that parent and child keep what was there and see none of
 * each other's later writes; what either takes later, or gets back by purge and
 * restore, is of a file of its own. */
void supply_prefork(void);
void supply_postfork(void);
/* In a child forked without supply_prefork: nothing is taken any more. */
void supply_abandon(void);

#endif
