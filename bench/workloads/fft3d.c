/* SPDX-License-Identifier: BSD-2-Clause
 * 3-D FFT: a field is transformed once, then damped step by step and transformed back.
 *
 * Bandwidth-sensitive and write-intensive, of the shape that NPB/FT has: three arrays of complex
 * numbers of one size, each one allocation, and the factors of the damping; rows, columns and a
 * transposition pass over them in turns, so all are needed alike, and none fits where little is
 * left.
 *
 * A field is [z][y][x], a spectrum [y][x][z]. The sides are powers of two. After the last
 * step sums over the whole field must have the right values at some frequencies, and some
 * points the values that the spectrum says. */
#include "common.h"

#define MAX_SIDE 4096
#define PROBES   3
#define BLOCK    8 /* columns at once: two lines of the cache a row */

struct complex {
    double re, im;
};

static size_t nx, ny, nz, n;
static struct complex *field, *turned, *spectrum, *root;
static double *factor;

static struct complex input(const struct wl *w, size_t i)
{
    uint64_t r = wl_hash(w->seed, i);

    return (struct complex){wl_unit(r) - 0.5, wl_unit(r << 32) - 0.5};
}

static struct complex times(struct complex a, struct complex b)
{
    return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e to the -2 pi i k / side; `root` holds a whole turn of the longest side. */
static struct complex unit(size_t k, size_t side)
{
    return root[(k & (side - 1)) * (MAX_SIDE / side)];
}

static double square(size_t k, size_t side)
{
    double d = k < side / 2 ? (double)k : (double)(side - k);

    return d * d;
}

static void prepare(struct wl *w)
{
    const size_t point = 3 * sizeof(struct complex) + sizeof(double);

    nx = ny = nz = 4;
    for (unsigned turn = 0; 2 * nx * ny * nz * point <= w->bytes && nz < MAX_SIDE; turn++)
        *(turn % 3 == 0 ? &nx : turn % 3 == 1 ? &ny : &nz) *= 2;
    n = nx * ny * nz;
    field = wl_new(n, sizeof(struct complex));
    turned = wl_new(n, sizeof(struct complex));
    spectrum = wl_new(n, sizeof(struct complex));
    factor = wl_new(n, sizeof(double));
    root = wl_new(MAX_SIDE, sizeof(struct complex));
    for (size_t i = 0; i < MAX_SIDE; i++) {
        double turn = (double)i / MAX_SIDE;

        root[i] = (struct complex){wl_sin_turn(turn + 0.25), -wl_sin_turn(turn)};
    }
    wl_result(w, field, 2 * n, WL_F64);
}

/* In place, `count` a power of two; sign -1 goes back, unscaled. */
static void row(struct complex *a, size_t count, double sign)
{
    for (size_t i = 1, j = 0; i < count; i++) {
        size_t bit = count / 2;

        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            struct complex swap = a[i];

            a[i] = a[j];
            a[j] = swap;
        }
    }
    for (size_t half = 1; half < count; half *= 2) {
        for (size_t k = 0; k < half; k++) {
            struct complex t = unit(k, 2 * half);

            t.im *= sign;
            for (size_t i = k; i < count; i += 2 * half) {
                struct complex x = a[i], y = times(a[i + half], t);

                a[i] = (struct complex){x.re + y.re, x.im + y.im};
                a[i + half] = (struct complex){x.re - y.re, x.im - y.im};
            }
        }
    }
}

static void rows(struct wl *w, unsigned id, struct complex *a, size_t side, double sign)
{
    size_t lo, hi;

    wl_part(w, n / side, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++)
        row(a + i * side, side, sign);
    wl_barrier(w);
}

/* Along y, some columns at once by way of a buffer. */
static void columns(struct wl *w, unsigned id, double sign)
{
    struct complex lane[BLOCK * MAX_SIDE];
    size_t lo, hi, wide = nx < BLOCK ? nx : BLOCK, across = nx / wide;

    wl_part(w, nz * across, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++) {
        struct complex *at = field + i / across * ny * nx + i % across * wide;

        for (size_t y = 0; y < ny; y++) {
            for (size_t x = 0; x < wide; x++)
                lane[x * ny + y] = at[y * nx + x];
        }
        for (size_t x = 0; x < wide; x++)
            row(lane + x * ny, ny, sign);
        for (size_t y = 0; y < ny; y++) {
            for (size_t x = 0; x < wide; x++)
                at[y * nx + x] = lane[x * ny + y];
        }
    }
    wl_barrier(w);
}

