/* SPDX-License-Identifier: BSD-2-Clause
 * Lattice Boltzmann on a plane, nine directions: two grids that change places in each step, and
 * obstacles, where nothing is computed: SPEC's lbm in two dimensions. */
#include "parts.h"

#define WAYS 9

static const int way_x[WAYS] = {0, 1, -1, 0, 0, 1, -1, 1, -1};
static const int way_y[WAYS] = {0, 0, 0, 1, -1, 1, -1, -1, 1};
static const unsigned reverse[WAYS] = {0, 2, 1, 4, 3, 6, 5, 8, 7};
static const double weight[WAYS] = {4.0 / 9,  1.0 / 9,  1.0 / 9,  1.0 / 9, 1.0 / 9,
                                    1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};
static size_t side;
static double (*grid[2])[WAYS];
static uint8_t *solid;

static void prepare(struct wl *w)
{
    side = wl_root(w->bytes / (2 * sizeof(**grid) + 1));
    grid[0] = wl_new(side * side, sizeof(**grid));
    grid[1] = wl_new(side * side, sizeof(**grid));
    solid = wl_new(side * side, 1);
    for (size_t i = 0; i < side * side; i++) {
        size_t y = i / side, x = i % side;

        solid[i] = y == 0 || y == side - 1 || wl_hash(w->seed, y / 8 * side + x / 8) % 12 == 0;
        for (unsigned k = 0; k < WAYS; k++)
            grid[0][i][k] = grid[1][i][k] = weight[k] * (1 + 0.1 * way_x[k]);
    }
    wl_result(w, grid[w->rounds & 1], side * side * WAYS, WL_F64);
}

static void collide(double *f)
{
    double mass = 0, x = 0, y = 0;

    for (unsigned k = 0; k < WAYS; k++) {
        mass += f[k];
        x += f[k] * way_x[k];
        y += f[k] * way_y[k];
    }
    x = x / mass + 1e-5;
    y /= mass;
    for (unsigned k = 0; k < WAYS; k++) {
        double along = 3 * (x * way_x[k] + y * way_y[k]);
        double rest = weight[k] * mass * (1 + along + along * along / 2 - 1.5 * (x * x + y * y));

        f[k] += 0.8 * (rest - f[k]);
    }
}

static void stream(size_t i, double (*from)[WAYS], double (*to)[WAYS])
{
    size_t y = i / side, x = i % side;

    for (unsigned k = 0; k < WAYS; k++) {
        size_t back = (y - (size_t)way_y[k]) * side + (x + side - (size_t)way_x[k]) % side;

        to[i][k] = solid[back] ? from[i][reverse[k]] : from[back][k];
    }
    collide(to[i]);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, side * side, id, &lo, &hi);
    for (unsigned step = 0; step < w->rounds; step++) {
        for (size_t i = lo; i < hi; i++) {
            if (!solid[i])
                stream(i, grid[step & 1], grid[!(step & 1)]);
        }
        wl_barrier(w);
    }
    parts_note(w, grid[w->rounds & 1], side * side * WAYS, id);
}

static bool verify(struct wl *w)
{
    return parts_noted(grid[w->rounds & 1], side * side * WAYS);
}

const struct workload workload = {
    .name = "lbm",
    .about = "Lattice Boltzmann, two grids that change places; a round is a step.",
    .size = 8,
    .rounds = 16,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
