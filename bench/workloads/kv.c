/* SPDX-License-Identifier: BSD-2-Clause
 * Key-value store: hash table with chains, items in slabs, Zipf keys, 90% reads.
 *
 * Latency-sensitive, the paper's database class (memos runs memcached and redis): bucket,
 * item, next item and value are dependent loads, little data each. Skewed: few items get
 * most of the requests but are scattered over all slabs, so that hot pages hold mostly
 * cold items. Objects: buckets, 16 slabs, request counters.
 *
 * The skew is Zipf's with exponent 0.8 in its continuous form: rank n u^5. An update adds
 * to a counter, so the order of requests does not matter; requests are counted again
 * without the store, and every counter and every lane's sum of replies must agree. */
#include "common.h"

#include <string.h>

#define SLABS       16
#define VALUE_WORDS 29
#define LOAD        2 /* items a bucket */
/* kvshift is built with more: in each phase other keys are the popular ones. */
#ifndef KV_PHASES
#define KV_PHASES 1
#endif

struct item {
    struct item *next;
    uint64_t key;
    uint64_t updates;
    uint64_t value[VALUE_WORDS];
};

_Static_assert(sizeof(struct item) == 256, "four lines an item");

struct request {
    uint64_t key;
    unsigned word; /* of the value, which goes into the sum */
    bool update;
};

static uint32_t n, per_slab;
static size_t buckets;
static struct item *slab[SLABS], **bucket;
static uint64_t *result; /* updates by key, then the sum of the values read by lane */

static uint64_t key_of(uint64_t number)
{
    return number * 0x9e3779b97f4a7c15u;
}

static struct item *item_at(size_t number)
{
    return &slab[number / per_slab][number % per_slab];
}

static uint64_t value_word(const struct wl *w, uint64_t key, unsigned i)
{
    return (w->seed ^ key) + i * key;
}

static struct item **bucket_of(uint64_t key)
{
    return &bucket[wl_below(wl_hash(0, key), buckets)];
}

static void prepare(struct wl *w)
{
    size_t fit = w->bytes / (sizeof(struct item) + sizeof(*bucket) / LOAD + sizeof(*result));

    if (fit > UINT32_MAX / 2)
        wl_fail("too many items");
    per_slab = (uint32_t)(fit / SLABS);
    n = per_slab * SLABS;
    buckets = n / LOAD;
    bucket = wl_new(buckets, sizeof(*bucket));
    for (size_t i = 0; i < buckets; i++)
        bucket[i] = NULL;
    for (unsigned i = 0; i < SLABS; i++)
        slab[i] = wl_new(per_slab, sizeof(struct item));
    result = wl_new(n + WL_LANES, sizeof(*result));
    for (size_t i = 0; i < n; i++) {
        struct item *item = item_at(i), **head;

        *item = (struct item){.key = key_of(i)};
        for (unsigned k = 0; k < VALUE_WORDS; k++)
            item->value[k] = value_word(w, item->key, k);
        head = bucket_of(item->key);
        item->next = *head;
        *head = item;
    }
    wl_result(w, result, n + WL_LANES, WL_U64);
}

static struct item *find(uint64_t key)
{
    struct item *item = *bucket_of(key);

    while (item && item->key != key)
        item = item->next;
    return item;
}

static struct request next_request(unsigned phase, uint64_t *state, uint64_t *ret_number)
{
    uint64_t random = wl_next(state);
    double u = wl_unit(random), u2 = u * u;
    uint64_t rank = (uint64_t)(u2 * u2 * u * n);

    /* Ranks scattered over the items: 0x9e3779b1 is prime and above any n. */
    *ret_number = (rank + (uint64_t)phase * (n / KV_PHASES)) % n * 0x9e3779b1u % n;
    return (struct request){.key = key_of(*ret_number),
                            .word = (unsigned)wl_below(random << 32, VALUE_WORDS),
                            .update = random % 10 == 0};
}

static uint64_t lane_length(const struct wl *w)
{
    return (uint64_t)n * w->rounds / WL_LANES / KV_PHASES + 1;
}

static void serve(struct wl *w, size_t lane, unsigned phase)
{
    uint64_t state = wl_hash(w->seed + phase, lane), number, sum = 0, reply[VALUE_WORDS];

    for (uint64_t k = lane_length(w); k > 0; k--) {
        struct request q = next_request(phase, &state, &number);
        struct item *item = find(q.key);

        if (!item)
            wl_fail("a key is lost");
        if (q.update) {
            __atomic_fetch_add(&item->updates, 1, __ATOMIC_RELAXED);
        } else {
            memcpy(reply, item->value, sizeof(reply));
            sum += reply[q.word];
        }
    }
    result[n + lane] = phase ? result[n + lane] + sum : sum;
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    for (unsigned phase = 0; phase < KV_PHASES; phase++) {
        if (phase > 0) {
            wl_barrier(w);
            if (id == 0)
                wl_phase(phase);
        }
        wl_part(w, WL_LANES, id, &lo, &hi);
        for (size_t lane = lo; lane < hi; lane++)
            serve(w, lane, phase);
    }
    wl_barrier(w);
    wl_part(w, n, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++)
        result[i] = item_at(i)->updates;
}

static bool verify(struct wl *w)
{
    uint64_t *updates = wl_new(n, sizeof(*updates)), number;

    for (size_t i = 0; i < n; i++)
        updates[i] = 0;
    for (size_t lane = 0; lane < WL_LANES; lane++) {
        uint64_t sum = 0;

        for (unsigned phase = 0; phase < KV_PHASES; phase++) {
            uint64_t state = wl_hash(w->seed + phase, lane);

            for (uint64_t k = lane_length(w); k > 0; k--) {
                struct request q = next_request(phase, &state, &number);

                if (q.update)
                    updates[number]++;
                else
                    sum += value_word(w, q.key, q.word);
            }
        }
        if (result[n + lane] != sum)
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (result[i] != updates[i])
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = KV_PHASES > 1 ? "kvshift" : "kv",
    .about = "Key-value store under Zipf requests, 90% reads; a round is one request an item.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
