/* SPDX-License-Identifier: BSD-2-Clause
 * Conjugate gradients on a sparse, symmetric matrix with random columns (CSR).
 *
 * Bandwidth-sensitive, as HPCG in the paper: the matrix streams by once an iteration, two
 * operations an entry, while the search direction is gathered at random. The objects
 * differ: values and columns are large and read only, the vectors small and written; a
 * policy that sees objects keeps the vectors in DRAM first.
 *
 * Every row has 12 neighbours, and a diagonal that makes the condition at most 10, so the
 * residual's decline is known. It is computed anew from the matrix and must agree with the
 * one that the iteration has carried along; the next direction must be conjugate to the
 * last. */
#include "common.h"

#include <math.h>

#define PAIRS 6               /* of neighbours: one where row i is the first, one the second */
#define ROW   (2 * PAIRS + 1) /* entries */
#define BLOCK 512             /* rows summed up together, whatever the threads */
#define RATE  0.52            /* (sqrt(10) - 1) / (sqrt(10) + 1) */

static size_t n, nblocks;
static uint64_t *row_start;
static uint32_t *column;
static double *value, *x, *r, *p, *q, *b, *part_pq, *part_rr;

static size_t coprime_below(uint64_t random)
{
    for (size_t a = (size_t)(random % n) | 1;; a += 2) {
        size_t u = a % n, v = n;

        while (v) {
            size_t t = u % v;

            u = v;
            v = t;
        }
        if (u == 1)
            return a % n;
    }
}

/* Row i and row (a i + c) mod n share an entry, for PAIRS random a and c. */
static void fill_matrix(const struct wl *w)
{
    for (size_t i = 0; i < n; i++) {
        row_start[i] = i * ROW;
        column[i * ROW] = (uint32_t)i;
        value[i * ROW] = 0;
    }
    row_start[n] = n * ROW;
    for (size_t k = 0; k < PAIRS; k++) {
        size_t a = coprime_below(wl_hash(w->seed, 2 * k)), j = wl_hash(w->seed, 2 * k + 1) % n;

        for (size_t i = 0; i < n; i++, j = (j + a) % n) {
            double weight = 0.5 + 0.5 * wl_unit(wl_hash(w->seed + 1, i * PAIRS + k));

            column[i * ROW + 2 * k + 1] = (uint32_t)j;
            column[j * ROW + 2 * k + 2] = (uint32_t)i;
            value[i * ROW + 2 * k + 1] = value[j * ROW + 2 * k + 2] = -weight;
            value[i * ROW] += 1.5 * weight;
            value[j * ROW] += 1.5 * weight;
        }
    }
}

static void prepare(struct wl *w)
{
    n = w->bytes /
        (ROW * (sizeof(*value) + sizeof(*column)) + sizeof(*row_start) + 5 * sizeof(double));
    if (n > UINT32_MAX)
        wl_fail("at most 800 GiB");
    nblocks = (n + BLOCK - 1) / BLOCK;
    row_start = wl_new(n + 1, sizeof(*row_start));
    column = wl_new(n * ROW, sizeof(*column));
    value = wl_new(n * ROW, sizeof(*value));
    x = wl_new(n, sizeof(*x));
    r = wl_new(n, sizeof(*r));
    p = wl_new(n, sizeof(*p));
    q = wl_new(n, sizeof(*q));
    b = wl_new(n, sizeof(*b));
    part_pq = wl_new(nblocks, sizeof(double));
    part_rr = wl_new(nblocks, sizeof(double));
    fill_matrix(w);
    for (size_t i = 0; i < n; i++) {
        b[i] = r[i] = p[i] = 2 * wl_unit(wl_hash(w->seed + 2, i)) - 1;
        x[i] = q[i] = 0;
    }
    wl_result(w, x, n, WL_F64);
}

static double row_times(size_t i, const double *vector)
{
    double sum = 0;

    for (uint64_t e = row_start[i]; e < row_start[i + 1]; e++)
        sum += value[e] * vector[column[e]];
    return sum;
}

static size_t block_end(size_t block)
{
    return (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
}

static double dot_block(const double *u, const double *v, size_t block)
{
    double sum = 0;

    for (size_t i = block * BLOCK; i < block_end(block); i++)
        sum += u[i] * v[i];
    return sum;
}

static double total(const double *part)
{
    double sum = 0;

    for (size_t i = 0; i < nblocks; i++)
        sum += part[i];
    return sum;
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;
    double rr, first, last, alpha;

    wl_part(w, nblocks, id, &lo, &hi);
    for (size_t k = lo; k < hi; k++)
        part_rr[k] = dot_block(r, r, k);
    wl_barrier(w);
    rr = first = total(part_rr);
    /* Below that there is nothing left but rounding. All threads see the same number. */
    for (unsigned round = 0; round < w->rounds && rr > 1e-28 * first; round++) {
        for (size_t k = lo; k < hi; k++) {
            for (size_t i = k * BLOCK; i < block_end(k); i++)
                q[i] = row_times(i, p);
            part_pq[k] = dot_block(p, q, k);
        }
        wl_barrier(w);
        alpha = rr / total(part_pq);
        for (size_t k = lo; k < hi; k++) {
            for (size_t i = k * BLOCK; i < block_end(k); i++) {
                x[i] += alpha * p[i];
                r[i] -= alpha * q[i];
            }
            part_rr[k] = dot_block(r, r, k);
        }
        wl_barrier(w);
        last = rr;
        rr = total(part_rr);
        for (size_t i = lo * BLOCK; i < (hi * BLOCK < n ? hi * BLOCK : n); i++)
            p[i] = r[i] + rr / last * p[i];
        wl_barrier(w);
    }
}

static bool verify(struct wl *w)
{
    double bb = 0, rr = 0, pp = 0, qq = 0, pq = 0, bound = 2 * sqrt(10.0);

    for (size_t i = 0; i < n; i++) {
        double now = b[i] - row_times(i, x);

        if (!(wl_abs(now - r[i]) < 1e-11))
            return false;
        rr += now * now;
        bb += b[i] * b[i];
        pp += p[i] * p[i];
        qq += q[i] * q[i];
        pq += p[i] * q[i];
    }
    for (unsigned round = 0; round < w->rounds && bound > 1e-10; round++)
        bound *= RATE;
    /* q is the matrix times the last direction. Near the end rounding is all there is. */
    if (rr > 1e-12 * bb && !(wl_abs(pq) <= 1e-8 * sqrt(pp * qq)))
        return false;
    return sqrt(rr) <= bound * sqrt(bb);
}

const struct workload workload = {
    .name = "cg",
    .about = "Conjugate gradients on a sparse matrix; a round is an iteration.",
    .size = 16,
    .rounds = 8,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
