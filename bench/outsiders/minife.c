/* SPDX-License-Identifier: BSD-2-Clause
 * Finite elements: a matrix of 27 points a row is assembled, then conjugate gradients stream it
 * again and again beside five vectors: miniFE. */
#include "parts.h"

#define POINTS 27

static size_t side, n;
static double *value, *x, *b, *r, *p, *q, partial[WL_LANES];
static uint32_t *column;

static void prepare(struct wl *w)
{
    for (side = 8; (side + 1) * (side + 1) * (side + 1) * (POINTS * 12 + 5 * 8) <= w->bytes;)
        side++;
    n = side * side * side;
    value = wl_new(n * POINTS, sizeof(*value));
    column = wl_new(n * POINTS, sizeof(*column));
    x = wl_new(n, sizeof(*x));
    b = wl_new(n, sizeof(*b));
    r = wl_new(n, sizeof(*r));
    p = wl_new(n, sizeof(*p));
    q = wl_new(n, sizeof(*q));
    wl_result(w, x, n, WL_F64);
}

static size_t clamp(size_t c, size_t d)
{
    return c + d == 0 ? 0 : c + d - 1 < side ? c + d - 1 : side - 1;
}

/* Diagonally dominant, and symmetric but for what lies beyond the border, which is the row's own.
 */
static void assemble(size_t i)
{
    size_t z = i / side / side, y = i / side % side, at = i * POINTS;

    for (size_t k = 0; k < POINTS; k++) {
        size_t c = (clamp(z, k / 9) * side + clamp(y, k / 3 % 3)) * side + clamp(i % side, k % 3);
        bool inside =
            z + k / 9 - 1 < side && y + k / 3 % 3 - 1 < side && i % side + k % 3 - 1 < side;

        column[at + k] = (uint32_t)(inside ? c : i);
        value[at + k] = !inside ? 0 : k == POINTS / 2 ? 26.5 : -1;
    }
}

static double dot(struct wl *w, unsigned id, const double *u, const double *v)
{
    double sum = 0;

    wl_barrier(w); /* lanes are not the parts that the threads have worked on */
    for (unsigned l = id; l < WL_LANES; l += w->threads) {
        double s = 0;

        for (size_t i = n * l / WL_LANES; i < n * (l + 1) / WL_LANES; i++)
            s += u[i] * v[i];
        partial[l] = s;
    }
    wl_barrier(w);
    for (unsigned l = 0; l < WL_LANES; l++)
        sum += partial[l];
    return sum;
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;
    double rr;

    wl_part(w, n, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++) {
        assemble(i);
        b[i] = wl_unit(wl_hash(w->seed, i));
        x[i] = 0;
        r[i] = p[i] = b[i];
    }
    rr = dot(w, id, r, r);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t i = lo; i < hi; i++) {
            q[i] = 0;
            for (size_t k = i * POINTS; k < (i + 1) * POINTS; k++)
                q[i] += value[k] * p[column[k]];
        }
        double step = rr / dot(w, id, p, q), old = rr;
        for (size_t i = lo; i < hi; i++) {
            x[i] += step * p[i];
            r[i] -= step * q[i];
        }
        rr = dot(w, id, r, r);
        for (size_t i = lo; i < hi; i++)
            p[i] = r[i] + rr / old * p[i];
        wl_barrier(w);
    }
    parts_note(w, x, n, id);
}

static bool verify(struct wl *w)
{
    double left = 0, all = 0; /* the first steps may lead away */

    (void)w;
    for (size_t i = 0; i < n; i++) {
        left += r[i] * r[i];
        all += b[i] * b[i];
    }
    return left < 16 * all && parts_noted(x, n);
}

const struct workload workload = {
    .name = "minife",
    .about = "Finite elements: assembly, then conjugate gradients; a round is an iteration.",
    .size = 10,
    .rounds = 12,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
