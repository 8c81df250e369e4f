/* SPDX-License-Identifier: BSD-2-Clause
 * GUPS: random updates of one large table (RandomAccess).
 *
 * Write-intensive and bandwidth-sensitive: every update reads one line and dirties it,
 * independently of the last, so many are under way at once, and a medium that writes in
 * blocks larger than a line writes most of each block for nothing.
 *
 * 64 lanes, each with random numbers and a 64th of the table of its own, take turns, so
 * that one thread sweeps the whole table and no two write the same word. The XOR of the
 * table is the XOR of everything put in; one lane is done again alone and compared. */
#include "common.h"

static uint64_t *table;
static size_t slice; /* words a lane */

static uint64_t lane_seed(const struct wl *w, unsigned lane)
{
    return wl_hash(w->seed, lane);
}

static void prepare(struct wl *w)
{
    slice = w->bytes / sizeof(*table) / WL_LANES;
    table = wl_new(slice * WL_LANES, sizeof(*table));
    for (size_t i = 0; i < slice * WL_LANES; i++)
        table[i] = i;
    wl_result(w, table, slice * WL_LANES, WL_U64);
}

static void work(struct wl *w, unsigned id)
{
    uint64_t state[WL_LANES];
    size_t lo, hi;

    wl_part(w, WL_LANES, id, &lo, &hi);
    for (size_t lane = lo; lane < hi; lane++)
        state[lane] = lane_seed(w, (unsigned)lane);
    wl_barrier(w);
    for (size_t k = 0; k < slice * w->rounds; k++) {
        for (size_t lane = lo; lane < hi; lane++) {
            uint64_t r = wl_next(&state[lane]);

            table[lane * slice + wl_below(r, slice)] ^= r;
        }
    }
}

static bool verify(struct wl *w)
{
    unsigned probe = (unsigned)(wl_hash(w->seed, WL_LANES) % WL_LANES);
    uint64_t *copy = wl_new(slice, sizeof(*copy)), all = 0;

    for (size_t i = 0; i < slice; i++)
        copy[i] = probe * slice + i;
    for (unsigned lane = 0; lane < WL_LANES; lane++) {
        uint64_t state = lane_seed(w, lane);

        for (size_t k = 0; k < slice * w->rounds; k++) {
            uint64_t r = wl_next(&state);

            all ^= r;
            if (lane == probe)
                copy[wl_below(r, slice)] ^= r;
        }
    }
    for (size_t i = 0; i < slice; i++) {
        if (table[probe * slice + i] != copy[i])
            return false;
    }
    for (size_t i = 0; i < slice * WL_LANES; i++)
        all ^= table[i] ^ i;
    return all == 0;
}

const struct workload workload = {
    .name = "gups",
    .about = "Random updates of the words of one table; a round is as many as there are words.",
    .size = 16,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
