/* SPDX-License-Identifier: BSD-2-Clause
 * xmalloc-test: half of the threads only make blocks and the other half only free them; they pass
 * in batches. One thread does both by turns. */
#include "common.h"

#include <pthread.h>

#define BATCH   512
#define BATCHES 8 /* on their way */

const char bench_name[] = "xmalloc";
const uint64_t bench_default_ops = 3000000;

struct batch {
    struct batch *next;
    void *block[BATCH];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct batch *ready;
static uint64_t waiting, taken, all; /* batches */

static struct batch *make(struct worker *w)
{
    struct batch *b = malloc(sizeof(*b));
    if (!b)
        bench_fail("malloc failed", NULL, 0);
    for (int i = 0; i < BATCH; i++) {
        uint64_t r = bench_random(w);
        b->block[i] = block_new(w, 8u << (r % 7), r | 1);
        memcpy(b->block[i], &(uint64_t){r % 7}, sizeof(uint64_t)); /* for the other thread */
    }
    w->done += BATCH;
    return b;
}

static void unmake(struct batch *b)
{
    for (int i = 0; i < BATCH; i++) {
        uint64_t octave;
        memcpy(&octave, b->block[i], sizeof(octave));
        if (octave > 6)
            bench_fail("block was overwritten", b->block[i], 0);
        free(b->block[i]);
    }
    free(b);
}

static void makes(struct worker *w)
{
    while (w->done < w->args->ops) {
        struct batch *b = make(w);
        pthread_mutex_lock(&lock);
        while (waiting >= BATCHES)
            pthread_cond_wait(&change, &lock);
        b->next = ready;
        ready = b;
        waiting++;
        pthread_cond_broadcast(&change);
        pthread_mutex_unlock(&lock);
    }
}

static void frees(void)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!ready && taken < all)
            pthread_cond_wait(&change, &lock);
        struct batch *b = ready;
        if (b) {
            ready = b->next;
            waiting--;
            taken++;
        }
        pthread_cond_broadcast(&change);
        pthread_mutex_unlock(&lock);
        if (!b)
            return;
        unmake(b);
    }
}

static void one(struct worker *w)
{
    if (w->args->threads == 1)
        while (w->done < w->args->ops)
            unmake(make(w));
    else if (w->index < w->args->threads / 2)
        makes(w);
    else
        frees();
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    all = args->threads / 2 * ((args->ops + BATCH - 1) / BATCH);
    bench_spread(workers, args->threads, one);
    for (unsigned i = 0; i < args->threads; i++)
        workers[i].tags_back = workers[i].tags_out;
}
