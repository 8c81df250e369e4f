/* SPDX-License-Identifier: BSD-2-Clause
 * The heaps: one per tier, both in one reserved address range, so that 'is it ours, and whose'
 * is one comparison and one byte. From the bottom: pages.c and runs.c (runs of granules, which
 * are pages, taken in chunks, kept dirty for reuse within bounds), parked.c (a few short ones
 * that wait for their like, without a lock), central.c (spans of equal blocks, one lock per
 * class; all bookkeeping lies outside the blocks, so PM is not touched by it), cache.c
 * (per-thread stacks of free blocks: the hot path, no lock), heap.c (any size and alignment).
 * Memory, permission and the choice of tier come from outside through struct heap_host. Nothing
 * here calls another allocator, the environment or the registry. Callers hold no lock. */
#ifndef HYBRID_HEAP_HEAP_H
#define HYBRID_HEAP_HEAP_H

#include "base/types.h"
#include "heap/hot.h"
#include "heap/rules/sizeclass.h"

/* Ranges are multiples of this many granules; the tables' rows for them are then
 * whole pages, whatever the size of a row. */
#define HEAP_STEP_GRANULES 65536u
#define HEAP_STEP          (HEAP_STEP_GRANULES * HEAP_GRANULE)

/* Memory comes in multiples of this, and programs bargain for DRAM in them. */
#define HEAP_CHUNK ((size_t)64 * HY_KIB)

/* What the heaps ask of the rest of the library. All callbacks may be called
 * with a heap lock held and must not allocate from the heaps. */
struct heap_host {
    /* `bytes` (multiple of a granule) of zeroed memory, granule-aligned, inside
     * the tier's part of the range, never to be returned; NULL: none left. */
    void *(*take)(enum hy_tier tier, size_t bytes);
    /* Give the physical pages back; they read as zero afterwards. */
    int (*purge)(enum hy_tier tier, void *base, size_t bytes);
    /* May the tier hold `bytes` more? false: not now. `force`: account for it
     * whatever the limit (the other tier has failed). */
    bool (*charge)(enum hy_tier tier, size_t bytes, bool force);
    void (*discharge)(enum hy_tier tier, size_t bytes);
    uint64_t (*room)(enum hy_tier tier);     /* what charge would still allow, roughly (NULL) */
    uint64_t (*room_now)(enum hy_tier tier); /* even if nobody else gives way (NULL) */
    /* Before purged or fresh memory is used (NULL: nothing to do): false: the medium has no
     * room for it now. */
    bool (*restore)(enum hy_tier tier, void *base, size_t bytes);
    /* take has had nothing; no lock is held. true: worth asking again (NULL: never). */
    bool (*await)(enum hy_tier tier, size_t bytes);
    /* As purge, the addresses as well; restore comes before they are used again (NULL: never).
     * 0 bytes: of all that has not been taken yet. */
    int (*release)(enum hy_tier tier, void *base, size_t bytes);
    /* Whatever is mapped there gives way to memory of the tier, zeroed: of a block that is freed,
     * or goes on being part of a span in use (NULL: never). */
    int (*renew)(enum hy_tier tier, void *base, size_t bytes, bool in_use);
    /* Give back whole pages of a block that is in use (NULL: never); false: they stay. */
    bool (*trim)(enum hy_tier tier, void *base, size_t bytes);
    /* So much of a large block of DRAM, without memory so far, is to lie on PM and be charged
     * there: its end, or in stripes of all of it, of parts of low `level` first (NULL: never);
     * false: it cannot. join: that memory goes back, and all of it is DRAM's again. */
    bool (*split)(void *block, size_t size, size_t away, const uint8_t *level);
    void (*join)(void *block);
    /* Pages of DRAM's range may lie on PM, where the kernel has put them: do the first of them
     * (as many as are alike: *bytes becomes smaller)? By what is known (NULL: nothing is). */
    bool (*lies_far)(const void *base, size_t *bytes);
};

struct heap_stats {
    uint64_t live_bytes;                        /* in spans and large blocks */
    uint64_t dirty_bytes;                       /* free, not yet given back */
    uint64_t peak_bytes;                        /* highest live + dirty */
    uint64_t spans, large_blocks, large_allocs; /* the last: ever made */
    /* Pages of free runs that are kept for who comes next, or went back while DRAM is short; how
     * many of them have been taken again, ever. */
    uint64_t idle_pages, retaken_pages;
};

/* [base, base + bytes[DRAM]) is the DRAM heap, then bytes[PM] the PM heap; both
 * multiples of HEAP_STEP. Once per process. 0 or -errno. */
int heap_init(void *base, const size_t bytes[HY_TIERS], const struct heap_host *host);

/* --- requests ------------------------------------------------------------ */

