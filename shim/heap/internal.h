/* SPDX-License-Identifier: BSD-2-Clause
 * Between the files of the heap. A granule is named by its index in the whole
 * range. Lock order: central lock of a class, then the pages lock of the tier,
 * then whatever the host's callbacks take. */
#ifndef HYBRID_HEAP_INTERNAL_H
#define HYBRID_HEAP_INTERNAL_H

#include "heap/heap.h"
#include "sys/lock.h"

#define NO_GRANULE      UINT32_MAX
#define LINE            64u
#define SPAN_GRANULES   16u                 /* 64 KiB */
#define SPAN_MAX_BLOCKS (HEAP_GRANULE / 16) /* a granule */

enum run_state {
    RUN_NONE = 0, /* never taken from the supplier */
    RUN_CLEAN,    /* free, reads as zero, no memory behind it */
    RUN_DIRTY,    /* free, still has its pages */
    RUN_SPAN,
    RUN_LARGE
};

/* One per granule, a page. State and length are kept on the first and the last granule
 * of a run, so that neighbours can be joined; the rest on the first only. Between those of a span
 * lies its bitmap (span_bits): nobody reads what is within a run. */
struct granule {
    uint8_t state;
    uint8_t cls;    /* RUN_SPAN */
    bool on_list;   /* RUN_SPAN: in its class's list of spans with free blocks */
    uint8_t colour; /* cache lines before the block, or the first of a span */
    bool striped;   /* RUN_LARGE: what is away is not its end, but in all of it */
    uint16_t site;
    uint32_t len;    /* granules in the run */
    uint32_t beyond; /* RUN_LARGE: pages behind its size that are in memory, and charged;
                      * RUN_DIRTY: pages from its start that may be in memory, 0: all */
    union {
        struct { /* all but RUN_LARGE, which is on no list */
            uint32_t prev, next;
            union {
                struct { /* RUN_SPAN */
                    uint16_t n_free, n_blocks, first_word;
                    uint16_t gone; /* bit k: page k is not in memory, nor charged (span_pages.h) */
                };
                struct {            /* RUN_CLEAN, RUN_DIRTY: none, or pages of it that */
                    uint32_t near;  /* may lie on DRAM, if it is DRAM's (not more), */
                    uint32_t holes; /* are not in memory and not charged (not fewer) */
                    uint16_t age;   /* RUN_DIRTY: decay tick at which it was freed */
                };
            };
        };
        struct {             /* RUN_LARGE */
            uint64_t size;   /* bytes from the granule's start: request and colour, in pages */
            uint64_t asked;  /* the request, for the account of its site */
            uint32_t away;   /* pages of its size that lie on PM and are charged there */
            uint32_t weight; /* for sampling */
        };
    };
};
_Static_assert(sizeof(struct granule) == 40, "a hundredth of what it tells of");
_Static_assert((SPAN_GRANULES - 2) * sizeof(struct granule) >= SPAN_GRANULES * SPAN_MAX_BLOCKS / 8,
               "room for a span's bitmap");

struct heap_global {
    struct granule *g;
    uint8_t *from_head; /* granules from the head of its span */
    uint16_t *site;     /* of what lies there, where runs are labelled */
    uint32_t first[HY_TIERS], count[HY_TIERS];
    struct heap_host host;
};
extern struct heap_global hy_hg;

/* A span's blocks, a bit each: 1 = free. */
static inline uint64_t *span_bits(uint32_t span)
{
    return (void *)(hy_hg.g + span + 1);
}

static inline uint32_t granule_of(const void *p)
{
    return (uint32_t)(((uintptr_t)p - hy_heap.base) >> HEAP_GRANULE_SHIFT);
}

static inline void *granule_addr(uint32_t i)
{
    return (void *)(hy_heap.base + ((uintptr_t)i << HEAP_GRANULE_SHIFT));
}

static inline enum hy_tier granule_tier(uint32_t i)
{
    return i >= hy_hg.first[HY_PM] ? HY_PM : HY_DRAM;
}

/* runs.c */
#define RUN_BINS 90u
struct run_set {
    uint32_t head[RUN_BINS];
    uint64_t used[2]; /* bit per non-empty bin */
    uint64_t granules;
};
void runs_insert(struct run_set *s, uint32_t i);
void runs_remove(struct run_set *s, uint32_t i);
/* A run of `len` granules or more; NO_GRANULE if there is none. */
uint32_t runs_find(const struct run_set *s, uint32_t len);
bool runs_are_valid(const struct run_set *s, enum run_state st);

