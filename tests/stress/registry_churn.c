/* SPDX-License-Identifier: BSD-2-Clause
 * registry_churn [SECONDS [PROCESSES]]: participants join, claim, publish, read
 * and leave, and die by kill -9 wherever they are. At no instant may what the
 * living hold exceed the budget, and in the end nothing may be left.
 *
 * Each worker notes what it holds in shared memory, after a claim and before a
 * return, so the notes never say more than was granted. The parent kills, waits
 * and clears the note before it looks again: all notes are of living ones. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "place/registry.h"
#include "place/registry_file.h"

#define REG_LOAD(p)     __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define REG_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

#define MAX_WORKERS 240
#define BUDGET      ((uint64_t)1 << 30)

struct note {
    uint64_t held; /* serial << 48 | bytes: another value after every change */
};

struct shared {
    struct note note[MAX_WORKERS];
    uint64_t claims, refusals, joins, execs;
};

static struct shared *shared;
static const struct reg_file *file;
static char path[300];
static pid_t worker[MAX_WORKERS];
static int n_workers;
static uint64_t seed, checks, torn, peak, kills;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 24) % below;
}

static _Noreturn void die(const char *what, long long a, long long b)
{
    fprintf(stderr, "registry_churn: %s (%lld, %lld)\n", what, a, b);
    for (int i = 0; i < n_workers; i++)
        if (worker[i] > 0)
            kill(worker[i], SIGKILL);
    unlink(path);
    _exit(1);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- a worker ----------------------------------------------------------- */

static void count(uint64_t *p)
{
    __atomic_add_fetch(p, 1, __ATOMIC_RELAXED);
}

static void set_note(struct note *n, uint64_t bytes)
{
    REG_STORE(&n->held, reg_next16(n->held) | bytes);
}

/* One membership; the exit status tells which step went wrong. */
static int participate(struct registry *r, struct note *n)
{
    static struct registry_view view;
    uint64_t held = 0;
    int err = registry_join(r, (enum hy_class)draw(HY_CLASS_MAX));

    if (err != 0)
        return 10;
    count(&shared->joins);
    for (uint64_t i = draw(200); i > 0; i--) {
        uint64_t bytes = draw(BUDGET / 16);
        err = registry_claim_dram(r, bytes);
        if (err == 0) {
            count(&shared->claims);
            set_note(n, held += bytes);
        } else if (err == -ENOSPC) {
            count(&shared->refusals);
        } else {
            return 11;
        }
        registry_publish(r, &(struct registry_published){.cls = (enum hy_class)draw(HY_CLASS_MAX),
                                                         .pm_bytes = bytes,
                                                         .wish_bytes = bytes});
        if (held > 0 && draw(2) == 0) {
            uint64_t back = draw(held + 1);
            set_note(n, held -= back);
            registry_return_dram(r, back);
        }
        if (draw(64) == 0)
            sched_yield();
    }
    if (draw(20) == 0) {
        registry_read(r, &view);
        for (unsigned i = 0; i < view.n; i++)
            if (view.entry[i].pid <= 0 || view.entry[i].published.cls >= HY_CLASS_MAX)
                return 12;
        if (!registry_joined(r) || view.n == 0)
            return 13;
    }
    set_note(n, 0);
    if (draw(2) == 0)
        registry_return_dram(r, held);
    if (draw(100) == 0) { /* gone without a word, though the pid lives on */
        count(&shared->execs);
        execlp("sleep", "sleep", "100", (char *)NULL);
        return 14;
    }
    registry_leave(r);
    return 0;
}

static int worker_main(int index)
{
    struct registry *r;

    for (;;) {
        /* Different wishes for the budget: whoever is first has the say. */
        if (registry_open(path, BUDGET >> draw(3), &r) != 0)
            return 20;
        for (uint64_t i = draw(10); i > 0; i--) {
            int bad = participate(r, &shared->note[index]);
            if (bad != 0)
                return bad;
        }
        if (draw(50) == 0)
            return 0; /* exits while open */
        registry_close(r);
    }
}

/* --- the parent --------------------------------------------------------- */

static void start(int i)
{
    uint64_t mine = draw(UINT64_MAX);
    pid_t pid = fork();

    if (pid < 0)
        die("fork", errno, 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        seed = mine;
        _exit(worker_main(i));
    }
    worker[i] = pid;
}

static void stop(int i)
{
    int status;

    kill(worker[i], SIGKILL);
    if (waitpid(worker[i], &status, 0) != worker[i])
        die("waitpid", errno, i);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        die("a worker failed", WEXITSTATUS(status), i);
    kills += WIFSIGNALED(status);
    worker[i] = 0;
    set_note(&shared->note[i], 0);
}

/* What is held at one instant: two passes that agree saw the same picture. */
static void check_sum(void)
{
    uint64_t first[MAX_WORKERS], budget = REG_LOAD(&file->head.budget), sum = 0;

    for (int i = 0; i < n_workers; i++)
        first[i] = REG_LOAD(&shared->note[i].held);
    for (int i = 0; i < n_workers; i++) {
        if (REG_LOAD(&shared->note[i].held) != first[i]) {
            torn++;
            return;
        }
        sum += reg_low48(first[i]);
    }
    if (REG_LOAD(&file->head.budget) != budget)
        return;
    checks++;
    peak = HY_MAX(peak, sum);
    if (sum > reg_low48(budget))
        die("held by the living, budget", (long long)sum, (long long)reg_low48(budget));
}

/* A run in which nothing happened proves nothing. */
static bool enough(void)
{
    return kills >= 20 && checks >= 100 && REG_LOAD(&shared->claims) >= 1000 &&
           REG_LOAD(&shared->refusals) > 0;
}

/* So long, and longer where the computer has other things to do. */
static void churn(int workers, double seconds)
{
    double end = now() + seconds;

    n_workers = workers;
    for (int i = 0; i < n_workers; i++)
        start(i);
    while (now() < end || !enough()) {
        for (int i = 0; i < 20; i++)
            check_sum();
        int victim = (int)draw((uint64_t)n_workers);
        stop(victim);
        start(victim);
        struct timespec pause = {0, (long)draw(500000)};
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < n_workers; i++)
        stop(i);
}

/* All are dead: whoever comes finds an empty registry and all of the budget. */
static void check_empty(void)
{
    static struct registry_view view;
    struct registry *r;
    int err = registry_open(path, BUDGET, &r);

    if (err != 0)
        die("open", err, 0);
    registry_read(r, &view);
    if (view.n != 0)
        die("participants left, the first one's pid", view.n, view.entry[0].pid);
    for (int i = 0; i < REGISTRY_SLOTS; i++)
        if (file->slot[i].word != REG_FREE)
            die("slot not free", i, (long long)file->slot[i].word);
    if (registry_join(r, HY_CLASS_CPU) != 0)
        die("join", 0, 0);
    err = registry_claim_dram(r, BUDGET);
    if (err != 0)
        die("claim of the whole budget", err, 0);
    if (registry_claim_dram(r, 1) != -ENOSPC)
        die("more than the budget", 0, 0);
    registry_close(r);
}

static void prepare(void)
{
    const char *tmp = getenv("TMPDIR");
    struct registry *r;

    snprintf(path, sizeof(path), "%s/registry-churn-%d", tmp != NULL ? tmp : "/tmp", (int)getpid());
    unlink(path);
    if (registry_open(path, BUDGET, &r) != 0)
        die("open", 0, 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    file = mmap(NULL, REGISTRY_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || file == MAP_FAILED || shared == MAP_FAILED)
        die("mmap", errno, 0);
    close(fd);
    registry_close(r);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    int workers = argc > 2 ? atoi(argv[2]) : 200;

    if (seconds <= 0 || workers < 4 || workers > MAX_WORKERS) {
        fprintf(stderr, "usage: registry_churn [SECONDS [PROCESSES (4..%d)]]\n", MAX_WORKERS);
        return 2;
    }
    seed = (uint64_t)getpid();
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    prepare();
    /* Few ones leave the registry empty again and again: the budget changes hands. */
    churn(workers, seconds * 0.7);
    check_empty();
    churn(3, seconds * 0.3);
    check_empty();
    printf("%llu joins, %llu claims, %llu refused, %llu killed, %llu by exec, %llu checks"
           " (%llu torn), at most %llu MiB of %llu held\n",
           (unsigned long long)shared->joins, (unsigned long long)shared->claims,
           (unsigned long long)shared->refusals, (unsigned long long)kills,
           (unsigned long long)shared->execs, (unsigned long long)checks, (unsigned long long)torn,
           (unsigned long long)(peak >> 20), (unsigned long long)(BUDGET >> 20));
    unlink(path);
    return 0;
}
