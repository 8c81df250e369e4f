/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rules/behaviours.h"

#include <string.h>

#define LINE 64.0

static double elapsed(const struct behaviours *b, unsigned i)
{
    return (double)b->sum[i].all.sum[WINDOW_elapsed_ns];
}

/* Time that it takes, times the square of the distance of their rates. */
static double loss(const struct behaviours *b, const struct machine_figures *f, unsigned i,
                   unsigned k, unsigned sources)
{
    const struct medium_figures *pm = &f->medium[HY_PM];
    const double ns[ACCESS_KINDS] = {LINE * 1000 / pm->seq_read_mbs,
                                     LINE * 1000 / pm->seq_write_mbs};
    double ti = elapsed(b, i), tk = elapsed(b, k), square = 0;

    if (ti + tk <= 0)
        return 0;
    for (unsigned s = 0; s < sources; s++)
        for (int a = 0; a < ACCESS_KINDS; a++) {
            /* Not of rates: one that took no time has none. */
            double d = (b->lines[i][s][a] * tk - b->lines[k][s][a] * ti) * ns[a];

            square += d * d;
        }
    return ti > 0 && tk > 0 ? square / (ti * tk * (ti + tk)) : 0;
}

/* The last one takes the place of `k`, whose lines go to `i`. */
static void join(struct behaviours *b, unsigned i, unsigned k, unsigned sources)
{
    unsigned last = b->n;
    access_lines *gone = b->lines[k];

    run_sum_merge(&b->sum[i], &b->sum[k]);
    for (unsigned s = 0; s < sources; s++)
        for (int a = 0; a < ACCESS_KINDS; a++)
            if (gone[s][a] > 0) {
                b->lines[i][s][a] += gone[s][a];
                gone[s][a] = 0;
            }
    b->sum[k] = b->sum[last];
    b->lines[k] = b->lines[last];
    b->lines[last] = gone;
    memset(&b->sum[last], 0, sizeof(b->sum[last]));
}

static void compare(struct behaviours *b, const struct machine_figures *f, unsigned with,
                    unsigned n, unsigned sources)
{
    for (unsigned i = 0; i < n; i++)
        if (i != with)
            b->apart[HY_MAX(i, with)][HY_MIN(i, with)] = loss(b, f, i, with, sources);
}

void behaviours_end(struct behaviours *b, const struct machine_figures *f, unsigned sources)
{
    unsigned keep = 0, goes = 1;

    if (elapsed(b, b->n) <= 0)
        return;
    compare(b, f, b->n, b->n, sources);
    if (b->n < PROFILE_BEHAVIOURS) {
        b->n++;
        return;
    }
    for (unsigned k = 1; k <= b->n; k++)
        for (unsigned i = 0; i < k; i++)
            if (b->apart[k][i] < b->apart[goes][keep]) {
                keep = i;
                goes = k;
            }
    join(b, keep, goes, sources);
    compare(b, f, keep, b->n, sources);
    if (goes < b->n)
        compare(b, f, goes, b->n, sources);
}
