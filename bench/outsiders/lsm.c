/* SPDX-License-Identifier: BSD-2-Clause
 * Log-structured merge trees, one a lane: a small table takes writes, is sorted into a run when it
 * is full, and runs of one size are merged into one twice as large. Reads ask the newest first. */
#include "parts.h"

#define LEVELS 12
#define TABLE  256 /* entries */

struct entry {
    uint64_t key, value;
};

struct tree {
    struct entry *run[LEVELS], *table;
    size_t n[LEVELS], filled;
};

static struct tree tree[WL_LANES];
static uint64_t *result, keys, operations;

static void prepare(struct wl *w)
{
    keys = w->bytes / WL_LANES / sizeof(struct entry) * 2 / 3;
    operations = keys;
    result = wl_new(WL_LANES, sizeof(*result));
    for (unsigned i = 0; i < WL_LANES; i++)
        result[i] = 0;
    wl_result(w, result, WL_LANES, WL_U64);
}

/* Of equal keys the newer one stays. */
static struct entry *merge(const struct entry *new, size_t a, const struct entry *old, size_t b,
                           size_t *n)
{
    struct entry *to = parts_more(NULL, (a + b) * sizeof(*to));
    size_t i = 0, k = 0, at = 0;

    while (i < a || k < b) {
        bool older = i == a || (k < b && old[k].key < new[i].key);

        k += !older && k < b && old[k].key == new[i].key;
        to[at++] = older ? old[k++] : new[i++];
    }
    *n = at;
    return to;
}

static void flush(struct tree *t)
{
    uint64_t order[TABLE];
    struct entry *run = parts_more(NULL, TABLE * sizeof(*run));
    size_t n = 0, level = 0;

    for (uint64_t i = 0; i < TABLE; i++)
        order[i] = t->table[i].key << 16 | (TABLE - 1 - i);
    parts_sort(order, TABLE);
    for (size_t i = 0; i < TABLE; i++) { /* the newest of a key comes first */
        if (n == 0 || run[n - 1].key != order[i] >> 16)
            run[n++] = t->table[TABLE - 1 - (order[i] & 0xffff)];
    }
    for (; level + 1 < LEVELS && t->run[level]; level++) {
        struct entry *both = merge(run, n, t->run[level], t->n[level], &n);

        free(run);
        free(t->run[level]);
        t->run[level] = NULL;
        run = both;
    }
    if (t->run[level]) { /* the last one grows */
        struct entry *both = merge(run, n, t->run[level], t->n[level], &n);

        free(run);
        free(t->run[level]);
        run = both;
    }
    t->run[level] = run;
    t->n[level] = n;
    t->filled = 0;
}

static uint64_t get(const struct tree *t, uint64_t key)
{
    for (size_t i = t->filled; i-- > 0 && i + 16 > t->filled;) {
        if (t->table[i].key == key)
            return t->table[i].value;
    }
    for (unsigned level = 0; level < LEVELS; level++) {
        size_t lo = 0, hi = t->run[level] ? t->n[level] : 0;

        while (lo < hi) {
            size_t middle = (lo + hi) / 2;

            if (t->run[level][middle].key < key)
                lo = middle + 1;
            else
                hi = middle;
        }
        if (t->run[level] && lo < t->n[level] && t->run[level][lo].key == key)
            return t->run[level][lo].value;
    }
    return 7;
}

static void serve(const struct wl *w, struct tree *t, unsigned lane, unsigned round)
{
    uint64_t state = wl_hash(w->seed, (uint64_t)round * WL_LANES + lane);

    if (!t->table)
        t->table = parts_more(NULL, TABLE * sizeof(*t->table));
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t r = wl_next(&state), key = wl_below(r, keys);
        double u = wl_unit(r << 20);

        if (i % 3 == 0) {
            t->table[t->filled++] = (struct entry){key, r};
            if (t->filled == TABLE)
                flush(t);
        } else { /* asked for are some more than others */
            result[lane] += get(t, (uint64_t)(u * u * (double)keys)) ^ i;
        }
    }
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++) {
        for (unsigned lane = id; lane < WL_LANES; lane += w->threads)
            serve(w, &tree[lane], lane, round);
    }
    wl_barrier(w);
    parts_note(w, result, WL_LANES, id);
}

static bool verify(struct wl *w)
{
    (void)w;
    for (unsigned lane = 0; lane < WL_LANES; lane++) {
        free(tree[lane].table);
        for (unsigned level = 0; level < LEVELS; level++)
            free(tree[lane].run[level]);
    }
    return parts_noted(result, WL_LANES);
}

const struct workload workload = {
    .name = "lsm",
    .about = "Log-structured stores; a round is a third of writes, two of reads.",
    .size = 8,
    .rounds = 3,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
