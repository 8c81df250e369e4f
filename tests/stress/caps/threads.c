/* SPDX-License-Identifier: BSD-2-Clause
 * Programs with threads that meet in every usual way, to be run under caps; plainly built, and
 * instrumented for the emulated machine. One line, the same however many CPUs there are.
 *
 *     caps-threads barrier|cond|spin|pool|mixed THREADS ROUNDS [flip]
 *
 * flip: one thread more maps and unmaps 24 MiB all the while, so that most data are on PM, are
 * not, are ... (with HYBRID_POLICY=first-fit and HYBRID_DRAM=8M). */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define WORDS       4096
#define FLIP_BYTES  ((size_t)24 << 20)
#define KEPT_BYTES  ((size_t)2 << 20) /* on DRAM all the time */

static int n_threads, rounds;
static uint64_t *data[MAX_THREADS];
static pthread_barrier_t barrier;

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* A little work on memory of its own. */
static uint64_t work(int id, int round)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) {
        data[id][i] = data[id][i] * 6364136223846793005u + (uint64_t)(id + round + i);
        sum ^= data[id][i];
    }
    return sum;
}

static _Atomic uint64_t total;

static void add(uint64_t v)
{
    atomic_fetch_add(&total, v);
}

/* --- barriers: of pthread, and one that spins ------------------------------------------ */

static void *meet(void *p)
{
    int id = (int)(intptr_t)p;
    for (int r = 0; r < rounds; r++) {
        add(work(id, r));
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static atomic_int arrived, sense;

/* Without a call: as OpenMP runtimes and MPI do at first. */
static void spin_wait(int *mine)
{
    *mine = !*mine;
    if (atomic_fetch_add(&arrived, 1) == n_threads - 1) {
        atomic_store(&arrived, 0);
        atomic_store(&sense, *mine);
        return;
    }
    for (long spins = 0; atomic_load(&sense) != *mine; spins++)
        if (spins > 20000) /* more would only take longer with more threads than CPUs */
            sched_yield();
}

static void *spin(void *p)
{
    int id = (int)(intptr_t)p, mine = 0;
    for (int r = 0; r < rounds; r++) {
        add(work(id, r));
        spin_wait(&mine);
    }
    return NULL;
}

/* --- a queue ---------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int queue[8], queued, head;

static void put(int v)
{
    pthread_mutex_lock(&lock);
    while (queued == 8)
        pthread_cond_wait(&not_full, &lock);
    queue[(head + queued++) % 8] = v;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}

static int take(void)
{
    pthread_mutex_lock(&lock);
    while (queued == 0)
        pthread_cond_wait(&not_empty, &lock);
    int v = queue[head];
    head = (head + 1) % 8;
    queued--;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&lock);
    return v;
}

static void *consume(void *p)
{
    (void)p;
    for (int v = take(); v >= 0; v = take()) {
        uint64_t h = (uint64_t)v;
        for (int i = 0; i < 2000; i++)
            h = h * 6364136223846793005u + 1442695040888963407u;
        add(h);
    }
    return NULL;
}

static void produce(int items, int consumers)
{
    for (int i = 0; i < items; i++)
        put(i);
    for (int i = 0; i < consumers; i++)
        put(-1);
}

/* --- threads -------------------------------------------------------------------------- */

static void start(pthread_t *t, void *(*fn)(void *), int id)
{
    int e = pthread_create(t, NULL, fn, (void *)(intptr_t)id);
    if (e != 0) {
        fprintf(stderr, "pthread_create: %s\n", strerror(e));
        exit(3); /* a cap must never be the reason */
    }
}

static void run(void *(*fn)(void *), int n)
{
    pthread_t t[MAX_THREADS];
    for (int i = 0; i < n; i++)
        start(&t[i], fn, i);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

static void run_queue(int items, int consumers)
{
    pthread_t t[MAX_THREADS];
    for (int i = 0; i < consumers; i++)
        start(&t[i], consume, i);
    produce(items, consumers);
    for (int i = 0; i < consumers; i++)
        pthread_join(t[i], NULL);
}

/* As many as the program is told that there are CPUs, which is at least one. */
static int pool_size(void)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 1 || online < 1)
        die("CPUs");
    return CPU_COUNT(&set) < MAX_THREADS ? CPU_COUNT(&set) : MAX_THREADS;
}

static atomic_int stop;

static void *flip(void *p)
{
    (void)p;
    while (!atomic_load(&stop)) {
        char *m =
            mmap(NULL, FLIP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (m == MAP_FAILED)
            die("mmap");
        for (size_t i = 0; i < FLIP_BYTES; i += 4096)
            m[i] = 1;
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
        munmap(m, FLIP_BYTES);
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"barrier", "cond", "spin", "pool", "mixed"};
    pthread_t flipper;
    void *kept = NULL;
    const char *kind = argc > 1 ? argv[1] : "";
    bool known = false;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        known = known || strcmp(kind, kinds[i]) == 0;
    n_threads = argc > 2 ? atoi(argv[2]) : 0;
    rounds = argc > 3 ? atoi(argv[3]) : 0;
    if (!known || n_threads < 1 || n_threads > MAX_THREADS || rounds < 1)
        return 4;
    for (int i = 0; i < n_threads; i++)
        if (!(data[i] = calloc(WORDS, sizeof(uint64_t))))
            die("calloc");
    pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
    if (argc > 4) {
        if (!(kept = calloc(1, KEPT_BYTES)))
            die("calloc");
        start(&flipper, flip, 0);
    }
    bool mixed = strcmp(kind, "mixed") == 0;
    if (mixed || strcmp(kind, "barrier") == 0)
        run(meet, n_threads);
    if (mixed || strcmp(kind, "spin") == 0)
        run(spin, n_threads);
    if (mixed || strcmp(kind, "cond") == 0)
        run_queue(rounds * 20, n_threads);
    if (mixed || strcmp(kind, "pool") == 0)
        run_queue(rounds * 20, pool_size());
    if (argc > 4) {
        atomic_store(&stop, 1);
        pthread_join(flipper, NULL);
        free(kept);
    }
    printf("%s %d %d: %016llx\n", kind, n_threads, rounds, (unsigned long long)total);
    return 0;
}
