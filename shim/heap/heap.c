/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap/heap.h"

#include <errno.h>
#include <string.h>

#include "heap/altered.h"
#include "heap/parked.h"
#include "sys/log.h"
#include "sys/os.h"

struct heap_range hy_heap;
struct heap_global hy_hg;

int heap_init(void *base, const size_t bytes[HY_TIERS], const struct heap_host *host)
{
    size_t granules = (bytes[HY_DRAM] + bytes[HY_PM]) >> HEAP_GRANULE_SHIFT;
    size_t bits = granules * sizeof(struct granule);
    size_t map = bits + granules * SPAN_MAX_BLOCKS / 8;
    void *tables;

    if (granules >= NO_GRANULE || ((uintptr_t)base & (HEAP_GRANULE - 1)) ||
        bytes[HY_DRAM] % HEAP_STEP || bytes[HY_PM] % HEAP_STEP)
        return -EINVAL;
    /* Address space only: pages of these tables appear as the heap is used. Each is whole pages. */
    int e = os_reserve(map + 4 * granules, HY_PAGE, &tables);
    if (e)
        return e;
    hy_hg.g = tables;
    hy_hg.bits = (void *)((char *)tables + bits);
    hy_hg.from_head = (uint8_t *)tables + map + granules;
    hy_hg.site = (void *)(hy_hg.from_head + granules);
    hy_hg.host = *host;
    hy_hg.first[HY_DRAM] = 0;
    hy_hg.count[HY_DRAM] = (uint32_t)(bytes[HY_DRAM] >> HEAP_GRANULE_SHIFT);
    hy_hg.first[HY_PM] = hy_hg.count[HY_DRAM];
    hy_hg.count[HY_PM] = (uint32_t)(bytes[HY_PM] >> HEAP_GRANULE_SHIFT);
    pages_init();
    central_init();
    cache_init();
    hy_heap.map = (uint8_t *)tables + map;
    hy_heap.base = (uintptr_t)base;
    __atomic_store_n(&hy_heap.len, bytes[HY_DRAM] + bytes[HY_PM], __ATOMIC_RELEASE);
    return 0;
}

enum hy_tier heap_tier_of(const void *p)
{
    return granule_tier(granule_of(p));
}

/* --- allocation ------------------------------------------------------------ */

static bool await(enum hy_tier t, size_t bytes)
{
    return hy_hg.host.await && hy_hg.host.await(t, bytes);
}

static void *small_from(enum hy_tier t, unsigned cls)
{
    void *p = heap_pop(hy_cache, heap_own_bin(hy_cache, t, cls));
    if (!p)
        p = cache_refill(t, cls, false);
    if (!p && await(t, (size_t)SPAN_GRANULES << HEAP_GRANULE_SHIFT))
        p = cache_refill(t, cls, false);
    return p;
}

static void *alloc_small(unsigned cls, enum hy_tier t)
{
    enum hy_tier other = t == HY_DRAM ? HY_PM : HY_DRAM;
    void *p = small_from(t, cls);
    if (p)
        return p;
    p = small_from(other, cls);
    if (p) {
        if (t == heap_favour())
            favour_turn(cls, other); /* until something comes back */
        return p;
    }
    return cache_refill(HY_DRAM, cls, true);
}

/* Large blocks that all begin at a multiple of 64 KiB compete for the same sets of the
 * L1 when they are used side by side: each begins some lines later than the one before.
 * Sampled small blocks, which have a run as well, would miss more often than their like. */
#define COLOURS    64u /* a page of lines */
#define COLOUR_MIN (256 * HY_KIB)

static bool resident;

void heap_all_resident(bool is)
{
    __atomic_store_n(&resident, is, __ATOMIC_RELAXED);
}

bool heap_is_all_resident(void)
{
    return __atomic_load_n(&resident, __ATOMIC_RELAXED);
}

static __thread bool confined __attribute__((tls_model("initial-exec")));

void heap_confine(bool is)
{
    confined = is;
}

bool heap_is_confined(void)
{
    return confined;
}

/* In the rest of the last page where that gives some choice, and of sampled blocks always. */
static inline unsigned colours_of(size_t n, bool sampled)
{
    unsigned spare = (unsigned)((hy_align_up(n, HY_PAGE) - n) / LINE) + 1;
    bool is_free = sampled || n < COLOUR_MIN || heap_is_all_resident();
    return is_free || spare >= COLOURS / 4 ? HY_MIN(spare, COLOURS) : COLOURS;
}

