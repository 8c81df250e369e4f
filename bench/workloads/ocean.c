/* SPDX-License-Identifier: BSD-2-Clause
 * Ocean-like multigrid: V-cycles with red-black Gauss-Seidel on a square.
 *
 * Bandwidth-sensitive: like ocean_cp, the paper's worst case on PM (17.5x), it streams
 * through its part of many grids in many phases; every grid of every level is an
 * allocation of its own, the fine ones far larger than the coarse ones. NPB/MG is of
 * the same kind.
 *
 * The right side is made from a solution that is thought out beforehand, so the distance
 * to it is known and must have shrunk by the factor of the method in every cycle. Red
 * points depend on black ones only, so the order within a colour does not matter. */
#include "common.h"

#define MAX_LEVELS 16
#define SMOOTH     2  /* sweeps before and after the coarser level */
#define COARSEST   20 /* sweeps there: as good as exact on 4 to 7 intervals */

/* side: points a side, borders (always zero) included. Unscaled stencil 4 -1 -1 -1 -1. */
struct level {
    size_t side;
    double *u, *f, *r;
};

static struct level levels[MAX_LEVELS];
static unsigned depth;
static double *sine;

/* Smooth waves and a little noise: something to do for every level. */
static double solution(const struct wl *w, size_t y, size_t x)
{
    size_t s = levels[0].side - 1;

    if (x == 0 || y == 0 || x == s || y == s)
        return 0;
    return sine[y] * sine[x] + 0.5 * sine[2 * y % (2 * s)] * sine[3 * x % (2 * s)] +
           0.1 * (wl_unit(wl_hash(w->seed, y * s + x)) - 0.5);
}

static void make_levels(size_t bytes)
{
    /* Three grids, and a third more for all coarser ones. */
    size_t intervals = wl_root(bytes / (4 * sizeof(double)));

    depth = 1;
    while (intervals >> depth >= 4 && depth < MAX_LEVELS)
        depth++;
    intervals = intervals >> (depth - 1) << (depth - 1);
    for (unsigned l = 0; l < depth; l++) {
        struct level *v = &levels[l];

        v->side = (intervals >> l) + 1;
        v->u = wl_new(v->side * v->side, sizeof(double));
        v->f = wl_new(v->side * v->side, sizeof(double));
        v->r = wl_new(v->side * v->side, sizeof(double));
        for (size_t i = 0; i < v->side * v->side; i++)
            v->u[i] = v->f[i] = v->r[i] = 0;
    }
}

static void prepare(struct wl *w)
{
    size_t s, n;
    double *f;

    make_levels(w->bytes);
    s = levels[0].side;
    f = levels[0].f;
    n = 2 * (s - 1);
    sine = wl_new(n, sizeof(*sine)); /* a whole wave: index modulo n */
    for (size_t i = 0; i < n; i++)
        sine[i] = wl_sin_turn((double)i / (double)n);
    for (size_t y = 1; y < s - 1; y++) {
        for (size_t x = 1; x < s - 1; x++)
            f[y * s + x] = 4 * solution(w, y, x) - solution(w, y - 1, x) - solution(w, y + 1, x) -
                           solution(w, y, x - 1) - solution(w, y, x + 1);
    }
    wl_result(w, levels[0].u, s * s, WL_F64);
}

static void smooth(struct wl *w, const struct level *v, size_t lo, size_t hi, unsigned sweeps)
{
    size_t s = v->side;

    for (unsigned half = 0; half < 2 * sweeps; half++) {
        for (size_t y = lo + 1; y <= hi; y++) {
            for (size_t x = 1 + ((y + half) & 1); x < s - 1; x += 2) {
                size_t i = y * s + x;

                v->u[i] = 0.25 * (v->f[i] + v->u[i - 1] + v->u[i + 1] + v->u[i - s] + v->u[i + s]);
            }
        }
        wl_barrier(w);
    }
}

static void residual(struct wl *w, const struct level *v, size_t lo, size_t hi)
{
    size_t s = v->side;

    for (size_t y = lo + 1; y <= hi; y++) {
        for (size_t i = y * s + 1; i < (y + 1) * s - 1; i++)
            v->r[i] = v->f[i] - 4 * v->u[i] + v->u[i - 1] + v->u[i + 1] + v->u[i - s] + v->u[i + s];
    }
    wl_barrier(w);
}

/* Full weighting: 1/4, 1/8, 1/16; times 4, as the coarse square of the step is. */
static void restrict_to(struct wl *w, const struct level *v, const struct level *coarse, size_t lo,
                        size_t hi)
{
    size_t s = v->side, c = coarse->side;

    for (size_t y = lo + 1; y <= hi; y++) {
        for (size_t x = 1; x < c - 1; x++) {
            const double *r = &v->r[2 * y * s + 2 * x];

            coarse->f[y * c + x] = r[0] + 0.5 * (r[-1] + r[1] + *(r - s) + r[s]) +
                                   0.25 * (*(r - s - 1) + *(r - s + 1) + r[s - 1] + r[s + 1]);
            coarse->u[y * c + x] = 0;
        }
    }
    wl_barrier(w);
}

static void prolong(struct wl *w, const struct level *v, const struct level *coarse, size_t lo,
                    size_t hi)
{
    size_t s = v->side, c = coarse->side;

    for (size_t y = lo + 1; y <= hi; y++) {
        const double *above = &coarse->u[y / 2 * c], *below = &coarse->u[(y + 1) / 2 * c];

        for (size_t x = 1; x < s - 1; x++) {
            size_t left = x / 2, right = (x + 1) / 2;

            v->u[y * s + x] += 0.25 * (above[left] + above[right] + below[left] + below[right]);
        }
    }
    wl_barrier(w);
}

static void cycle(struct wl *w, unsigned id, unsigned l)
{
    const struct level *v = &levels[l];
    size_t lo, hi, clo, chi;

    wl_part(w, v->side - 2, id, &lo, &hi);
    if (l + 1 == depth) {
        smooth(w, v, lo, hi, COARSEST);
        return;
    }
    wl_part(w, levels[l + 1].side - 2, id, &clo, &chi);
    smooth(w, v, lo, hi, SMOOTH);
    residual(w, v, lo, hi);
    restrict_to(w, v, v + 1, clo, chi);
    cycle(w, id, l + 1);
    prolong(w, v, v + 1, lo, hi);
    smooth(w, v, lo, hi, SMOOTH);
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        cycle(w, id, 0);
}

static bool verify(struct wl *w)
{
    size_t s = levels[0].side;
    double bound = 1.6; /* of the solution itself: the start is zero */

    for (unsigned round = 0; round < w->rounds && bound > 1e-9; round++)
        bound *= 0.08; /* 0.05 is usual */
    for (size_t y = 0; y < s; y++) {
        for (size_t x = 0; x < s; x++) {
            if (!(wl_abs(levels[0].u[y * s + x] - solution(w, y, x)) < bound))
                return false;
        }
    }
    return true;
}

const struct workload workload = {
    .name = "ocean",
    .about = "Multigrid V-cycles for Poisson's equation on a square; a round is a cycle.",
    .size = 16,
    .rounds = 3,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
