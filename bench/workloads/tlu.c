/* SPDX-License-Identifier: BSD-2-Clause
 * Sparse LU with OpenMP tasks, no pivoting: blocks of a matrix of which some are zero at first,
 * four types of tasks (factor, row, column, inner), each on one to three blocks.
 *
 * The diagonal dominates. What comes out must give back the matrix: L (U v) = A v, v all ones.
 * Rounds begin anew with the same matrix. */
#include "common.h"

#include <string.h>

#define SIDE  96 /* of a block: 72 KiB */
#define BLOCK ((size_t)SIDE * SIDE)

static size_t n;                    /* blocks in a row */
static double *matrix, *start, *uv; /* uv: for verify() */
static bool *full, *full_start;

static double *at(double *m, size_t i, size_t j)
{
    return m + (i * n + j) * BLOCK;
}

static void prepare(struct wl *w)
{
    n = wl_root(w->bytes / (2 * BLOCK * sizeof(double)));
    if (n < 2)
        wl_fail("too small: 1 MiB at least");
    matrix = wl_new(n * n * BLOCK, sizeof(double));
    start = wl_new(n * n * BLOCK, sizeof(double));
    uv = wl_new(n * SIDE, sizeof(double));
    full = wl_new(n * n, sizeof(bool));
    full_start = wl_new(n * n, sizeof(bool));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            full_start[i * n + j] = i == j || (i + 2 * j) % 3 != 1 || i == j + 1 || j == i + 1;
            for (size_t k = 0; k < BLOCK; k++)
                at(start, i, j)[k] =
                    full_start[i * n + j] ? wl_unit(wl_hash(w->seed, (i * n + j) * BLOCK + k)) : 0;
            for (size_t k = 0; i == j && k < SIDE; k++)
                at(start, i, j)[k * SIDE + k] += 2.0 * SIDE * (double)n;
        }
    memcpy(matrix, start, n * n * BLOCK * sizeof(double));
    wl_result(w, matrix, n * n * BLOCK, WL_F64);
}

static void factor(double *d)
{
    for (size_t k = 0; k < SIDE; k++)
        for (size_t i = k + 1; i < SIDE; i++) {
            d[i * SIDE + k] /= d[k * SIDE + k];
            for (size_t j = k + 1; j < SIDE; j++)
                d[i * SIDE + j] -= d[i * SIDE + k] * d[k * SIDE + j];
        }
}

static void row(const double *d, double *b) /* L^-1 b */
{
    for (size_t k = 0; k < SIDE; k++)
        for (size_t i = k + 1; i < SIDE; i++)
            for (size_t j = 0; j < SIDE; j++)
                b[i * SIDE + j] -= d[i * SIDE + k] * b[k * SIDE + j];
}

static void column(const double *d, double *b) /* b U^-1 */
{
    for (size_t i = 0; i < SIDE; i++)
        for (size_t k = 0; k < SIDE; k++) {
            b[i * SIDE + k] /= d[k * SIDE + k];
            for (size_t j = k + 1; j < SIDE; j++)
                b[i * SIDE + j] -= b[i * SIDE + k] * d[k * SIDE + j];
        }
}

static void inner(const double *a, const double *b, double *c) /* c - a b */
{
    for (size_t i = 0; i < SIDE; i++)
        for (size_t k = 0; k < SIDE; k++)
            for (size_t j = 0; j < SIDE; j++)
                c[i * SIDE + j] -= a[i * SIDE + k] * b[k * SIDE + j];
}

static void make_tasks(void)
{
    memcpy(full, full_start, n * n * sizeof(bool));
    for (size_t k = 0; k < n; k++) {
        double *d = at(matrix, k, k);
#pragma omp task depend(inout : d[0]) firstprivate(d)
        factor(d);
        for (size_t j = k + 1; j < n; j++) {
            double *r = at(matrix, k, j), *c = at(matrix, j, k);
            if (full[k * n + j]) {
#pragma omp task depend(in : d[0]) depend(inout : r[0]) firstprivate(d, r)
                row(d, r);
            }
            if (full[j * n + k]) {
#pragma omp task depend(in : d[0]) depend(inout : c[0]) firstprivate(d, c)
                column(d, c);
            }
        }
        for (size_t i = k + 1; i < n; i++)
            for (size_t j = k + 1; j < n; j++) {
                double *a = at(matrix, i, k), *b = at(matrix, k, j), *c = at(matrix, i, j);
                if (!full[i * n + k] || !full[k * n + j])
                    continue;
                full[i * n + j] = true;
#pragma omp task depend(in : a[0], b[0]) depend(inout : c[0]) firstprivate(a, b, c)
                inner(a, b, c);
            }
    }
}

static void work(struct wl *w, unsigned id)
{
    if (id != 0) /* OpenMP has threads of its own */
        return;
#pragma omp parallel num_threads(w->threads)
#pragma omp single
    for (unsigned round = 0; round < w->rounds; round++) {
        if (round > 0)
            memcpy(matrix, start, n * n * BLOCK * sizeof(double));
        make_tasks();
#pragma omp taskwait
    }
}

/* One element of a matrix of blocks. */
static double element(double *m, size_t i, size_t j)
{
    return at(m, i / SIDE, j / SIDE)[i % SIDE * SIDE + j % SIDE];
}

static bool verify(struct wl *w)
{
    size_t all = n * SIDE;
    double *u = w->result;
    bool right = true;

    for (size_t k = 0; k < all; k++) {
        uv[k] = 0;
        for (size_t j = k; j < all; j++)
            uv[k] += element(u, k, j);
    }
    for (size_t i = 0; i < all && right; i++) {
        double want = 0, got = uv[i];
        for (size_t j = 0; j < all; j++)
            want += element(start, i, j);
        for (size_t k = 0; k < i; k++)
            got += element(u, i, k) * uv[k];
        right = wl_abs(got - want) < 1e-12 * wl_abs(want);
    }
    return right;
}

const struct workload workload = {
    .name = "tlu",
    .about = "Sparse LU of blocks with OpenMP tasks.",
    .size = 16,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