static uint8_t next_colour(size_t n, size_t align, bool sampled)
{
    static uint32_t turn;
    unsigned colours = align > LINE ? 1 : colours_of(n, sampled);
    if (colours == 1)
        return 0;
    /* An odd step visits them all; a large one keeps neighbours apart. */
    return (uint8_t)(__atomic_add_fetch(&turn, 37, __ATOMIC_RELAXED) % COLOURS % colours);
}

/* The last block that fits must not go elsewhere for a page of colour. */
static bool only_without_colour(enum hy_tier t, size_t n, size_t coloured)
{
    uint64_t room = hy_hg.host.room ? hy_hg.host.room(t) : UINT64_MAX;
    return room < coloured && room >= hy_align_up(n, HY_PAGE);
}

static void *block_of(uint32_t i)
{
    return (char *)granule_addr(i) + hy_hg.g[i].colour * LINE;
}

struct attempt {
    enum hy_tier t;
    enum pages_from from;
    size_t len;
    bool split;                          /* what is beyond */
    uint64_t (*room)(enum hy_tier tier); /* this lies on PM; NULL: what part it shall have */
};

/* Pages of a large block of DRAM that must lie on PM. Where DRAM ends, as first touch would split
 * it, only by addresses: its first pages are those of DRAM. 0: all or none of it, or too few for a
 * mapping. */
static uint32_t pages_beyond(const struct attempt *at, const struct heap_want *w, uint64_t size)
{
    uint64_t room = 0;
    if (hy_hg.host.split && !w->own_run)
        room = !at->room ? w->part : w->tier == HY_DRAM ? at->room(HY_DRAM) : 0;
    if (room < HEAP_CHUNK || room >= size || (size - room) / HY_PAGE >= UINT32_MAX)
        return 0;
    return (uint32_t)((size - room + HY_PAGE - 1) / HY_PAGE);
}

static uint32_t try_run(const struct attempt *at, const struct heap_want *w, uint64_t size,
                        size_t align, bool *ret_zeroed)
{
    uint32_t i, len = (uint32_t)at->len, a = (uint32_t)align, away = 0;
    size_t asked = (at->len + align - 1) << HEAP_GRANULE_SHIFT;
    if (at->len + align > hy_hg.count[at->t])
        return NO_GRANULE;
    do {
        if (at->split && (away = pages_beyond(at, w, size)) == 0)
            return NO_GRANULE;
        i = at->split
                ? pages_alloc_split(len, a, size, away, at->room ? NULL : w->level, ret_zeroed)
                : pages_alloc(at->t, len, a, size, at->from, ret_zeroed);
    } while (i == NO_GRANULE && await(at->t, asked - away * HY_PAGE));
    return i;
}

static inline void *begin_block(uint32_t i, size_t n, uint8_t colour, uint32_t len,
                                const struct heap_want *w)
{
    hy_hg.g[i].asked = n;
    hy_hg.g[i].colour = colour;
    hy_hg.g[i].site = w->site;
    places_label(i, len, w->site);
    hy_hg.g[i].weight = w->weight;
    hy_heap.map[i] = HEAP_LARGE;
    return block_of(i);
}

