/* SPDX-License-Identifier: BSD-2-Clause
 * Adaptive mesh: a grid of patches, each refined fourfold while a wave is near. Fine patches are
 * blocks of their own that come and go, as in miniAMR, and most of the work is done in them. */
#include "parts.h"

#define EDGE   16
#define POINTS (EDGE * EDGE)

struct patch {
    double u[2][POINTS];
};

struct root {
    struct patch coarse, *fine[4];
    bool near;
};

static size_t side;
static struct root *root;
static double *total;

static void prepare(struct wl *w)
{
    side = wl_root(w->bytes / (2 * sizeof(struct patch)));
    root = wl_new(side * side, sizeof(*root));
    total = wl_new(side * side, sizeof(*total));
    for (size_t r = 0; r < side * side; r++) {
        for (size_t i = 0; i < POINTS; i++)
            root[r].coarse.u[0][i] = wl_unit(wl_hash(w->seed, r * POINTS + i));
        for (unsigned k = 0; k < 4; k++)
            root[r].fine[k] = NULL;
        total[r] = 0;
    }
    wl_result(w, total, side * side, WL_F64);
}

/* The wave is a ring whose middle is a corner. */
static bool is_near(size_t r, unsigned step, unsigned steps)
{
    double y = (double)(r / side), x = (double)(r % side);
    double front = 1.4 * (double)side * step / steps, d = y * y + x * x - front * front;

    return wl_abs(d) < 0.35 * (double)(side * side);
}

static void smooth(struct patch *p, unsigned now)
{
    const double *u = p->u[now];
    double *next = p->u[!now];

    for (size_t i = 0; i < POINTS; i++) {
        size_t y = i / EDGE, x = i % EDGE;
        double up = u[y > 0 ? i - EDGE : i], down = u[y < EDGE - 1 ? i + EDGE : i];
        double left = u[x > 0 ? i - 1 : i], right = u[x < EDGE - 1 ? i + 1 : i];

        next[i] = 0.25 * (up + down + left + right) * 0.8 + 0.2 * u[i];
    }
}

static void refine(struct root *r, unsigned now)
{
    for (unsigned k = 0; k < 4; k++) {
        r->fine[k] = parts_more(NULL, sizeof(struct patch));
        for (size_t i = 0; i < POINTS; i++) {
            size_t y = (k / 2 * EDGE + i / EDGE) / 2, x = (k % 2 * EDGE + i % EDGE) / 2;

            r->fine[k]->u[now][i] = r->coarse.u[now][y * EDGE + x];
        }
    }
}

static void coarsen(struct root *r, unsigned now)
{
    for (unsigned k = 0; k < 4; k++) {
        for (size_t i = 0; i < POINTS; i++) {
            size_t y = (k / 2 * EDGE + i / EDGE) / 2, x = (k % 2 * EDGE + i % EDGE) / 2;
            double *u = &r->coarse.u[now][y * EDGE + x];

            *u = 0.5 * *u + 0.5 * r->fine[k]->u[now][i];
        }
        free(r->fine[k]);
        r->fine[k] = NULL;
    }
}

static void advance(size_t i, unsigned step, unsigned steps)
{
    struct root *r = &root[i];
    unsigned now = step & 1;

    if (!r->fine[0] && is_near(i, step, steps))
        refine(r, now);
    else if (r->fine[0] && !is_near(i, step, steps))
        coarsen(r, now);
    smooth(&r->coarse, now);
    for (unsigned k = 0; k < 4 && r->fine[0]; k++) {
        for (unsigned sub = 0; sub < 3; sub++)
            smooth(r->fine[k], now ^ (sub & 1));
        total[i] += r->fine[k]->u[!now][k];
    }
    total[i] += r->coarse.u[!now][step % POINTS];
}

static void work(struct wl *w, unsigned id)
{
    unsigned steps = 4 * w->rounds;

    for (unsigned step = 0; step < steps; step++) {
        for (size_t i = id; i < side * side; i += w->threads)
            advance(i, step, steps);
        wl_barrier(w);
    }
    for (size_t i = id; i < side * side; i += w->threads) {
        if (root[i].fine[0])
            coarsen(&root[i], steps & 1);
    }
    parts_note(w, total, side * side, id);
}

static bool verify(struct wl *w)
{
    (void)w;
    return parts_noted(total, side * side);
}

const struct workload workload = {
    .name = "amr",
    .about = "Adaptive mesh refinement; a round is four steps.",
    .size = 8,
    .rounds = 10,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
