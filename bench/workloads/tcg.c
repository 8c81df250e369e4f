/* SPDX-License-Identifier: BSD-2-Clause
 * Conjugate gradients with OpenMP tasks over the blocks of a sparse matrix; Tahoe's CG (DIGEST
 * 003). Three types of tasks an iteration: the product of a row of blocks, new values and
 * residuals, a new direction. The blocks stream by, once an iteration; the vectors are small and
 * written: there is little to gain by tasks.
 *
 * The blocks lie beside the diagonal, in a ring. Their entries make permutations, so that a
 * transposed block has as many in each row. The diagonal makes the condition at most 10: the
 * residual's decline is known, as in cg.c. */
#include "common.h"

#include <math.h>

#define SIDE 1024 /* rows of a block */
#define EACH 8    /* entries in a row of a block */
#define RATE 0.52 /* (sqrt(10) - 1) / (sqrt(10) + 1) */

struct block {
    double value[SIDE][EACH];
    uint32_t column[SIDE][EACH];
};

static size_t rows, n; /* of blocks; in all */
static struct block *lower, *upper;
static double *diagonal, *x, *r, *p, *q, *b, *part_pq, *part_rr;

static double *new_vector(void)
{
    double *v = wl_new(n, sizeof(*v));

    for (size_t i = 0; i < n; i++)
        v[i] = 0;
    return v;
}

/* Block row i's block above the diagonal, and the one below it in the next row. */
static void fill_pair(const struct wl *w, size_t i)
{
    struct block *u = &upper[i], *l = &lower[(i + 1) % rows];

    for (size_t e = 0; e < EACH; e++) {
        uint64_t h = wl_hash(w->seed, i * EACH + e);

        for (size_t y = 0; y < SIDE; y++) {
            size_t col = (y * (h | 1) + (h >> 32)) % SIDE;
            double weight = 0.5 + 0.5 * wl_unit(wl_hash(w->seed + 1, (i * EACH + e) * SIDE + y));

            u->value[y][e] = l->value[col][e] = -weight;
            u->column[y][e] = (uint32_t)col;
            l->column[col][e] = (uint32_t)y;
            diagonal[i * SIDE + y] += 1.5 * weight;
            diagonal[(i + 1) % rows * SIDE + col] += 1.5 * weight;
        }
    }
}

static void prepare(struct wl *w)
{
    rows = w->bytes / (2 * sizeof(struct block) + 6 * SIDE * sizeof(double));
    if (rows < 3)
        wl_fail("too small");
    n = rows * SIDE;
    lower = wl_new(rows, sizeof(*lower));
    upper = wl_new(rows, sizeof(*upper));
    part_pq = wl_new(rows, sizeof(double));
    part_rr = wl_new(rows, sizeof(double));
    diagonal = new_vector();
    x = new_vector();
    r = new_vector();
    p = new_vector();
    q = new_vector();
    b = new_vector();
    for (size_t i = 0; i < rows; i++)
        fill_pair(w, i);
    for (size_t i = 0; i < n; i++)
        b[i] = r[i] = p[i] = 2 * wl_unit(wl_hash(w->seed + 2, i)) - 1;
    wl_result(w, x, n, WL_F64);
}

/* Row y of block row i times a vector. */
static double row_times(size_t i, size_t y, const double *v)
{
    const double *before = v + (i + rows - 1) % rows * SIDE, *after = v + (i + 1) % rows * SIDE;
    double sum = diagonal[i * SIDE + y] * v[i * SIDE + y];

    for (size_t e = 0; e < EACH; e++)
        sum += lower[i].value[y][e] * before[lower[i].column[y][e]] +
               upper[i].value[y][e] * after[upper[i].column[y][e]];
    return sum;
}

static double dot(const double *u, const double *v)
{
    double sum = 0;

    for (size_t i = 0; i < SIDE; i++)
        sum += u[i] * v[i];
    return sum;
}

static double total(const double *part)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += part[i];
    return sum;
}

static void product(size_t i)
{
    for (size_t y = 0; y < SIDE; y++)
        q[i * SIDE + y] = row_times(i, y, p);
    part_pq[i] = dot(p + i * SIDE, q + i * SIDE);
}

static void step(size_t i, double alpha)
{
    for (size_t k = i * SIDE; k < (i + 1) * SIDE; k++) {
        x[k] += alpha * p[k];
        r[k] -= alpha * q[k];
    }
    part_rr[i] = dot(r + i * SIDE, r + i * SIDE);
}

static void turn(size_t i, double beta)
{
    for (size_t k = i * SIDE; k < (i + 1) * SIDE; k++)
        p[k] = r[k] + beta * p[k];
}

/* The sums are taken between phases; within one, dependences only name the data. */
static double iteration(double rr)
{
    double alpha, now;

    for (size_t i = 0; i < rows; i++) {
        size_t before = (i + rows - 1) % rows * SIDE, after = (i + 1) % rows * SIDE;
        size_t at = i * SIDE;
#pragma omp task depend(in                                                                         \
                        : lower[i], upper[i], p[before], p[at], p[after]) depend(out               \
                                                                                 : q[at])          \
    firstprivate(i)
        product(i);
    }
#pragma omp taskwait
    alpha = rr / total(part_pq);
    for (size_t i = 0; i < rows; i++) {
#pragma omp task depend(in                                                                         \
                        : p[i * SIDE], q[i * SIDE]) depend(inout                                   \
                                                           : x[i * SIDE], r[i * SIDE])             \
    firstprivate(i, alpha)
        step(i, alpha);
    }
#pragma omp taskwait
    now = total(part_rr);
    for (size_t i = 0; i < rows; i++) {
#pragma omp task depend(in : r[i * SIDE]) depend(inout : p[i * SIDE]) firstprivate(i, now, rr)
        turn(i, now / rr);
    }
#pragma omp taskwait
    return now;
}

static void work(struct wl *w, unsigned id)
{
    if (id != 0) /* OpenMP has threads of its own */
        return;
#pragma omp parallel num_threads(w->threads)
#pragma omp single
    {
        double first, rr;

        for (size_t i = 0; i < rows; i++)
            part_rr[i] = dot(r + i * SIDE, r + i * SIDE);
        first = rr = total(part_rr);
        /* Below that there is nothing left but rounding. */
        for (unsigned round = 0; round < w->rounds && rr > 1e-28 * first; round++)
            rr = iteration(rr);
    }
}

/* The residual anew is the one that was carried along, and has come down as it must. */
static bool verify(struct wl *w)
{
    double bb = 0, rr = 0, bound = 2 * sqrt(10.0);

    for (size_t i = 0; i < n; i++) {
        double now = b[i] - row_times(i / SIDE, i % SIDE, x);

        if (!(wl_abs(now - r[i]) < 1e-11))
            return false;
        rr += now * now;
        bb += b[i] * b[i];
    }
    for (unsigned round = 0; round < w->rounds && bound > 1e-10; round++)
        bound *= RATE;
    return sqrt(rr) <= bound * sqrt(bb);
}

const struct workload workload = {
    .name = "tcg",
    .about = "Conjugate gradients with OpenMP tasks on blocks; a round is an iteration.",
    .size = 16,
    .rounds = 8,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
