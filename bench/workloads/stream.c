/* SPDX-License-Identifier: BSD-2-Clause
 * STREAM: copy, scale, add and triad over three arrays.
 *
 * Bandwidth-sensitive: nothing but streams, no reuse within a kernel, one line fetched
 * for every few instructions and a third of the traffic written. The purest of the
 * class; its ratio is that of the media's bandwidths.
 *
 * Exact: the values are fractions of two and so is the factor, so every element must
 * equal the same recurrence on a single number, bit by bit. */
#include "common.h"

#define SCALE  0.5
#define VALUES 64 /* distinct start values */

static size_t n;
static double *a, *b, *c;

static double start_value(const struct wl *w, size_t i)
{
    return 1 + (double)(wl_hash(w->seed, i) % VALUES) / VALUES;
}

static void prepare(struct wl *w)
{
    n = w->bytes / (3 * sizeof(double));
    a = wl_new(n, sizeof(*a));
    b = wl_new(n, sizeof(*b));
    c = wl_new(n, sizeof(*c));
    for (size_t i = 0; i < n; i++) {
        a[i] = start_value(w, i);
        b[i] = c[i] = 0;
    }
    wl_result(w, a, n, WL_F64);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t i = lo; i < hi; i++)
            c[i] = a[i];
        wl_barrier(w);
        for (size_t i = lo; i < hi; i++)
            b[i] = SCALE * c[i];
        wl_barrier(w);
        for (size_t i = lo; i < hi; i++)
            c[i] = a[i] + b[i];
        wl_barrier(w);
        /* Halved, or 1.25 to the power of the rounds would leave the range of a double. */
        for (size_t i = lo; i < hi; i++)
            a[i] = SCALE * (b[i] + SCALE * c[i]);
        wl_barrier(w);
    }
}

static bool verify(struct wl *w)
{
    double want[VALUES][3];

    for (unsigned v = 0; v < VALUES; v++) {
        double x = 1 + (double)v / VALUES, y = 0, z = 0;

        for (unsigned round = 0; round < w->rounds; round++) {
            y = SCALE * x;
            z = x + y;
            x = SCALE * (y + SCALE * z);
        }
        want[v][0] = x;
        want[v][1] = y;
        want[v][2] = z;
    }
    for (size_t i = 0; i < n; i++) {
        const double *x = want[wl_hash(w->seed, i) % VALUES];

        if (!(a[i] == x[0] && b[i] == x[1] && c[i] == x[2]))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "stream",
    .about = "Copy, scale, add and triad over three arrays.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
