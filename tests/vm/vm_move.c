/* SPDX-License-Identifier: BSD-2-Clause
 * vm_move [SECONDS]: no write is lost while pages go to and fro. Threads write patterns by plain
 * stores, vector stores, atomics, read(2) and process_vm_writev into pages that the migrator
 * moves between node 0 and node 1 and that the sampler watches; each checks before every
 * write that the one before is still there. Children are forked in between. Status 0:
 * every byte was right and pages did move. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/migrator.h"
#include "service/sampler.h"

/* Few: where every page moved interrupts all CPUs, an emulated machine is slow. */
enum { PAGES = 512, SLOT = 512, LEAST_ROUNDS = 4, YIELD = 64 };

typedef uint64_t vector __attribute__((vector_size(32)));

static char *memory;
static volatile int stop;
static volatile int failed;

/* Each writer has a slot of every page, and knows what is in it. */
enum way { PLAIN, VECTOR, READ, VM_WRITEV, WAYS };
static const char *const way_names[WAYS] = {"plain stores", "vector stores", "read",
                                            "process_vm_writev"};

struct writer {
    enum way way;
    pthread_t thread;
    uint64_t random, writes;
    uint64_t last[PAGES];
    int pipe[2];
};
static struct writer writers[WAYS];
static uint64_t added[2]; /* by the two threads of atomics */

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

static void fill(uint64_t *words, unsigned page, uint64_t value)
{
    for (unsigned i = 0; i < SLOT / 8; i++)
        words[i] = value ? value * 1000003u + page * 64u + i : 0;
}

static int put(struct writer *w, char *to, const uint64_t *words)
{
    struct iovec from = {(void *)words, SLOT}, dest = {to, SLOT};
    switch (w->way) {
    case PLAIN:
        for (unsigned i = 0; i < SLOT / 8; i++)
            ((volatile uint64_t *)to)[i] = words[i];
        return 0;
    case VECTOR:
        for (unsigned i = 0; i < SLOT / 32; i++)
            ((volatile vector *)to)[i] = ((const vector *)words)[i];
        return 0;
    case READ:
        if (write(w->pipe[1], words, SLOT) != SLOT)
            return errno;
        return read(w->pipe[0], to, SLOT) == SLOT ? 0 : errno;
    default:
        return process_vm_writev(getpid(), &from, 1, &dest, 1, 0) == SLOT ? 0 : errno;
    }
}

static int check(const struct writer *w, unsigned page)
{
    uint64_t words[SLOT / 8];
    fill(words, page, w->last[page]);
    if (memcmp(memory + page * HY_PAGE + w->way * SLOT, words, SLOT) == 0)
        return 0;
    printf("%s: page %u lost write %lu\n", way_names[w->way], page, (unsigned long)w->last[page]);
    return 1;
}

static void *write_on(void *arg)
{
    struct writer *w = arg;
    uint64_t words[SLOT / 8] __attribute__((aligned(32)));
    while (!stop && !failed) {
        unsigned page = (unsigned)(next(&w->random) % PAGES);
        failed |= check(w, page);
        w->last[page]++;
        fill(words, page, w->last[page]);
        int e = put(w, memory + page * HY_PAGE + w->way * SLOT, words);
        if (e) {
            printf("%s: %s\n", way_names[w->way], strerror(e));
            failed = 1;
        }
        if (++w->writes % YIELD == 0)
            sched_yield();
    }
    return NULL;
}

static void *add_on(void *arg)
{
    uint64_t *sum = arg, random = (uintptr_t)arg;
    while (!stop && !failed) {
        char *at = memory + next(&random) % PAGES * HY_PAGE + WAYS * SLOT;
        __atomic_fetch_add((uint64_t *)at, 1, __ATOMIC_RELAXED);
        if (++*sum % YIELD == 0)
            sched_yield();
    }
    return NULL;
}

