/* SPDX-License-Identifier: BSD-2-Clause
 * Strassen's multiplication as a recursion of OpenMP tasks: each product makes operands, seven
 * products and sums as tasks of its own, down to blocks; Tahoe's Strassen (DIGEST 003). Operands
 * are short-lived: a product takes them from malloc and gives them back. Sums use their data once,
 * products of blocks as often as a block has rows.
 *
 * A quarter of a matrix is contiguous, and a quarter of that, so that a dependence can name it.
 * Elements are small integers, so all sums are exact and C x must equal A (B x) exactly for a
 * vector x without zeros. */
#include "common.h"

#include <stdlib.h>

#define SIDE_MOST 128 /* of a block: 128 KiB */
#define LEVELS    2   /* at least */
/* A, B and C; seven times two operands and a product, each a quarter; and seven times the same. */
#define MATRICES (3 + 21 / 4.0 + 7 * 21 / 16.0)

/* Product k is (sum of left[k][q] A_q) (sum of right[k][q] B_q); C_q = sum of back[q][k] P_k. */
static const signed char left[7][4] = {{1, 0, 0, 1}, {0, 0, 1, 1},  {1, 0, 0, 0}, {0, 0, 0, 1},
                                       {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}};
static const signed char right[7][4] = {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0},
                                        {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}};
static const signed char back[4][7] = {
    {1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0}};

static size_t n, block; /* sides */
static double *a, *b, *c, *vector[3];

static void prepare(struct wl *w)
{
    size_t parts = (size_t)1 << LEVELS;

    n = wl_root((size_t)((double)w->bytes / (MATRICES * sizeof(double))));
    while (n / parts > SIDE_MOST)
        parts *= 2;
    block = n / parts;
    n = block * parts;
    if (block < 2)
        wl_fail("too small");
    a = wl_new(n * n, sizeof(double));
    b = wl_new(n * n, sizeof(double));
    c = wl_new(n * n, sizeof(double));
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

static void multiply_block(double *to, const double *x, const double *y)
{
    for (size_t i = 0; i < block; i++) {
        for (size_t j = 0; j < block; j++)
            to[i * block + j] = 0;
        for (size_t k = 0; k < block; k++)
            for (size_t j = 0; j < block; j++)
                to[i * block + j] += x[i * block + k] * y[k * block + j];
    }
}

/* The sum of `n_parts` parts of `count` elements, `pitch` apart, each with its sign or left out. */
static void sum(double *to, const double *from, const signed char *sign, size_t n_parts,
                size_t count, size_t pitch)
{
    for (size_t i = 0; i < count; i++)
        to[i] = 0;
    for (size_t k = 0; k < n_parts; k++)
        for (size_t i = 0; sign[k] && i < count; i++)
            to[i] += sign[k] * from[k * pitch + i];
}

/* Of the quarters that an operand is made of, one or two. */
static size_t first(const signed char *sign)
{
    size_t q = 0;

    while (!sign[q])
        q++;
    return q;
}

static size_t last(const signed char *sign)
{
    size_t q = 3;

    while (!sign[q])
        q--;
    return q;
}

/* A product's own tasks are done before it is, so that who depends on its first element gets all of
 * it. */
static void multiply(double *to, const double *x, const double *y, size_t side)
{
    size_t part = side * side / 4; /* elements */
    double *own;

    if (side == block) {
        multiply_block(to, x, y);
        return;
    }
    own = malloc(21 * part * sizeof(*own));
    if (!own)
        wl_fail("out of memory");
    for (size_t k = 0; k < 7; k++) {
        double *l = own + 3 * k * part, *r = l + part, *p = r + part;
#pragma omp task depend(in                                                                         \
                        : x[first(left[k]) * part], x[last(left[k]) * part]) depend(out            \
                                                                                    : l[0])        \
    firstprivate(k, l, x, part)
        sum(l, x, left[k], 4, part, part);
#pragma omp task depend(in                                                                         \
                        : y[first(right[k]) * part], y[last(right[k]) * part]) depend(out          \
                                                                                      : r[0])      \
    firstprivate(k, r, y, part)
        sum(r, y, right[k], 4, part, part);
#pragma omp task depend(in : l[0], r[0]) depend(out : p[0]) firstprivate(l, r, p, side)
        multiply(p, l, r, side / 2);
    }
    for (size_t q = 0; q < 4; q++) {
        double *t = to + q * part;
        const double *p = own + 2 * part;
#pragma omp task depend(in                                                                         \
                        : p[0], p[3 * part], p[6 * part], p[9 * part], p[12 * part], p[15 * part], \
                          p[18 * part]) depend(out                                                 \
                                               : t[0]) firstprivate(q, t, p, part)
        sum(t, p, back[q], 7, part, 3 * part);
    }
#pragma omp taskwait
    free(own);
}

static void work(struct wl *w, unsigned id)
{
    if (id != 0) /* OpenMP has threads of its own */
        return;
#pragma omp parallel num_threads(w->threads)
#pragma omp single
    for (unsigned round = 0; round < w->rounds; round++)
        multiply(c, a, b, n);
}

/* Element (y, x) of a matrix whose quarters are contiguous. */
static double element(const double *m, size_t y, size_t x)
{
    for (size_t half = n / 2; half >= block; half /= 2) {
        m += ((y >= half) * 2 + (x >= half)) * half * half;
        y -= y >= half ? half : 0;
        x -= x >= half ? half : 0;
    }
    return m[y * block + x];
}

static void times(const double *m, const double *v, double *to)
{
    for (size_t y = 0; y < n; y++) {
        to[y] = 0;
        for (size_t x = 0; x < n; x++)
            to[y] += element(m, y, x) * v[x];
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
    .name = "tstrassen",
    .about = "Strassen multiplication as a recursion of OpenMP tasks.",
    .size = 16,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
