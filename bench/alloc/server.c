/* SPDX-License-Identifier: BSD-2-Clause
 * server: a service that lives longer than its threads. Each shift of threads
 * replaces random blocks of the sessions that an earlier shift left, another thread's
 * every time, and ends; so most blocks are freed by a thread that did not make them,
 * and caches of ended threads must not be lost. */
#include "common.h"

#include <pthread.h>

#define SESSIONS  4096 /* blocks per thread */
#define SHIFT_OPS 50000

const char bench_name[] = "server";
const uint64_t bench_default_ops = 4000000;

struct session {
    void *block;
    size_t size;
};

struct shift {
    struct worker *worker;
    struct session *session;
    uint64_t ops;
};

/* 16 to 1023 bytes, each octave equally often. */
static size_t draw_size(uint64_t r)
{
    size_t octave = (size_t)16 << (r % 6);

    return octave + ((r >> 8) & (octave - 1));
}

static void *shift_main(void *arg)
{
    struct shift *shift = arg;
    struct worker *w = shift->worker;

    for (uint64_t i = 0; i < shift->ops; i++) {
        uint64_t r = bench_random(w);
        struct session *s = &shift->session[bench_below(r, SESSIONS)];

        if (s->block)
            block_free(w, s->block, s->size);
        s->size = draw_size(r);
        s->block = block_new(w, s->size, r | 1);
    }
    w->done += shift->ops;
    return NULL;
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    unsigned n = args->threads;
    struct session *all = calloc((size_t)n * SESSIONS, sizeof(*all));
    struct shift shift[BENCH_MAX_THREADS];
    pthread_t id[BENCH_MAX_THREADS];
    uint64_t round = 0;

    if (!all)
        bench_fail("no memory for the sessions", NULL, 0);
    for (uint64_t left = args->ops; left > 0; left -= shift[0].ops, round++) {
        for (unsigned i = 0; i < n; i++) {
            shift[i].worker = &workers[i];
            shift[i].session = all + (size_t)((i + round) % n) * SESSIONS;
            shift[i].ops = left < SHIFT_OPS ? left : SHIFT_OPS;
            if (pthread_create(&id[i], NULL, shift_main, &shift[i]) != 0)
                bench_fail("pthread_create failed", NULL, 0);
        }
        for (unsigned i = 0; i < n; i++)
            pthread_join(id[i], NULL);
    }
    for (size_t i = 0; i < (size_t)n * SESSIONS; i++) {
        if (all[i].block)
            block_free(&workers[0], all[i].block, all[i].size);
    }
    free(all);
}
