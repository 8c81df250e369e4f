/* SPDX-License-Identifier: BSD-2-Clause
 * prodcons: every block is made by one thread and freed by another. Blocks travel in
 * parcels of 128 through a bounded queue, so that the queue's own lock weighs little.
 * Threads 2k and 2k+1 share a queue; without a partner (1 thread, or the last of an
 * odd number) a thread fills its queue and empties it by turns. */
#include "common.h"

#include <pthread.h>

#define PARCEL 128
#define QUEUE  64 /* parcels */

const char bench_name[] = "prodcons";
const uint64_t bench_default_ops = 3000000;

struct item {
    void *block;
    size_t size;
};

struct parcel {
    struct item item[PARCEL];
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned put, taken; /* parcels so far; put - taken are inside */
    struct parcel slot[QUEUE];
};

static struct queue queues[(BENCH_MAX_THREADS + 1) / 2];

static void parcel_fill(struct worker *w, struct parcel *p)
{
    for (unsigned i = 0; i < PARCEL; i++) {
        uint64_t r = bench_random(w);

        p->item[i].size = 16 + ((r >> 8) & ((64u << (r & 3)) - 1));
        p->item[i].block = block_new(w, p->item[i].size, r | 1);
    }
}

static void parcel_drop(struct worker *w, const struct parcel *p)
{
    for (unsigned i = 0; i < PARCEL; i++)
        block_free(w, p->item[i].block, p->item[i].size);
    w->done += PARCEL;
}

/* Filling and dropping happen outside the lock: slot put % QUEUE belongs to the
 * producer, slot taken % QUEUE to the consumer. */
static void produce(struct worker *w, struct queue *q, uint64_t parcels)
{
    for (uint64_t i = 0; i < parcels; i++) {
        pthread_mutex_lock(&q->lock);
        while (q->put - q->taken == QUEUE)
            pthread_cond_wait(&q->changed, &q->lock);
        pthread_mutex_unlock(&q->lock);
        parcel_fill(w, &q->slot[q->put % QUEUE]);
        pthread_mutex_lock(&q->lock);
        q->put++;
        pthread_cond_signal(&q->changed);
        pthread_mutex_unlock(&q->lock);
    }
}

static void consume(struct worker *w, struct queue *q, uint64_t parcels)
{
    for (uint64_t i = 0; i < parcels; i++) {
        pthread_mutex_lock(&q->lock);
        while (q->put == q->taken)
            pthread_cond_wait(&q->changed, &q->lock);
        pthread_mutex_unlock(&q->lock);
        parcel_drop(w, &q->slot[q->taken % QUEUE]);
        pthread_mutex_lock(&q->lock);
        q->taken++;
        pthread_cond_signal(&q->changed);
        pthread_mutex_unlock(&q->lock);
    }
}

static void work(struct worker *w)
{
    struct queue *q = &queues[w->index / 2];
    uint64_t parcels = (w->args->ops + PARCEL - 1) / PARCEL;

    if ((w->index ^ 1) < w->args->threads) {
        if (w->index & 1)
            consume(w, q, parcels);
        else
            produce(w, q, parcels);
        return;
    }
    for (uint64_t left = parcels; left > 0;) {
        unsigned n = left < QUEUE ? (unsigned)left : QUEUE;

        for (unsigned i = 0; i < n; i++)
            parcel_fill(w, &q->slot[i]);
        for (unsigned i = 0; i < n; i++)
            parcel_drop(w, &q->slot[i]);
        left -= n;
    }
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    for (unsigned i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
        pthread_mutex_init(&queues[i].lock, NULL);
        pthread_cond_init(&queues[i].changed, NULL);
    }
    bench_spread(workers, args->threads, work);
}
