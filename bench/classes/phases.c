/* SPDX-License-Identifier: BSD-2-Clause
 * A program that changes its class: triad over three arrays (bandwidth), arithmetic in
 * registers (CPU), a walk through a random cycle (latency), and the triad again; as often as
 * there are rounds. With WL_PHASES=FILE in the environment the file gets a line for each phase,
 * its kind and the clock at its end.
 *
 * Exact: elements of the triad follow one recurrence each, the lanes of the arithmetic and of the
 * walk are made again by verify(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/workloads/common.h"
#include "bench/workloads/machine.h"

#define MAX_PHASES 256
/* So that phases of 8 threads have about the same length on DRAM of the emulated machine. */
#define SWEEPS  20     /* over the arrays, of a phase */
#define SPINS   520000 /* steps of a lane */
#define STEPS   12000  /* of a lane's walk */
#define FACTORS 4

enum kind { BANDWIDTH, CPU, LATENCY };
static const enum kind kinds[] = {BANDWIDTH, CPU, LATENCY, BANDWIDTH};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct node {
    struct node *next;
    uint64_t rest[7];
};

static size_t n, n_nodes;
static uint64_t *a, *b, *c;
static struct node *nodes;
static struct lane {
    uint64_t hash, at;
} * lanes;
static struct {
    enum kind kind;
    int64_t end_ns;
} phase[MAX_PHASES];
static unsigned phases;

static uint64_t next_element(uint64_t x, unsigned sweep)
{
    return x * (2 * (sweep % FACTORS) + 3) + 1;
}

static void prepare(struct wl *w)
{
    size_t bytes = w->bytes / 2;

    n = bytes / 3 / sizeof(*a);
    n_nodes = bytes / sizeof(*nodes);
    a = wl_new(n + 2 * WL_LANES, sizeof(*a));
    b = wl_new(n, sizeof(*b));
    c = wl_new(n, sizeof(*c));
    nodes = wl_new(n_nodes, sizeof(*nodes));
    lanes = (struct lane *)(a + n);
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = c[i] = wl_hash(w->seed, i);
    /* Sattolo's way to one cycle: each swaps its successor with an earlier one's. */
    for (size_t i = 0; i < n_nodes; i++)
        nodes[i].next = &nodes[i];
    for (size_t i = n_nodes - 1; i > 0; i--) {
        size_t j = (size_t)wl_below(wl_hash(w->seed + 1, i), i);
        struct node *next = nodes[i].next;

        nodes[i].next = nodes[j].next;
        nodes[j].next = next;
    }
    for (unsigned l = 0; l < WL_LANES; l++)
        lanes[l] = (struct lane){wl_hash(w->seed + 2, l), l * (n_nodes / WL_LANES)};
    wl_result(w, a, n + 2 * WL_LANES, WL_U64);
}

static void triad(size_t lo, size_t hi)
{
    for (unsigned s = 0; s < SWEEPS; s++) {
        uint64_t factor = 2 * (s % FACTORS) + 3;

        for (size_t i = lo; i < hi; i++)
            c[i] = a[i] * factor;
        for (size_t i = lo; i < hi; i++)
            b[i] = c[i] + 1;
        for (size_t i = lo; i < hi; i++)
            a[i] = b[i];
    }
}

static void spin(struct lane *lane)
{
    uint64_t x = lane->hash;

    for (unsigned i = 0; i < SPINS; i++) {
        x = (x ^ (x >> 29)) * 0x9fb21c651e98df25u;
        /* A call-out each hundred steps, or the emulated machine would not see the time pass. */
        if (i % 100 == 0)
            *(volatile uint64_t *)&lane->hash = x;
    }
    lane->hash = x;
}

static void walk(struct lane *lane)
{
    const struct node *at = &nodes[lane->at];

    for (unsigned i = 0; i < STEPS; i++)
        at = at->next;
    lane->at = (uint64_t)(at - nodes);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi, first, last;

    wl_part(w, n, id, &lo, &hi);
    wl_part(w, WL_LANES, id, &first, &last);
    for (unsigned p = 0; p < w->rounds * KINDS; p++) {
        enum kind kind = kinds[p % KINDS];

        if (kind == BANDWIDTH)
            triad(lo, hi);
        for (size_t l = first; kind == CPU && l < last; l++)
            spin(&lanes[l]);
        for (size_t l = first; kind == LATENCY && l < last; l++)
            walk(&lanes[l]);
        wl_barrier(w);
        if (id == 0 && p < MAX_PHASES) {
            phase[p].kind = kind;
            phase[p].end_ns = machine_time_ns();
            phases = p + 1;
        }
    }
}

static bool verify(struct wl *w)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t x = wl_hash(w->seed, i);

        for (unsigned s = 0; s < w->rounds * 2 * SWEEPS; s++)
            x = next_element(x, s % SWEEPS);
        if (a[i] != x || b[i] != x || c[i] != x - 1)
            return false;
    }
    for (unsigned l = 0; l < WL_LANES; l++) {
        struct lane lane = {wl_hash(w->seed + 2, l), l * (n_nodes / WL_LANES)};

        for (unsigned round = 0; round < w->rounds; round++) {
            spin(&lane);
            walk(&lane);
        }
        if (lane.hash != lanes[l].hash || lane.at != lanes[l].at)
            return false;
    }
    return true;
}

static bool tell(struct wl *w)
{
    static const char *const names[] = {"bandwidth", "cpu", "latency"};
    const char *path = getenv("WL_PHASES");
    FILE *out = path ? fopen(path, "w") : NULL;

    for (unsigned p = 0; out && p < phases; p++)
        fprintf(out, "%s %" PRId64 "\n", names[phase[p].kind], phase[p].end_ns);
    if (path && (!out || fclose(out) != 0))
        return false;
    return verify(w);
}

const struct workload workload = {
    .name = "phases",
    .about = "Bandwidth, computing, latency, bandwidth: a program that changes its class.",
    .size = 8,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = tell,
};
