/* SPDX-License-Identifier: BSD-2-Clause
 * Molecular dynamics with link cells: CoMD. A cell has room for more atoms than it holds; forces
 * come from 27 cells; between steps each cell gathers who has come to it, in a fixed order. */
#include "parts.h"

#define ROOM 12 /* a cell */
#define FILL 4

struct cell {
    uint32_t n, id[ROOM];
    double at[ROOM][3], speed[ROOM][3], force[ROOM][3];
};

static size_t side;
static struct cell *cell[2];
static double *sum;

static size_t wrap(size_t c, size_t d)
{
    return (c + d + side - 1) % side;
}

static size_t neighbour(size_t c, unsigned k)
{
    size_t z = wrap(c / side / side, k / 9), y = wrap(c / side % side, k / 3 % 3);

    return (z * side + y) * side + wrap(c % side, k % 3);
}

static void prepare(struct wl *w)
{
    for (side = 4; 2 * (side + 1) * (side + 1) * (side + 1) * sizeof(struct cell) <= w->bytes;)
        side++;
    size_t cells = side * side * side;
    cell[0] = wl_new(cells, sizeof(struct cell));
    cell[1] = wl_new(cells, sizeof(struct cell));
    sum = wl_new(cells, sizeof(*sum));
    for (size_t c = 0; c < cells; c++) {
        cell[0][c].n = FILL;
        for (uint32_t a = 0; a < FILL; a++) {
            cell[0][c].id[a] = (uint32_t)(c * FILL + a);
            for (unsigned x = 0; x < 3; x++) { /* within the cell, edge 1 */
                uint64_t r = wl_hash(w->seed, (c * FILL + a) * 3 + x);

                cell[0][c].at[a][x] = wl_unit(r);
                cell[0][c].speed[a][x] = 0.1 * (wl_unit(r << 30) - 0.5);
            }
        }
    }
    wl_result(w, sum, cells, WL_F64);
}

static void pull(struct cell *c, uint32_t a, const struct cell *other, unsigned k)
{
    double shift[3] = {(double)(k / 9) - 1, (double)(k / 3 % 3) - 1, (double)(k % 3) - 1};

    for (uint32_t b = 0; b < other->n; b++) {
        double d[3], r2 = 0.05;

        for (unsigned x = 0; x < 3; x++) {
            d[x] = c->at[a][x] - other->at[b][x] - shift[x];
            r2 += d[x] * d[x];
        }
        if (r2 > 1.05)
            continue;
        double f = (1 / r2 - 1) * 1e-3;
        for (unsigned x = 0; x < 3; x++)
            c->force[a][x] += f * d[x];
    }
}

static void forces(struct cell *all, size_t i)
{
    struct cell *c = &all[i];

    for (uint32_t a = 0; a < c->n; a++) {
        for (unsigned x = 0; x < 3; x++)
            c->force[a][x] = 0;
        for (unsigned k = 0; k < 27; k++)
            pull(c, a, &all[neighbour(i, k)], k);
    }
}

static double step_of(double *at)
{
    double d = *at < 0 ? -1 : *at >= 1 ? 1 : 0;

    *at -= d;
    return d;
}

/* Those of cell `from` that go the way k leads back from. */
static void gather(struct cell *to, const struct cell *from, unsigned k)
{
    for (uint32_t a = 0; a < from->n; a++) {
        double at[3], go[3];

        for (unsigned x = 0; x < 3; x++) {
            double v = from->speed[a][x];

            at[x] = from->at[a][x] + 0.5 * (v > 0.9 ? 0.9 : v < -0.9 ? -0.9 : v);
            go[x] = step_of(&at[x]);
        }
        if (go[0] != 1 - (double)(k / 9) || go[1] != 1 - (double)(k / 3 % 3) ||
            go[2] != 1 - (double)(k % 3))
            continue;
        if (to->n == ROOM)
            wl_fail("a cell is full");
        to->id[to->n] = from->id[a];
        for (unsigned x = 0; x < 3; x++) {
            to->at[to->n][x] = at[x];
            to->speed[to->n][x] = from->speed[a][x] * 0.98 + from->force[a][x];
        }
        to->n++;
    }
}

static void work(struct wl *w, unsigned id)
{
    size_t cells = side * side * side, lo, hi;

    wl_part(w, cells, id, &lo, &hi);
    for (unsigned step = 0; step < w->rounds; step++) {
        struct cell *now = cell[step & 1], *next = cell[!(step & 1)];

        for (size_t i = lo; i < hi; i++)
            forces(now, i);
        wl_barrier(w);
        for (size_t i = lo; i < hi; i++) {
            next[i].n = 0;
            for (unsigned k = 0; k < 27; k++)
                gather(&next[i], &now[neighbour(i, k)], k);
        }
        wl_barrier(w);
    }
    for (size_t i = lo; i < hi; i++) {
        const struct cell *c = &cell[w->rounds & 1][i];

        sum[i] = c->n;
        for (uint32_t a = 0; a < c->n; a++)
            sum[i] += c->at[a][0] + 3 * c->at[a][1] + 9 * c->at[a][2];
    }
    wl_barrier(w);
    parts_note(w, sum, cells, id);
}

static bool verify(struct wl *w)
{
    size_t cells = side * side * side, atoms = 0;

    for (size_t i = 0; i < cells; i++)
        atoms += cell[w->rounds & 1][i].n;
    return atoms == cells * FILL && parts_noted(sum, cells);
}

const struct workload workload = {
    .name = "comd",
    .about = "Molecular dynamics with link cells; a round is a step.",
    .size = 8,
    .rounds = 6,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