static void *alloc_run(size_t n, size_t align, const struct heap_want *w, bool *ret_zeroed)
{
    if (n > PTRDIFF_MAX - HY_PAGE || align > PTRDIFF_MAX / 2)
        return NULL;
    uint8_t colour = next_colour(n, align, w->own_run && n <= SIZECLASS_MAX);
    size_t size = hy_align_up((n ? n : 1) + colour * LINE, HY_PAGE);
    if (HY_UNLIKELY(size > hy_align_up(n, HY_PAGE) && only_without_colour(w->tier, n, size))) {
        colour = 0;
        size = hy_align_up(n ? n : 1, HY_PAGE);
    }
    size_t room = hy_align_up(size, HEAP_GRANULE) >> HEAP_GRANULE_SHIFT;
    size_t len = room + (w->spare >> HEAP_GRANULE_SHIFT);
    size_t a = align <= HEAP_GRANULE ? 1 : align >> HEAP_GRANULE_SHIFT;
    enum pages_from from = w->own_run && n <= SIZECLASS_MAX ? PAGES_FRESH : PAGES_USED;
    if (HY_LIKELY(len + a <= hy_hg.count[w->tier] && w->part == 0)) {
        uint32_t i = pages_alloc(w->tier, (uint32_t)len, (uint32_t)a, size, from, ret_zeroed);
        if (HY_LIKELY(i != NO_GRANULE))
            return begin_block(i, n, colour, (uint32_t)len, w);
    }
    enum hy_tier other = w->tier == HY_DRAM ? HY_PM : HY_DRAM;
    const struct attempt attempt[] = {
        {HY_DRAM, from, room, true, NULL},
        {w->tier, from, len, false, NULL},
        {HY_DRAM, from, room, true, hy_hg.host.room},
        {HY_DRAM, from, room, true, hy_hg.host.room_now},
        {other, from, len, false, NULL},
        {HY_DRAM, PAGES_FORCED, room, false, NULL},
    };

    for (unsigned k = 0; k < HY_ARRAY_SIZE(attempt); k++) {
        uint32_t i = try_run(&attempt[k], w, size, a, ret_zeroed);
        if (i == NO_GRANULE)
            continue;
        return begin_block(i, n, colour, (uint32_t)attempt[k].len, w);
    }
    return NULL;
}

/* A run that waits for its like, as large as alloc_run would make it. */
static inline void *alloc_parked(size_t n, const struct heap_want *w)
{
    if (n > PARKED_MAX || w->own_run || w->spare)
        return NULL;
    uint32_t len = (uint32_t)(hy_align_up(n, HEAP_GRANULE) >> HEAP_GRANULE_SHIFT);
    uint32_t i = parked_take(w->tier, len);
    return i == NO_GRANULE ? NULL : begin_block(i, n, next_colour(n, 1, false), len, w);
}

void *heap_alloc(size_t n, const struct heap_want *w)
{
    bool zeroed;
    if (n <= SIZECLASS_MAX && !w->own_run)
        return alloc_small(sizeclass_of(n), w->tier);
    void *p = alloc_parked(n, w);
    return HY_LIKELY(p != NULL) ? p : alloc_run(n, 1, w, &zeroed);
}

void *heap_alloc_zeroed(size_t n, const struct heap_want *w)
{
    bool zeroed = false;
    void *p;
    if (n <= SIZECLASS_MAX && !w->own_run)
        p = alloc_small(sizeclass_of(n), w->tier);
    else if ((p = alloc_parked(n, w)) == NULL)
        p = alloc_run(n, 1, w, &zeroed);
    return p && !zeroed ? memset(p, 0, n) : p;
}

/* A run as long as its alignment is more than the kernel may promise: what it refuses to others is
 * refused here. */
#define ALIGN_ASKED (64 * HEAP_CHUNK)

void *heap_alloc_aligned(size_t align, size_t n, const struct heap_want *w)
{
    bool zeroed;
    if (align <= 16 && n <= SIZECLASS_MAX && !w->own_run)
        return alloc_small(sizeclass_of(n), w->tier);
    if (align <= HY_PAGE && n <= SIZECLASS_MAX && !w->own_run) {
        unsigned cls = sizeclass_aligned(n, align);
        if (cls < SIZECLASS_COUNT)
            return alloc_small(cls, w->tier);
    }
    if (align >= ALIGN_ASKED && n <= PTRDIFF_MAX && align <= PTRDIFF_MAX / 2 &&
        !os_could_map(align + n, true))
        return NULL;
    return alloc_run(n, align, w, &zeroed);
}

/* --- release and resize ---------------------------------------------------- */

static inline bool is_large_head(const void *p)
{
    uint32_t i = granule_of(p);
    return hy_heap.map[i] == HEAP_LARGE && block_of(i) == p;
}

/* Freed by a signal handler that interrupted code of ours, or by a handler of the program in fork:
 * it waits, linked through the blocks themselves, until this thread holds no lock. */
static __thread void *put_off __attribute__((tls_model("initial-exec")));

static HY_COLD void free_put_off(void)
{
    void *p = put_off;
    put_off = NULL;
    while (p) {
        void *next = *(void **)p;
        heap_free(p);
        p = next;
    }
}

