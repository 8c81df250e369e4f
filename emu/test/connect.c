/* SPDX-License-Identifier: BSD-2-Clause
 * Uses of pmemu.h, instrumented. One of the words below, then numbers; prints 'name value'
 * lines that test_connect.py judges. */
#include "pmemu.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE      64
#define MAX_LINES ((size_t)1 << 20)

struct part {
    char *from;
    size_t lines;
    bool write;
};

static volatile uint64_t sink;

static char *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return p;
}

/* One access to each line. */
static void *pass(void *arg)
{
    const struct part *w = arg;
    uint64_t sum = 0;
    for (size_t i = 0; i < w->lines; i++)
        if (w->write)
            *(uint64_t *)(w->from + i * LINE) = i;
        else
            sum += *(uint64_t *)(w->from + i * LINE);
    sink = sum;
    return NULL;
}

static void touch(char *from, size_t lines, bool write)
{
    struct part w = {from, lines, write};
    pass(&w);
}

static void by_threads(char *from, size_t lines, bool write, size_t n)
{
    pthread_t t[64];
    struct part w[64];
    for (size_t i = 0; i < n; i++) {
        w[i] = (struct part){from + lines / n * i * LINE, lines / n, write};
        pthread_create(&t[i], NULL, pass, &w[i]);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

static void say(const char *name, long long v)
{
    printf("%s %lld\n", name, v);
}

/* --- PAPI, opened as libhybrid does: private to the caller --------------------- */

#define PAPI_7 0x07000000
static const char *const papi_events[] = {
    "sde:::pmemu::LLC_RD_DRAM", "sde:::pmemu::LLC_RD_PM", "sde:::pmemu::WB_PM",
    "sde:::pmemu::TOT_INS",     "sde:::pmemu::STALL_NS",  "sde:::pmemu::VTIME_NS",
    "sde:::pmemu::PM_UJ",       "sde:::pmemu::TOT_CYC",
};
#define PAPI_EVENTS (sizeof(papi_events) / sizeof(papi_events[0]))

static struct {
    int (*init)(int), (*create)(int *), (*add)(int, const char *), (*start)(int);
    int (*read)(int, long long *), (*stop)(int, long long *), (*reset)(int);
} papi;

static bool open_papi(void)
{
    void *h = dlopen("libpapi.so.7.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!h)
        return false;
    papi.init = (int (*)(int))dlsym(h, "PAPI_library_init");
    papi.create = (int (*)(int *))dlsym(h, "PAPI_create_eventset");
    papi.add = (int (*)(int, const char *))dlsym(h, "PAPI_add_named_event");
    papi.start = (int (*)(int))dlsym(h, "PAPI_start");
    papi.read = (int (*)(int, long long *))dlsym(h, "PAPI_read");
    papi.stop = (int (*)(int, long long *))dlsym(h, "PAPI_stop");
    papi.reset = (int (*)(int))dlsym(h, "PAPI_reset");
    return papi.init(PAPI_7) == PAPI_7;
}

static void say_papi(const char *when, const long long *v)
{
    for (size_t i = 0; i < PAPI_EVENTS; i++)
        printf("%s_%s %lld\n", when, papi_events[i] + strlen("sde:::pmemu::"), v[i]);
}

static int do_papi(size_t lines, size_t threads)
{
    /* Reading `others` throws the rest out of the caches. */
    char *p = map(lines * LINE), *others = map(lines * LINE);
    long long v[PAPI_EVENTS] = {0};
    int set = -1, r;

    if (!open_papi())
        return 77;
    if (papi.create(&set) != 0)
        return 1;
    for (size_t i = 0; i < PAPI_EVENTS; i++)
        if ((r = papi.add(set, papi_events[i])) != 0) {
            printf("%s: %d\n", papi_events[i], r);
            return 1;
        }
    touch(p, lines, true);
    touch(others, lines, false);
    if (papi.start(set) != 0)
        return 1;
    by_threads(p, lines, true, threads);
    if (papi.read(set, v) != 0)
        return 1;
    say_papi("written", v);
    touch(others, lines, false);
    if (papi.reset(set) != 0)
        return 1;
    touch(p, lines, false);
    if (papi.stop(set, v) != 0)
        return 1;
    say_papi("read", v);
    touch(p, lines, false);
    if (papi.start(set) != 0 || papi.stop(set, v) != 0)
        return 1;
    say_papi("nothing", v);
    return 0;
}

/* --- moves ----------------------------------------------------------------------- */

static void *ignored_mover(void *p)
{
    int64_t before;
    pmemu_ignore_thread();
    before = pmemu_event(PMEMU_MOVE_NS);
    say("ignored_moved", pmemu_move(p, 100 * PMEMU_PAGE, 1));
    say("ignored_ns", pmemu_event(PMEMU_MOVE_NS) - before);
    return NULL;
}

static int do_move(size_t pages)
{
    char *p = map(2 * pages * PMEMU_PAGE);
    size_t bytes = pages * PMEMU_PAGE, lines = bytes / LINE;
    int64_t t0, reads;
    pthread_t t;

    touch(p, lines, true); /* the second half is never used */
    t0 = pmemu_vtime_ns();
    say("moved", pmemu_move(p, 2 * bytes, 1));
    say("down_ns", pmemu_vtime_ns() - t0);
    say("tier", pmemu_tier_of(p));
    say("again", pmemu_move(p, 2 * bytes, 1));
    /* Its lines have left the caches, though they would fit. */
    touch(p, 64, false);
    reads = pmemu_event(PMEMU_LLC_RD_PM);
    touch(p, 64, false);
    say("cached_reads", pmemu_event(PMEMU_LLC_RD_PM) - reads);
    say("up_one", pmemu_move(p + 1, 1, 0));
    reads = pmemu_event(PMEMU_LLC_RD_DRAM);
    touch(p, 64, false);
    say("moved_reads", pmemu_event(PMEMU_LLC_RD_DRAM) - reads);
    t0 = pmemu_vtime_ns();
    say("up", pmemu_move(p, bytes, 0));
    say("up_ns", pmemu_vtime_ns() - t0);
    pthread_create(&t, NULL, ignored_mover, p);
    pthread_join(t, NULL);
    say("bad", pmemu_move((void *)(UINTPTR_MAX - 5), 1, 1));
    say("events", pmemu_event(PMEMU_PAGES_DOWN) * 1000000 + pmemu_event(PMEMU_PAGES_UP));
    return 0;
}

/* --- samples ------------------------------------------------------------------------ */

struct tally {
    long long all, hot, stores, pm, latency, threads, wrong;
    uint32_t thread[64];
};

static void take(struct pmemu_ring *r, struct tally *t, const char *base, size_t bytes,
                 const char *hot)
{
    struct pmemu_sample s;
    while (pmemu_samples_next(r, &s)) {
        uint64_t at = s.address - (uintptr_t)base;
        long long i = 0;
        if (at >= bytes) /* stacks and such */
            continue;
        t->all++;
        t->hot += s.address / PMEMU_PAGE == (uintptr_t)hot / PMEMU_PAGE;
        t->stores += s.store;
        t->pm += s.source == PMEMU_FROM_PM;
        t->latency += s.latency_ns;
        t->wrong += s.vtime_ns <= 0 || s.ready == 0;
        while (i < t->threads && t->thread[i] != s.thread)
            i++;
        if (i == t->threads && i < 64)
            t->thread[t->threads++] = s.thread;
    }
}

/* Threads sweep over `lines` lines; the hot page has a share of an eighth: it is as large as
 * the rest of its group and its lines come by turns with others that throw them out. */
static int do_samples(size_t lines, size_t threads, size_t period)
{
    char *p = map(lines * LINE), *hot = p + lines * LINE / 2 / PMEMU_PAGE * PMEMU_PAGE;
    struct tally t = {0};
    struct pmemu_ring *r = NULL;
    int64_t reads, dirty;

    touch(p, lines, true);
    say("open", pmemu_samples_open(PMEMU_SAMPLE_READS, period, 1 << 20, &r));
    say("busy", pmemu_samples_open(PMEMU_SAMPLE_READS, period, 1 << 20, &r));
    reads = pmemu_event(PMEMU_LLC_RD_DRAM) + pmemu_event(PMEMU_LLC_RD_PM);
    for (int i = 0; i < 4; i++) {
        by_threads(p, lines, false, threads);
        take(r, &t, p, lines * LINE, hot);
    }
    say("reads", pmemu_event(PMEMU_LLC_RD_DRAM) + pmemu_event(PMEMU_LLC_RD_PM) - reads);
    for (int i = 0; i < 64; i++) { /* the hot page, thrown out of the caches between */
        touch(hot, PMEMU_PAGE / LINE, false);
        pmemu_discard(hot, PMEMU_PAGE);
    }
    take(r, &t, p, lines * LINE, hot);
    say("all", t.all);
    say("hot", t.hot);
    say("stores", t.stores);
    say("pm", t.pm);
    say("latency", t.all ? t.latency / t.all : 0);
    say("threads", t.threads);
    say("wrong", t.wrong);
    say("lost", (long long)r->lost);
    pmemu_samples_close();

    t = (struct tally){0};
    say("open_writes", pmemu_samples_open(PMEMU_SAMPLE_WRITES, 1, 64 << 20, &r));
    dirty = pmemu_event(PMEMU_WB_DRAM) + pmemu_event(PMEMU_WB_PM);
    by_threads(p, lines, true, threads);
    dirty = pmemu_event(PMEMU_WB_DRAM) + pmemu_event(PMEMU_WB_PM) - dirty;
    pmemu_samples_close();
    take(r, &t, p, lines * LINE, hot);
    say("dirtied", dirty);
    say("dirty_samples", (long long)r->head);
    say("dirty_stores", t.stores);
    say("dirty_all", t.all);

    /* Nobody reads: all but a ring full is lost, nothing waits. */
    say("open_small", pmemu_samples_open(PMEMU_SAMPLE_READS, 1, 8192, &r));
    reads = pmemu_event(PMEMU_LLC_RD_DRAM) + pmemu_event(PMEMU_LLC_RD_PM);
    by_threads(p, lines, false, threads);
    reads = pmemu_event(PMEMU_LLC_RD_DRAM) + pmemu_event(PMEMU_LLC_RD_PM) - reads;
    pmemu_samples_close();
    say("full_slots", (long long)r->slots);
    say("full_all", (long long)(r->head + r->lost));
    say("full_reads", reads);
    say("full_head", (long long)r->head);
    say("wrong_open", pmemu_samples_open(8, 1, 1 << 20, &r) == -EINVAL &&
                          pmemu_samples_open(1, 0, 1 << 20, &r) == -EINVAL &&
                          pmemu_samples_open(1, 1, 100, &r) == -EINVAL);
    return 0;
}

/* A reader at work while writers write: every sample comes complete and once, in order. */
static size_t writers_done;

static void *writer(void *p)
{
    for (int i = 0; i < 4; i++)
        touch(p, 60000, false);
    __atomic_fetch_add(&writers_done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static int do_race(size_t threads)
{
    char *p = map(64 * 60000 * LINE);
    struct pmemu_ring *r = NULL;
    struct pmemu_sample s;
    pthread_t t[64];
    long long n = 0, wrong = 0;

    if (pmemu_samples_open(PMEMU_SAMPLE_READS, 3, 16384, &r) != 0)
        return 1;
    for (size_t i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, writer, p + i * 60000 * LINE);
    pmemu_ignore_thread(); /* the reader has no time of its own */
    while (__atomic_load_n(&writers_done, __ATOMIC_ACQUIRE) < threads)
        while (pmemu_samples_next(r, &s)) {
            n++;
            wrong += s.ready != (uint64_t)n || s.latency_ns == 0 || s.thread == 0;
        }
    for (size_t i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    while (pmemu_samples_next(r, &s))
        n++;
    say("taken", n);
    say("head", (long long)r->head);
    say("wrong", wrong);
    return 0;
}

/* --- counts by page, room ------------------------------------------------------------- */

static int do_counts(size_t pages)
{
    size_t lines = pages * PMEMU_PAGE / LINE;
    char *p = map(pages * PMEMU_PAGE);
    struct pmemu_range_counts c, one;

    say("off", pmemu_range_counts(p, 1, &c));
    say("on", pmemu_count_pages());
    touch(p, lines, true);
    for (int i = 0; i < 3; i++)
        touch(p, lines, false);
    for (int i = 0; i < 5; i++) {
        touch(p, 64, true);
        pmemu_discard(p, PMEMU_PAGE);
    }
    say("get", pmemu_range_counts(p, pages * PMEMU_PAGE, &c));
    say("pages", (long long)c.pages);
    say("reads", (long long)c.reads);
    say("writebacks", (long long)c.writebacks);
    say("pm_writes", (long long)c.pm_writes);
    say("most", (long long)c.most_pm_writes);
    pmemu_range_counts(p, 1, &one);
    say("first_writebacks", (long long)one.writebacks);
    say("rest_reads", (long long)(c.reads - one.reads));
    return 0;
}

/* Use memory, and so much again for each byte on standard input; say what was got. */
static int do_hold(size_t pages)
{
    char c;
    do {
        char *p = map(pages * PMEMU_PAGE);
        for (size_t i = 0; i < pages; i++)
            p[i * PMEMU_PAGE] = 1;
        say("dram", pmemu_event(PMEMU_DRAM_PAGES));
        say("pm", pmemu_event(PMEMU_PM_PAGES));
        fflush(stdout);
    } while (read(0, &c, 1) > 0);
    return 0;
}

/* Blocks of malloc by tier, and mappings of the program itself. */
static int do_blocks(size_t blocks, size_t kib)
{
    long long n[2] = {0, 0};
    char *m;
    for (size_t i = 0; i < blocks; i++) {
        char *p = malloc(kib << 10);
        touch(p, (kib << 10) / LINE, true);
        n[pmemu_tier_of(p + (kib << 9))]++;
    }
    say("dram", n[0]);
    say("pm", n[1]);
    m = map(4 << 20);
    say("mapped", pmemu_tier_of(m));
    say("mapped_end", pmemu_tier_of(m + (4 << 20) - 1));
    munmap(m, 4 << 20);
    say("unmapped", pmemu_tier_of(m));
    return 0;
}

/* Everything that gives memory back makes room in DRAM. */
static int do_room(size_t pages)
{
    size_t bytes = pages * PMEMU_PAGE;
    char *p = map(bytes), *q, *m;

    touch(p, bytes / LINE, true);
    say("all", pmemu_event(PMEMU_DRAM_PAGES));
    madvise(p, bytes / 2, MADV_DONTNEED);
    say("half", pmemu_event(PMEMU_DRAM_PAGES));
    munmap(p + bytes / 2, bytes / 2);
    say("none", pmemu_event(PMEMU_DRAM_PAGES));
    touch(p, bytes / 2 / LINE, true);
    q = mremap(p, bytes / 2, bytes, MREMAP_MAYMOVE);
    say("remapped", pmemu_event(PMEMU_DRAM_PAGES));
    munmap(q, bytes);
    /* libc's own munmap goes past everybody: found when DRAM is full. */
    for (int i = 0; i < 3; i++) {
        m = malloc(64 * bytes);
        memset(m, 1, bytes);
        printf("malloc_%d %d\n", i, pmemu_tier_of(m + bytes / 2));
        free(m);
        if (i < 2)
            (void)map(64 * bytes); /* so that the next one lies elsewhere */
    }
    return 0;
}

/* Grows until libhybrid, which engages in a thread of its own, gives out PM; then works on
 * for a while beside that thread. */
static int do_late(size_t blocks)
{
    const size_t bytes = 256 << 10;
    char *p = NULL;
    size_t n = 0;
    int64_t t0, all;

    while (n++ < blocks && (!p || pmemu_tier_of(p) == 0)) {
        p = malloc(bytes);
        touch(p, bytes / LINE, true);
        usleep(1000);
    }
    say("tier", pmemu_tier_of(p));
    t0 = pmemu_vtime_ns();
    all = pmemu_event(PMEMU_COMPUTE_NS) + pmemu_event(PMEMU_STALL_NS) + pmemu_event(PMEMU_WAIT_NS);
    for (int i = 0; i < 2000; i++)
        touch(p, bytes / LINE, i % 2 == 0);
    t0 = pmemu_vtime_ns() - t0;
    all = pmemu_event(PMEMU_COMPUTE_NS) + pmemu_event(PMEMU_STALL_NS) + pmemu_event(PMEMU_WAIT_NS) -
          all;
    say("time", t0);
    say("spent", all);
    return 0;
}

int main(int argc, char **argv)
{
    size_t n[3] = {0, 1, 1};
    const char *what = argc > 1 ? argv[1] : "";

    for (int i = 0; i < 3 && i + 2 < argc; i++)
        n[i] = (size_t)atol(argv[i + 2]);
    if (n[0] > MAX_LINES || (n[1] > 64 && strcmp(what, "blocks") != 0))
        return 2;
    if (strcmp(what, "papi") == 0)
        return do_papi(n[0], n[1]);
    if (strcmp(what, "move") == 0)
        return do_move(n[0]);
    if (strcmp(what, "samples") == 0)
        return do_samples(n[0], n[1], n[2]);
    if (strcmp(what, "race") == 0)
        return do_race(n[0]);
    if (strcmp(what, "counts") == 0)
        return do_counts(n[0]);
    if (strcmp(what, "hold") == 0)
        return do_hold(n[0]);
    if (strcmp(what, "blocks") == 0)
        return do_blocks(n[0], n[1]);
    if (strcmp(what, "late") == 0)
        return do_late(n[0]);
    if (strcmp(what, "room") == 0)
        return do_room(n[0]);
    return 2;
}
