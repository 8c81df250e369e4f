/* SPDX-License-Identifier: BSD-2-Clause
 * Late use: all blocks are allocated first, touched later in another order, and used for long.
 *
 * Bandwidth-sensitive and write-intensive. It stands for simulations and for programs with many
 * vectors, that get all their arrays at the start: when a block is asked for, nothing is known of
 * it, not even whether it will ever be touched, and who looks at resident memory sees none. A
 * quarter of the blocks is read in every round, a quarter in every fourth, the others in every
 * sixteenth; all are touched once before, in an order that says nothing about it.
 *
 * Words follow a rule whose n-th power is known, so every word of every block is verified. */
#include "common.h"

#define BLOCKS 48
#define CHUNK  512 /* words of a sum */
#define FACTOR 0x9e3779b97f4a7c15u
#define OFFSET 0xd1342543de82ef95u

static uint64_t *block[BLOCKS], *sums;
static size_t length[BLOCKS], first[BLOCKS]; /* words; of its sums */
static unsigned order[BLOCKS];

static unsigned period(const struct wl *w, unsigned b)
{
    static const unsigned every[4] = {1, 4, 16, 16};

    return every[(wl_hash(w->seed + 1, b / 4) + b) & 3];
}

static void prepare(struct wl *w)
{
    size_t part = w->bytes / sizeof(uint64_t) / CHUNK / (2 * BLOCKS), chunks = 0;

    /* Half to one and a half of the mean; the touch order is shuffled. */
    for (unsigned b = 0; b < BLOCKS; b++) {
        unsigned at = (unsigned)wl_below(wl_hash(w->seed + 2, b), b + 1);

        length[b] = (part + wl_below(wl_hash(w->seed + 3, b), 2 * part + 1)) * CHUNK;
        if (length[b] == 0)
            length[b] = CHUNK;
        block[b] = wl_new(length[b], sizeof(uint64_t));
        first[b] = chunks;
        chunks += length[b] / CHUNK;
        order[b] = order[at];
        order[at] = b;
    }
    sums = wl_new(chunks, sizeof(uint64_t));
    wl_result(w, sums, chunks, WL_U64);
}

static uint64_t begin_word(const struct wl *w, unsigned b, size_t i)
{
    return w->seed * OFFSET + ((uint64_t)b << 32) + i;
}

static void use(uint64_t *p, size_t lo, size_t hi)
{
    for (size_t i = lo; i < hi; i++)
        p[i] = p[i] * FACTOR + OFFSET;
}

static void add_up(unsigned b, unsigned id, const struct wl *w)
{
    size_t lo, hi;

    wl_part(w, length[b] / CHUNK, id, &lo, &hi);
    for (size_t c = lo; c < hi; c++) {
        uint64_t sum = 0;

        for (size_t i = c * CHUNK; i < (c + 1) * CHUNK; i++)
            sum = sum * 3 + block[b][i];
        sums[first[b] + c] = sum;
    }
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    for (unsigned k = 0; k < BLOCKS; k++) {
        wl_part(w, length[order[k]], id, &lo, &hi);
        for (size_t i = lo; i < hi; i++)
            block[order[k]][i] = begin_word(w, order[k], i);
        wl_barrier(w);
    }
    for (unsigned round = 0; round < w->rounds; round++) {
        for (unsigned b = 0; b < BLOCKS; b++) {
            if (round % period(w, b))
                continue;
            wl_part(w, length[b], id, &lo, &hi);
            use(block[b], lo, hi);
        }
        wl_barrier(w);
    }
    for (unsigned b = 0; b < BLOCKS; b++)
        add_up(b, id, w);
}

static bool verify(struct wl *w)
{
    for (unsigned b = 0; b < BLOCKS; b++) {
        uint64_t factor = 1, offset = 0;

        for (unsigned round = 0; round < w->rounds; round += period(w, b)) {
            factor *= FACTOR;
            offset = offset * FACTOR + OFFSET;
        }
        for (size_t c = 0; c < length[b] / CHUNK; c++) {
            uint64_t sum = 0;

            for (size_t i = c * CHUNK; i < (c + 1) * CHUNK; i++)
                sum = sum * 3 + (begin_word(w, b, i) * factor + offset);
            if (sum != sums[first[b] + c])
                return false;
        }
    }
    return true;
}

const struct workload workload = {
    .name = "lateuse",
    .about = "Blocks allocated first and touched later, a quarter of them used all the time.",
    .size = 16,
    .rounds = 32,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