static int verify(void)
{
    uint64_t sum = 0;
    for (unsigned page = 0; page < PAGES; page++) {
        for (unsigned i = 0; i < WAYS; i++)
            if (check(&writers[i], page))
                return 1;
        sum += *(uint64_t *)(memory + page * HY_PAGE + WAYS * SLOT);
    }
    if (sum != added[0] + added[1])
        printf("atomics: %lu of %lu are there\n", (unsigned long)sum,
               (unsigned long)(added[0] + added[1]));
    return sum != added[0] + added[1];
}

/* A child sees one moment, and keeps it while the parent writes and its pages move. */
static int fork_a_child(void)
{
    sampler_prefork();
    pid_t pid = fork();
    sampler_postfork();
    if (pid == 0) {
        uint64_t sums[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            for (size_t i = 0; i < PAGES * HY_PAGE / 8; i++)
                sums[k] = sums[k] * 31 + ((uint64_t *)memory)[i];
            usleep(20000);
        }
        _exit(sums[0] != sums[1]);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    if (status != 0)
        printf("the child's memory changed: %d\n", status);
    return status != 0;
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* All pages to one tier, batch by batch, with a pass of the sampler around it. */
static int move_all(const struct migrator *m, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    struct migrate_result r;
    struct pass_stats stats;
    sampler_begin(UINT64_MAX);
    for (unsigned at = 0; at < PAGES; at += PAGES / HISTORY_ROUNDS) {
        int e = migrate(m, memory + at * HY_PAGE, PAGES / HISTORY_ROUNDS * HY_PAGE, to, &r);
        if (e != 0) {
            printf("migrate: %s\n", strerror(-e));
            return 1;
        }
        for (unsigned i = 0; i <= MIGRATE_REFUSED; i++)
            count[i] += r.count[i];
        sampler_round(at / (PAGES / HISTORY_ROUNDS));
    }
    sampler_end(&stats);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct sampler_source *const sources[] = {&sampler_scan, &sampler_soft_dirty,
                                                           NULL};
    const struct migrator m = {MIGRATE_NUMA, {[HY_DRAM] = 1, [HY_PM] = 2}};
    struct predictor p = predictor_of(PREDICT_WINDOW);
    double until = seconds() + (argc > 1 ? atof(argv[1]) : 10);
    uint64_t count[MIGRATE_REFUSED + 1] = {0};
    pthread_t adders[2];
    unsigned rounds = 0;
    memory =
        mmap(NULL, PAGES * HY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 0, PAGES * HY_PAGE);
    int watched = sampler_open(sources, &p, 1) == 0;
    if (watched && sampler_add(memory, PAGES * HY_PAGE, HY_DRAM) != 0)
        return 2;
    for (unsigned i = 0; i < WAYS; i++) {
        writers[i].way = (enum way)i;
        writers[i].random = i;
        if (pipe(writers[i].pipe) ||
            pthread_create(&writers[i].thread, NULL, write_on, &writers[i]))
            return 2;
    }
    for (unsigned i = 0; i < 2; i++)
        if (pthread_create(&adders[i], NULL, add_on, &added[i]))
            return 2;
    while (!failed && (seconds() < until || rounds < LEAST_ROUNDS)) {
        failed |= move_all(&m, rounds & 1 ? HY_DRAM : HY_PM, count);
        if (rounds++ % 4 == 3)
            failed |= fork_a_child();
    }
    stop = 1;
    for (unsigned i = 0; i < WAYS; i++)
        pthread_join(writers[i].thread, NULL);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(adders[i], NULL);
    failed |= verify();
    printf("watched by %s; %u rounds: %lu moved, %lu there, %lu refused, %lu full; writes",
           watched ? sampler_source_name(true) : "nobody", rounds,
           (unsigned long)count[MIGRATE_MOVED], (unsigned long)count[MIGRATE_THERE],
           (unsigned long)count[MIGRATE_REFUSED], (unsigned long)count[MIGRATE_FULL]);
    for (unsigned i = 0; i < WAYS; i++)
        printf(" %lu", (unsigned long)writers[i].writes);
    printf(", %lu added\n", (unsigned long)(added[0] + added[1]));
    if (count[MIGRATE_MOVED] < (uint64_t)PAGES * rounds / 2) {
        printf("too few moved\n");
        return 1;
    }
    return failed;
}