/* How the caller wants a block. */
struct heap_want {
    enum hy_tier tier;    /* tried first, then the other, then DRAM beyond its limit */
    bool own_run;         /* a run of its own even if small (sampled blocks) */
    uint16_t site;        /* call site, 0 none; only kept for blocks with a run */
    uint32_t weight;      /* allocations that this one stands for */
    size_t spare;         /* room to grow in place, not charged */
    size_t part;          /* for PM: bytes of DRAM that a large block has, */
    const uint8_t *level; /* of which parts of it (pages/rules/stripes.h) */
};

/* NULL: neither tier would give. errno is untouched. Never called under the
 * re-entrancy guard. */
void *heap_alloc(size_t n, const struct heap_want *w);
void *heap_alloc_zeroed(size_t n, const struct heap_want *w);
void *heap_alloc_aligned(size_t align, size_t n, const struct heap_want *w);
void heap_free_slow(void *p);
static inline void heap_free(void *p)
{
    if (HY_UNLIKELY(!heap_push(hy_cache, p)))
        heap_free_slow(p);
}
size_t heap_usable_size(const void *p);
/* Grow or shrink where it lies; false: it must move. */
bool heap_resize_in_place(void *p, size_t n);
/* Site, weight and requested bytes of a large or sampled block; false for others. */
bool heap_site_of(const void *p, uint16_t *ret_site, uint32_t *ret_weight, size_t *ret_size);

/* What an address in the heaps belongs to, for samples of accesses: of freed memory what it
 * last was. Any address of ours; nothing is locked, so the answer may be of a moment ago. */
struct heap_origin {
    enum {
        HEAP_IS_RUN,  /* a block whose site is known, or larger than any that is sampled */
        HEAP_IS_SMALL /* one of the blocks that sampled ones of its pool stand for */
    } what;
    uint16_t site; /* of a run; 0: not known */
    uint8_t cls;   /* pool, of a small block or a sampled one; HEAP_POOLS: none */
};
/* Pools are the size classes, and above them one for each doubling. */
#define HEAP_POOLS      (SIZECLASS_COUNT + 4u)
#define HEAP_POOLED_MAX (16 * SIZECLASS_MAX)
void heap_origin_of(const void *address, struct heap_origin *ret);
/* The block with a run of its own around an address, if any; the same holds. */
bool heap_block_of(const void *address, uintptr_t *ret_base, size_t *ret_bytes);
/* Runs are labelled for heap_origin_of from now on: two bytes for each page. `before` is called, by
 * any thread, when memory of one site is about to be another's. */
void heap_label_runs(void (*before)(void));
/* Calls fn for each live block that was sampled, with its pool. */
void heap_each_sampled(void (*fn)(uint16_t site, unsigned cls, size_t size));

/* --- upkeep --------------------------------------------------------------- */

/* The tier that every class is served from first, from now on. */
void heap_set_favour(enum hy_tier t);
enum hy_tier heap_favour(void);
/* A tier has room again: classes that had turned away come back to it. */
void heap_reopen(enum hy_tier t);
/* fn for what of [base, base+bytes) is of the tier's range, under its pages lock. */
int heap_under_lock(enum hy_tier t, char *base, size_t bytes, bool keep,
                    int (*fn)(void *base, size_t bytes, bool keep));
/* The program alters pages of a block of its own (heap_overlaps): they are mapped afresh before
 * another block lies there. */
void heap_note_altered(const void *base, size_t bytes);
/* This thread can have no more memory (seccomp's strict mode): its blocks come from what there is.
 */
void heap_confine(bool is);
/* So much DRAM is there for this process: the caches of its threads hold a small part of it. What
 * they hold beyond it they give back as their threads come to the slow path. */
void heap_bound_caches(uint64_t dram);
void heap_all_resident(bool is); /* mlockall: what is not needed costs as much as what is */
/* Give back what has lain free since the last tick; at most max_bytes. */
void heap_decay(enum hy_tier t, size_t max_bytes);
/* How much DRAM the kernel still has for who touches memory next. While it is short, what is freed
 * of it goes back at once; when it is no longer ample, no run waits for its like (parked.h). */
enum heap_dram { HEAP_DRAM_AMPLE, HEAP_DRAM_SCARCE, HEAP_DRAM_CHEAP, HEAP_DRAM_SHORT };
void heap_set_dram(enum heap_dram now, uint64_t left); /* so many bytes; UINT64_MAX: not known */
void heap_trim(enum hy_tier t); /* all that is free, this thread's cache included */
void heap_get_stats(enum hy_tier t, struct heap_stats *ret);
/* Sampling: bytes between samples of a thread, INT64_MAX = off; a thread sees a change within
 * HEAP_LOOK_AGAIN. */
#define HEAP_LOOK_AGAIN ((int64_t)HY_MIB)
void heap_set_sample_interval(int64_t bytes);
int64_t heap_sample_interval(void);
/* fork: every lock of the heaps; the child forgets the caches of threads that it has not. */
void heap_prefork(void);
void heap_postfork(bool child);
/* Invariants of both heaps, for tests. */
bool heap_is_valid(void);

#endif
