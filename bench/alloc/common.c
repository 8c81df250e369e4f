/* SPDX-License-Identifier: BSD-2-Clause
 * Frame of the allocation benchmarks: arguments, threads, result line. */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

void bench_fail(const char *what, const void *block, size_t size)
{
    fprintf(stderr, "%s: %s (block %p of %zu bytes)\n", bench_name, what, block, size);
    /* Not exit(): other threads are still running. */
    _Exit(1);
}

struct start {
    struct worker *worker;
    void (*fn)(struct worker *);
};

static void *thread_main(void *arg)
{
    struct start *s = arg;

    s->fn(s->worker);
    return NULL;
}

void bench_spread(struct worker *workers, unsigned n, void (*fn)(struct worker *))
{
    pthread_t id[BENCH_MAX_THREADS];
    struct start start[BENCH_MAX_THREADS];

    if (n == 1) {
        fn(&workers[0]);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        start[i] = (struct start){&workers[i], fn};
        if (pthread_create(&id[i], NULL, thread_main, &start[i]) != 0)
            bench_fail("pthread_create failed", NULL, 0);
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(id[i], NULL);
}

static int parse(const char *text, uint64_t max, uint64_t *ret)
{
    char *end;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || v > max)
        return -EINVAL;
    *ret = v;
    return 0;
}

int main(int argc, char **argv)
{
    static struct worker workers[BENCH_MAX_THREADS];
    struct bench_args args = {.threads = 1, .ops = bench_default_ops, .seed = 1};
    uint64_t threads = 1, ops = 0, out = 0, back = 0, done = 0;
    char line[128];
    int n;

    if (argc > 4 || (argc > 1 && parse(argv[1], BENCH_MAX_THREADS, &threads) != 0) ||
        (argc > 2 && parse(argv[2], UINT64_MAX / 2, &ops) != 0) ||
        (argc > 3 && parse(argv[3], UINT64_MAX, &args.seed) != 0) || threads == 0) {
        fprintf(stderr, "usage: %s [THREADS [OPERATIONS-PER-THREAD|0 [SEED]]]\n", bench_name);
        return 2;
    }
    args.threads = (unsigned)threads;
    if (ops > 0)
        args.ops = ops;
    for (unsigned i = 0; i < args.threads; i++) {
        workers[i].args = &args;
        workers[i].index = i;
        workers[i].rng = bench_mix(args.seed + 1) ^ bench_mix(((uint64_t)i + 1) << 32);
    }
    bench_work(&args, workers);
    for (unsigned i = 0; i < args.threads; i++) {
        out += workers[i].tags_out;
        back += workers[i].tags_back;
        done += workers[i].done;
    }
    if (out != back)
        bench_fail("a block was lost or given out twice", NULL, 0);
    /* write(2), not stdio: libmemtier takes stdio's buffer away before it is flushed. */
    n = snprintf(line, sizeof(line), "%s threads=%u ops=%llu checksum=%016llx\n", bench_name,
                 args.threads, (unsigned long long)done, (unsigned long long)back);
    return write(STDOUT_FILENO, line, (size_t)n) == n ? 0 : 1;
}
