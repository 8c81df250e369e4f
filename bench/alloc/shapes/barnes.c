/* SPDX-License-Identifier: BSD-2-Clause
 * barnes: bodies in a tree that is built anew for each step from two large arrays: few allocations,
 * much arithmetic on what they hold. */
#include "common.h"

#include <stdbool.h>

#define BODIES 512
#define NODES  (8 * BODIES)
#define NEAR   0.5

const char bench_name[] = "barnes";
const uint64_t bench_default_ops = 40000; /* bodies moved */

struct body {
    double at[2], speed[2], pull[2];
};

struct node {
    double middle[2], half, sum[2], mass;
    int32_t child[4], body;
};

static int32_t node_new(struct node *all, int32_t *n, double x, double y, double half)
{
    if (*n == NODES)
        bench_fail("no more nodes", NULL, 0);
    all[*n] = (struct node){{x, y}, half, {0, 0}, 0, {-1, -1, -1, -1}, -1};
    return (*n)++;
}

static void insert(struct node *all, int32_t *n, const struct body *bodies, int32_t b)
{
    int32_t at = 0;
    for (int depth = 0;; depth++) {
        struct node *node = &all[at];
        int32_t before = node->body;
        bool first = node->mass == 0;
        node->sum[0] += bodies[b].at[0];
        node->sum[1] += bodies[b].at[1];
        node->mass += 1;
        if (first) {
            node->body = b;
            return;
        }
        if (depth == 24) /* as good as in one place */
            return;
        node->body = -1;
        for (int32_t who = before >= 0 ? before : b;; who = b) {
            int q =
                (bodies[who].at[0] > node->middle[0]) + 2 * (bodies[who].at[1] > node->middle[1]);
            double h = all[at].half / 2;
            if (node->child[q] < 0)
                node->child[q] = node_new(all, n, node->middle[0] + (q & 1 ? h : -h),
                                          node->middle[1] + (q & 2 ? h : -h), h);
            if (who == b) {
                at = node->child[q];
                break;
            }
            struct node *down = &all[node->child[q]];
            down->body = who;
            down->sum[0] = bodies[who].at[0];
            down->sum[1] = bodies[who].at[1];
            down->mass = 1;
        }
    }
}

static void pull(const struct node *all, int32_t i, struct body *b)
{
    const struct node *node = &all[i];
    double dx = node->sum[0] / node->mass - b->at[0], dy = node->sum[1] / node->mass - b->at[1];
    double far = dx * dx + dy * dy + 1e-4;
    if (node->body >= 0 || node->half * node->half < NEAR * NEAR * far) {
        b->pull[0] += dx * node->mass / far;
        b->pull[1] += dy * node->mass / far;
        return;
    }
    for (int q = 0; q < 4; q++)
        if (node->child[q] >= 0)
            pull(all, node->child[q], b);
}

static void work(struct worker *w)
{
    struct body *bodies = calloc(BODIES, sizeof(*bodies));
    if (!bodies)
        bench_fail("calloc failed", NULL, 0);
    for (int i = 0; i < BODIES; i++)
        for (int d = 0; d < 2; d++)
            bodies[i].at[d] = (double)(bench_random(w) >> 40) / (1 << 24);
    for (; w->done < w->args->ops; w->done += BODIES) {
        struct node *all = malloc(NODES * sizeof(*all));
        int32_t n = 0;
        if (!all)
            bench_fail("malloc failed", NULL, 0);
        node_new(all, &n, 0.5, 0.5, 0.5);
        for (int32_t i = 0; i < BODIES; i++)
            insert(all, &n, bodies, i);
        for (int i = 0; i < BODIES; i++) {
            bodies[i].pull[0] = bodies[i].pull[1] = 0;
            pull(all, 0, &bodies[i]);
        }
        for (int i = 0; i < BODIES; i++)
            for (int d = 0; d < 2; d++) {
                double to = bodies[i].at[d] + bodies[i].pull[d] * 1e-8;
                bodies[i].at[d] = to < 0 ? 0 : to > 1 ? 1 : to;
            }
        w->tags_out += (uint64_t)n;
        free(all);
    }
    w->tags_back = w->tags_out;
    free(bodies);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
