/* SPDX-License-Identifier: BSD-2-Clause
 * Page table of media. See pages.h. */
#include "pages/pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAF_SHIFT 32u /* a leaf covers 4 GiB: 1 MiB of bytes, touched where used */
#define LEAVES     ((size_t)1 << (48 - LEAF_SHIFT))
#define LEAF_PAGES ((size_t)1 << (LEAF_SHIFT - EMU_PAGE_SHIFT))
#define ALL_PAGES  ((uint64_t)1 << (48 - EMU_PAGE_SHIFT))

/* Two numbers, 0 none, else 1 + tier: the name and the medium; and whether the page is
 * counted as another process'. */
#define NAME     3u
#define ON_SHIFT 2u
#define ON       (3u << ON_SHIFT)
#define BORROWED 16u

typedef _Atomic uint8_t page_byte;

static _Atomic(page_byte *) leaves[LEAVES];
/* The name of all pages of a leaf that is not there (yet): huge reservations cost nothing. */
static page_byte leaf_names[LEAVES];
static struct emu_place place = {1, 0};
static const struct emu_pages_host *host;

int emu_place_parse(const char *text, struct emu_place *ret)
{
    static const struct {
        const char *name;
        struct emu_place place;
    } known[] = {{"dram", {1, 0}}, {"first-touch", {1, 0}}, {"pm", {0, 1}}, {"interleave", {1, 1}}};
    uint32_t n[2] = {0, 0};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(text, known[i].name) == 0) {
            *ret = known[i].place;
            return 0;
        }
    if (strncmp(text, "interleave", 10) != 0)
        return -EINVAL;
    text += 10;
    for (int i = 0; i < 2; i++) {
        if (text[0] != ':' || text[1] < '0' || text[1] > '9')
            return -EINVAL;
        text++;
        for (; *text >= '0' && *text <= '9' && n[i] < 1000; text++)
            n[i] = n[i] * 10 + (uint32_t)(*text - '0');
    }
    if (*text || n[0] > 1000 || n[1] > 1000 || n[0] + n[1] == 0)
        return -EINVAL;
    *ret = (struct emu_place){n[0], n[1]};
    return 0;
}

void emu_pages_start(struct emu_place p, const struct emu_pages_host *h)
{
    place = p;
    host = h;
}

static enum emu_tier placed(uint64_t page)
{
    return page % (place.dram + place.pm) < place.dram ? EMU_DRAM : EMU_PM;
}

static enum emu_tier wanted(uint64_t page, uint8_t b)
{
    return b & NAME ? (enum emu_tier)((b & NAME) - 1) : placed(page);
}

static uint8_t on(enum emu_tier t)
{
    return (uint8_t)((1u + t) << ON_SHIFT);
}

static enum emu_tier tier_on(uint8_t b)
{
    return (enum emu_tier)(((b & ON) >> ON_SHIFT) - 1);
}

static bool take(enum emu_tier t)
{
    return !host || !host->take || host->take(t);
}

static void give(enum emu_tier t)
{
    if (host && host->give)
        host->give(t);
}

/* What a page leaves behind that is not in use any more as `b` said. */
static void left(uint64_t page, uint8_t b, bool moved)
{
    if (!(b & ON))
        return;
    if (!(b & BORROWED))
        give(tier_on(b));
    if (host && host->leave)
        host->leave(page << EMU_PAGE_SHIFT, moved);
}

