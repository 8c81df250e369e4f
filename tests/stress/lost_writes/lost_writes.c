/* SPDX-License-Identifier: BSD-2-Clause
 * Threads write patterns in all ways of kinds.h into pages that are moved to and fro, and look
 * before every write whether the one before is still there; two more add to atomic
 * counters. Children are forked in between, which must keep what they had. At the end
 * all bytes are compared. Status: 0 nothing was lost and nothing failed, 1 something was,
 * 2 it could not begin, 3 too few pages moved (-m). */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kinds.h"
#include "movers.h"
#include "sys/emulator.h"
#include "watch.h"

enum {
    ADDERS = 2,
    YIELD = 32,
    LEAST_ROUNDS = 4,
    FORK_EVERY = 4,
    FORK_RARELY = 128,
    CHILD_LOOKS = 20,
    PHASE_SECONDS = 4,
    PATIENCE_SECONDS = 400
};

static struct writer *writers[KINDS]; /* NULL: this kind cannot be had here */
static uint64_t added[ADDERS];
static char *memory;
static _Atomic int stop, failed;
static _Atomic unsigned phase;
/* Held for reading by writes that must not be under way in some moments. */
static pthread_rwlock_t peace;
static bool all_stop; /* all writes are of that kind */

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

/* To who moves the pages. On an emulated machine pages of idle writers are not worth a move. */
static void give_way(void)
{
    const struct timespec a_while = {0, 3000000};
    if (phase && !emulator_open())
        nanosleep(&a_while, NULL);
    else
        sched_yield();
}

static int check(const struct writer *w, unsigned page)
{
    uint64_t words[WORDS], first = 0;
    const char *slot = kind_slot(w, page), *there = "";
    kind_fill(w, page, w->last[page], words);
    if (memcmp(slot, words, SLOT) == 0)
        return 0;
    for (unsigned i = 0; i < WORDS; i++)
        if (memcmp(slot + i * 8, &words[i], 8) == 0)
            there = ", a part is there";
    kind_fill(w, page, w->last[page] - 1, words);
    if (memcmp(slot, words, SLOT) == 0)
        there = ", the one before is there";
    memset(words, 0, sizeof(words));
    if (memcmp(slot, words, SLOT) == 0)
        there = ", zeros are there";
    memcpy(&first, slot, sizeof(first));
    printf("%s: page %u: write %u is lost%s (%#lx)\n", kind_names[w->kind], page, w->last[page],
           there, (unsigned long)first);
    return 1;
}

static void *write_on(void *arg)
{
    struct writer *w = arg;
    uint64_t words[WORDS] __attribute__((aligned(32)));
    while (!stop && !failed) {
        unsigned page = kind_page(w, next(&w->random), phase);
        bool careful = all_stop || kind_is_direct(w->kind);
        if (careful)
            pthread_rwlock_rdlock(&peace);
        failed |= check(w, page);
        w->last[page]++;
        kind_fill(w, page, w->last[page], words);
        int e = kind_put(w, page, words);
        if (e) {
            printf("%s: page %u: %s\n", kind_names[w->kind], page, strerror(e));
            failed = 1;
        }
        if (careful)
            pthread_rwlock_unlock(&peace);
        if (++w->writes % YIELD == 0)
            give_way();
    }
    return NULL;
}

static uint64_t *counter(unsigned page)
{
    return (uint64_t *)(void *)(memory + page * PAGE + (SLOTS - 1) * SLOT);
}

static void *add_on(void *arg)
{
    uint64_t *sum = arg, random = (uintptr_t)arg;
    while (!stop && !failed) {
        if (all_stop)
            pthread_rwlock_rdlock(&peace);
        __atomic_fetch_add(counter(PINNED + next(&random) % (PAGES - PINNED)), 1, __ATOMIC_RELAXED);
        if (all_stop)
            pthread_rwlock_unlock(&peace);
        if (++*sum % YIELD == 0)
            give_way();
    }
    return NULL;
}

static int verify(void)
{
    uint64_t sum = 0;
    int bad = 0;
    for (unsigned i = 0; i < KINDS; i++)
        for (unsigned page = 0; writers[i] && page < PAGES; page++)
            if (writers[i]->last[page])
                bad |= check(writers[i], page);
    for (unsigned page = 0; page < PAGES; page++)
        sum += *counter(page);
    if (sum != added[0] + added[1]) {
        printf("atomics: %lu instead of %lu\n", (unsigned long)sum,
               (unsigned long)(added[0] + added[1]));
        bad = 1;
    }
    return bad;
}

