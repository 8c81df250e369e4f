/* SPDX-License-Identifier: BSD-2-Clause
 * Strassen's multiplication: seven products instead of eight, two levels at once as 49
 * tasks, the levels below within a task.
 *
 * Intermediate, between CPU-bound and bandwidth-sensitive: the small products stay in the
 * cache, the sums of quarters stream. Short-lived: every task takes its operands from
 * malloc and gives them back, beside the long-lived matrices and the 49 products; Tahoe's
 * Strassen (DIGEST 003), where moves that look ahead pay.
 *
 * Elements are small integers, so all sums are exact and C x must equal A (B x) exactly
 * for a vector x without zeros. */
#include "common.h"

#include <stdlib.h>

#define LEAF  32
#define TASKS 49
/* C, A, B and the 49 products of a 16th each. */
#define MATRICES 6.1

/* Product p is (sum of left[p][q] A_q) (sum of right[p][q] B_q); C_q = sum of back[q][p] P_p. */
static const signed char left[7][4] = {{1, 0, 0, 1}, {0, 0, 1, 1},  {1, 0, 0, 0}, {0, 0, 0, 1},
                                       {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}};
static const signed char right[7][4] = {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0},
                                        {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}};
static const signed char back[4][7] = {
    {1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0}};

static size_t n;
static double *a, *b, *c, *product, *vector[3];
static unsigned next_task;

/* Part q (0 to 3: upper left, upper right, lower left, lower right) of a square with rows
 * of `pitch`, whose parts have `side` elements a side. */
static size_t part_at(unsigned q, size_t side, size_t pitch)
{
    return (q >> 1) * side * pitch + (q & 1) * side;
}

static void prepare(struct wl *w)
{
    unsigned levels = 2;

    n = wl_root((size_t)((double)w->bytes / (MATRICES * sizeof(double))));
    while (n >> levels > LEAF)
        levels++;
    n = n >> levels << levels;
    a = wl_new(n * n, sizeof(double));
    b = wl_new(n * n, sizeof(double));
    c = wl_new(n * n, sizeof(double));
    product = wl_new(n * n / 16 * TASKS, sizeof(double));
    for (int i = 0; i < 3; i++)
        vector[i] = wl_new(n, sizeof(double));
    for (size_t i = 0; i < n * n; i++) {
        uint64_t r = wl_hash(w->seed, i);

        a[i] = (double)(r & 7) - 3;
        b[i] = (double)(r >> 3 & 7) - 4;
        c[i] = 0;
    }
    wl_result(w, c, n * n, WL_F64);
}

static double *new_square(size_t side)
{
    double *p = malloc(side * side * sizeof(*p));

    if (!p)
        wl_fail("out of memory");
    return p;
}

/* to (dense) += sign * from (rows of `pitch`). */
static void add(double *to, const double *from, size_t side, size_t pitch, double sign)
{
    for (size_t y = 0; y < side; y++) {
        for (size_t x = 0; x < side; x++)
            to[y * side + x] += sign * from[y * pitch + x];
    }
}

static void clear(double *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = 0;
}

static void multiply_leaf(double *to, const double *x, const double *y, size_t side)
{
    clear(to, side * side);
    for (size_t i = 0; i < side; i++) {
        for (size_t k = 0; k < side; k++) {
            double f = x[i * side + k];

            for (size_t j = 0; j < side; j++)
                to[i * side + j] += f * y[k * side + j];
        }
    }
}

/* Dense squares. */
static void multiply(double *to, const double *x, const double *y, size_t side)
{
    size_t half = side / 2;
    double *l, *r, *p;

    if (side <= LEAF) {
        multiply_leaf(to, x, y, side);
        return;
    }
    l = new_square(half);
    r = new_square(half);
    p = new_square(half);
    clear(to, side * side);
    for (unsigned k = 0; k < 7; k++) {
        clear(l, half * half);
        clear(r, half * half);
        for (unsigned q = 0; q < 4; q++) {
            if (left[k][q])
                add(l, x + part_at(q, half, side), half, side, left[k][q]);
            if (right[k][q])
                add(r, y + part_at(q, half, side), half, side, right[k][q]);
        }
        multiply(p, l, r, half);
        for (unsigned q = 0; q < 4; q++) {
            for (size_t row = 0; back[q][k] && row < half; row++) {
                double *line = to + part_at(q, half, side) + row * side;

                for (size_t i = 0; i < half; i++)
                    line[i] += back[q][k] * p[row * half + i];
            }
        }
    }
    free(l);
    free(r);
    free(p);
}

/* Sixteenth `i` of a matrix: a quarter of a quarter. */
static size_t sixteenth(unsigned i)
{
    return part_at(i / 4, n / 2, n) + part_at(i % 4, n / 4, n);
}

static void task(unsigned t)
{
    size_t side = n / 4;
    double *l = new_square(side), *r = new_square(side);

    clear(l, side * side);
    clear(r, side * side);
    for (unsigned i = 0; i < 16; i++) {
        int f = left[t / 7][i / 4] * left[t % 7][i % 4];
        int g = right[t / 7][i / 4] * right[t % 7][i % 4];

        if (f)
            add(l, a + sixteenth(i), side, n, f);
        if (g)
            add(r, b + sixteenth(i), side, n, g);
    }
    multiply(product + t * side * side, l, r, side);
    free(l);
    free(r);
}

static void gather(unsigned i)
{
    size_t side = n / 4;
    double *to = c + sixteenth(i);

    for (size_t y = 0; y < side; y++)
        clear(to + y * n, side);
    for (unsigned t = 0; t < TASKS; t++) {
        int f = back[i / 4][t / 7] * back[i % 4][t % 7];

        for (size_t y = 0; f && y < side; y++) {
            for (size_t x = 0; x < side; x++)
                to[y * n + x] += f * product[(t * side + y) * side + x];
        }
    }
}

static void work(struct wl *w, unsigned id)
{
    unsigned t;

    for (unsigned round = 0; round < w->rounds; round++) {
        if (id == 0)
            __atomic_store_n(&next_task, 0, __ATOMIC_RELAXED);
        wl_barrier(w);
        while ((t = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED)) < TASKS)
            task(t);
        wl_barrier(w);
        for (unsigned i = id; i < 16; i += w->threads)
            gather(i);
        wl_barrier(w);
    }
}

static void times(const double *m, const double *v, double *to)
{
    for (size_t y = 0; y < n; y++) {
        to[y] = 0;
        for (size_t x = 0; x < n; x++)
            to[y] += m[y * n + x] * v[x];
    }
}

static bool verify(struct wl *w)
{
    double *x = vector[0], *y = vector[1], *z = vector[2];

    for (size_t i = 0; i < n; i++)
        x[i] = 1 + (double)(wl_hash(w->seed + 1, i) % 16);
    times(b, x, y);
    times(a, y, z);
    times(c, x, y);
    for (size_t i = 0; i < n; i++) {
        if (!(y[i] == z[i]))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "strassen",
    .about = "Strassen multiplication of two dense matrices, 49 tasks.",
    .size = 12,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
