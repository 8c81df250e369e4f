/* SPDX-License-Identifier: BSD-2-Clause
 * Blocked LU factorisation in place, without pivoting; blocks contiguous in memory.
 *
 * Intermediate and write-intensive, as the paper has lu_cb: a block is used often while
 * it is in the cache, so most of the time is computing and moving it to PM costs little,
 * but the whole trailing matrix is written again in every step, and what leaves the cache
 * is dirty. It suffers little on PM and hurts others from there.
 *
 * The matrix is dominated by its diagonal, which makes pivots needless. L (U x) must equal
 * A x for a vector x without zeros. */
#include "common.h"

#define B 32 /* a block is 8 KiB: three fit in an L1 cache */

static size_t blocks;    /* a side */
static uint64_t step_of; /* odd: multiples of it are spread evenly, and cheap: filling shall not
                          * weigh beside factoring */
static double *matrix, *ax, *ux;

static double *block(size_t i, size_t j)
{
    return &matrix[(i * blocks + j) * B * B];
}

static double element(size_t row, size_t col)
{
    size_t n = blocks * B;
    double random = 2 * wl_unit((row * n + col + 1) * step_of) - 1;

    return row == col ? random + (double)n : random;
}

static void prepare(struct wl *w)
{
    blocks = wl_root(w->bytes / sizeof(double)) / B;
    step_of = wl_hash(w->seed, 0) | 1;
    matrix = wl_new(blocks * blocks * B * B, sizeof(double));
    ax = wl_new(blocks * B, sizeof(*ax));
    ux = wl_new(blocks * B, sizeof(*ux));
    wl_result(w, matrix, blocks * blocks * B * B, WL_F64);
}

static void fill(size_t i, size_t j)
{
    double *to = block(i, j);

    for (size_t y = 0; y < B; y++) {
        for (size_t x = 0; x < B; x++)
            to[y * B + x] = element(i * B + y, j * B + x);
    }
}

static void factor(double *d)
{
    for (size_t k = 0; k < B; k++) {
        for (size_t i = k + 1; i < B; i++) {
            d[i * B + k] /= d[k * B + k];
            for (size_t j = k + 1; j < B; j++)
                d[i * B + j] -= d[i * B + k] * d[k * B + j];
        }
    }
}

/* a := a / U of d, below the diagonal block. */
static void divide_upper(double *a, const double *d)
{
    for (size_t i = 0; i < B; i++) {
        for (size_t k = 0; k < B; k++) {
            a[i * B + k] /= d[k * B + k];
            for (size_t j = k + 1; j < B; j++)
                a[i * B + j] -= a[i * B + k] * d[k * B + j];
        }
    }
}

/* a := a / L of d, right of the diagonal block. */
static void divide_lower(double *a, const double *d)
{
    for (size_t k = 0; k < B; k++) {
        for (size_t i = k + 1; i < B; i++) {
            for (size_t j = 0; j < B; j++)
                a[i * B + j] -= d[i * B + k] * a[k * B + j];
        }
    }
}

static void subtract_product(double *restrict c, const double *a, const double *b)
{
    for (size_t i = 0; i < B; i++) {
        for (size_t k = 0; k < B; k++) {
            double x = a[i * B + k];

            for (size_t j = 0; j < B; j++)
                c[i * B + j] -= x * b[k * B + j];
        }
    }
}

static bool mine(const struct wl *w, unsigned id, size_t i, size_t j)
{
    return (i * blocks + j) % w->threads == id;
}

static void step(struct wl *w, unsigned id, size_t k)
{
    if (mine(w, id, k, k))
        factor(block(k, k));
    wl_barrier(w);
    for (size_t i = k + 1; i < blocks; i++) {
        if (mine(w, id, i, k))
            divide_upper(block(i, k), block(k, k));
        if (mine(w, id, k, i))
            divide_lower(block(k, i), block(k, k));
    }
    wl_barrier(w);
    for (size_t i = k + 1; i < blocks; i++) {
        for (size_t j = k + 1; j < blocks; j++) {
            if (mine(w, id, i, j))
                subtract_product(block(i, j), block(i, k), block(k, j));
        }
    }
    wl_barrier(w);
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t b = id; b < blocks * blocks; b += w->threads)
            fill(b / blocks, b % blocks);
        wl_barrier(w);
        for (size_t k = 0; k < blocks; k++)
            step(w, id, k);
    }
}

static bool verify(struct wl *w)
{
    size_t n = blocks * B;

    for (size_t i = 0; i < n; i++) {
        ax[i] = ux[i] = 0;
        for (size_t j = 0; j < n; j++) {
            double x = 0.5 + wl_unit(wl_hash(w->seed + 1, j));

            ax[i] += element(i, j) * x;
            if (j >= i)
                ux[i] += block(i / B, j / B)[i % B * B + j % B] * x;
        }
    }
    for (size_t i = 0; i < n; i++) {
        double lux = ux[i];

        for (size_t j = 0; j < i; j++)
            lux += block(i / B, j / B)[i % B * B + j % B] * ux[j];
        if (!(wl_abs(lux - ax[i]) < 1e-10 * (double)n))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "lu",
    .about = "Blocked LU factorisation of a dense matrix; a round fills and factors it.",
    .size = 4,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