static page_byte *leaf_for(size_t i, bool make)
{
    page_byte *leaf = atomic_load_explicit(&leaves[i], memory_order_acquire), *old = NULL;
    int e = errno;
    long r;

    if (leaf || !make)
        return leaf;
    /* By system call: mmap of this process is the one that calls us. */
    r = syscall(SYS_mmap, NULL, LEAF_PAGES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    errno = e;
    if (r == -1)
        return NULL;
    leaf = (page_byte *)r; /* NOLINT: the kernel's address */
    for (size_t p = 0; atomic_load(&leaf_names[i]) && p < LEAF_PAGES; p++)
        atomic_store_explicit(&leaf[p], leaf_names[i], memory_order_relaxed);
    if (atomic_compare_exchange_strong(&leaves[i], &old, leaf))
        return leaf;
    syscall(SYS_munmap, leaf, LEAF_PAGES);
    errno = e;
    return old;
}

static page_byte *byte_of(uint64_t page, bool make)
{
    page_byte *leaf = page < ALL_PAGES ? leaf_for(page / LEAF_PAGES, make) : NULL;
    return leaf ? leaf + (page & (LEAF_PAGES - 1)) : NULL;
}

static uint8_t byte_now(uint64_t page)
{
    page_byte *p = byte_of(page, false);
    if (p)
        return atomic_load_explicit(p, memory_order_relaxed);
    return page < ALL_PAGES ? atomic_load(&leaf_names[page / LEAF_PAGES]) : 0;
}

static enum emu_tier first_use(page_byte *p, uint64_t page, uint8_t b)
{
    for (;;) {
        enum emu_tier t = wanted(page, b);
        if (!take(t)) {
            t = t == EMU_DRAM ? EMU_PM : EMU_DRAM;
            (void)take(t);
        }
        if (atomic_compare_exchange_strong(p, &b, (uint8_t)(b | on(t))))
            return t;
        give(t);
        if (b & ON)
            return tier_on(b);
    }
}

enum emu_tier emu_tier_of(uint64_t address)
{
    uint64_t page = address >> EMU_PAGE_SHIFT;
    page_byte *p = byte_of(page, true);
    uint8_t b;

    if (!p)
        return placed(page);
    b = atomic_load_explicit(p, memory_order_relaxed);
    return b & ON ? tier_on(b) : first_use(p, page, b);
}

enum emu_tier emu_pages_look(uint64_t address, bool *ret_used)
{
    uint64_t page = address >> EMU_PAGE_SHIFT;
    uint8_t b = byte_now(page);

    if (ret_used)
        *ret_used = b & ON;
    return b & ON ? tier_on(b) : wanted(page, b);
}

/* --- changes of ranges ------------------------------------------------------ */

/* Applied to each page of a range; true if the page has changed its medium. `name` is what
 * a whole leaf is called that is not there; KEEP: what it was. */
#define KEEP 255u
struct change {
    bool (*page)(page_byte *p, uint64_t page, enum emu_tier t);
    uint8_t name;
    enum emu_tier t;
};

static bool set_page(page_byte *p, uint64_t page, enum emu_tier t)
{
    uint8_t b = atomic_load_explicit(p, memory_order_relaxed), new;
    bool moves;

    do {
        moves = (b & ON) && tier_on(b) != t && take(t);
        new = (uint8_t)((b & ~NAME) | (1u + t));
        if (moves)
            new = (uint8_t)((1u + t) | on(t));
        if (new == b)
            return false;
        if (atomic_compare_exchange_strong(p, &b, new))
            break;
        if (moves)
            give(t);
    } while (true);
    if (moves)
        left(page, b, true);
    return moves;
}

static bool unname_page(page_byte *p, uint64_t page, enum emu_tier t)
{
    (void)page;
    (void)t;
    if (atomic_load_explicit(p, memory_order_relaxed) & NAME)
        atomic_fetch_and(p, (uint8_t)~NAME);
    return false;
}

static bool clear_page(page_byte *p, uint64_t page, enum emu_tier t)
{
    (void)t;
    /* A store would make a page of the table where there was nothing. */
    if (atomic_load_explicit(p, memory_order_relaxed) != 0)
        left(page, atomic_exchange(p, 0), false);
    return false;
}

static bool discard_page(page_byte *p, uint64_t page, enum emu_tier t)
{
    uint8_t b = atomic_load_explicit(p, memory_order_relaxed);

    (void)t;
    while ((b & ON) && !atomic_compare_exchange_weak(p, &b, (uint8_t)(b & NAME)))
        ;
    left(page, b, false);
    return false;
}

/* Pages [page, end). */
static int each(uint64_t page, uint64_t end, const struct change *c, uint64_t *ret_moved)
{
    while (page < end) {
        uint64_t in_leaf = page & (LEAF_PAGES - 1), n = LEAF_PAGES - in_leaf;
        size_t l = page / LEAF_PAGES;
        bool renames = c->name != KEEP && leaf_names[l] != c->name, make;
        page_byte *leaf;
        if (n > end - page)
            n = end - page;
        if (renames && n == LEAF_PAGES)
            atomic_store(&leaf_names[l], c->name);
        make = renames && n != LEAF_PAGES;
        leaf = leaf_for(l, make);
        if (!leaf && make)
            return -ENOMEM;
        for (uint64_t i = 0; leaf && i < n; i++)
            *ret_moved += c->page(leaf + in_leaf + i, page + i, c->t);
        page += n;
    }
    return 0;
}

/* Pages that the range touches, or with `inner` those wholly inside. */
static int over(uint64_t address, size_t bytes, bool inner, const struct change *c,
                uint64_t *ret_moved)
{
    const uint64_t limit = ALL_PAGES << EMU_PAGE_SHIFT, up = EMU_PAGE_BYTES - 1;
    uint64_t moved = 0, end = address + bytes;
    int r;

    if (address >= limit || bytes > limit - address)
        return -EINVAL;
    r = each((address + (inner ? up : 0)) >> EMU_PAGE_SHIFT,
             (end + (inner ? 0 : up)) >> EMU_PAGE_SHIFT, c, &moved);
    if (ret_moved)
        *ret_moved = moved;
    return r;
}

int emu_pages_set(uint64_t address, size_t bytes, enum emu_tier t, uint64_t *ret_moved)
{
    return over(address, bytes, false, &(struct change){set_page, (uint8_t)(1u + t), t}, ret_moved);
}

int emu_pages_unname(uint64_t address, size_t bytes)
{
    return over(address, bytes, false, &(struct change){unname_page, 0, EMU_DRAM}, NULL);
}

void emu_pages_clear(uint64_t address, size_t bytes)
{
    (void)over(address, bytes, false, &(struct change){clear_page, 0, EMU_DRAM}, NULL);
}

void emu_pages_discard(uint64_t address, size_t bytes)
{
    (void)over(address, bytes, true, &(struct change){discard_page, KEEP, EMU_DRAM}, NULL);
}

void emu_pages_move(uint64_t from, size_t old_bytes, uint64_t to, size_t bytes)
{
    uint64_t a = from >> EMU_PAGE_SHIFT, b = to >> EMU_PAGE_SHIFT;
    uint64_t n_old = (old_bytes + EMU_PAGE_BYTES - 1) >> EMU_PAGE_SHIFT;
    uint64_t n_new = (bytes + EMU_PAGE_BYTES - 1) >> EMU_PAGE_SHIFT;
    uint8_t name = byte_now(a) & NAME;

    if (from != to)
        emu_pages_clear(to, bytes); /* what MREMAP_FIXED has replaced */
    for (uint64_t i = 0; from != to && i < n_old && i < n_new; i++) {
        uint8_t v = byte_now(a + i);
        page_byte *p = v ? byte_of(a + i, true) : NULL, *q;
        if (!p)
            continue;
        v = atomic_exchange(p, 0);
        q = byte_of(b + i, true);
        if (q)
            atomic_store(q, v);
        if ((v & ON) && host && host->leave)
            host->leave((a + i) << EMU_PAGE_SHIFT, true);
    }
    if (n_old > n_new)
        emu_pages_clear((a + n_new) << EMU_PAGE_SHIFT, (n_old - n_new) << EMU_PAGE_SHIFT);
    if (n_new > n_old && name)
        (void)emu_pages_set((b + n_old) << EMU_PAGE_SHIFT, (n_new - n_old) << EMU_PAGE_SHIFT,
                            (enum emu_tier)(name - 1), NULL);
}

int emu_pages_tiers(uint64_t address, size_t bytes, uint8_t *ret)
{
    const uint64_t limit = ALL_PAGES << EMU_PAGE_SHIFT;

    if (address >= limit || bytes > limit - address)
        return -EINVAL;
    if (bytes == 0)
        return 0;
    for (uint64_t p = address >> EMU_PAGE_SHIFT; p <= (address + bytes - 1) >> EMU_PAGE_SHIFT;
         p++) {
        uint8_t b = byte_now(p);
        *ret++ = b & ON ? (uint8_t)tier_on(b) : EMU_PAGE_UNUSED;
    }
    return 0;
}

/* --- walks -------------------------------------------------------------------- */

static bool used(const page_byte *leaf, size_t i)
{
    return atomic_load_explicit(&leaf[i], memory_order_relaxed) & ON;
}

void emu_pages_each_used(bool (*fn)(uint64_t address, size_t bytes, void *ctx), void *ctx)
{
    for (size_t l = 0; l < LEAVES; l++) {
        const page_byte *leaf = leaf_for(l, false);
        for (size_t i = 0, n; leaf && i < LEAF_PAGES; i += n) {
            for (n = 0; i + n < LEAF_PAGES && used(leaf, i + n); n++)
                ;
            if (n &&
                !fn((uint64_t)(l * LEAF_PAGES + i) << EMU_PAGE_SHIFT, n << EMU_PAGE_SHIFT, ctx))
                return;
            n += n == 0;
        }
    }
}

static bool borrow(uint64_t address, size_t bytes, void *ctx)
{
    (void)ctx;
    for (uint64_t p = address >> EMU_PAGE_SHIFT; bytes; bytes -= EMU_PAGE_BYTES, p++)
        atomic_fetch_or(byte_of(p, false), BORROWED);
    return true;
}

void emu_pages_forked(void)
{
    emu_pages_each_used(borrow, NULL);
}
