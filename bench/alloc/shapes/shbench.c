/* SPDX-License-Identifier: BSD-2-Clause
 * sh6bench and sh8bench (PASS): many blocks of mostly small sizes at once, a part of them freed in
 * the order in which they were made, the others in the reverse, a few kept for the next round; with
 * PASS by another thread than the one that made them. */
#include "common.h"

#define BLOCKS 2000
#define SIZES  64

#if PASS
const char bench_name[] = "sh8bench";
#else
const char bench_name[] = "sh6bench";
#endif
const uint64_t bench_default_ops = 6000000;

struct held {
    void *block[BLOCKS];
    size_t size[BLOCKS];
};

/* Small ones more often: 16 to 1000 bytes. */
static size_t draw_size(uint64_t r)
{
    uint64_t x = bench_below(r, SIZES), y = bench_below(bench_mix(r), SIZES);
    return 16 + (x * y) * 984 / (SIZES * SIZES);
}

static void fill(struct worker *w, struct held *h)
{
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t r = bench_random(w);
        if (h->block[i]) /* kept */
            continue;
        h->size[i] = draw_size(r);
        h->block[i] = block_new(w, h->size[i], r | 1);
        w->done++;
    }
}

static void drop(struct worker *w, struct held *h, int i)
{
    if (!h->block[i])
        return;
    block_free(w, h->block[i], h->size[i]);
    h->block[i] = NULL;
}

static void empty(struct worker *w, struct held *h, int keep_each)
{
    for (int i = 0; i < BLOCKS / 2; i++)
        if (i % 100 >= keep_each)
            drop(w, h, i);
    for (int i = BLOCKS; i-- > BLOCKS / 2;)
        if (i % 100 >= keep_each)
            drop(w, h, i);
}

static void *passed;

static void work(struct worker *w)
{
    struct held *h = calloc(1, sizeof(*h));
    while (h && w->done < w->args->ops) {
        fill(w, h);
        if (PASS) /* another one's for ours */
            do {
                struct held *other = __atomic_exchange_n(&passed, h, __ATOMIC_ACQ_REL);
                h = other ? other : calloc(1, sizeof(*h));
            } while (!h);
        empty(w, h, 4);
    }
    if (!h)
        bench_fail("calloc failed", NULL, 0);
    empty(w, h, 0);
    free(h);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
    if (passed) {
        empty(&workers[0], passed, 0);
        free(passed);
    }
    /* Which thread was handed which blocks is by chance, and so is what was kept. */
    for (unsigned i = 1; i < args->threads; i++) {
        workers[0].tags_out += workers[i].tags_out;
        workers[0].tags_back += workers[i].tags_back;
        workers[i].tags_out = workers[i].tags_back = 0;
    }
    if (PASS && args->threads > 1 && workers[0].tags_out == workers[0].tags_back)
        workers[0].tags_out = workers[0].tags_back = 0;
}
