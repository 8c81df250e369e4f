/* SPDX-License-Identifier: BSD-2-Clause
 * Heat: Jacobi sweeps of a five-point stencil between two grids.
 *
 * Bandwidth-sensitive: three rows stay in the cache, so one line is read and one written
 * for a handful of additions a point; Tahoe's Heat (DIGEST 003).
 *
 * The start is a product of sines, which one sweep multiplies by a known factor: every
 * point must equal factor^rounds times its start. */
#include "common.h"

static size_t side; /* points, borders included */
static double *grid[2], *sine_y, *sine_x;
static double factor;

static void prepare(struct wl *w)
{
    unsigned mode_y = 1 + (unsigned)(wl_hash(w->seed, 0) % 3);
    unsigned mode_x = 1 + (unsigned)(wl_hash(w->seed, 1) % 3);
    double step;

    side = wl_root(w->bytes / (2 * sizeof(double)));
    step = 0.5 / (double)(side - 1); /* turns a point of half a wave */
    for (int i = 0; i < 2; i++)
        grid[i] = wl_new(side * side, sizeof(double));
    sine_y = wl_new(side, sizeof(*sine_y));
    sine_x = wl_new(side, sizeof(*sine_x));
    for (size_t i = 0; i < side; i++) {
        sine_y[i] = wl_sin_turn(mode_y * step * (double)i);
        sine_x[i] = wl_sin_turn(mode_x * step * (double)i);
    }
    sine_y[side - 1] = sine_x[side - 1] = 0; /* there a rounding away from it */
    for (size_t y = 0; y < side; y++) {
        for (size_t x = 0; x < side; x++)
            grid[0][y * side + x] = grid[1][y * side + x] = sine_y[y] * sine_x[x];
    }
    /* A cosine is the sine a quarter of a turn on. */
    factor =
        0.2 * (1 + 2 * wl_sin_turn(0.25 + mode_y * step) + 2 * wl_sin_turn(0.25 + mode_x * step));
    wl_result(w, grid[w->rounds & 1], side * side, WL_F64);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, side - 2, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        const double *from = grid[round & 1];
        double *to = grid[!(round & 1)];

        for (size_t y = lo + 1; y <= hi; y++) {
            for (size_t i = y * side + 1; i < (y + 1) * side - 1; i++)
                to[i] =
                    0.2 * (from[i] + from[i - 1] + from[i + 1] + from[i - side] + from[i + side]);
        }
        wl_barrier(w);
    }
}

static bool verify(struct wl *w)
{
    const double *u = w->result;
    double scale = 1;

    for (unsigned round = 0; round < w->rounds; round++)
        scale *= factor;
    for (size_t y = 0; y < side; y++) {
        for (size_t x = 0; x < side; x++) {
            double want = scale * sine_y[y] * sine_x[x];

            if (!(wl_abs(u[y * side + x] - want) < 1e-11))
                return false;
        }
    }
    return true;
}

const struct workload workload = {
    .name = "heat",
    .about = "Jacobi sweeps of a five-point stencil between two grids.",
    .size = 16,
    .rounds = 8,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
