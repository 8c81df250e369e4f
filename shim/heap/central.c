/* SPDX-License-Identifier: BSD-2-Clause
 * Spans of equal blocks. Which blocks are free is a bitmap outside the span, so
 * neither free lists nor headers touch PM pages, and a block that is freed
 * twice or was never handed out is noticed instead of believed. */
#include <string.h>

#include "heap/altered.h"
#include "heap/span_pages.h"
#include "sys/log.h"
#include "sys/os.h"

#define COMPARED 32u /* spans of a list */

struct central {
    struct hy_lock lock;
    uint32_t head;  /* spans with free blocks: index + 1, as a start shall not write here */
    uint32_t empty; /* the one that is wholly free: index + 1; there is one at most */
    uint32_t spans;
} __attribute__((aligned(64)));

static struct central central[HEAP_BINS + 1]; /* by bin */
static uint32_t reciprocal[SIZECLASS_COUNT];

/* Bins with an empty span, a bit each; changed under the bin's lock. */
static uint64_t emptied[HEAP_BINS / 64 + 1];

static uint32_t first_span(const struct central *c)
{
    return c->head - 1; /* NO_GRANULE where there is none */
}

/* It is looked at without the lock (take_ownerless). */
static void set_head(struct central *c, uint32_t head)
{
    __atomic_store_n(&c->head, head, __ATOMIC_RELAXED);
}

static void list_add(struct central *c, uint32_t i)
{
    struct granule *g = hy_hg.g;
    g[i].prev = NO_GRANULE;
    g[i].next = first_span(c);
    if (c->head)
        g[first_span(c)].prev = i;
    set_head(c, i + 1);
    g[i].on_list = true;
}

static void list_remove(struct central *c, uint32_t i)
{
    struct granule *g = hy_hg.g;
    if (g[i].prev != NO_GRANULE)
        g[g[i].prev].next = g[i].next;
    else
        set_head(c, g[i].next + 1);
    if (g[i].next != NO_GRANULE)
        g[g[i].next].prev = g[i].prev;
    g[i].on_list = false;
}

/* Spans all begin at a multiple of 64 KiB: where the last block leaves room behind it, each begins
 * elsewhere in it, so that like blocks do not compete for the same sets of a cache (Bonwick's slab
 * colouring). In steps that keep every alignment that a class may be asked for; in lines. */
static uint8_t colour_of(uint32_t span, unsigned cls, size_t spare)
{
    size_t step = HY_MAX(sizeclass_bytes[cls] & -(size_t)sizeclass_bytes[cls], (size_t)LINE);
    size_t choices = HY_MIN(spare, UINT8_MAX * LINE) / step + 1;
    return (uint8_t)(span / SPAN_GRANULES % choices * step / LINE);
}

static void set_empty(struct central *c, uint32_t i)
{
    unsigned bin = (unsigned)(c - central);
    uint64_t bit = 1ull << (bin % 64);
    c->empty = i + 1;
    (void)__atomic_or_fetch(&emptied[bin / 64], bit, __ATOMIC_RELAXED);
}

static void unset_empty(struct central *c)
{
    unsigned bin = (unsigned)(c - central);
    uint64_t bit = 1ull << (bin % 64);
    c->empty = 0;
    (void)__atomic_and_fetch(&emptied[bin / 64], ~bit, __ATOMIC_RELAXED);
}

/* Its empty span is no longer its own; NO_GRANULE: there is none. */
static uint32_t take_empty(struct central *c)
{
    uint32_t i = c->empty - 1;
    if (i == NO_GRANULE)
        return i;
    unset_empty(c);
    list_remove(c, i);
    c->spans--;
    return i;
}

/* Under the lock of the class that had it: from here on nobody takes it for a span of that. */
static uint32_t clear_span(uint32_t i)
{
    if (HY_UNLIKELY(hy_hg.g[i].gone))
        span_pages_retake_all(i);
    for (uint32_t k = 0; k < hy_hg.g[i].len; k++)
        __atomic_store_n(&hy_heap.map[i + k], 0, __ATOMIC_RELAXED);
    return i;
}

static void unmake_span(uint32_t i)
{
    pages_free(clear_span(i));
}

/* A class keeps one empty span, against making and unmaking it again and again; and any other of
 * the tier may have it, as its pages are in memory. It is not waited for: the lock of a class is
 * held. */