/* tables.c: the rows of [i, i+len) can be used; by who holds the tier's pages lock. */
void tables_init(enum hy_tier t);
bool tables_commit(enum hy_tier t, uint32_t i, uint32_t len);
/* They may be read below this granule. */
uint32_t tables_committed(enum hy_tier t);

/* pages.c */
void pages_init(void);
/* What serves first. What will not be used in full at once is fresh, as of a run that lies dirty
 * all pages stay in memory; unless the tier has no room for more. */
enum pages_from {
    PAGES_USED,
    PAGES_FRESH,
    PAGES_CLEAN /* no dirty one */,
    PAGES_FORCED /* used, and beyond the limit */
};
/* A run of `len` granules, the first on a multiple of `align` granules (a power
 * of two): a span (size 0), charged in full, or a large block of `size` usable
 * bytes, charged by them. NO_GRANULE if it cannot be had. ret_zeroed: it reads
 * as zero. */
uint32_t pages_alloc(enum hy_tier t, uint32_t len, uint32_t align, uint64_t size,
                     enum pages_from from, bool *ret_zeroed);
/* The same for a large block of DRAM, of which `away` pages lie on PM: the last, or striped, by
 * levels. */
uint32_t pages_alloc_split(uint32_t len, uint32_t align, uint64_t size, uint32_t away,
                           const uint8_t *level, bool *ret_zeroed);
/* Another size for a RUN_LARGE, with its charge. */
void pages_set_size(uint32_t head, uint64_t size);
void pages_free(uint32_t head);
/* Cut a RUN_LARGE to `len` granules; the rest becomes free. The caller sets the
 * new size next, here and after pages_grow. */
void pages_shrink(uint32_t head, uint32_t len);
/* Lengthen a RUN_LARGE into a free neighbour; false if there is none. */
bool pages_grow(uint32_t head, uint32_t len);
/* free_runs.c: others have a use for DRAM that is free (heap_set_dram). */
bool heap_dram_is_short(void);
void pages_decay(enum hy_tier t, size_t max_bytes);
void pages_purge_all(enum hy_tier t);
void pages_stats(enum hy_tier t, struct heap_stats *ret);
void pages_prefork(void);
void pages_postfork(void);
bool pages_is_valid(enum hy_tier t);

/* central.c */
void central_init(void);
/* Up to `want` blocks of a bin, or of another with the same tier and class that no thread owns any
 * more; 0: no memory under the limit. The lowest addresses of a span come last, on top of a stack:
 * memory is used from the start of a span. */
unsigned central_take(unsigned bin, void **out, unsigned want, bool force);
/* Of one tier and class, whoever owns them. */
void central_give(void *const *in, unsigned n);
void central_trim(enum hy_tier t);
/* While DRAM is short, before more of it is taken: pages of spans that nobody uses go back. No lock
 * is held. */
void central_scour(void);
void central_prefork(void);
void central_postfork(void);
bool central_is_valid(void);

/* heap.c: every page is in memory, used or not. */
bool heap_is_all_resident(void);
bool heap_is_confined(void);

/* favour.c */
/* A class is served from the other tier first / the favoured one can serve it again. */
void favour_turn(unsigned cls, enum hy_tier t);
void heap_class_has_room(enum hy_tier t, unsigned cls);
/* A new cache takes part, for ever. */
void favour_enter(struct thread_cache *tc);

/* places.c: a run, or a part of one, is of a site. */
void places_label(uint32_t i, uint32_t len, uint16_t site);

/* cache.c */
void cache_init(void);
/* Fill the bin and pop one; NULL: this tier has nothing to give. */
void *cache_refill(enum hy_tier t, unsigned cls, bool force);
/* A full (or unusable) bin: make room and put p in, or give it straight back. */
void cache_overflow(unsigned bin, void *p);
/* Is it among the last that this thread put there? */
bool cache_holds(unsigned bin, const void *p);
void cache_flush_thread(void);
/* Is there a thread that owns such spans? And the numbers below which there ever was one. */
bool cache_has_owner(unsigned owner);
unsigned cache_owners(void);
void cache_prefork(void);
void cache_postfork(bool child);

#endif
