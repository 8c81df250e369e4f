/* SPDX-License-Identifier: BSD-2-Clause
 * Heat (heat.c) with OpenMP tasks: each sweeps over a panel of rows from one grid to the other and
 * depends on the panels that it reads; Tahoe's Heat (DIGEST 003). The sweeps of one round are one
 * task type. A task uses its data once: there is little to gain. */
#include "common.h"

#define PANELS 32

static size_t side, rows; /* points, borders included; of a panel */
static double *grid[2], *sine_y, *sine_x;
static double factor;

static void prepare(struct wl *w)
{
    unsigned mode = 1 + (unsigned)(wl_hash(w->seed, 0) % 16);
    double step;

    side = wl_root(w->bytes / (2 * sizeof(double))) / PANELS * PANELS;
    rows = side / PANELS;
    if (rows < 2)
        wl_fail("too small");
    step = 0.5 * mode / (double)(side - 1); /* turns a point of `mode` half waves */
    for (int i = 0; i < 2; i++)
        grid[i] = wl_new(side * side, sizeof(double));
    sine_y = wl_new(side, sizeof(*sine_y));
    sine_x = wl_new(side, sizeof(*sine_x));
    for (size_t i = 0; i < side; i++)
        sine_y[i] = sine_x[i] = i + 1 < side ? wl_sin_turn(step * (double)i) : 0;
    for (size_t y = 0; y < side; y++)
        for (size_t x = 0; x < side; x++)
            grid[0][y * side + x] = grid[1][y * side + x] = sine_y[y] * sine_x[x];
    factor = 0.2 * (1 + 4 * wl_sin_turn(0.25 + step));
    wl_result(w, grid[w->rounds & 1], side * side, WL_F64);
}

static void sweep(const double *from, double *to, size_t first, size_t last)
{
    for (size_t y = first; y < last; y++)
        for (size_t i = y * side + 1; i < (y + 1) * side - 1; i++)
            to[i] = 0.2 * (from[i] + from[i - 1] + from[i + 1] + from[i - side] + from[i + side]);
}

static void work(struct wl *w, unsigned id)
{
    if (id != 0) /* OpenMP has threads of its own */
        return;
#pragma omp parallel num_threads(w->threads)
#pragma omp single
    for (unsigned round = 0; round < w->rounds; round++)
        for (size_t p = 0; p < PANELS; p++) {
            const double *from = grid[round & 1];
            double *to = grid[!(round & 1)];
            size_t above = (p ? p - 1 : 0) * rows * side, same = p * rows * side;
            size_t below = (p + 1 < PANELS ? p + 1 : p) * rows * side;
            size_t first = p ? p * rows : 1, last = p + 1 < PANELS ? (p + 1) * rows : side - 1;
#pragma omp task depend(in                                                                         \
                        : from[above], from[same], from[below]) depend(out                         \
                                                                       : to[same])                 \
    firstprivate(from, to, first, last)
            sweep(from, to, first, last);
        }
}

static bool verify(struct wl *w)
{
    const double *u = w->result;
    double scale = 1;

    for (unsigned round = 0; round < w->rounds; round++)
        scale *= factor;
    for (size_t y = 0; y < side; y++)
        for (size_t x = 0; x < side; x++)
            if (!(wl_abs(u[y * side + x] - scale * sine_y[y] * sine_x[x]) < 1e-11))
                return false;
    return true;
}

const struct workload workload = {
    .name = "theat",
    .about = "Heat with OpenMP tasks on panels of rows.",
    .size = 16,
    .rounds = 8,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