void heap_free_slow(void *p)
{
    static bool warned, twice;
    if (hy_locks_held()) {
        *(void **)p = put_off;
        put_off = p;
        return;
    }
    if (HY_UNLIKELY(put_off != NULL))
        free_put_off();
    uint32_t i = granule_of(p);
    unsigned v = hy_heap.map[i];

    if (v >= 1 && v <= HEAP_BINS) {
        if (cache_holds(v, p))
            log_warn_once(&twice, "the program freed %p twice; ignored", p);
        else
            cache_overflow(v, p);
    } else if (is_large_head(p)) {
        hy_heap.map[i] = 0;
        if (run_is_altered(i) || !parked_put(i))
            pages_free(i);
    } else if (v == HEAP_ALTERED) {
        altered_free(i, p);
    } else {
        log_warn_once(&warned, "the program freed %p, which is no block of ours; ignored", p);
    }
}

static inline unsigned bin_at(uint32_t i)
{
    unsigned v = hy_heap.map[i];
    return HY_UNLIKELY(v == HEAP_ALTERED) ? altered_bin(i) : v;
}

size_t heap_usable_size(const void *p)
{
    uint32_t i = granule_of(p);
    unsigned v = bin_at(i);
    if (v >= 1 && v <= HEAP_BINS)
        return sizeclass_bytes[heap_bin_class(v)];
    return is_large_head(p) ? hy_hg.g[i].size - hy_hg.g[i].colour * LINE : 0;
}

static bool resize_run(uint32_t i, size_t n)
{
    struct granule *g = &hy_hg.g[i];
    size_t size = hy_align_up((n ? n : 1) + g->colour * LINE, HY_PAGE);
    size_t len = hy_align_up(size, HEAP_GRANULE) >> HEAP_GRANULE_SHIFT;

    if (hy_locks_held() || (n <= SIZECLASS_MAX && g->len > SIZECLASS_MAX / HEAP_GRANULE) || g->away)
        return false; /* no lock now; or a class fits better; or its end would lie in the middle */
    if (run_is_altered(i)) { /* no page of it is given back on its own */
        if (size <= g->size)
            g->asked = n;
        return size <= g->size;
    }
    if (len > g->len) {
        uint32_t before = g->len;
        if (len >= NO_GRANULE || !pages_grow(i, (uint32_t)len))
            return false;
        places_label(i + before, (uint32_t)len - before, g->site);
    } else if (size < g->size && len < g->len) {
        pages_shrink(i, (uint32_t)len);
    }
    if (size != g->size)
        pages_set_size(i, size);
    g->asked = n;
    return true;
}

bool heap_resize_in_place(void *p, size_t n)
{
    uint32_t i = granule_of(p);
    unsigned v = bin_at(i);
    if (n > PTRDIFF_MAX - HY_PAGE)
        return false;
    if (v >= 1 && v <= HEAP_BINS) {
        size_t size = sizeclass_bytes[heap_bin_class(v)];
        return n <= size && (n >= size / 2 || size <= 64);
    }
    return is_large_head(p) && resize_run(i, n);
}

bool heap_site_of(const void *p, uint16_t *ret_site, uint32_t *ret_weight, size_t *ret_size)
{
    if (!is_large_head(p))
        return false;
    const struct granule *g = &hy_hg.g[granule_of(p)];
    *ret_site = g->site;
    *ret_weight = g->weight;
    *ret_size = g->asked;
    return true;
}

/* --- upkeep ------------------------------------------------------------------ */

void heap_decay(enum hy_tier t, size_t max_bytes)
{
    pages_decay(t, max_bytes);
}

void heap_trim(enum hy_tier t)
{
    cache_flush_thread();
    central_trim(t);
    pages_purge_all(t);
}

void heap_get_stats(enum hy_tier t, struct heap_stats *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (hy_heap.len)
        pages_stats(t, ret);
}

void heap_prefork(void)
{
    cache_prefork();
    central_prefork();
    pages_prefork();
}

void heap_postfork(bool child)
{
    pages_postfork();
    central_postfork();
    cache_postfork(child);
    if (put_off && !hy_locks_held())
        free_put_off();
}

bool heap_is_valid(void)
{
    return central_is_valid() && pages_is_valid(HY_DRAM) && pages_is_valid(HY_PM);
}
