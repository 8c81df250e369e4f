/* SPDX-License-Identifier: BSD-2-Clause
 * Gas in a periodic box, explicit steps: many temporaries made and freed in each of them.
 *
 * Bandwidth-sensitive and write-intensive, of the shape that LULESH has: a few arrays live as
 * long as the program (five quantities of each cell, the numbers of its neighbours), and each
 * step gets twice as many by malloc, of the same size, for as long as a part of it lasts. The
 * temporaries have most of the traffic and least of the lifetime: what they leave behind is
 * DRAM that is charged or a hole, unless the next step gets it again.
 *
 * Finite volumes, the flux between cells that of Rusanov. Mass, momentum and energy are
 * conserved. The gas at the start is its own mirror image in x, and the method knows no side:
 * so must it be at the end, bit by bit, in all quantities. */
#include <stdlib.h>

#include "common.h"

enum { MASS, PUSH_X, PUSH_Y, PUSH_Z, ENERGY, QUANTITIES };
enum { PRESSURE, SPEED_X, SPEED_Y, SPEED_Z, SOUND, DERIVED };

#define GAMMA   1.4
#define COURANT 0.3
/* At the peak: quantities, six neighbours; three sets of temporaries. */
#define CELL_BYTES (QUANTITIES * 8 + 6 * 4 + (DERIVED + 2 * QUANTITIES) * 8)

static size_t side, cells;
static double *state[QUANTITIES], *derived[DERIVED], *change[QUANTITIES], *flux[QUANTITIES];
static double total[QUANTITIES], fastest[WL_MAX_THREADS];
static uint32_t *after[3], *before[3];

static size_t cell(size_t z, size_t y, size_t x)
{
    return (z * side + y) * side + x;
}

static double random_of(const struct wl *w, size_t z, size_t y, size_t x, unsigned what)
{
    size_t fold = x < side - 1 - x ? x : side - 1 - x;

    return wl_unit(wl_hash(w->seed + what, cell(z, y, fold))) - 0.5;
}

static void begin_cell(const struct wl *w, size_t z, size_t y, size_t x)
{
    size_t i = cell(z, y, x);
    double mass = 1 + 0.4 * random_of(w, z, y, x, 1), sign = x < side / 2 ? 1 : -1;
    double vx = sign * 0.2 * random_of(w, z, y, x, 2), vy = 0.2 * random_of(w, z, y, x, 3);
    double vz = 0.2 * random_of(w, z, y, x, 4), p = 1 + 0.5 * random_of(w, z, y, x, 5);

    state[MASS][i] = mass;
    state[PUSH_X][i] = mass * vx;
    state[PUSH_Y][i] = mass * vy;
    state[PUSH_Z][i] = mass * vz;
    state[ENERGY][i] = p / (GAMMA - 1) + 0.5 * mass * (vx * vx + vy * vy + vz * vz);
    after[0][i] = (uint32_t)cell(z, y, (x + 1) % side);
    after[1][i] = (uint32_t)cell(z, (y + 1) % side, x);
    after[2][i] = (uint32_t)cell((z + 1) % side, y, x);
    before[0][i] = (uint32_t)cell(z, y, (x + side - 1) % side);
    before[1][i] = (uint32_t)cell(z, (y + side - 1) % side, x);
    before[2][i] = (uint32_t)cell((z + side - 1) % side, y, x);
}

static void prepare(struct wl *w)
{
    for (side = 4; (side + 2) * (side + 2) * (side + 2) * CELL_BYTES <= w->bytes; side += 2)
        ;
    cells = side * side * side;
    if (cells > UINT32_MAX)
        wl_fail("too many cells");
    for (unsigned q = 0; q < QUANTITIES; q++)
        state[q] = wl_new(cells, sizeof(double));
    for (unsigned d = 0; d < 3; d++) {
        after[d] = wl_new(cells, sizeof(uint32_t));
        before[d] = wl_new(cells, sizeof(uint32_t));
    }
    for (size_t i = 0; i < cells; i++)
        begin_cell(w, i / side / side, i / side % side, i % side);
    for (unsigned q = 0; q < QUANTITIES; q++) {
        total[q] = 0;
        for (size_t i = 0; i < cells; i++)
            total[q] += state[q][i];
    }
    wl_result(w, state[MASS], cells, WL_F64);
}

/* By thread 0; the others wait. */
static void get(struct wl *w, unsigned id, double **field, unsigned count)
{
    for (unsigned i = 0; id == 0 && i < count; i++) {
        field[i] = malloc(cells * sizeof(double));
        if (!field[i])
            wl_fail("out of memory");
    }
    wl_barrier(w);
}

