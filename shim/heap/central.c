/* SPDX-License-Identifier: BSD-2-Clause
 * Spans of equal blocks. Which blocks are free is a bitmap outside the span, so
 * neither free lists nor headers touch PM pages, and a block that is freed
 * twice or was never handed out is noticed instead of believed. */
#include <string.h>

#include "heap/altered.h"
#include "heap/span_pages.h"
#include "sys/log.h"
#include "sys/os.h"

struct central {
    struct hy_lock lock;
    uint32_t head;    /* spans with free blocks: index + 1, as a start shall not write here */
    uint32_t n_empty; /* of them wholly free */
    uint32_t spans;
} __attribute__((aligned(64)));

static struct central central[HEAP_BINS + 1]; /* by bin */
static uint32_t reciprocal[SIZECLASS_COUNT];

/* Wholly free spans that a class of small blocks keeps, against making and unmaking one. */
#define EMPTY_KEPT 1

static uint32_t first_span(const struct central *c)
{
    return c->head - 1; /* NO_GRANULE where there is none */
}

static uint64_t *bits_of(uint32_t span)
{
    return hy_hg.bits + (size_t)span * (SPAN_MAX_BLOCKS / 64);
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

static bool make_span(unsigned bin, bool force)
{
    struct central *c = &central[bin];
    enum hy_tier t = heap_bin_tier(bin);
    unsigned cls = heap_bin_class(bin);
    struct granule *g = hy_hg.g;
    uint32_t len = SPAN_GRANULES;
    size_t bytes = (size_t)len << HEAP_GRANULE_SHIFT;
    unsigned blocks = (unsigned)(bytes / sizeclass_bytes[cls]);
    /* The first span of a class may never be used in full. */
    enum pages_from from = force ? PAGES_FORCED : c->spans ? PAGES_USED : PAGES_FRESH;
    bool zeroed;
    uint32_t i = pages_alloc(t, len, 1, 0, from, &zeroed);
    if (i == NO_GRANULE)
        return false;

    uint64_t *bits = bits_of(i);
    memset(bits, 0xff, blocks / 64 * 8);
    if (blocks % 64)
        bits[blocks / 64] = (1ull << (blocks % 64)) - 1;
    g[i].n_free = g[i].n_blocks = (uint16_t)blocks;
    g[i].first_word = 0;
    g[i].gone = 0;
    g[i].colour = colour_of(i, cls, bytes % sizeclass_bytes[cls]);
    g[i].cls = (uint8_t)cls;
    for (uint32_t k = 0; k < len; k++) {
        __atomic_store_n(&hy_hg.from_head[i + k], (uint8_t)k, __ATOMIC_RELAXED);
        __atomic_store_n(&hy_heap.map[i + k], (uint8_t)bin, __ATOMIC_RELAXED);
    }
    list_add(c, i);
    c->n_empty++;
    c->spans++;
    return true;
}

static void unmake_span(struct central *c, uint32_t i)
{
    c->spans--;
    if (HY_UNLIKELY(hy_hg.g[i].gone))
        span_pages_retake_all(i);
    for (uint32_t k = 0; k < hy_hg.g[i].len; k++)
        __atomic_store_n(&hy_heap.map[i + k], 0, __ATOMIC_RELAXED);
    pages_free(i);
}

/* Blocks of one span, lowest addresses first. */
static unsigned take_from(struct central *c, uint32_t i, void **out, unsigned want)
{
    struct granule *g = &hy_hg.g[i];
    uint64_t *bits = bits_of(i);
    size_t size = sizeclass_bytes[g->cls];
    char *base = (char *)granule_addr(i) + g->colour * LINE;
    unsigned n = 0, w = g->first_word;

    if (g->n_free == g->n_blocks)
        c->n_empty--;
    want = HY_MIN(want, (unsigned)g->n_free);
    while (n < want) {
        uint64_t b = bits[w];
        char *at = base + (size_t)w * 64 * size;
        if (b == UINT64_MAX && want - n >= 64) { /* a fresh word: no search */
            for (unsigned k = 0; k < 64; k++, at += size)
                out[n++] = at;
            b = 0;
        }
        for (; b && n < want; b &= b - 1)
            out[n++] = at + (unsigned)__builtin_ctzll(b) * size;
        bits[w] = b;
        if (!b && n < want)
            w++;
    }
    g->first_word = (uint16_t)w;
    g->n_free = (uint16_t)(g->n_free - n);
    if (HY_UNLIKELY(g->gone))
        span_pages_retake(i, out, n);
    if (g->n_free == 0)
        list_remove(c, i);
    return n;
}

static unsigned take_listed(struct central *c, void **out, unsigned want)
{
    unsigned n = 0;
    while (n < want && c->head)
        n += take_from(c, first_span(c), out + n, want - n);
    return n;
}

/* What threads that have ended have left. */
static unsigned take_ownerless(unsigned bin, void **out, unsigned want)
{
    enum hy_tier t = heap_bin_tier(bin);
    unsigned n = 0, cls = heap_bin_class(bin);
    for (unsigned owner = 0; n == 0 && cls < SIZECLASS_IN_LINE && owner < HEAP_OWNERS; owner++) {
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

    if (__atomic_load_n(&c->head, __ATOMIC_RELAXED) == 0 &&
        (n = take_ownerless(bin, out, want)) > 0)
        return n;
    if (HY_UNLIKELY(heap_dram_is_short()) && heap_bin_tier(bin) == HY_DRAM && !heap_is_confined() &&
        __atomic_load_n(&c->head, __ATOMIC_RELAXED) == 0)
        central_scour();
    hy_lock_take(&c->lock);
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

static void give_one(struct central *c, unsigned cls, void *p)
{
    struct granule *g = hy_hg.g;
    uint32_t i = granule_of(p);
    i -= hy_hg.from_head[i] & (ALTERED - 1);
    size_t off = (uintptr_t)p - (uintptr_t)granule_addr(i) - g[i].colour * LINE;
    unsigned k = (unsigned)((off * (uint64_t)reciprocal[cls]) >> 32);
    uint64_t *word = bits_of(i) + k / 64, bit = 1ull << (k % 64);

    if (k * (size_t)sizeclass_bytes[cls] != off || (*word & bit)) {
        warn_freed_wrongly(p);
        return;
    }
    *word |= bit;
    if (k / 64 < g[i].first_word)
        g[i].first_word = (uint16_t)(k / 64);
    if (!g[i].on_list)
        list_add(c, i);
    if (++g[i].n_free < g[i].n_blocks)
        return;
    if (c->n_empty >= EMPTY_KEPT) {
        list_remove(c, i);
        unmake_span(c, i);
    } else {
        c->n_empty++;
    }
}

void central_give(void *const *in, unsigned n)
{
    struct central *c = NULL;
    unsigned bin = 0;

    for (unsigned k = 0; k < n; k++) {
        unsigned v = hy_heap.map[granule_of(in[k])];
        if (HY_UNLIKELY(v == HEAP_ALTERED)) /* after it was freed; it is renewed the next time */
            v = altered_bin(granule_of(in[k]));
        if (HY_UNLIKELY(v == 0 || v > HEAP_BINS)) {
            warn_freed_wrongly(in[k]);
            continue;
        }
        if (v != bin) {
            if (c)
                hy_lock_release(&c->lock);
            c = &central[bin = v];
            hy_lock_take(&c->lock);
        }
        give_one(c, heap_bin_class(bin), in[k]);
    }
    if (!c)
        return;
    hy_lock_release(&c->lock);
    heap_class_has_room(heap_bin_tier(bin), heap_bin_class(bin));
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

static void trim(struct central *c)
{
    for (uint32_t i = first_span(c); i != NO_GRANULE && c->n_empty;) {
        uint32_t next = hy_hg.g[i].next;
        if (hy_hg.g[i].n_free == hy_hg.g[i].n_blocks) {
            list_remove(c, i);
            c->n_empty--;
            unmake_span(c, i);
        }
        i = next;
    }
}

void central_trim(enum hy_tier t)
{
    for (unsigned bin = 1; bin <= HEAP_BINS; bin++) {
        if (heap_bin_tier(bin) != t)
            continue;
        hy_lock_take(&central[bin].lock);
        trim(&central[bin]);
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
        uint64_t b = bits_of(i)[w];
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