static uint32_t empty_of_others(enum hy_tier t)
{
    for (unsigned w = 0; w < HY_ARRAY_SIZE(emptied); w++) {
        uint64_t bits = __atomic_load_n(&emptied[w], __ATOMIC_RELAXED);
        for (; bits; bits &= bits - 1) {
            unsigned bin = w * 64 + (unsigned)__builtin_ctzll(bits);
            uint32_t i = NO_GRANULE;
            if (heap_bin_tier(bin) != t || !hy_lock_try(&central[bin].lock))
                continue;
            if (central[bin].empty && !run_is_altered(central[bin].empty - 1))
                i = clear_span(take_empty(&central[bin]));
            hy_lock_release(&central[bin].lock);
            if (i != NO_GRANULE)
                return i;
        }
    }
    return NO_GRANULE;
}

static uint32_t span_pages(const struct central *c, enum hy_tier t, bool force)
{
    /* The first span of a class may never be used in full. */
    enum pages_from from = force ? PAGES_FORCED : c->spans ? PAGES_USED : PAGES_FRESH;
    bool zeroed;
    uint32_t i = empty_of_others(t);
    return i != NO_GRANULE ? i : pages_alloc(t, SPAN_GRANULES, 1, 0, from, &zeroed);
}

static bool make_span(unsigned bin, bool force)
{
    struct central *c = &central[bin];
    unsigned cls = heap_bin_class(bin);
    struct granule *g = hy_hg.g;
    size_t bytes = (size_t)SPAN_GRANULES << HEAP_GRANULE_SHIFT;
    unsigned blocks = (unsigned)(bytes / sizeclass_bytes[cls]);
    uint32_t i = span_pages(c, heap_bin_tier(bin), force);
    if (i == NO_GRANULE)
        return false;

    uint64_t *bits = span_bits(i);
    memset(bits, 0xff, blocks / 64 * 8);
    if (blocks % 64)
        bits[blocks / 64] = (1ull << (blocks % 64)) - 1;
    g[i].n_free = g[i].n_blocks = (uint16_t)blocks;
    g[i].first_word = 0;
    g[i].gone = 0;
    g[i].colour = colour_of(i, cls, bytes % sizeclass_bytes[cls]);
    g[i].cls = (uint8_t)cls;
    for (uint32_t k = 0; k < SPAN_GRANULES; k++) {
        __atomic_store_n(&hy_hg.from_head[i + k], (uint8_t)k, __ATOMIC_RELAXED);
        __atomic_store_n(&hy_heap.map[i + k], (uint8_t)bin, __ATOMIC_RELAXED);
    }
    list_add(c, i);
    set_empty(c, i);
    c->spans++;
    return true;
}

/* Blocks of one span, into the places before `end`: the lowest address is the last. */
static unsigned take_from(struct central *c, uint32_t i, void **end, unsigned want)
{
    struct granule *g = &hy_hg.g[i];
    uint64_t *bits = span_bits(i);
    size_t size = sizeclass_bytes[g->cls];
    char *base = (char *)granule_addr(i) + g->colour * LINE;
    unsigned w = g->first_word;

    if (g->n_free == g->n_blocks)
        unset_empty(c);
    want = HY_MIN(want, (unsigned)g->n_free);
    void **out = end, **last = end - want;
    while (out > last) {
        uint64_t b = bits[w];
        char *at = base + (size_t)w * 64 * size;
        if (b == UINT64_MAX && out - last >= 64) { /* a fresh word: no search */
            for (unsigned k = 0; k < 64; k++, at += size)
                *--out = at;
            b = 0;
        }
        for (; b && out > last; b &= b - 1)
            *--out = at + (unsigned)__builtin_ctzll(b) * size;
        bits[w] = b;
        if (!b && out > last)
            w++;
    }
    g->first_word = (uint16_t)w;
    g->n_free = (uint16_t)(g->n_free - want);
    if (HY_UNLIKELY(g->gone))
        span_pages_retake(i, last, want);
    if (g->n_free == 0)
        list_remove(c, i);
    return want;
}

/* Which span serves next. What was touched first has got DRAM, and fresh memory comes in the order
 * of addresses: so while DRAM is short it is the lowest of some, or free blocks on DRAM would wait
 * while those on PM are used. */
static uint32_t next_span(const struct central *c)
{
    uint32_t best = first_span(c);
    if (HY_LIKELY(!heap_dram_is_short()))
        return best;
    for (uint32_t i = best, n = 0; i != NO_GRANULE && n < COMPARED; n++, i = hy_hg.g[i].next)
        best = HY_MIN(best, i);
    return best;
}

static unsigned take_listed(struct central *c, void **out, unsigned want)
{
    unsigned n = 0;
    while (n < want && c->head)
        n += take_from(c, next_span(c), out + want - n, want - n);
    if (n < want)
        memmove(out, out + want - n, n * sizeof(void *));
    return n;
}

