/* SPDX-License-Identifier: BSD-2-Clause
 * Multigrid in a cube: V-cycles whose levels lie one behind the other in one block.
 *
 * Bandwidth-sensitive and write-intensive as `ocean`, of the shape that NPB/MG has: one block
 * holds the solution of all levels, one the right sides of all, one that of the finest. So no
 * block is only fine or only coarse, and whoever places blocks as a whole has nothing to choose.
 *
 * Down the cycle residuals are restricted, up it corrections are interpolated and smoothed,
 * red-black. Red points depend on black ones only: the order within a colour does not matter.
 * The right side is made from a solution that is thought out beforehand, so the distance to it
 * is known and must have shrunk by the factor of the method in every cycle. */
#include "common.h"

#define MAX_LEVELS 12
#define SMOOTH     2  /* sweeps on the way up */
#define COARSEST   24 /* sweeps there, over-relaxed: as good as exact on 15 intervals */

/* side: points along an edge, borders (always zero) included; 7-point stencil, unscaled. */
struct level {
    size_t side;
    double *u, *r; /* parts of the two blocks */
};

static struct level levels[MAX_LEVELS];
static unsigned depth;
static double *f, *sine, relax;

static size_t cube(size_t side)
{
    return side * side * side;
}

static size_t index_of(size_t side, size_t z, size_t y, size_t x)
{
    return (z * side + y) * side + x;
}

/* Smooth waves and a little noise: something to do for every level. */
static double solution(const struct wl *w, size_t z, size_t y, size_t x)
{
    size_t s = levels[0].side, m = s - 1;

    if (x == 0 || y == 0 || z == 0 || x == m || y == m || z == m)
        return 0;
    return sine[z] * sine[y] * sine[x] + 0.5 * sine[2 * z] * sine[y] * sine[3 * x % (2 * m)] +
           0.1 * (wl_unit(wl_hash(w->seed, index_of(s, z, y, x))) - 0.5);
}

static double around(const double *u, size_t s)
{
    return u[-1] + u[1] + *(u - s) + u[s] + *(u - s * s) + u[s * s];
}

/* The sides of all levels; the points of all together. */
static size_t choose_levels(size_t bytes)
{
    size_t intervals = 8, points = 0;

    /* Two arrays of all levels, a seventh more than the finest, and one of the finest alone. */
    while (cube(intervals + 2) * (size_t)(3.3 * sizeof(double)) <= bytes)
        intervals++;
    for (depth = 1; intervals >> depth >= 8 && depth < MAX_LEVELS; depth++)
        ;
    intervals = intervals >> (depth - 1) << (depth - 1);
    for (unsigned l = 0; l < depth; l++) {
        levels[l].side = (intervals >> l) + 1;
        points += cube(levels[l].side);
    }
    return points;
}

static void prepare(struct wl *w)
{
    size_t points = choose_levels(w->bytes), s = levels[0].side, waves = 2 * (s - 1);
    double *u = wl_new(points, sizeof(double)), *r = wl_new(points, sizeof(double));

    f = wl_new(cube(s), sizeof(double));
    sine = wl_new(waves, sizeof(double)); /* a whole wave: index modulo its length */
    for (size_t i = 0; i < waves; i++)
        sine[i] = wl_sin_turn((double)i / (double)waves);
    for (unsigned l = 0; l < depth; l++) {
        levels[l].u = u;
        levels[l].r = r;
        u += cube(levels[l].side);
        r += cube(levels[l].side);
    }
    relax = 2 / (1 + wl_sin_turn(0.5 / (double)(levels[depth - 1].side - 1)));
    u = levels[0].u;
    for (size_t i = 0; i < cube(s); i++) {
        u[i] = solution(w, i / s / s, i / s % s, i % s);
        f[i] = 0;
    }
    for (size_t z = 1; z < s - 1; z++) {
        for (size_t y = 1; y < s - 1; y++) {
            for (size_t i = index_of(s, z, y, 1); i < index_of(s, z, y, s - 1); i++)
                f[i] = 6 * u[i] - around(&u[i], s);
        }
    }
    for (size_t i = 0; i < points; i++)
        u[i] = levels[0].r[i] = 0;
    wl_result(w, levels[0].u, cube(s), WL_F64);
}

/* Planes lo + 1 to hi, as everywhere below. */
static void smooth(struct wl *w, const struct level *v, const double *right, size_t lo, size_t hi,
                   unsigned sweeps, double factor)
{
    size_t s = v->side;

    for (unsigned half = 0; half < 2 * sweeps; half++) {
        for (size_t z = lo + 1; z <= hi; z++) {
            for (size_t y = 1; y < s - 1; y++) {
                for (size_t x = 1 + ((z + y + half) & 1); x < s - 1; x += 2) {
                    size_t i = index_of(s, z, y, x);
                    double better = (right[i] + around(&v->u[i], s)) * (1.0 / 6);

                    v->u[i] += factor * (better - v->u[i]);
                }
            }
        }
        wl_barrier(w);
    }
}