static uint64_t sum_of_all(void)
{
    const uint64_t *words = (const uint64_t *)(const void *)memory;
    uint64_t sum = 0;
    for (unsigned i = 0; i < PAGES * PAGE / 8; i++)
        sum = sum * 31 + words[i];
    return sum;
}

/* The child has the memory as it was, whatever its parent writes and moves, and moves it, too. */
static pid_t fork_a_child(const struct mover *m)
{
    uint64_t count[MIGRATE_REFUSED + 1] = {0};
    pthread_rwlock_wrlock(&peace);
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t first = sum_of_all();
        int changed = 0;
        if (!m->needs_peace) /* their file is their parent's */
            (void)m->round(memory, HY_PM, count);
        for (int i = 0; i < CHILD_LOOKS; i++) {
            changed |= sum_of_all() != first;
            sched_yield();
        }
        memset(memory, 0xee, PAGE * PAGES / 2); /* its own */
        _exit(changed);
    }
    pthread_rwlock_unlock(&peace);
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    if (status != 0)
        printf("a child's memory changed: status %#x\n", (unsigned)status);
    return status != 0;
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int one_round(const struct mover *m, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    bool quiet = m->needs_peace && m->needs_peace(to);
    if (quiet)
        pthread_rwlock_wrlock(&peace);
    int e = m->round(memory, to, count);
    if (quiet)
        pthread_rwlock_unlock(&peace);
    if (e)
        printf("%s: %s\n", m->name, strerror(-e));
    return e != 0;
}

static struct {
    const char *scratch;
    double seconds;
    uint64_t kinds; /* bit i: kind i */
    bool must_lose, watch, no_forks;
    uint64_t must_move; /* pages */
} options = {".", 10, UINT64_MAX, false, false, false, 0};

static const char usage[] =
    "usage: lost_writes [-s SECONDS] [-d FOLDER] [-o KIND]... [-x KIND]... [-l] [-m PAGES] [-n] "
    "[-w] MOVER\n"
    "  MOVER  numa, emulated (the books), machine (the emulated one, instrumented builds),\n"
    "         preload (libhybrid in front of this program moves),\n"
    "         preload-blind (the same, not looking where pages are), file-up, file-down (known to "
    "lose writes)\n"
    "  -d     on a disk, for O_DIRECT (.)\n"
    "  -o, -x only, or without, this way to write; names as in the report\n"
    "  -l     succeed when a write is lost, and only then\n"
    "  -m     until so many pages moved; 3 if they did not within 400 s more\n"
    "  -n     no forks\n"
    "  -w     the sampler watches the pages meanwhile\n";

static bool choose_kind(const char *name, bool only)
{
    for (unsigned i = 0; i < KINDS; i++)
        if (strcmp(name, kind_names[i]) == 0) {
            if (only && options.kinds == UINT64_MAX)
                options.kinds = 0;
            options.kinds = only ? options.kinds | 1ull << i : options.kinds & ~(1ull << i);
            return true;
        }
    printf("no kind '%s'\n", name);
    return false;
}

static const struct mover *parse(int argc, char **argv)
{
    int c;
    while ((c = getopt(argc, argv, "s:d:o:x:lm:nw")) != -1) {
        if (c == 's')
            options.seconds = atof(optarg);
        else if (c == 'd')
            options.scratch = optarg;
        else if (c == 'l')
            options.must_lose = true;
        else if (c == 'm')
            options.must_move = strtoull(optarg, NULL, 10);
        else if (c == 'n')
            options.no_forks = true;
        else if (c == 'w')
            options.watch = true;
        else if ((c != 'o' && c != 'x') || !choose_kind(optarg, c == 'o'))
            return NULL;
    }
    return optind == argc - 1 ? mover_named(argv[optind]) : NULL;
}

