/* SPDX-License-Identifier: BSD-2-Clause
 * FFT: complex, one-dimensional, radix 2, from one array to the other and back (Stockham).
 *
 * Bandwidth-sensitive and write-intensive, as NPB/FT in the paper: each of the log2(n)
 * stages reads all of one array and writes all of the other, with ten operations a pair.
 * Three objects, of which the twiddle factors are read only and used less the later the
 * stage: the first candidate for the slow memory.
 *
 * n is the largest power of two that fits. The last transform must have the right values
 * at some frequencies (direct sums over the input), and direct inverse sums over the whole
 * spectrum must give back some of the input. */
#include "common.h"

#define PROBES 2

struct complex {
    double re, im;
};

static size_t n, stages;
static struct complex *array[2], *twiddle;

static struct complex input(const struct wl *w, size_t i)
{
    uint64_t r = wl_hash(w->seed, i);

    return (struct complex){wl_unit(r) - 0.5, wl_unit(r << 32) - 0.5};
}

static void prepare(struct wl *w)
{
    for (n = 2, stages = 1;
         2 * n * (2 * sizeof(struct complex) + sizeof(struct complex) / 2) <= w->bytes; n *= 2)
        stages++;
    array[0] = wl_new(n, sizeof(struct complex));
    array[1] = wl_new(n, sizeof(struct complex));
    twiddle = wl_new(n / 2, sizeof(struct complex));
    for (size_t i = 0; i < n; i++)
        array[0][i] = input(w, i);
    for (size_t i = 0; i < n / 2; i++) {
        double turn = (double)i / (double)n;

        twiddle[i] = (struct complex){wl_sin_turn(turn + 0.25), -wl_sin_turn(turn)};
    }
    /* Forward and back but for the last round, which ends in the spectrum. */
    wl_result(w, array[(2 * w->rounds - 1) * stages & 1], 2 * n, WL_F64);
}

/* One transform, ending `stages` arrays further; sign -1 conjugates the factors. */
static void transform(struct wl *w, unsigned id, unsigned from, double sign, double scale)
{
    size_t lo, hi;

    wl_part(w, n / 2, id, &lo, &hi);
    for (size_t stage = 0; stage < stages; stage++) {
        const struct complex *x = array[(from + stage) & 1];
        struct complex *y = array[!((from + stage) & 1)];
        size_t s = (size_t)1 << stage;
        double factor = stage + 1 == stages ? scale : 1;

        for (size_t i = lo; i < hi; i++) {
            struct complex a = x[i], b = x[i + n / 2], t = twiddle[i & ~(s - 1)];
            struct complex d = {a.re - b.re, a.im - b.im};
            struct complex *to = &y[2 * i - (i & (s - 1))];

            t.im *= sign;
            to[0] = (struct complex){factor * (a.re + b.re), factor * (a.im + b.im)};
            to[s] = (struct complex){factor * (d.re * t.re - d.im * t.im),
                                     factor * (d.re * t.im + d.im * t.re)};
        }
        wl_barrier(w);
    }
}

static void work(struct wl *w, unsigned id)
{
    unsigned at = 0;

    for (unsigned round = 0; round < w->rounds; round++) {
        transform(w, id, at, 1, 1);
        at += (unsigned)stages;
        if (round + 1 < w->rounds) {
            transform(w, id, at, -1, 1 / (double)n);
            at += (unsigned)stages;
        }
    }
}

/* Sum of value(i) * root^(k i); the power is taken modulo n, twiddle holds half a turn. */
static bool probe(const struct wl *w, const struct complex *spectrum, size_t k, double sign)
{
    struct complex sum = {0, 0}, want = sign > 0 ? spectrum[k] : input(w, k);
    double scale = sign > 0 ? 1 : (double)n;

    for (size_t i = 0; i < n; i++) {
        struct complex v = sign > 0 ? input(w, i) : spectrum[i];
        size_t power = i * k & (n - 1);
        struct complex t = twiddle[power & (n / 2 - 1)];

        if (power >= n / 2)
            t = (struct complex){-t.re, -t.im};
        t.im *= sign;
        sum.re += v.re * t.re - v.im * t.im;
        sum.im += v.re * t.im + v.im * t.re;
    }
    return wl_abs(sum.re - scale * want.re) < 1e-9 * (double)n &&
           wl_abs(sum.im - scale * want.im) < 1e-9 * (double)n;
}

static bool verify(struct wl *w)
{
    for (unsigned i = 0; i < PROBES; i++) {
        if (!probe(w, w->result, wl_hash(w->seed, n + i) & (n - 1), 1) ||
            !probe(w, w->result, wl_hash(w->seed, 2 * n + i) & (n - 1), -1))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "fft",
    .about = "Complex FFT; a round is forward and back, the last one only forward.",
    .size = 10,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
