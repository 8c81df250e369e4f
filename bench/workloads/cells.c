/* SPDX-License-Identifier: BSD-2-Clause
 * Particles in link cells, whose vectors double as they fill: molecular dynamics.
 *
 * Bandwidth-sensitive. It stands for programs with many small vectors that grow side by side, as
 * CoMD has them: what a vector of 16 particles leaves when it becomes one of 32 lies between
 * others that stay, and is of use only to an allocator that gives it to blocks of another size, or
 * its pages back.
 *
 * Integers, so each particle's sum over the cells around it is verified from sums of cells. */
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define PER_CELL   15   /* particles, on average */
#define CELL_BYTES 2400 /* vectors at the end, and what is beside them */
#define AROUND     7

struct particle {
    uint64_t charge, sum, other[8];
};

static struct cell {
    struct particle *p;
    uint64_t n, room;
} * cell;
static size_t side, cells;
static uint64_t *result;

static size_t around(size_t i, unsigned k)
{
    const size_t step[AROUND] = {
        0, 1, cells - 1, side, cells - side, side * side, cells - side * side};

    return (i + step[k]) % cells;
}

static void add(struct cell *c, uint64_t charge)
{
    if (c->n == c->room) {
        uint64_t room = c->room ? 2 * c->room : 1;
        struct particle *p = malloc(room * sizeof(*p));
        if (!p)
            wl_fail("out of memory");
        if (c->n)
            memcpy(p, c->p, c->n * sizeof(*p));
        free(c->p);
        c->p = p;
        c->room = room;
    }
    c->p[c->n++] = (struct particle){.charge = charge};
}

static void prepare(struct wl *w)
{
    for (side = 4; (side + 1) * (side + 1) * (side + 1) * CELL_BYTES <= w->bytes; side++)
        ;
    cells = side * side * side;
    cell = wl_new(cells, sizeof(*cell));
    result = wl_new(cells, sizeof(*result));
    memset(cell, 0, cells * sizeof(*cell));
    for (size_t i = 0; i < cells * PER_CELL; i++)
        add(&cell[wl_below(wl_hash(w->seed, i), cells)], wl_hash(w->seed + 1, i) >> 8);
    wl_result(w, result, cells, WL_U64);
}

static void push(struct cell *c, const struct cell *from)
{
    for (uint64_t i = 0; i < c->n; i++) {
        uint64_t sum = 0;

        for (uint64_t j = 0; j < from->n; j++)
            sum += from->p[j].charge - c->p[i].charge;
        c->p[i].sum += sum;
    }
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, cells, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t i = lo; i < hi; i++) {
            for (unsigned k = 0; k < AROUND; k++)
                push(&cell[i], &cell[around(i, k)]);
        }
        wl_barrier(w);
    }
    for (size_t i = lo; i < hi; i++) {
        result[i] = cell[i].n;
        for (uint64_t j = 0; j < cell[i].n; j++)
            result[i] = result[i] * 3 + cell[i].p[j].sum;
    }
}

static uint64_t charge_of(const struct cell *c)
{
    uint64_t sum = 0;

    for (uint64_t j = 0; j < c->n; j++)
        sum += c->p[j].charge;
    return sum;
}

static bool verify(struct wl *w)
{
    size_t all = 0;
    bool ok = true;

    for (size_t i = 0; i < cells; i++) {
        uint64_t charge = 0, n = 0, sum = cell[i].n;

        for (unsigned k = 0; k < AROUND; k++) {
            charge += charge_of(&cell[around(i, k)]);
            n += cell[around(i, k)].n;
        }
        for (uint64_t j = 0; j < cell[i].n; j++)
            sum = sum * 3 + w->rounds * (charge - n * cell[i].p[j].charge);
        ok = ok && sum == result[i];
        all += cell[i].n;
    }
    for (size_t i = 0; i < cells; i++)
        free(cell[i].p);
    return ok && all == cells * PER_CELL;
}

const struct workload workload = {
    .name = "cells",
    .about = "Particles in link cells, whose vectors double as they fill.",
    .size = 10,
    .rounds = 8,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