/* What threads that have ended have left. */
static unsigned take_ownerless(unsigned bin, void **out, unsigned want)
{
    enum hy_tier t = heap_bin_tier(bin);
    unsigned n = 0, cls = heap_bin_class(bin), owners = cache_owners();
    for (unsigned owner = 0; n == 0 && cls < SIZECLASS_IN_LINE && owner < owners; owner++) {
        struct central *c = &central[heap_bin(owner, t, cls)];
        if (__atomic_load_n(&c->head, __ATOMIC_RELAXED) == 0 || cache_has_owner(owner))
            continue;
        hy_lock_take(&c->lock);
        n = take_listed(c, out, want);
        hy_lock_release(&c->lock);
    }
    return n;
}

unsigned central_take(unsigned bin, void **out, unsigned want, bool force)
{
    struct central *c = &central[bin];
    unsigned n = 0;

    hy_lock_take(&c->lock); /* a page that is read before it is written costs two faults */
    if (c->head == 0) {
        hy_lock_release(&c->lock);
        if ((n = take_ownerless(bin, out, want)) > 0)
            return n;
        if (HY_UNLIKELY(heap_dram_is_short()) && heap_bin_tier(bin) == HY_DRAM &&
            !heap_is_confined())
            central_scour();
        hy_lock_take(&c->lock);
    }
    if (c->head || make_span(bin, force))
        n = take_listed(c, out, want);
    hy_lock_release(&c->lock);
    return n;
}

static HY_COLD void warn_freed_wrongly(const void *p)
{
    static bool warned;
    log_warn_once(&warned, "the program freed %p twice or inside a block; ignored", p);
}

/* What is given back at once, to spans of one bin after the other. */
struct giving {
    struct central *c; /* its lock is held; NULL: none yet */
    unsigned bin;
};

/* The span of p, under the lock of its bin. NO_GRANULE: it has none. */
static uint32_t giving_span(struct giving *at, const void *p)
{
    uint32_t i = granule_of(p);
    unsigned v = hy_heap.map[i];
    if (HY_UNLIKELY(v == HEAP_ALTERED)) /* after it was freed; it is renewed the next time */
        v = altered_bin(i);
    if (HY_UNLIKELY(v == 0 || v > HEAP_BINS))
        return NO_GRANULE;
    if (v != at->bin) {
        if (at->c)
            hy_lock_release(&at->c->lock);
        at->c = &central[at->bin = v];
        hy_lock_take(&at->c->lock);
    }
    return i - (hy_hg.from_head[i] & (ALTERED - 1));
}

/* Those from the first on that are blocks of the span, and not free: how many. Most often blocks
 * of one span come together, so what is known of it is looked up once. */
static unsigned mark_free(uint32_t span, void *const *in, unsigned n, unsigned *ret_word)
{
    const struct granule *g = &hy_hg.g[span];
    uintptr_t first = (uintptr_t)granule_addr(span) + g->colour * LINE;
    size_t bytes = (size_t)g->n_blocks * sizeclass_bytes[g->cls];
    uint64_t each = reciprocal[g->cls], *bits = span_bits(span);
    unsigned done = 0, lowest = UINT32_MAX;

    for (; done < n; done++) {
        size_t off = (uintptr_t)in[done] - first;
        uint64_t q = off * each;
        unsigned k = (unsigned)(q >> 32);
        /* The quotient's fraction is less than the reciprocal exactly where nothing remains. */
        if (HY_UNLIKELY(off >= bytes) || HY_UNLIKELY((uint32_t)q >= each))
            break;
        uint64_t word = bits[k / 64], bit = 1ull << (k % 64);
        if (HY_UNLIKELY(word & bit))
            break;
        bits[k / 64] = word | bit;
        lowest = HY_MIN(lowest, k);
    }
    *ret_word = lowest / 64;
    return done;
}

static unsigned give_some(struct central *c, uint32_t i, void *const *in, unsigned n)
{
    struct granule *g = &hy_hg.g[i];
    unsigned word, done = mark_free(i, in, n, &word);

    if (HY_UNLIKELY(done == 0))
        return 0;
    g->first_word = (uint16_t)HY_MIN((unsigned)g->first_word, word);
    g->n_free = (uint16_t)(g->n_free + done);
    if (!g->on_list)
        list_add(c, i);
    if (g->n_free < g->n_blocks)
        return done;
    if (c->empty) {
        list_remove(c, i);
        c->spans--;
        unmake_span(i);
    } else {
        set_empty(c, i);
    }
    return done;
}

