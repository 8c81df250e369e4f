/* SPDX-License-Identifier: BSD-2-Clause
 * Monte-Carlo pricing of a portfolio, like swaptions: many random paths per contract.
 *
 * CPU-bound, as swaptions in the paper: a contract's record (1.5 KiB) stays in the first
 * cache while its hundreds of thousands of steps are drawn; then it is never touched
 * again. Bytes are many, accesses to them few: the one to be moved out of DRAM first.
 *
 * A price moves up or down by a fixed factor each step, so the expected value is a finite
 * sum: every price must lie within eight standard errors of it, all together much closer,
 * and the mean paths must follow the interest. Some are priced again, bit by bit. */
#include "common.h"

#include <math.h>

#define STEPS  64
#define PATHS  128
#define SAMPLE 8 /* contracts priced twice */

struct contract {
    double spot, strike, up, down, chance; /* of going up, without arbitrage */
    double discount;                       /* of the last step */
    double curve[STEPS];                   /* discount of each */
    double path[STEPS];                    /* the last one drawn */
    double mean[STEPS];                    /* of all */
};

static size_t n;
static struct contract *contract;
static double *price;

static void prepare(struct wl *w)
{
    n = w->bytes / (sizeof(*contract) + sizeof(*price));
    contract = wl_new(n, sizeof(*contract));
    price = wl_new(n, sizeof(*price));
    for (size_t i = 0; i < n; i++) {
        struct contract *c = &contract[i];
        double rate = 1 + 0.001 * wl_unit(wl_hash(w->seed, 4 * i));

        c->spot = 80 + 40 * wl_unit(wl_hash(w->seed, 4 * i + 1));
        c->strike = 80 + 40 * wl_unit(wl_hash(w->seed, 4 * i + 2));
        c->up = 1.01 + 0.03 * wl_unit(wl_hash(w->seed, 4 * i + 3));
        c->down = 1 / c->up;
        c->chance = (rate - c->down) / (c->up - c->down);
        c->discount = 1;
        for (unsigned t = 0; t < STEPS; t++) {
            c->curve[t] = c->discount /= rate;
            c->path[t] = c->mean[t] = 0;
        }
    }
    wl_result(w, price, n, WL_F64);
}

static double simulate(const struct wl *w, struct contract *c, size_t i)
{
    uint64_t state = wl_hash(w->seed + 1, i), limit = (uint64_t)(c->chance * 0x1p32);
    double factor[2] = {c->down, c->up}, sum = 0;

    for (unsigned t = 0; t < STEPS; t++)
        c->mean[t] = 0;
    for (unsigned k = 0; k < PATHS; k++) {
        double s = c->spot;

        for (unsigned t = 0; t < STEPS; t++) {
            s *= factor[wl_next(&state) >> 32 < limit];
            c->path[t] = s * c->curve[t];
        }
        for (unsigned t = 0; t < STEPS; t++)
            c->mean[t] += c->path[t];
        if (s > c->strike)
            sum += s - c->strike;
    }
    return sum / PATHS * c->discount;
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t i = lo; i < hi; i++)
            price[i] = simulate(w, &contract[i], i);
    }
}

/* Expectation and variance of the discounted gain, over the number of ups. */
static void expect(const struct contract *c, double *ret_mean, double *ret_variance)
{
    double odds = c->chance / (1 - c->chance), weight = 1, s = c->spot, first = 0, second = 0;

    for (unsigned t = 0; t < STEPS; t++) {
        weight *= 1 - c->chance;
        s *= c->down;
    }
    for (unsigned ups = 0; ups <= STEPS; ups++) {
        double gain = s > c->strike ? (s - c->strike) * c->discount : 0;

        first += weight * gain;
        second += weight * gain * gain;
        weight *= odds * (STEPS - ups) / (ups + 1);
        s *= c->up * c->up;
    }
    *ret_mean = first;
    *ret_variance = second - first * first;
}

static bool verify(struct wl *w)
{
    double errors = 0; /* in standard errors, over the portfolio */

    for (size_t i = 0; i < n; i++) {
        const struct contract *c = &contract[i];
        double mean, variance, error;

        expect(c, &mean, &variance);
        error = sqrt(variance / PATHS);
        /* 0.1: gains so rare that their spread is not that of a normal distribution. */
        if (!(wl_abs(price[i] - mean) <= 8 * error + 0.1))
            return false;
        if (error > 0.1)
            errors += (price[i] - mean) / error;
        /* A path has a spread of its own, of 35% at the last step at most. */
        for (unsigned t = 0; t < STEPS; t++) {
            if (!(wl_abs(c->mean[t] / PATHS / c->spot - 1) < 8 * 0.35 / sqrt(PATHS)))
                return false;
        }
    }
    if (!(wl_abs(errors) < 6 * sqrt((double)n)))
        return false;
    for (size_t k = 0; k < SAMPLE; k++) {
        size_t i = wl_hash(w->seed + 2, k) % n;
        struct contract copy = contract[i];

        if (!(simulate(w, &copy, i) == price[i]))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "pricing",
    .about = "Monte-Carlo prices of a portfolio of options; 128 paths of 64 steps each a round.",
    .size = 4,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
