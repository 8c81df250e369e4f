/* SPDX-License-Identifier: BSD-2-Clause
 * Caches that forget what was used least lately, one a lane: values of several sizes are blocks of
 * their own, and what is popular drifts. Each lane is one memory of a bounded number of bytes. */
#include "parts.h"

struct item {
    struct item *chain, *newer, *older;
    uint64_t key, words, value[];
};

struct cache {
    struct item **bucket, *newest, *oldest;
    size_t bytes;
};

static struct cache cache[WL_LANES];
static uint64_t *result, budget, buckets, keys;

static void prepare(struct wl *w)
{
    budget = w->bytes / WL_LANES;
    buckets = budget / 512;
    keys = budget / 128;
    result = wl_new(WL_LANES, sizeof(*result));
    for (unsigned i = 0; i < WL_LANES; i++)
        result[i] = 0;
    wl_result(w, result, WL_LANES, WL_U64);
}

static struct item **bucket_of(struct cache *c, uint64_t key)
{
    return &c->bucket[wl_below(key * 0x9e3779b97f4a7c15u, buckets)];
}

static void take_out(struct cache *c, struct item *i)
{
    *(i->newer ? &i->newer->older : &c->newest) = i->older;
    *(i->older ? &i->older->newer : &c->oldest) = i->newer;
}

static void put_first(struct cache *c, struct item *i)
{
    i->newer = NULL;
    i->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = i;
    c->newest = i;
}

static void forget(struct cache *c)
{
    struct item *i = c->oldest, **at = bucket_of(c, i->key);

    while (*at != i)
        at = &(*at)->chain;
    *at = i->chain;
    take_out(c, i);
    c->bytes -= sizeof(*i) + i->words * sizeof(uint64_t);
    free(i);
}

static struct item *make(struct cache *c, uint64_t key)
{
    uint64_t words = 8 << (key * 0x9e3779b97f4a7c15u >> 61);
    struct item *i = parts_more(NULL, sizeof(*i) + words * sizeof(uint64_t));
    struct item **head = bucket_of(c, key);

    *i = (struct item){.chain = *head, .key = key, .words = words};
    *head = i;
    for (uint64_t k = 0; k < words; k++)
        i->value[k] = key + k;
    put_first(c, i);
    c->bytes += sizeof(*i) + words * sizeof(uint64_t);
    while (c->bytes > budget)
        forget(c);
    return i;
}

static uint64_t get(struct cache *c, uint64_t key)
{
    struct item *i = *bucket_of(c, key);

    while (i && i->key != key)
        i = i->chain;
    if (i) {
        take_out(c, i);
        put_first(c, i);
    } else {
        i = make(c, key);
    }
    return i->value[i->words / 2] + i->value[i->words - 1];
}

static void serve(const struct wl *w, struct cache *c, unsigned lane, unsigned round)
{
    uint64_t state = wl_hash(w->seed, (uint64_t)round * WL_LANES + lane);

    if (!c->bucket) {
        c->bucket = parts_more(NULL, buckets * sizeof(struct item *));
        for (uint64_t i = 0; i < buckets; i++)
            c->bucket[i] = NULL;
    }
    for (uint64_t i = 0; i < keys; i++) {
        double u = wl_unit(wl_next(&state));

        result[lane] += get(c, ((uint64_t)(u * u * u * (double)keys) + round * keys / 16) % keys);
    }
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++) {
        for (unsigned lane = id; lane < WL_LANES; lane += w->threads)
            serve(w, &cache[lane], lane, round);
    }
    wl_barrier(w);
    parts_note(w, result, WL_LANES, id);
}

static bool verify(struct wl *w)
{
    (void)w;
    for (unsigned lane = 0; lane < WL_LANES; lane++) {
        while (cache[lane].oldest)
            forget(&cache[lane]);
        free(cache[lane].bucket);
    }
    return parts_noted(result, WL_LANES);
}

const struct workload workload = {
    .name = "lru",
    .about = "Caches that forget what was used least lately; a round asks for each key once.",
    .size = 8,
    .rounds = 8,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
