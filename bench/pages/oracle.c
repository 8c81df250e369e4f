/* SPDX-License-Identifier: BSD-2-Clause
 * bench-oracle.so: preloaded behind bench-place.so into an instrumented workload, it knows what
 * its pages do. In one run it counts, in another it moves pages as a plan says that was made
 * of the counts: what a mover that knows the future would do at the same cost.
 *
 *   HYBRID_ORACLE_COUNTS   file for 'phase page reads writebacks': lines of each page in each
 *                          phase (wl_phase() in bench/workloads)
 *   HYBRID_ORACLE_PLAN     file with 'phase page pages tier': moves when a phase begins, by a
 *                          thread that is not the program's, at the machine's cost
 *   HYBRID_ORACLE_HISTORY  file for records of struct seen: the same counts, by ticks of
 *   HYBRID_ORACLE_TICK     so many ns of virtual time (1000000)
 *
 * The first two want HYBRID_EMU_PAGE_COUNTS=1 in the run that counts. Pages are numbered from
 * the start of the addresses that bench-place.so gives to large blocks. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "history.h"
#include "pmemu.h"

#define EXPORT    __attribute__((visibility("default")))
#define BAND      ((uintptr_t)0x520000000000)
#define PAGES_MAX ((size_t)1 << 18) /* 1 GiB */
#define CHUNK     512u
#define MOVES_MAX (1u << 20)
#define POLL_NS   200000
#define PHASE_END (~0u)

struct counts {
    uint64_t reads, writes;
};

struct planned {
    unsigned phase, page, pages;
    int tier;
};

static struct counts *at_phase, *at_tick; /* of each page, when it began */
static struct planned *plan;
static unsigned n_plan, next_move;
static unsigned phase_now;
static bool begun, ended;
static FILE *counts_file, *history_file;
static int64_t tick_ns = 1000000;

static void __attribute__((noreturn)) refuse(const char *why)
{
    dprintf(STDERR_FILENO, "bench-oracle[%d]: %s\n", (int)getpid(), why);
    _exit(78);
}

static void pause_ns(long ns)
{
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

/* --- counting ---------------------------------------------------------------------- */

typedef void (*page_fn)(unsigned number, unsigned page, struct counts more);

/* Calls fn for every page with new counts since the last call. */
static void each_page(struct counts *before, unsigned number, page_fn fn)
{
    struct pmemu_range_counts c;
    for (size_t chunk = 0; chunk < PAGES_MAX; chunk += CHUNK) {
        const char *base = (const char *)BAND + chunk * PMEMU_PAGE;
        if (pmemu_range_counts(base, (size_t)CHUNK * PMEMU_PAGE, &c) != 0 || c.pages == 0)
            continue;
        for (size_t page = chunk; page < chunk + CHUNK; page++) {
            if (pmemu_range_counts((const char *)BAND + page * PMEMU_PAGE, 1, &c) != 0)
                continue;
            struct counts now = {c.reads, c.writebacks};
            struct counts more = {now.reads - before[page].reads, now.writes - before[page].writes};
            before[page] = now;
            if (fn && (more.reads | more.writes))
                fn(number, (unsigned)page, more);
        }
    }
}

static void write_count(unsigned phase, unsigned page, struct counts more)
{
    fprintf(counts_file, "%u %u %" PRIu64 " %" PRIu64 "\n", phase, page, more.reads, more.writes);
}

static uint16_t capped(uint64_t n)
{
    return (uint16_t)(n < UINT16_MAX ? n : UINT16_MAX);
}

static void write_tick(unsigned tick, unsigned page, struct counts more)
{
    struct seen s = {tick, page, capped(more.reads), capped(more.writes)};
    if (fwrite(&s, sizeof(s), 1, history_file) != 1)
        refuse("HYBRID_ORACLE_HISTORY: cannot write");
}

/* --- the thread ---------------------------------------------------------------------- */

static void move_for(unsigned phase)
{
    for (; next_move < n_plan && plan[next_move].phase <= phase; next_move++) {
        const struct planned *p = &plan[next_move];
        (void)pmemu_move((const char *)BAND + (size_t)p->page * PMEMU_PAGE,
                         (size_t)p->pages * PMEMU_PAGE, p->tier);
    }
}

static void *watch(void *unused)
{
    int64_t due = 0;
    unsigned tick = 0;
    (void)unused;
    pmemu_ignore_thread();
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        pause_ns(POLL_NS);
        if (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
            continue;
        if (plan)
            move_for(__atomic_load_n(&phase_now, __ATOMIC_ACQUIRE));
        if (history_file && due == 0) {
            due = pmemu_vtime_ns() + tick_ns;
            each_page(at_tick, 0, NULL);
        }
        if (history_file && pmemu_vtime_ns() >= due) {
            each_page(at_tick, tick++, write_tick);
            due += tick_ns;
        }
    }
    return NULL;
}

/* --- what the workload calls ------------------------------------------------------------- */

EXPORT void bench_phase(unsigned number);
void bench_phase(unsigned number)
{
    static unsigned last;
    if (counts_file) {
        each_page(at_phase, last, number == 0 ? NULL : write_count);
        last = number;
    }
    __atomic_store_n(number == PHASE_END ? &ended : &begun, true, __ATOMIC_RELEASE);
    if (number != PHASE_END)
        __atomic_store_n(&phase_now, number, __ATOMIC_RELEASE);
    if (number == PHASE_END && counts_file)
        fflush(counts_file);
    if (number == PHASE_END && history_file)
        fflush(history_file);
}

static FILE *open_for(const char *variable)
{
    const char *path = getenv(variable);
    FILE *f = path && *path ? fopen(path, "w") : NULL;
    if (path && *path && !f)
        refuse("a file cannot be made");
    return f;
}

static void read_plan(const char *path)
{
    FILE *f = fopen(path, "r");
    struct planned p;
    if (!f)
        refuse("HYBRID_ORACLE_PLAN: there is no such file");
    plan = calloc(MOVES_MAX, sizeof(*plan));
    if (!plan)
        refuse("no memory");
    while (n_plan < MOVES_MAX &&
           fscanf(f, "%u %u %u %d", &p.phase, &p.page, &p.pages, &p.tier) == 4)
        plan[n_plan++] = p;
    if (!feof(f))
        refuse("HYBRID_ORACLE_PLAN: lines are 'phase page pages tier'");
    fclose(f);
}

static void __attribute__((constructor)) start(void)
{
    const char *file = getenv("HYBRID_ORACLE_PLAN"), *tick = getenv("HYBRID_ORACLE_TICK");
    pthread_t thread;

    at_phase = mmap(NULL, 2 * PAGES_MAX * sizeof(*at_phase), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at_phase == MAP_FAILED)
        refuse("no memory");
    at_tick = at_phase + PAGES_MAX;
    counts_file = open_for("HYBRID_ORACLE_COUNTS");
    history_file = open_for("HYBRID_ORACLE_HISTORY");
    if (tick)
        tick_ns = strtoll(tick, NULL, 10);
    if (tick_ns < 1000)
        refuse("HYBRID_ORACLE_TICK: ns, at least 1000");
    if (file && *file)
        read_plan(file);
    if ((plan || history_file) && pthread_create(&thread, NULL, watch, NULL) != 0)
        refuse("no thread");
}
