/* SPDX-License-Identifier: BSD-2-Clause
 * Pattern mining like freqmine: how often do three frequent items occur together?
 *
 * CPU-bound, as freqmine in the paper: transactions are read once, block by block, and
 * turned into one bit map an item, small enough for the cache, in which all triples are
 * then counted with thousands of operations a line fetched. Objects: items and offsets
 * (large, read once), counters by thread (small, hot).
 *
 * Integers. A transaction with m frequent items holds m over 3 triples, so the sum of
 * all counters is known exactly; some triples are also counted one transaction at a time. */
#include "common.h"

#define ITEMS    256 /* an item is a byte */
#define LENGTH   12  /* items drawn a transaction */
#define FREQUENT 40
#define TRIPLES  (FREQUENT * (FREQUENT - 1) * (FREQUENT - 2) / 6)
#define WORDS    64 /* of a bit map */
#define BLOCK    (WORDS * 64)
#define SAMPLE   16

struct bitmaps {
    uint64_t of[FREQUENT][WORDS];
};

static size_t n, nblocks;
static uint8_t *item;
static uint64_t *offset;
static uint64_t (*single)[ITEMS];   /* by thread */
static uint64_t (*triple)[TRIPLES]; /* by thread; the sums in the first */
static struct bitmaps *maps;        /* by thread */
static uint8_t rank_of[ITEMS];      /* FREQUENT: not among them */
static uint8_t frequent[FREQUENT];

/* Items drawn with a quadratic preference for the low ones, none twice. */
static void prepare(struct wl *w)
{
    size_t length = 0;

    n = w->bytes / (LENGTH * sizeof(*item) + sizeof(*offset));
    nblocks = (n + BLOCK - 1) / BLOCK;
    item = wl_new(n * LENGTH, sizeof(*item));
    offset = wl_new(n + 1, sizeof(*offset));
    single = wl_new(w->threads, sizeof(*single));
    triple = wl_new(w->threads, sizeof(*triple));
    maps = wl_new(w->threads, sizeof(*maps));
    for (size_t t = 0; t < n; t++) {
        uint64_t state = wl_hash(w->seed, t), seen[ITEMS / 64] = {0};

        offset[t] = length;
        for (unsigned k = 0; k < LENGTH; k++) {
            uint64_t random = wl_next(&state);
            unsigned i = (unsigned)(wl_below(random, 256) * wl_below(random << 16, 256) >> 8);

            if (seen[i / 64] >> (i % 64) & 1)
                continue;
            seen[i / 64] |= (uint64_t)1 << (i % 64);
            item[length++] = (uint8_t)i;
        }
    }
    offset[n] = length;
    wl_result(w, triple, TRIPLES, WL_U64);
}

static void count_singles(size_t lo, size_t hi, uint64_t *count)
{
    for (unsigned i = 0; i < ITEMS; i++)
        count[i] = 0;
    for (uint64_t k = offset[lo]; k < offset[hi]; k++)
        count[item[k]]++;
}

/* The most frequent items; of equals the lower number. */
static void choose(const struct wl *w)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        rank_of[i] = FREQUENT;
        for (unsigned t = 1; t < w->threads; t++)
            single[0][i] += single[t][i];
    }
    for (unsigned r = 0; r < FREQUENT; r++) {
        unsigned best = ITEMS;

        for (unsigned i = 0; i < ITEMS; i++) {
            if (rank_of[i] == FREQUENT && (best == ITEMS || single[0][i] > single[0][best]))
                best = i;
        }
        frequent[r] = (uint8_t)best;
        rank_of[best] = (uint8_t)r;
    }
}

static void fill_maps(struct bitmaps *m, size_t block)
{
    size_t first = block * BLOCK, end = first + BLOCK < n ? first + BLOCK : n;

    for (unsigned r = 0; r < FREQUENT; r++) {
        for (unsigned k = 0; k < WORDS; k++)
            m->of[r][k] = 0;
    }
    for (size_t t = first; t < end; t++) {
        for (uint64_t k = offset[t]; k < offset[t + 1]; k++) {
            unsigned r = rank_of[item[k]];

            if (r < FREQUENT)
                m->of[r][(t - first) / 64] |= (uint64_t)1 << (t % 64);
        }
    }
}

/* In the open: __builtin_popcountll is a call into libgcc on the base instruction set. */
static uint64_t ones(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return x * 0x0101010101010101u >> 56;
}

static void count_triples(const struct bitmaps *m, uint64_t *count)
{
    uint64_t both[WORDS];
    size_t at = 0;

    for (unsigned a = 0; a < FREQUENT; a++) {
        for (unsigned b = a + 1; b < FREQUENT; b++) {
            uint64_t any = 0;

            for (unsigned k = 0; k < WORDS; k++)
                any |= both[k] = m->of[a][k] & m->of[b][k];
            for (unsigned c = b + 1; c < FREQUENT; c++, at++) {
                uint64_t sum = 0;

                /* A pair that does not occur has no triples either. */
                for (unsigned k = 0; any && k < WORDS; k++)
                    sum += ones(both[k] & m->of[c][k]);
                count[at] += sum;
            }
        }
    }
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    for (unsigned round = 0; round < w->rounds; round++) {
        wl_part(w, n, id, &lo, &hi);
        count_singles(lo, hi, single[id]);
        for (size_t i = 0; i < TRIPLES; i++)
            triple[id][i] = 0;
        wl_barrier(w);
        if (id == 0)
            choose(w);
        wl_barrier(w);
        wl_part(w, nblocks, id, &lo, &hi);
        for (size_t block = lo; block < hi; block++) {
            fill_maps(&maps[id], block);
            count_triples(&maps[id], triple[id]);
        }
        wl_barrier(w);
        wl_part(w, TRIPLES, id, &lo, &hi);
        for (unsigned t = 1; t < w->threads; t++) {
            for (size_t i = lo; i < hi; i++)
                triple[0][i] += triple[t][i];
        }
        wl_barrier(w);
    }
}

/* The frequent items of a transaction as bits, by rank. */
static uint64_t ranks_in(size_t t)
{
    uint64_t ranks = 0;

    for (uint64_t k = offset[t]; k < offset[t + 1]; k++)
        ranks |= (uint64_t)(rank_of[item[k]] < FREQUENT) << rank_of[item[k]];
    return ranks;
}

static bool verify(struct wl *w)
{
    uint64_t probe[SAMPLE], found[SAMPLE] = {0}, m, ranks, want = 0, sum = 0;
    size_t stride = TRIPLES / SAMPLE, first = wl_hash(w->seed, n) % stride, at = 0;

    for (unsigned a = 0; a < FREQUENT; a++) {
        for (unsigned b = a + 1; b < FREQUENT; b++) {
            for (unsigned c = b + 1; c < FREQUENT; c++, at++) {
                sum += triple[0][at];
                if (at % stride == first && at / stride < SAMPLE)
                    probe[at / stride] = (uint64_t)1 << a | (uint64_t)1 << b | (uint64_t)1 << c;
            }
        }
    }
    for (size_t t = 0; t < n; t++) {
        ranks = ranks_in(t);
        m = ones(ranks);
        want += m * (m - 1) * (m - 2) / 6;
        for (unsigned i = 0; i < SAMPLE; i++)
            found[i] += (ranks & probe[i]) == probe[i];
    }
    for (unsigned i = 0; i < SAMPLE; i++) {
        if (triple[0][first + i * stride] != found[i])
            return false;
    }
    return sum == want;
}

const struct workload workload = {
    .name = "mining",
    .about = "Counts all triples of the 40 most frequent items in random transactions.",
    .size = 4,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