void central_give(void *const *in, unsigned n)
{
    struct giving at = {NULL, 0};

    for (unsigned k = 0, done; k < n; k += HY_MAX(done, 1u)) {
        uint32_t i = giving_span(&at, in[k]);
        done = i == NO_GRANULE ? 0 : give_some(at.c, i, in + k, n - k);
        if (HY_UNLIKELY(done == 0))
            warn_freed_wrongly(in[k]);
    }
    if (!at.c)
        return;
    hy_lock_release(&at.c->lock);
    heap_class_has_room(heap_bin_tier(at.bin), heap_bin_class(at.bin));
}

/* Looked at for each new span: as many pages go back as it may take, so no class that is in use
 * pays for another more than twice what that one costs. */
#define SCOUR_SPANS 32u
#define SCOUR_MAP   (64 * SCOUR_SPANS)

/* The head of a span of DRAM from granule `at` on, before `end`; as it was a moment ago. */
static uint32_t span_from(uint32_t at, uint32_t end)
{
    while (at < end) {
        unsigned v = __atomic_load_n(&hy_heap.map[at], __ATOMIC_RELAXED);
        if (v >= 1 && v <= HEAP_BINS)
            return at - (__atomic_load_n(&hy_hg.from_head[at], __ATOMIC_RELAXED) & (ALTERED - 1));
        at++;
    }
    return NO_GRANULE;
}

static unsigned scour_span(uint32_t i, unsigned most)
{
    unsigned bin = __atomic_load_n(&hy_heap.map[i], __ATOMIC_RELAXED), given = 0;
    if (bin < 1 || bin > HEAP_BINS)
        return 0;
    struct central *c = &central[bin];
    hy_lock_take(&c->lock);
    /* As long as its map byte says so, which is written under this lock, it is a span. From the
     * first of the list blocks are taken next. */
    if (hy_heap.map[i] == bin && (hy_hg.from_head[i] & (ALTERED - 1)) == 0 && c->head != i + 1)
        given = span_pages_give(i, most);
    hy_lock_release(&c->lock);
    return given;
}

void central_scour(void)
{
    static uint32_t next; /* where the last one ended; any value will do */
    uint32_t end = tables_committed(HY_DRAM), at = __atomic_load_n(&next, __ATOMIC_RELAXED);
    unsigned given = 0;
    if (at >= end)
        at = 0;
    end = HY_MIN(end, at + SCOUR_MAP);
    for (unsigned n = 0; n < SCOUR_SPANS && given < SPAN_GRANULES && at < end; n++) {
        uint32_t i = span_from(at, end);
        at = i == NO_GRANULE ? end : i + SPAN_GRANULES;
        if (i != NO_GRANULE)
            given += scour_span(i, SPAN_GRANULES - given);
    }
    __atomic_store_n(&next, at, __ATOMIC_RELAXED);
}

void central_trim(enum hy_tier t)
{
    for (unsigned bin = 1; bin <= HEAP_BINS; bin++) {
        if (heap_bin_tier(bin) != t)
            continue;
        hy_lock_take(&central[bin].lock);
        uint32_t i = take_empty(&central[bin]);
        if (i != NO_GRANULE)
            unmake_span(i);
        hy_lock_release(&central[bin].lock);
    }
}

void central_init(void)
{
    for (unsigned cls = 0; cls < SIZECLASS_COUNT; cls++)
        reciprocal[cls] =
            (uint32_t)(((1ull << 32) + sizeclass_bytes[cls] - 1) / sizeclass_bytes[cls]);
}

void central_prefork(void)
{
    for (unsigned bin = 1; bin <= HEAP_BINS; bin++)
        hy_lock_prefork(&central[bin].lock);
}

void central_postfork(void)
{
    for (unsigned bin = HEAP_BINS; bin >= 1; bin--)
        hy_lock_postfork(&central[bin].lock);
}

static bool span_is_valid(unsigned bin, uint32_t i)
{
    const struct granule *g = &hy_hg.g[i];
    unsigned n = 0;
    for (unsigned w = 0; w < (g->n_blocks + 63u) / 64; w++) {
        uint64_t b = span_bits(i)[w];
        if (b && w < g->first_word)
            return false;
        n += (unsigned)__builtin_popcountll(b);
    }
    return n == g->n_free && n > 0 && g->cls == heap_bin_class(bin) && g->state == RUN_SPAN &&
           hy_heap.map[i] == bin;
}

bool central_is_valid(void)
{
    bool ok = true;
    for (unsigned bin = 1; bin <= HEAP_BINS; bin++) {
        struct central *c = &central[bin];
        hy_lock_take(&c->lock);
        for (uint32_t i = first_span(c); ok && i != NO_GRANULE; i = hy_hg.g[i].next)
            ok = span_is_valid(bin, i);
        hy_lock_release(&c->lock);
    }
    return ok;
}