static int start(const struct mover *m)
{
    pthread_rwlockattr_t patient;
    pthread_rwlockattr_init(&patient);
    pthread_rwlockattr_setkind_np(&patient, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&peace, &patient);
    all_stop = m->needs_peace != NULL;
    for (unsigned i = 0; i < KINDS; i++) {
        struct writer *w = calloc(1, sizeof(*w));
        w->kind = (enum kind)i;
        w->random = i;
        if (!(options.kinds >> i & 1))
            continue;
        const char *missing = kind_prepare(w, options.scratch);
        if (!missing) {
            writers[i] = w;
            continue;
        }
        printf("left out: %s: %s\n", kind_names[i], missing);
        if (options.must_lose && options.kinds == 1ull << i)
            return 77;
    }
    memory = m->map();
    if (!memory) {
        printf("no memory: %s\n", strerror(errno));
        return 2;
    }
    for (unsigned i = 0; i < KINDS; i++) {
        int e = writers[i] ? kind_start(writers[i], memory) : 0;
        if (e) {
            printf("left out: %s: %s\n", kind_names[i], strerror(e));
            writers[i] = NULL;
        }
    }
    if (options.watch) {
        int e = watch_start(memory, PAGES * PAGE);
        printf("watched by %s\n", e ? strerror(-e) : watch_source());
    }
    return 0;
}

static void report(const struct mover *m, unsigned rounds, unsigned forks, const uint64_t *count)
{
    printf("%s: %u rounds, %u forks: %lu moved, %lu there, %lu absent, %lu full, %lu refused\n",
           m->name, rounds, forks, (unsigned long)count[MIGRATE_MOVED],
           (unsigned long)count[MIGRATE_THERE], (unsigned long)count[MIGRATE_ABSENT],
           (unsigned long)count[MIGRATE_FULL], (unsigned long)count[MIGRATE_REFUSED]);
    for (unsigned i = 0; i < KINDS; i++)
        if (writers[i])
            printf("%10lu %s\n", (unsigned long)writers[i]->writes, kind_names[i]);
    printf("%10lu atomic additions\n", (unsigned long)(added[0] + added[1]));
}

static int run(const struct mover *m, uint64_t count[MIGRATE_REFUSED + 1], unsigned *ret_forks)
{
    double until = seconds() + options.seconds;
    double begin = seconds();
    unsigned rounds = 0;
    while (!failed &&
           (seconds() < until || rounds < LEAST_ROUNDS ||
            (count[MIGRATE_MOVED] < options.must_move && seconds() < until + PATIENCE_SECONDS))) {
        pid_t child = 0;
        if (m->hot_quarter)
            phase = 1 + (unsigned)((seconds() - begin) / PHASE_SECONDS);
        if (!m->needs_peace && !options.no_forks &&
            rounds % (m->hot_quarter ? FORK_RARELY : FORK_EVERY) == 0) {
            child = fork_a_child(m);
            ++*ret_forks;
        }
        failed |= one_round(m, rounds++ & 1 ? HY_DRAM : HY_PM, count);
        if (child)
            failed |= wait_for(child);
    }
    return (int)rounds;
}

int main(int argc, char **argv)
{
    const struct mover *m = parse(argc, argv);
    uint64_t count[MIGRATE_REFUSED + 1] = {0};
    pthread_t adders[ADDERS];
    unsigned forks = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!m) {
        fputs(usage, stdout);
        return 2;
    }
    int bad = start(m);
    if (bad)
        return bad;
    for (unsigned i = 0; i < KINDS; i++)
        if (writers[i] && pthread_create(&writers[i]->thread, NULL, write_on, writers[i]))
            return 2;
    for (unsigned i = 0; i < ADDERS; i++)
        if (pthread_create(&adders[i], NULL, add_on, &added[i]))
            return 2;
    /* The only mover among many writers; where this is not allowed it is slower. */
    (void)setpriority(PRIO_PROCESS, 0, -15);
    unsigned rounds = (unsigned)run(m, count, &forks);
    stop = 1;
    for (unsigned i = 0; i < KINDS; i++)
        if (writers[i])
            pthread_join(writers[i]->thread, NULL);
    for (unsigned i = 0; i < ADDERS; i++)
        pthread_join(adders[i], NULL);
    failed |= verify();
    report(m, rounds, forks, count);
    for (unsigned i = 0; i < KINDS; i++)
        if (writers[i])
            kind_end(writers[i]);
    if (failed || options.must_lose)
        return failed != options.must_lose;
    return count[MIGRATE_MOVED] < options.must_move ? 3 : 0;
}
