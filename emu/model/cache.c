/* SPDX-License-Identifier: BSD-2-Clause
 * L1 filter and shared LLC. See cache.h. */
#include "model/cache.h"

void emu_l1_drop(struct emu_l1 *c, uint64_t first, unsigned n)
{
    for (uint64_t line = first; line < first + n; line++) {
        unsigned set = emu_l1_set(line);
        if (c->recent[set] >> 1 == line)
            c->recent[set] = 0;
        for (unsigned i = 0; i < EMU_L1_WAYS - 1; i++)
            if (c->older[set][i] >> 1 == line)
                c->older[set][i] = 0;
    }
}

uint32_t emu_llc_sets(uint32_t kb)
{
    uint32_t want, sets = 1;
    if (kb == 0 || kb > EMU_LLC_MAX_KB)
        return 0;
    want = kb * (1024u >> EMU_LINE_SHIFT) / EMU_LLC_WAYS;
    while (sets * 2 <= want)
        sets *= 2;
    return sets;
}

static uint64_t slot_get(_Atomic uint64_t *s)
{
    return atomic_load_explicit(s, memory_order_relaxed);
}

static void slot_put(_Atomic uint64_t *s, uint64_t v)
{
    atomic_store_explicit(s, v, memory_order_relaxed);
}

/* Ways [to, n) move one down, the first of them becomes `v`. At a miss all do: with the search the
 * dearest part of the model, hence unrolled. */
static inline void to_front(_Atomic uint64_t *set, unsigned to, unsigned n, uint64_t v)
{
#pragma GCC unroll 16
    for (; n > to; n--)
        slot_put(&set[n], slot_get(&set[n - 1]));
    slot_put(&set[n], v);
}

static _Atomic uint64_t *set_of(struct emu_llc *c, uint64_t key)
{
    /* Bits from 40 up of the product: lower ones are not uniform for large caches. */
    uint32_t index = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 40) & c->set_mask;
    return c->slot + (uint64_t)index * EMU_LLC_WAYS;
}

void emu_llc_drop(struct emu_llc *c, uint64_t first, unsigned n, uint64_t salt)
{
    for (uint64_t key = first + salt; key < first + salt + n; key++) {
        _Atomic uint64_t *set = set_of(c, key);
        unsigned i = 0;
        while (i < EMU_LLC_WAYS && slot_get(&set[i]) >> 3 != key)
            i++;
        for (; i < EMU_LLC_WAYS; i++) /* the others move up: the last way is the free one */
            slot_put(&set[i], i + 1 < EMU_LLC_WAYS ? slot_get(&set[i + 1]) : 0);
    }
}

struct emu_llc_result emu_llc_access(struct emu_llc *c, uint64_t line, uint64_t salt,
                                     unsigned write, enum emu_tier (*tier_of)(uint64_t line))
{
    uint64_t key = line + salt, tag = key << 3;
    _Atomic uint64_t *set = set_of(c, key);
    unsigned first = atomic_load_explicit(&c->first_way, memory_order_relaxed);
    struct emu_llc_result r = {.hit = true};

#pragma GCC unroll 16
    for (unsigned i = 0; i < EMU_LLC_WAYS; i++) {
        uint64_t v = slot_get(&set[i]);
        if ((v ^ tag) > 7) /* else they differ in the flags at most */
            continue;
        r.tier = (enum emu_tier)(v >> 1 & 1);
        r.write_back = write && !(v & 1);
        if (i > 0 || r.write_back)
            to_front(set, first, i, v | write);
        return r;
    }
    r.hit = false;
    r.tier = tier_of(line);
    r.write_back = write;
    to_front(set, first, EMU_LLC_WAYS - 1, tag | (uint64_t)r.tier << 1 | write);
    return r;
}
