/* SPDX-License-Identifier: BSD-2-Clause
 * Frame of the workloads: arguments, threads with a barrier, the result line. */
#include "common.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate.h"
#include "machine.h"
#include "turn.h"

#ifdef WL_COMPUTE_PERCENT
/* How this program's accesses and basic blocks, as instrumented, stand for its instructions. */
#include "pmemu.h"
PMEMU_COMPUTE_PERCENT(WL_COMPUTE_PERCENT);
#endif

/* Not there but for a program that is preloaded with one. */
extern void bench_phase(unsigned number) __attribute__((weak));

#define MAX_ARRAYS   64
#define MAX_SIZE_MIB (1u << 20)
#define MAX_ROUNDS   1000000u

static void *arrays[MAX_ARRAYS];
static unsigned array_count;

/* write(2), not stdio: libmemtier takes stdio's buffer away before it is flushed. */
static bool say(int fd, const char *line, int length)
{
    return length >= 0 && write(fd, line, (size_t)length) == length;
}

static void __attribute__((noreturn, cold)) wl_fail_at(const char *where, const char *what)
{
    char line[160];

    (void)say(STDERR_FILENO, line,
              snprintf(line, sizeof(line), "%s: %s%s%s\n", workload.name, where, *where ? ": " : "",
                       what));
    /* Not exit(): other threads may be running. */
    _Exit(1);
}

void wl_fail(const char *what)
{
    wl_fail_at("", what);
}

void *wl_new(size_t count, size_t size)
{
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        wl_fail("the size is too large");
    if (array_count == MAX_ARRAYS)
        wl_fail("too many arrays");
    bytes = (bytes + WL_ALIGN - 1) / WL_ALIGN * WL_ALIGN;
    /* Not aligned_alloc: libmemtier leaves that to libc, and takes the block in its free(). */
    if (posix_memalign(&p, WL_ALIGN, bytes ? bytes : WL_ALIGN) != 0)
        wl_fail("out of memory");
    arrays[array_count++] = p;
    return p;
}

void wl_result(struct wl *w, void *result, size_t count, enum wl_kind kind)
{
    w->result = result;
    w->count = count;
    w->kind = kind;
}

void wl_phase(unsigned number)
{
    if (bench_phase)
        bench_phase(number);
}

double wl_sin_turn(double x)
{
    /* To the nearest quarter, the rest within an eighth of a turn: both steps are exact. */
    long long quarter = (long long)(x * 4 + (x < 0 ? -0.5 : 0.5));
    double t = (x - (double)quarter * 0.25) * 6.283185307179586476925, t2 = t * t, term, sum;
    bool cosine = quarter & 1;

    term = sum = cosine ? 1 : t;
    /* 9 terms of the series: the next is below 1e-17. */
    for (int k = cosine ? 1 : 2; k < 18; k += 2) {
        term *= -t2 / (k * (k + 1));
        sum += term;
    }
    return quarter & 2 ? -sum : sum;
}

size_t wl_root(size_t x)
{
    size_t r = 0;

    for (size_t bit = (size_t)1 << 31; bit; bit >>= 1) {
        if ((r + bit) <= x / (r + bit))
            r += bit;
    }
    return r;
}

static uint64_t checksum(const struct wl *w)
{
    uint64_t h = w->count, v;
    uint32_t half;

    for (size_t i = 0; i < w->count; i++) {
        if (w->kind == WL_U32) {
            memcpy(&half, (const char *)w->result + i * sizeof(half), sizeof(half));
            v = half;
        } else {
            memcpy(&v, (const char *)w->result + i * sizeof(v), sizeof(v));
        }
        h = (h ^ v) * 0x9fb21c651e98df25u;
        h ^= h >> 29;
    }
    return h;
}

/* Integers by their lowest bit, the smallest error there is; floating point by more than
 * a rounding or a statistical tolerance can hide. */
