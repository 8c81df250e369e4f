/* SPDX-License-Identifier: BSD-2-Clause
 * Boosted trees: columns of one byte a row are gathered through lists of rows, one list a node,
 * into histograms that come and go with each level: the shape of XGBoost and LightGBM. */
#include "parts.h"

#define FEATURES 16u
#define BINS     64u
#define DEPTH    5

static size_t n;
static uint8_t *column;
static int64_t *residual;
static uint32_t *row[2];
static size_t first[2 << DEPTH];
static int64_t (*histogram)[FEATURES][BINS][2];
static struct split {
    unsigned feature, bin;
} split[1 << DEPTH];

static void prepare(struct wl *w)
{
    n = w->bytes / (FEATURES + sizeof(*residual) + 2 * sizeof(**row));
    column = wl_new(n, FEATURES);
    residual = wl_new(n, sizeof(*residual));
    row[0] = wl_new(n, sizeof(**row));
    row[1] = wl_new(n, sizeof(**row));
    for (size_t i = 0; i < n; i++) {
        uint64_t r = wl_hash(w->seed, i);

        for (unsigned f = 0; f < FEATURES; f++)
            column[f * n + i] = (uint8_t)((r >> (f * 3)) % BINS);
        residual[i] = (int64_t)((column[i] * 5 + column[n + i] * 3) ^ (r >> 58)) * 1000;
    }
    wl_result(w, residual, n, WL_U64);
}

static void count(unsigned node, unsigned feature, const uint32_t *rows)
{
    const uint8_t *c = &column[feature * n];
    int64_t(*h)[2] = histogram[node][feature];

    for (unsigned b = 0; b < BINS; b++)
        h[b][0] = h[b][1] = 0;
    for (size_t i = first[node]; i < first[node + 1]; i++) {
        h[c[rows[i]]][0] += residual[rows[i]];
        h[c[rows[i]]][1]++;
    }
}

/* The split whose halves differ most. */
static void choose(unsigned node)
{
    double best = -1;

    split[node] = (struct split){0, BINS / 2};
    for (unsigned f = 0; f < FEATURES; f++) {
        int64_t(*h)[2] = histogram[node][f], all = 0, left = 0, below = 0;
        int64_t rows = (int64_t)(first[node + 1] - first[node]);

        for (unsigned b = 0; b < BINS; b++)
            all += h[b][0];
        for (unsigned b = 0; b + 1 < BINS; b++) {
            left += h[b][0];
            below += h[b][1];
            double a = below ? (double)left / (double)below : 0;
            double c = rows > below ? (double)(all - left) / (double)(rows - below) : 0;
            double gain = (a - c) * (a - c) * (double)below * (double)(rows - below);
            if (gain > best) {
                best = gain;
                split[node] = (struct split){f, b};
            }
        }
    }
}

/* Rows of a node, left ones first, in their order. */
static void divide(unsigned node, const uint32_t *from, uint32_t *to, size_t *middle)
{
    const uint8_t *c = &column[split[node].feature * n];
    size_t at = first[node];

    for (unsigned right = 0; right < 2; right++) {
        for (size_t i = first[node]; i < first[node + 1]; i++) {
            if ((c[from[i]] > split[node].bin ? 1u : 0u) == right)
                to[at++] = from[i];
        }
        if (!right)
            *middle = at;
    }
}

static void leaves(struct wl *w, unsigned id, const uint32_t *rows)
{
    for (unsigned node = id; node < 1u << DEPTH; node += w->threads) {
        int64_t sum = 0, many = (int64_t)(first[node + 1] - first[node]);

        for (size_t i = first[node]; i < first[node + 1]; i++)
            sum += residual[rows[i]];
        for (size_t i = first[node]; i < first[node + 1]; i++)
            residual[rows[i]] -= sum / (4 * many);
    }
    wl_barrier(w);
}

static void grow(struct wl *w, unsigned id)
{
    static size_t middle[1 << DEPTH];
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++)
        row[0][i] = (uint32_t)i;
    if (id == 0) {
        first[0] = 0;
        first[1] = n;
    }
    for (unsigned level = 0; level < DEPTH; level++) {
        if (id == 0)
            histogram = parts_more(NULL, sizeof(*histogram) << level);
        wl_barrier(w);
        for (unsigned i = id; i < FEATURES << level; i += w->threads)
            count(i / FEATURES, i % FEATURES, row[level & 1]);
        wl_barrier(w);
        for (unsigned node = id; node < 1u << level; node += w->threads) {
            choose(node);
            divide(node, row[level & 1], row[!(level & 1)], &middle[node]);
        }
        wl_barrier(w);
        if (id == 0) {
            free(histogram);
            for (unsigned node = 1u << level; node > 0; node--) {
                first[2 * node] = first[node];
                first[2 * node - 1] = middle[node - 1];
            }
        }
        wl_barrier(w);
    }
    leaves(w, id, row[DEPTH & 1]);
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        grow(w, id);
    parts_note(w, residual, n, id);
}

static bool verify(struct wl *w)
{
    (void)w;
    return parts_noted(residual, n);
}

const struct workload workload = {
    .name = "gbdt",
    .about = "Gradient boosted trees; a round is a tree.",
    .size = 6,
    .rounds = 3,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