/* A matrix of nz rows into one of nx ny rows (`back`: the other way), in squares. */
static void transpose(struct wl *w, unsigned id, bool back)
{
    size_t lo, hi, plane = nx * ny;
    double scale = 1 / (double)n;

    wl_part(w, plane / 4, id, &lo, &hi);
    for (size_t i = 4 * lo; i < 4 * hi; i += 4) {
        for (size_t z = 0; z < nz; z++) {
            for (size_t k = i; k < i + 4; k++) {
                struct complex *a = &field[z * plane + k];

                if (back)
                    *a = (struct complex){scale * turned[k * nz + z].re,
                                          scale * turned[k * nz + z].im};
                else
                    spectrum[k * nz + z] = *a;
            }
        }
    }
    wl_barrier(w);
}

/* A step of diffusion, solved backwards in time: high frequencies are divided by more. */
static void fill(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++) {
        size_t z = i % nz, x = i / nz % nx, y = i / nz / nx;

        field[i] = input(w, i);
        factor[i] = 1 / (1 + 1e-4 * (square(x, nx) + square(y, ny) + square(z, nz)));
    }
    wl_barrier(w);
}

static void step(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++) {
        spectrum[i].re *= factor[i];
        spectrum[i].im *= factor[i];
        turned[i] = spectrum[i];
    }
    wl_barrier(w);
    rows(w, id, turned, nz, -1);
    transpose(w, id, true);
    columns(w, id, -1);
    rows(w, id, field, nx, -1);
}

static void work(struct wl *w, unsigned id)
{
    fill(w, id);
    rows(w, id, field, nx, 1);
    columns(w, id, 1);
    transpose(w, id, false);
    rows(w, id, spectrum, nz, 1);
    for (unsigned round = 0; round < w->rounds; round++)
        step(w, id);
}

/* e to the -2 pi i (k x): position i of the field, position k of the spectrum. */
static struct complex wave(size_t i, size_t k)
{
    struct complex x = unit(i % nx * (k / nz % nx), nx);
    struct complex y = unit(i / nx % ny * (k / nz / nx), ny);

    return times(times(x, y), unit(i / nx / ny * (k % nz), nz));
}

static bool near(struct complex a, struct complex b)
{
    return wl_abs(a.re - b.re) < 1e-9 * (double)n && wl_abs(a.im - b.im) < 1e-9 * (double)n;
}

/* The field's frequency k: that of the input, damped in each step. */
static bool frequency(const struct wl *w, size_t k)
{
    struct complex now = {0, 0}, start = {0, 0};
    double damped = 1;

    for (unsigned round = 0; round < w->rounds; round++)
        damped *= factor[k];
    for (size_t i = 0; i < n; i++) {
        struct complex e = wave(i, k), a = times(field[i], e), b = times(input(w, i), e);

        now = (struct complex){now.re + a.re, now.im + a.im};
        start = (struct complex){start.re + b.re, start.im + b.im};
    }
    return near(now, (struct complex){damped * start.re, damped * start.im});
}

static bool point(size_t i)
{
    struct complex sum = {0, 0}, value = {field[i].re * (double)n, field[i].im * (double)n};

    for (size_t k = 0; k < n; k++) {
        struct complex e = wave(i, k), a;

        e.im = -e.im;
        a = times(spectrum[k], e);
        sum = (struct complex){sum.re + a.re, sum.im + a.im};
    }
    return near(sum, value);
}

static bool verify(struct wl *w)
{
    for (unsigned i = 0; i < PROBES; i++) {
        if (!frequency(w, wl_hash(w->seed, n + i) & (n - 1)) ||
            !point(wl_hash(w->seed, 2 * n + i) & (n - 1)))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "fft3d",
    .about = "3-D FFT of a field that diffuses; a round is a step and a transform back.",
    .size = 16,
    .rounds = 2,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