static void corrupt(struct wl *w, uint64_t which)
{
    size_t i = (size_t)(wl_hash(which, 1) % w->count);

    if (w->kind == WL_U32)
        ((uint32_t *)w->result)[i] ^= 1;
    else if (w->kind == WL_U64)
        ((uint64_t *)w->result)[i] ^= 1;
    else
        ((double *)w->result)[i] = ((double *)w->result)[i] * 3 + 8;
}

struct start {
    struct wl *w;
    unsigned id;
};

static void *thread_main(void *arg)
{
    struct start *s = arg;

    workload.work(s->w, s->id);
    return NULL;
}

/* Thread 0 is the caller: with one thread none is created, as in a serial program. A
 * function of its own: calibrate.py has callgrind count from its call to its return. */
static void __attribute__((noinline)) run(struct wl *w)
{
    pthread_t thread[WL_MAX_THREADS];
    struct start start[WL_MAX_THREADS];

    if (pthread_barrier_init(&w->barrier, NULL, w->threads) != 0)
        wl_fail("pthread_barrier_init failed");
    for (unsigned i = 1; i < w->threads; i++) {
        start[i] = (struct start){w, i};
        if (pthread_create(&thread[i], NULL, thread_main, &start[i]) != 0)
            wl_fail("pthread_create failed");
    }
    workload.work(w, 0);
    for (unsigned i = 1; i < w->threads; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&w->barrier);
}

static void usage(int fd)
{
    static const char format[] =
        "usage: %s [options]\n"
        "%s\n\n"
        "  --threads N   threads, 1 to %d (1); all: as many as there are CPUs for it\n"
        "  --size S      footprint in MiB (%u)\n"
        "  --rounds R    how often (%u)\n"
        "  --seed K      of the random data (1)\n"
        "  --corrupt K   change one value of the result, chosen by K, before it is\n"
        "                verified: the exit status must be 1\n"
        "  --emulated    size and rounds for the emulated machine: %u and %u\n"
        "  --time        a second line: begin, end and length of the timed part,\n"
        "                virtual on the emulated machine, and its counts there\n"
        "  --gate FILE,N start together with the N - 1 others that name FILE, made by\n"
        "                the first; verify when all have finished\n"
        "  --turn FILE,K,SLOTS,N\n"
        "                begin when it is the turn of number K (from 0) of N programs\n"
        "                that name FILE, of which SLOTS run at a time; a last line\n"
        "                tells begin and end\n"
        "  --help        this text\n\n"
        "Prints 'name threads size rounds: result CHECKSUM ok', or WRONG and status 1.\n"
        "The checksum depends on size, rounds and seed, not on the number of threads.\n";
    char text[2048];

    (void)say(fd, text,
              snprintf(text, sizeof(text), format, workload.name, workload.about, WL_MAX_THREADS,
                       workload.size, workload.rounds, WL_EMULATED_SIZE, WL_EMULATED_ROUNDS));
}

/* As it is told, as programs do that size a pool: at most WL_MAX_THREADS. */
static unsigned all_cpus(void)
{
    cpu_set_t cpus;
    int n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;

    return n < WL_MAX_THREADS ? (unsigned)n : WL_MAX_THREADS;
}

static uint64_t number(const char *option, const char *text, uint64_t min, uint64_t max)
{
    char line[160], *end;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && v >= min && v <= max)
        return v;
    (void)say(STDERR_FILENO, line,
              snprintf(line, sizeof(line), "%s: --%s wants %llu to %llu, not '%.40s'\n",
                       workload.name, option, (unsigned long long)min, (unsigned long long)max,
                       text));
    _Exit(2);
}

struct arguments {
    unsigned size; /* MiB */
    bool spoil, time;
    char *turn;
    uint64_t wrong; /* which value to spoil */
};

/* FILE,N: the name may hold commas. */
static void enter_group(char *text)
{
    char *comma = strrchr(text, ',');
    const char *problem;

    if (!comma)
        number("gate", text, 1, GATE_PROGRAMS);
    *comma = '\0';
    problem = gate_open(text, (unsigned)number("gate", comma + 1, 1, GATE_PROGRAMS));
    if (problem)
        wl_fail_at("gate", problem);
}

