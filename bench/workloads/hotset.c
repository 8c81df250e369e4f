/* SPDX-License-Identifier: BSD-2-Clause
 * Hot set: most accesses go to a small part of a table, which stays where it is (hotset) or
 * moves on from phase to phase (hotmove, built with HOT_PHASES above 1).
 *
 * The case of the papers on moving pages (002): a set that fits DRAM among data that do not.
 * Of 16 accesses 11 update a word of the written part of the set, 3 read one of the part
 * that is only read, 2 go anywhere in the table. The set is 1/12 of the table, three
 * quarters of it written.
 *
 * Lines are dealt to 64 lanes in turn, so each lane has its own words in every part and a
 * thread may do any of the lanes. Verified by doing all lanes again in one thread. */
#include "common.h"

#ifndef HOT_PHASES
#define HOT_PHASES 1
#endif
#define LINE_WORDS 8
#define SET_SHARE  12u /* of the table, one part in so many */

static uint64_t *table;
static size_t rows;    /* lines a lane */
static uint64_t *sums; /* behind the table: what each lane read */

struct window {
    size_t first, written, read; /* rows; those that are read lie behind the others */
};

static struct window window_of(const struct wl *w, unsigned phase)
{
    size_t set = rows / SET_SHARE, written = set * 3 / 4;
    /* Far from the one before: the halves take turns. */
    size_t half = rows / 2 * (phase % 2);
    size_t at = (size_t)wl_below(wl_hash(w->seed, 1000 + phase), rows / 2 - set);
    return (struct window){half + at, written, set - written};
}

static uint64_t *word_at(uint64_t *base, size_t lanes, size_t lane, size_t row, uint64_t random)
{
    return &base[(row * lanes + lane) * LINE_WORDS + (random & (LINE_WORDS - 1))];
}

/* One access. `base` has so many lanes, of which this is one. */
static void step(uint64_t *base, size_t lanes, size_t lane, const struct window *hot,
                 uint64_t *state, uint64_t *sum)
{
    uint64_t r = wl_next(state);
    unsigned kind = (unsigned)(r >> 8) & 15;

    if (kind < 11)
        *word_at(base, lanes, lane, hot->first + wl_below(r, hot->written), r) ^= r;
    else if (kind < 14)
        *sum += *word_at(base, lanes, lane, hot->first + hot->written + wl_below(r, hot->read), r);
    else
        *word_at(base, lanes, lane, wl_below(r, rows), r) += r;
}

static uint64_t first_word(size_t row, size_t lane, size_t k)
{
    return (row * WL_LANES + lane) * LINE_WORDS + k;
}

static void prepare(struct wl *w)
{
    rows = w->bytes / (LINE_WORDS * sizeof(*table)) / WL_LANES;
    if (rows < 4 * SET_SHARE)
        wl_fail("too small");
    size_t words = rows * WL_LANES * LINE_WORDS;
    table = wl_new(words + WL_LANES, sizeof(*table));
    for (size_t i = 0; i < words; i++)
        table[i] = i;
    sums = table + words;
    wl_result(w, table, words + WL_LANES, WL_U64);
}

static size_t steps_of_phase(const struct wl *w)
{
    return rows * w->rounds / HOT_PHASES + 1;
}

static void do_phase(const struct wl *w, uint64_t state[], uint64_t sum[], size_t lo, size_t hi,
                     unsigned phase)
{
    struct window hot = window_of(w, phase);

    for (size_t k = steps_of_phase(w); k > 0; k--)
        for (size_t lane = lo; lane < hi; lane++)
            step(table, WL_LANES, lane, &hot, &state[lane], &sum[lane]);
}

static void work(struct wl *w, unsigned id)
{
    uint64_t state[WL_LANES], sum[WL_LANES] = {0};
    size_t lo, hi;

    wl_part(w, WL_LANES, id, &lo, &hi);
    for (size_t lane = lo; lane < hi; lane++)
        state[lane] = wl_hash(w->seed, lane);
    for (unsigned phase = 0; phase < HOT_PHASES; phase++) {
        wl_barrier(w);
        if (id == 0 && phase > 0)
            wl_phase(phase);
        do_phase(w, state, sum, lo, hi, phase);
    }
    for (size_t lane = lo; lane < hi; lane++)
        sums[lane] = sum[lane];
}

static bool verify(struct wl *w)
{
    uint64_t *own = wl_new(rows * LINE_WORDS, sizeof(*own));

    for (size_t lane = 0; lane < WL_LANES; lane++) {
        uint64_t state = wl_hash(w->seed, lane), sum = 0;

        for (size_t row = 0; row < rows; row++)
            for (size_t k = 0; k < LINE_WORDS; k++)
                own[row * LINE_WORDS + k] = first_word(row, lane, k);
        for (unsigned phase = 0; phase < HOT_PHASES; phase++) {
            struct window hot = window_of(w, phase);

            for (size_t k = steps_of_phase(w); k > 0; k--)
                step(own, 1, 0, &hot, &state, &sum);
        }
        if (sum != sums[lane])
            return false;
        for (size_t i = 0; i < rows * LINE_WORDS; i++)
            if (own[i] != table[(i / LINE_WORDS * WL_LANES + lane) * LINE_WORDS + i % LINE_WORDS])
                return false;
    }
    return true;
}

const struct workload workload = {
    .name = HOT_PHASES > 1 ? "hotmove" : "hotset",
    .about = HOT_PHASES > 1
                 ? "Random accesses, most to a small part of a table that moves on 3 times; a "
                   "round is as many as there are lines."
                 : "Random accesses, most to a small part of a table; a round is as many as there "
                   "are lines.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