static void give_back(struct wl *w, unsigned id, double **field, unsigned count)
{
    wl_barrier(w);
    for (unsigned i = 0; id == 0 && i < count; i++)
        free(field[i]);
}

/* Square root by Newton, from above: the same everywhere. */
static double root(double x)
{
    double r = 0.5 * (x + 1);

    for (unsigned i = 0; i < 6; i++)
        r = 0.5 * (r + x / r);
    return r;
}

/* Pressure, speeds and sound; the fastest signal of this thread's cells. */
static void derive(unsigned id, size_t lo, size_t hi)
{
    double most = 0;

    for (size_t i = lo; i < hi; i++) {
        double mass = state[MASS][i], vx = state[PUSH_X][i] / mass, vy = state[PUSH_Y][i] / mass;
        double vz = state[PUSH_Z][i] / mass;
        double p = (GAMMA - 1) * (state[ENERGY][i] - 0.5 * mass * (vx * vx + vy * vy + vz * vz));
        double c = root(GAMMA * p / mass), v;

        derived[PRESSURE][i] = p;
        derived[SPEED_X][i] = vx;
        derived[SPEED_Y][i] = vy;
        derived[SPEED_Z][i] = vz;
        derived[SOUND][i] = c;
        v = c + wl_abs(vx) + wl_abs(vy) + wl_abs(vz);
        most = v > most ? v : most;
        for (unsigned q = 0; q < QUANTITIES; q++)
            change[q][i] = 0;
    }
    fastest[id] = most;
}

/* Through the face between cell i and the one after it in direction d. */
static void face(size_t i, unsigned d)
{
    size_t j = after[d][i];
    double u = derived[SPEED_X + d][i], v = derived[SPEED_X + d][j];
    double p = derived[PRESSURE][i], s = derived[PRESSURE][j];
    double left = wl_abs(u) + derived[SOUND][i], right = wl_abs(v) + derived[SOUND][j];
    double a = left > right ? left : right;

    for (unsigned q = 0; q < QUANTITIES; q++)
        flux[q][i] = 0.5 * ((u * state[q][i] + v * state[q][j]) - a * (state[q][j] - state[q][i]));
    flux[PUSH_X + d][i] += 0.5 * (p + s);
    flux[ENERGY][i] += 0.5 * (p * u + s * v);
}

static void direction(struct wl *w, unsigned id, unsigned d, size_t lo, size_t hi)
{
    get(w, id, flux, QUANTITIES);
    for (size_t i = lo; i < hi; i++)
        face(i, d);
    wl_barrier(w);
    for (size_t i = lo; i < hi; i++) {
        for (unsigned q = 0; q < QUANTITIES; q++)
            change[q][i] += flux[q][before[d][i]] - flux[q][i];
    }
    give_back(w, id, flux, QUANTITIES);
}

static void step(struct wl *w, unsigned id)
{
    size_t lo, hi;
    double most = 0;

    wl_part(w, cells, id, &lo, &hi);
    get(w, id, change, QUANTITIES);
    get(w, id, derived, DERIVED);
    derive(id, lo, hi);
    wl_barrier(w);
    for (unsigned i = 0; i < w->threads; i++)
        most = fastest[i] > most ? fastest[i] : most;
    for (unsigned d = 0; d < 3; d++)
        direction(w, id, d, lo, hi);
    give_back(w, id, derived, DERIVED);
    for (unsigned q = 0; q < QUANTITIES; q++) {
        for (size_t i = lo; i < hi; i++)
            state[q][i] += COURANT / most * change[q][i];
    }
    give_back(w, id, change, QUANTITIES);
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        step(w, id);
}

static bool mirrored(unsigned q)
{
    double sign = q == PUSH_X ? -1 : 1;

    for (size_t i = 0; i < cells; i++) {
        size_t twin = i / side * side + side - 1 - i % side;

        if (!(state[q][i] == sign * state[q][twin]))
            return false;
    }
    return true;
}

static bool verify(struct wl *w)
{
    (void)w;
    for (unsigned q = 0; q < QUANTITIES; q++) {
        double sum = 0;

        for (size_t i = 0; i < cells; i++)
            sum += state[q][i];
        if (!(wl_abs(sum - total[q]) < 1e-11 * (double)cells) || !mirrored(q))
            return false;
    }
    for (size_t i = 0; i < cells; i++) {
        if (!(state[MASS][i] > 0 && state[ENERGY][i] > 0))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "hydro",
    .about = "Gas in a box, with 25 temporary arrays in each step; a round is a step.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