/* FILE,K,SLOTS,N: the name may hold commas. */
static void await_turn(char *text)
{
    unsigned n[3] = {0};
    const char *problem;

    for (int i = 2; i >= 0; i--) {
        char *comma = strrchr(text, ',');
        if (!comma)
            wl_fail_at("turn", text);
        *comma = '\0';
        n[i] = (unsigned)number("turn", comma + 1, i > 0, TURN_PROGRAMS);
    }
    problem = turn_take(text, n[0], n[1], n[2]);
    if (problem)
        wl_fail_at("turn", problem);
}

/* One option; false: it is not known. */
static bool argument(struct wl *w, struct arguments *a, int c)
{
    if (c == 't') {
        w->threads = strcmp(optarg, "all") == 0
                         ? all_cpus()
                         : (unsigned)number("threads", optarg, 1, WL_MAX_THREADS);
    } else if (c == 's') {
        a->size = (unsigned)number("size", optarg, 1, MAX_SIZE_MIB);
    } else if (c == 'r') {
        w->rounds = (unsigned)number("rounds", optarg, 1, MAX_ROUNDS);
    } else if (c == 'k') {
        w->seed = number("seed", optarg, 0, UINT64_MAX);
    } else if (c == 'c') {
        a->wrong = number("corrupt", optarg, 0, UINT64_MAX);
        a->spoil = true;
    } else if (c == 'e') {
        a->size = WL_EMULATED_SIZE;
        w->rounds = WL_EMULATED_ROUNDS;
    } else if (c == 'T') {
        a->time = true;
    } else if (c == 'g') {
        enter_group(optarg);
    } else if (c == 'u') {
        a->turn = optarg;
    } else {
        return false;
    }
    return true;
}

/* Ends the program unless there is something to do. */
static void parse(int argc, char **argv, struct wl *w, struct arguments *a)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'},
        {"size", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {"seed", required_argument, NULL, 'k'},
        {"corrupt", required_argument, NULL, 'c'},
        {"emulated", no_argument, NULL, 'e'},
        {"time", no_argument, NULL, 'T'},
        {"gate", required_argument, NULL, 'g'},
        {"turn", required_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (argument(w, a, c))
            continue;
        usage(c == 'h' ? STDOUT_FILENO : STDERR_FILENO);
        _Exit(c == 'h' ? 0 : 2);
    }
    if (optind < argc) {
        usage(STDERR_FILENO);
        _Exit(2);
    }
}

/* Everything between the two gates is what the time line tells of. */
static void timed_run(struct wl *w)
{
    const char *problem = gate_start();

    if (!problem) {
        wl_phase(0);
        machine_begin();
        run(w);
        machine_end();
        wl_phase(WL_ENDED);
        problem = gate_end();
    }
    if (problem)
        wl_fail_at("gate", problem);
}

int main(int argc, char **argv)
{
    struct wl w = {.threads = 1, .rounds = workload.rounds, .seed = 1};
    struct arguments a = {.size = workload.size};
    char line[1536];
    int64_t begin_ns, end_ns;
    uint64_t sum;
    bool ok;

    parse(argc, argv, &w, &a);
    if (a.turn)
        await_turn(a.turn);
    w.bytes = (size_t)a.size << 20;
    workload.prepare(&w);
    timed_run(&w);
    if (a.spoil)
        corrupt(&w, a.wrong);
    sum = checksum(&w);
    ok = workload.verify(&w);
    while (array_count > 0)
        free(arrays[--array_count]);
    ok &= say(STDOUT_FILENO, line,
              snprintf(line, sizeof(line), "%s %u %u %u: result %016llx %s\n", workload.name,
                       w.threads, a.size, w.rounds, (unsigned long long)sum, ok ? "ok" : "WRONG"));
    if (a.time)
        ok &= say(STDOUT_FILENO, line, machine_line(line, sizeof(line)));
    if (turn_over(&begin_ns, &end_ns))
        ok &= say(STDOUT_FILENO, line,
                  snprintf(line, sizeof(line), "turn begin_ns=%lld end_ns=%lld\n",
                           (long long)begin_ns, (long long)end_ns));
    return ok ? 0 : 1;
}