static void residual(struct wl *w, const struct level *v, size_t lo, size_t hi)
{
    size_t s = v->side;

    for (size_t z = lo + 1; z <= hi; z++) {
        for (size_t y = 1; y < s - 1; y++) {
            for (size_t i = index_of(s, z, y, 1); i < index_of(s, z, y, s - 1); i++)
                v->r[i] = f[i] - 6 * v->u[i] + around(&v->u[i], s);
        }
    }
    wl_barrier(w);
}

/* Full weighting, 1/8 halved with each step away from the middle; times 4, as the square of the
 * coarse step is. The correction begins with zero. */
static void restrict_to(struct wl *w, const struct level *v, const struct level *coarse, size_t lo,
                        size_t hi)
{
    static const double weight[3] = {0.25, 0.5, 0.25};
    size_t s = v->side, c = coarse->side;

    for (size_t z = lo + 1; z <= hi; z++) {
        for (size_t y = 1; y < c - 1; y++) {
            for (size_t x = 1; x < c - 1; x++) {
                double sum = 0;

                for (size_t k = 0; k < 9; k++) {
                    const double *r =
                        &v->r[index_of(s, 2 * z + k / 3 - 1, 2 * y + k % 3 - 1, 2 * x)];

                    sum += weight[k / 3] * weight[k % 3] * (0.25 * (r[-1] + r[1]) + 0.5 * r[0]);
                }
                coarse->r[index_of(c, z, y, x)] = 4 * sum;
                coarse->u[index_of(c, z, y, x)] = 0;
            }
        }
    }
    wl_barrier(w);
}

static void prolong(struct wl *w, const struct level *v, const struct level *coarse, size_t lo,
                    size_t hi)
{
    size_t s = v->side, c = coarse->side;

    for (size_t z = lo + 1; z <= hi; z++) {
        for (size_t y = 1; y < s - 1; y++) {
            const double *a = &coarse->u[index_of(c, z / 2, y / 2, 0)];
            const double *b = &coarse->u[index_of(c, z / 2, (y + 1) / 2, 0)];
            size_t up = ((z + 1) / 2 - z / 2) * c * c;

            for (size_t x = 1; x < s - 1; x++) {
                size_t l = x / 2, r = (x + 1) / 2;

                v->u[index_of(s, z, y, x)] += 0.125 * (a[l] + a[r] + b[l] + b[r] + a[l + up] +
                                                       a[r + up] + b[l + up] + b[r + up]);
            }
        }
    }
    wl_barrier(w);
}

static void cycle(struct wl *w, unsigned id)
{
    size_t lo[MAX_LEVELS], hi[MAX_LEVELS];

    for (unsigned l = 0; l < depth; l++)
        wl_part(w, levels[l].side - 2, id, &lo[l], &hi[l]);
    residual(w, &levels[0], lo[0], hi[0]);
    for (unsigned l = 1; l < depth; l++)
        restrict_to(w, &levels[l - 1], &levels[l], lo[l], hi[l]);
    smooth(w, &levels[depth - 1], depth > 1 ? levels[depth - 1].r : f, lo[depth - 1], hi[depth - 1],
           COARSEST, relax);
    for (unsigned l = depth - 1; l-- > 0;) {
        prolong(w, &levels[l], &levels[l + 1], lo[l], hi[l]);
        smooth(w, &levels[l], l > 0 ? levels[l].r : f, lo[l], hi[l], SMOOTH, 1);
    }
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        cycle(w, id);
}

static bool verify(struct wl *w)
{
    size_t s = levels[0].side;
    double bound = 1.7; /* of the solution itself: the start is zero */

    for (unsigned round = 0; round < w->rounds && bound > 1e-9; round++)
        bound *= 0.3;
    for (size_t z = 0; z < s; z++) {
        for (size_t y = 0; y < s; y++) {
            for (size_t x = 0; x < s; x++) {
                double u = levels[0].u[index_of(s, z, y, x)];

                if (!(wl_abs(u - solution(w, z, y, x)) < bound))
                    return false;
            }
        }
    }
    return true;
}

const struct workload workload = {
    .name = "multigrid",
    .about = "Multigrid V-cycles in a cube, all levels in one block; a round is a cycle.",
    .size = 16,
    .rounds = 3,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
