/* SPDX-License-Identifier: BSD-2-Clause
 * Free runs of one kind, by length: a list for each short length, one for each doubling above. */
#include "heap/internal.h"

#define EXACT_BINS 64u
#define LONG_SCAN  64 /* runs looked at in a bin of mixed lengths */
_Static_assert(RUN_BINS == EXACT_BINS + 26u, "a bin for each doubling of a 32-bit length");

static unsigned bin_of(uint32_t len)
{
    if (len < EXACT_BINS)
        return len;
    return EXACT_BINS + (31u - (unsigned)__builtin_clz(len / EXACT_BINS));
}

void runs_insert(struct run_set *s, uint32_t i)
{
    struct granule *g = hy_hg.g;
    unsigned b = bin_of(g[i].len);
    g[i].prev = NO_GRANULE;
    g[i].next = s->head[b];
    if (s->head[b] != NO_GRANULE)
        g[s->head[b]].prev = i;
    s->head[b] = i;
    s->used[b / 64] |= 1ull << (b % 64);
    s->granules += g[i].len;
}

void runs_remove(struct run_set *s, uint32_t i)
{
    struct granule *g = hy_hg.g;
    unsigned b = bin_of(g[i].len);
    if (g[i].prev != NO_GRANULE)
        g[g[i].prev].next = g[i].next;
    else
        s->head[b] = g[i].next;
    if (g[i].next != NO_GRANULE)
        g[g[i].next].prev = g[i].prev;
    if (s->head[b] == NO_GRANULE)
        s->used[b / 64] &= ~(1ull << (b % 64));
    s->granules -= g[i].len;
}

static unsigned next_bin(const struct run_set *s, unsigned from)
{
    for (unsigned w = from / 64; w < 2; w++) {
        uint64_t bits = s->used[w];
        if (w == from / 64)
            bits &= ~0ull << (from % 64);
        if (bits)
            return w * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return RUN_BINS;
}

/* The shortest that is long enough, of those looked at: a longer one is left for a longer request,
 * and what was freed for this length is still in the processor's caches. */
static uint32_t best_fit(uint32_t i, uint32_t len)
{
    const struct granule *g = hy_hg.g;
    uint32_t best = NO_GRANULE, least = UINT32_MAX;
    for (int n = 0; i != NO_GRANULE && n < LONG_SCAN && least != len; n++, i = g[i].next)
        if (g[i].len >= len && g[i].len < least) {
            best = i;
            least = g[i].len;
        }
    return best;
}

uint32_t runs_find(const struct run_set *s, uint32_t len)
{
    unsigned b = bin_of(len);
    if (len >= EXACT_BINS) {
        uint32_t i = best_fit(s->head[b], len);
        if (i != NO_GRANULE)
            return i;
        b++;
    }
    b = next_bin(s, b);
    return b < RUN_BINS ? s->head[b] : NO_GRANULE;
}

bool runs_are_valid(const struct run_set *s, enum run_state st)
{
    uint64_t sum = 0;
    for (unsigned b = 0; b < RUN_BINS; b++)
        for (uint32_t i = s->head[b]; i != NO_GRANULE; i = hy_hg.g[i].next) {
            const struct granule *g = &hy_hg.g[i];
            if (g->state != st || g[g->len - 1].state != st || g[g->len - 1].len != g->len ||
                bin_of(g->len) != b)
                return false;
            sum += g->len;
        }
    return sum == s->granules;
}
