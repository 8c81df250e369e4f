/* SPDX-License-Identifier: BSD-2-Clause
 * FFT with OpenMP tasks, in place: butterflies between two blocks while the distance is more than
 * a block, then all that is left of a block in one task; Tahoe's FFT (DIGEST 003). Butterflies use
 * their data once, the tasks within a block as often as it has stages.
 *
 * Forward leaves the spectrum in bit-reversed order, and back begins with that; the last round is
 * forward only. Direct sums at some frequencies must agree, and direct inverse sums over the whole
 * spectrum with the input. */
#include "common.h"

#define LOG_BLOCK 14 /* 256 KiB */
#define BLOCK     ((size_t)1 << LOG_BLOCK)
#define FINE      ((size_t)1 << 10)
#define PROBES    2

struct complex {
    double re, im;
};

static size_t n, log_n;
static struct complex *data, *fine, *coarse; /* root^i for i below FINE, and multiples of FINE */

static struct complex times(struct complex a, struct complex b)
{
    return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e^(-2 pi i k / n) */
static struct complex root(size_t k)
{
    return times(coarse[k / FINE], fine[k % FINE]);
}

static struct complex input(const struct wl *w, size_t i)
{
    uint64_t r = wl_hash(w->seed, i);

    return (struct complex){wl_unit(r) - 0.5, wl_unit(r << 32) - 0.5};
}

static void prepare(struct wl *w)
{
    for (n = BLOCK, log_n = LOG_BLOCK; 2 * n * sizeof(*data) <= w->bytes; n *= 2)
        log_n++;
    data = wl_new(n, sizeof(*data));
    fine = wl_new(FINE, sizeof(*fine));
    coarse = wl_new(n / FINE, sizeof(*coarse));
    for (size_t i = 0; i < n; i++)
        data[i] = input(w, i);
    for (size_t i = 0; i < FINE; i++) {
        double turn = (double)i / (double)n;
        fine[i] = (struct complex){wl_sin_turn(turn + 0.25), -wl_sin_turn(turn)};
    }
    for (size_t i = 0; i < n / FINE; i++) {
        double turn = (double)(i * FINE) / (double)n;
        coarse[i] = (struct complex){wl_sin_turn(turn + 0.25), -wl_sin_turn(turn)};
    }
    wl_result(w, data, 2 * n, WL_F64);
}

/* `count` butterflies; the first one's root has the power `k`, the others follow by `step`. Back
 * undoes forward, up to a factor of two. */
static void butterflies(struct complex *x, struct complex *y, size_t count, size_t k, size_t step,
                        bool back)
{
    for (size_t i = 0; i < count; i++) {
        struct complex a = x[i], b = y[i], r = root(k + i * step);

        if (back) {
            r.im = -r.im;
            b = times(b, r);
            x[i] = (struct complex){0.5 * (a.re + b.re), 0.5 * (a.im + b.im)};
            y[i] = (struct complex){0.5 * (a.re - b.re), 0.5 * (a.im - b.im)};
        } else {
            x[i] = (struct complex){a.re + b.re, a.im + b.im};
            y[i] = times((struct complex){a.re - b.re, a.im - b.im}, r);
        }
    }
}

/* The stages in which no butterfly leaves the block. */
static void within(struct complex *p, bool back)
{
    for (int s = 0; s < LOG_BLOCK; s++) {
        size_t half = (size_t)1 << (back ? s : LOG_BLOCK - 1 - s);

        for (size_t i = 0; i < BLOCK; i += 2 * half)
            butterflies(p + i, p + i + half, half, 0, n / 2 / half, back);
    }
}

static void between(size_t half, bool back)
{
    for (size_t i = 0; i < n; i += 2 * half)
        for (size_t j = 0; j < half; j += BLOCK) {
            struct complex *x = data + i + j, *y = x + half;
            size_t step = n / 2 / half, k = j * step;
#pragma omp task depend(inout : x[0], y[0]) firstprivate(x, y, k, step, back)
            butterflies(x, y, BLOCK, k, step, back);
        }
}

static void blocks(bool back)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        struct complex *p = data + i;
#pragma omp task depend(inout : p[0]) firstprivate(p, back)
        within(p, back);
    }
}

static void work(struct wl *w, unsigned id)
{
    if (id != 0) /* OpenMP has threads of its own */
        return;
#pragma omp parallel num_threads(w->threads)
#pragma omp single
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t half = n / 2; half >= BLOCK; half /= 2)
            between(half, false);
        blocks(false);
        if (round + 1 == w->rounds)
            break;
        blocks(true);
        for (size_t half = BLOCK; half < n; half *= 2)
            between(half, true);
    }
}

static size_t reversed(size_t i)
{
    size_t r = 0;

    for (size_t bit = 0; bit < log_n; bit++)
        r |= (i >> bit & 1) << (log_n - 1 - bit);
    return r;
}

/* Is frequency k the sum of value(i) * root^(i k), and, back, value k that over the spectrum? */
static bool probe(const struct wl *w, const struct complex *spectrum, size_t k, bool back)
{
    struct complex sum = {0, 0}, want = back ? input(w, k) : spectrum[reversed(k)];
    double scale = back ? (double)n : 1;

    for (size_t i = 0; i < n; i++) {
        struct complex r = root(i * k & (n - 1));

        r.im = back ? -r.im : r.im;
        r = times(r, back ? spectrum[reversed(i)] : input(w, i));
        sum.re += r.re;
        sum.im += r.im;
    }
    return wl_abs(sum.re - scale * want.re) < 1e-9 * (double)n &&
           wl_abs(sum.im - scale * want.im) < 1e-9 * (double)n;
}

static bool verify(struct wl *w)
{
    for (unsigned i = 0; i < PROBES; i++) {
        if (!probe(w, w->result, wl_hash(w->seed, n + i) & (n - 1), false) ||
            !probe(w, w->result, wl_hash(w->seed, 2 * n + i) & (n - 1), true))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "tfft",
    .about = "Complex FFT with OpenMP tasks on blocks; a round is forward and back.",
    .size = 16,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
