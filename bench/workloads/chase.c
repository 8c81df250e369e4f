/* SPDX-License-Identifier: BSD-2-Clause
 * Pointer chase: one random cycle through nodes of a cache line each.
 *
 * Latency-sensitive: the address of a load is the value of the last, so there is one
 * miss under way per thread, little bandwidth, and the ratio is that of the latencies.
 * It stands for the index walks of databases, the paper's most latency-sensitive class.
 *
 * 64 lanes start a 64th of the cycle apart and walk that far in a round: the sum of the
 * nodes each has seen and the node where it ends are known from the making. */
#include "common.h"

struct node {
    struct node *next;
    uint64_t value;
    uint64_t rest[6];
};

/* What a lane brings back, two words of the result. */
struct lane {
    uint64_t sum, last;
};

static size_t leg; /* nodes between the starts of two lanes */
static struct node *nodes, *start[WL_LANES];
static uint64_t leg_sum[WL_LANES];
static struct lane *lanes;

static void prepare(struct wl *w)
{
    size_t n, j;
    uint32_t *order, other;

    leg = w->bytes / (sizeof(*nodes) + sizeof(*order)) / WL_LANES;
    n = leg * WL_LANES;
    if (n > UINT32_MAX)
        wl_fail("at most 256 GiB");
    nodes = wl_new(n, sizeof(*nodes));
    order = wl_new(n, sizeof(*order));
    lanes = wl_new(WL_LANES, sizeof(*lanes));
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = n - 1; i > 0; i--) {
        j = (size_t)wl_below(wl_hash(w->seed, i), i + 1);
        other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (size_t i = 0; i < n; i++) {
        struct node *node = &nodes[order[i]];

        *node = (struct node){.next = &nodes[order[i + 1 < n ? i + 1 : 0]],
                              .value = wl_hash(w->seed + 1, order[i])};
        if (i % leg == 0)
            start[i / leg] = node;
        leg_sum[i / leg] += node->value;
    }
    wl_result(w, lanes, WL_LANES * sizeof(*lanes) / sizeof(uint64_t), WL_U64);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, WL_LANES, id, &lo, &hi);
    for (size_t l = lo; l < hi; l++)
        lanes[l] = (struct lane){.sum = 0, .last = (uint64_t)(start[l] - nodes)};
    /* Rounds outside: a lane that went on at once would leave its way in the cache for
     * the next lane. */
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t l = lo; l < hi; l++) {
            const struct node *node = &nodes[lanes[l].last];
            uint64_t sum = 0;

            for (size_t k = leg; k > 0; k--) {
                sum += node->value;
                node = node->next;
            }
            lanes[l].sum += sum;
            lanes[l].last = (uint64_t)(node - nodes);
        }
    }
}

static bool verify(struct wl *w)
{
    for (unsigned l = 0; l < WL_LANES; l++) {
        uint64_t sum = 0;

        for (unsigned round = 0; round < w->rounds; round++)
            sum += leg_sum[(l + round) % WL_LANES];
        if (lanes[l].sum != sum ||
            lanes[l].last != (uint64_t)(start[(l + w->rounds) % WL_LANES] - nodes))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "chase",
    .about = "Walks a random cycle of 64-byte nodes, every node once a round.",
    .size = 16,
    .rounds = 2,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
