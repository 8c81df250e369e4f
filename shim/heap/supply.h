/* SPDX-License-Identifier: BSD-2-Clause
 * Memory for the heaps. DRAM is mapped, part by part, as the range fills, and so is the first of
 * PM. The rest of PM comes from memkind: a stock of it is made ready by the control thread (or the
 * constructor), from which the heaps take; only supply_memkind.c knows memkind. takes, purges and
 * restores come under a heap's pages lock, one at a time per tier. */
#ifndef HYBRID_HEAP_SUPPLY_H
#define HYBRID_HEAP_SUPPLY_H

#include "base/types.h"

struct supply_backing {
    uint64_t nodes;         /* prefer these NUMA nodes; 0: the kernel's default */
    const char *dir;        /* pages of an unlinked file in this directory; NULL: anonymous */
    bool (*confined)(void); /* with dir: no calls but those of memory are made any more */
};

/* [base, base+bytes) belongs to the tier from now on; `dir` must stay valid. */
void supply_open(enum hy_tier t, void *base, size_t bytes, const struct supply_backing *b);
/* DRAM prefers these nodes (0: the kernel's default), what was taken already, too. */
void supply_settle_dram(uint64_t nodes);

/* Memory of DRAM's range, without pages so far, is of this tier from now on. `bind`: the kernel
 * must know (not of emulated memory); `nodes`: PM's. false: the kernel refuses. */
bool supply_lend(void *base, size_t bytes, enum hy_tier to, bool bind, uint64_t nodes);
/* struct heap_host's take, purge and restore. A file's blocks go back to its file system and
 * are reserved again by restore, as a store into a hole of a full one would be SIGBUS. */
void *supply_take(enum hy_tier t, size_t bytes);
int supply_purge(enum hy_tier t, void *base, size_t bytes);
bool supply_restore(enum hy_tier t, void *base, size_t bytes);
/* struct heap_host's renew and release. */
int supply_renew(enum hy_tier t, void *base, size_t bytes, bool in_use);
int supply_release(enum hy_tier t, void *base, size_t bytes);

/* --- the stock of PM ------------------------------------------------------- */

/* Open libmemkind. Not from malloc. 0 or -errno with a reason. At exit, before its destructor
 * runs, its last fill is waited for (up to 2 s), and there is no other. */
int supply_load(char *err, size_t err_cap);
bool supply_loaded(void);
/* So much PM in one piece can be taken afterwards; 1: memkind was asked for it; -errno: it is not to
 * be had. Not from malloc. */
int supply_fill(size_t bytes);
/* All of it has just been locked in memory (mlockall): what of the stock is in [base, base+bytes)
 * need not be. It is locked when it is taken, if the program still wants that. Under the pages
 * lock. */
int supply_unlock_stock(void *base, size_t bytes, bool unused);
/* Cannot be taken now. */
bool supply_is_short(size_t bytes);
/* Worth filling before anybody waits for it. */
bool supply_runs_low(void);
/* Around fork, before memkind's own handlers and after them: nobody is inside memkind. */
void supply_gate_take(void);
bool supply_gate_try(void);
void supply_gate_release(void);
/* In a forked child: the thread that may have been on its way inside is not here. */
void supply_child(void);
/* In a child forked while memkind was being loaded: nothing is asked of it any more. */
void supply_abandon(void);

/* --- what was taken -------------------------------------------------------- */

/* The i-th chunk that was taken; false: there are fewer. From any thread. */
bool supply_chunk(enum hy_tier t, size_t i, void **ret_base, size_t *ret_bytes);
/* Bytes in memory of what was taken (a walk; not for hot paths). */
uint64_t supply_resident_bytes(enum hy_tier t);
/* Bytes of a file tier that fork has made private: their next writes go to DRAM. */
uint64_t supply_private_bytes(enum hy_tier t);

/* [base, base+bytes) is about to be told something that the kernel does for anonymous memory alone:
 * what of it lies on a file leaves it, with its content if `keep`. 0 or -errno. Under the pages
 * lock.
 */
int supply_leave_file(void *base, size_t bytes, bool keep);
/* Does memory lie on files? */
bool supply_has_files(void);
/* Is some of it still shared with whoever has the file, though it should be private by now? */
bool supply_is_shared(void);
/* fork. Before it, chunks that are shared file pages become private views of the same file, so that
 * parent and child keep what was there and see none of each other's later writes. What the child
 * takes later, or gets back by purge and restore, is of a file of its own; the parent keeps the
 * file, and no block of it that the child may see is touched before the child has ended or exec'd.
 */
void supply_prefork(void);
void supply_postfork(bool child);

#endif
