/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/foreign.h"
#include "pages/sampler_internal.h"

struct asking {
    sampler_where_fn where;
    void *arg;
    struct sampler_found *found;
    unsigned n, cap;
    uint64_t asked;  /* in all, */
    uint64_t probed; /* of them to find out whether to ask more */
    bool failed;
};

/* One page in `step` of a block, the first one being `offset`; where each of them is. */
static uint32_t ask(struct asking *a, unsigned at, struct sampler_part_of block, uint32_t step,
                    uint32_t offset, int8_t *ret)
{
    void *page[HISTORY_BLOCK];
    uint32_t n = 0;
    for (uint32_t i = offset; i < block.pages; i += step)
        page[n++] = (void *)(hy_sampler->range[at].base + (size_t)(block.first + i) * HY_PAGE);
    if (n == 0)
        return 0;
    a->asked += n;
    a->failed = a->where(a->arg, page, n, ret) != 0;
    return a->failed ? 0 : n;
}

static bool elsewhere(unsigned at, uint32_t page, int8_t is)
{
    return is >= 0 && (int)history_group(&hy_sampler->history[at], page).tier != is;
}

static void tell(struct asking *a, unsigned at, uint32_t first, uint32_t pages, enum hy_tier on)
{
    const struct watched_range *r = &hy_sampler->range[at];
    history_found(&hy_sampler->history[at], first, pages, on);
    a->found[a->n++] = (struct sampler_found){.base = (void *)(r->base + (size_t)first * HY_PAGE),
                                              .bytes = (size_t)pages * HY_PAGE,
                                              .on = on,
                                              .home = on == r->home};
}

/* All pages of a block: runs of those that are elsewhere. */
static void find_all(struct asking *a, unsigned at, struct sampler_part_of block)
{
    int8_t is[HISTORY_BLOCK];
    uint32_t n = ask(a, at, block, 1, 0, is);
    for (uint32_t i = 0; i < n;) {
        uint32_t from = i;
        while (i < n && is[i] == is[from] && elsewhere(at, block.first + i, is[i]))
            i++;
        if (i > from)
            tell(a, at, block.first + from, i - from, (enum hy_tier)is[from]);
        else
            i++;
    }
}

/* What moves pages moves many: a few of a block tell whether to ask about all of it. */
static void find_in(struct asking *a, unsigned at, struct sampler_part_of block, uint32_t step)
{
    int8_t is[HISTORY_BLOCK];
    bool any = step == 1;
    uint32_t offset = hy_sampler->places_round * 5 % step;
    uint32_t n = any ? 0 : ask(a, at, block, step, offset, is);
    a->probed += any ? block.pages : n;
    for (uint32_t i = 0; i < n && !any; i++)
        any = elsewhere(at, block.first + offset + i * step, is[i]);
    if (any && !a->failed)
        find_all(a, at, block);
}

/* The next block, whatever has become of the ranges since the last one. */
static bool next_block(unsigned *ret_at, struct sampler_part_of *ret)
{
    unsigned at = sampler_find(hy_sampler->places);
    if (hy_sampler->ranges == 0)
        return false;
    if (at == hy_sampler->ranges) {
        at = 0;
        hy_sampler->places = 0;
        hy_sampler->places_round++;
    }
    const struct watched_range *r = &hy_sampler->range[at];
    uintptr_t from = HY_MAX(hy_sampler->places, r->base);
    from -= (from - r->base) % BLOCK_BYTES;
    *ret_at = at;
    *ret = sampler_part(at, from, from + BLOCK_BYTES);
    hy_sampler->places = from + (uintptr_t)ret->pages * HY_PAGE;
    return true;
}

unsigned sampler_places(uint64_t budget, sampler_where_fn where, void *arg,
                        struct sampler_found *ret, unsigned cap, uint64_t *ret_asked)
{
    struct asking a = {.where = where, .arg = arg, .found = ret, .cap = cap};
    uint64_t left = sampler_blocks();
    bool more = true;
    for (; more && left > 0 && !a.failed && a.probed < budget && a.asked < OTHERS_MOST &&
           a.n + HISTORY_BLOCK <= cap;
         left--) {
        unsigned at;
        struct sampler_part_of block;
        /* One at a time, as others wait. Under the lock, so that what the program gives back
         * meanwhile is known afterwards. */
        hy_lock_take(&hy_sampler_lock);
        more = hy_sampler && next_block(&at, &block);
        if (more)
            find_in(&a, at, block,
                    foreign_step(hy_sampler->map.on[HY_DRAM] + hy_sampler->map.on[HY_PM], budget));
        hy_lock_release(&hy_sampler_lock);
    }
    *ret_asked = a.asked;
    return a.n;
}

void sampler_pin(void *base, size_t bytes)
{
    uintptr_t from = (uintptr_t)base, to = from + bytes;
    hy_lock_take(&hy_sampler_lock);
    for (unsigned at = hy_sampler ? sampler_find(from) : 0;
         hy_sampler && at < hy_sampler->ranges && hy_sampler->range[at].base < to; at++) {
        struct sampler_part_of p = sampler_part(at, from, to);
        history_pin(&hy_sampler->history[at], p.first, p.pages);
    }
    hy_lock_release(&hy_sampler_lock);
}

void sampler_ask_places(sampler_where_fn where, void *arg)
{
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler) {
        hy_sampler->where = where;
        hy_sampler->where_arg = arg;
    }
    hy_lock_release(&hy_sampler_lock);
}

void sampler_place_block(uintptr_t base, uint32_t pages)
{
    unsigned at = sampler_find(base);
    void *page[HISTORY_BLOCK];
    int8_t is[HISTORY_BLOCK];
    if (!hy_sampler->where || at == hy_sampler->ranges || hy_sampler->range[at].base > base)
        return;
    uint32_t first = (uint32_t)((base - hy_sampler->range[at].base) / HY_PAGE);
    for (uint32_t i = 0; i < pages; i++)
        page[i] = (void *)(base + (size_t)i * HY_PAGE);
    if (hy_sampler->where(hy_sampler->where_arg, page, pages, is) != 0)
        return;
    for (uint32_t i = 0; i < pages;) {
        uint32_t from = i;
        while (i < pages && is[i] == is[from] && elsewhere(at, first + i, is[i]))
            i++;
        if (i > from)
            history_placed(&hy_sampler->history[at], first + from, i - from,
                           (enum hy_tier)is[from]);
        else
            i++;
    }
}
