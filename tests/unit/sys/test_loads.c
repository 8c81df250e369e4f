/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of accesses through the kernel's own rings. Where there is no processor to sample loads,
 * page faults stand in for them: the kernel's software event tells of addresses in the same way.
 * Skipped (77) where the kernel does not permit even that. */
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "fake_tree.h"
#include "pages/sampler.h"
#include "pages/sampler_loads.h"
#include "sys/pages/track.h"
#include "sys/usage.h"

#define FAULTS                                                                                     \
    {                                                                                              \
        .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .user_only = true         \
    }
#define MIB ((size_t)1 << 20)

static const struct os_load_event faults = FAULTS;
static const struct load_event fault_event = {
    .os = FAULTS, .filter = SAMPLE_ALL, .unit = 0, .period = 1, .meaning = "page faults"};

/* --- a thread that touches pages when it is told to ------------------------------------ */

struct worker {
    pthread_t thread;
    char *at;
    size_t pages;
    int tid;
    unsigned asked, done; /* rounds */
};

#define STOP UINT_MAX

static void *work(void *arg)
{
    struct worker *w = arg;
    __atomic_store_n(&w->tid, os_gettid(), __ATOMIC_RELEASE);
    for (unsigned asked; (asked = __atomic_load_n(&w->asked, __ATOMIC_ACQUIRE)) != STOP;) {
        if (w->done == asked) {
            usleep(200);
            continue;
        }
        madvise(w->at, w->pages * HY_PAGE, MADV_DONTNEED);
        for (size_t i = 0; i < w->pages; i++)
            ((volatile char *)w->at)[i * HY_PAGE + 8 * (i % 512)] = 1;
        __atomic_store_n(&w->done, asked, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void start(struct worker *w, char *at, size_t pages)
{
    *w = (struct worker){.at = at, .pages = pages};
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE))
        usleep(200);
}

static void ask(struct worker *w)
{
    __atomic_store_n(&w->asked, w->done + 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&w->done, __ATOMIC_ACQUIRE) != w->asked)
        usleep(200);
}

static void stop(struct worker *w)
{
    __atomic_store_n(&w->asked, STOP, __ATOMIC_RELEASE);
    pthread_join(w->thread, NULL);
}

static char *mapping(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    os_no_huge_pages(at, bytes);
    return at;
}

/* --- the contract for kernel calls ----------------------------------------------------------- */

static unsigned seen[4096];
static char *seen_base;

static void note(void *ctx, uint64_t address, uint64_t source)
{
    (void)ctx;
    (void)source;
    size_t page = (address - (uintptr_t)seen_base) / HY_PAGE;
    if (address >= (uintptr_t)seen_base && page < HY_ARRAY_SIZE(seen))
        seen[page]++;
}

static struct sample_counts take(const struct os_load_ring *ring)
{
    struct os_load_records r;
    struct sample_counts c = {0};
    assert_true(os_load_records(ring, &r));
    struct sample_ring s = {.data = r.data, .size = r.size, .head = r.head, .tail = r.tail};
    os_load_read(ring, sample_ring_read(&s, note, NULL, &c));
    assert_int_equal(c.broken, 0);
    return c;
}

static void a_threads_accesses(void **state)
{
    struct worker w, other;
    struct os_load_ring ring;
    char *at = mapping(512 * HY_PAGE), *elsewhere = mapping(512 * HY_PAGE);
    (void)state;
    start(&w, at, 300);
    start(&other, elsewhere, 300);
    assert_int_equal(os_load_open(&faults, 1, w.tid, 2, &ring), 0);
    assert_int_equal(ring.tid, w.tid);
    seen_base = at;
    for (unsigned round = 1; round <= 10; round++) { /* the ring wraps */
        ask(&w);
        ask(&other);
        (void)take(&ring);
        for (unsigned i = 0; i < 512; i++) /* the kernel may fault a page twice */
            assert_true(i < 300 ? seen[i] >= round : seen[i] == 0);
    }
    seen_base = elsewhere;
    memset(seen, 0, sizeof(seen));
    ask(&other); /* nobody samples that one */
    (void)take(&ring);
    for (unsigned i = 0; i < 512; i++)
        assert_int_equal(seen[i], 0);
    /* One in seven. */
    struct os_load_ring few;
    assert_int_equal(os_load_open(&faults, 7, other.tid, 2, &few), 0);
    ask(&other);
    struct sample_counts c = take(&few);
    assert_in_range(c.samples, 300 / 7 - 1, 2 * 300 / 7);
    os_load_close(&few);
    os_load_close(&few); /* nothing more */
    stop(&other);
    stop(&w);
    os_load_close(&ring);
    assert_int_equal(os_load_open(&faults, 1, w.tid, 2, &ring), -ESRCH);
    munmap(at, 512 * HY_PAGE);
    munmap(elsewhere, 512 * HY_PAGE);
}

static void what_does_not_fit_is_counted(void **state)
{
    struct worker w;
    struct os_load_ring ring;
    char *at = mapping(4000 * HY_PAGE);
    (void)state;
    start(&w, at, 4000);
    assert_int_equal(os_load_open(&faults, 1, w.tid, 0, &ring), 0);
    ask(&w);
    struct sample_counts c = take(&ring);
    assert_in_range(c.samples, 100, 4096 / 24);
    ask(&w); /* with the next sample the loss is told */
    struct sample_counts more = take(&ring);
    assert_true(c.lost + more.lost >= 4000 - 4096 / 24);
    assert_true(more.samples > 100);
    stop(&w);
    os_load_close(&ring);
    munmap(at, 4000 * HY_PAGE);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct os_file_id id;
        n += os_file_id(fd, &id) == 0;
    }
    return n;
}

static void child_part(void *arg)
{
    struct os_load_ring *ring = arg, own;
    struct os_load_records r;
    child_check(!os_load_records(ring, &r));
    child_check(os_load_waited_pct(ring) == 0);
    os_load_read(ring, 0);
    child_check(os_load_open(&faults, 1, 0, 1, &own) == 0);
    child_check(os_load_records(&own, &r));
    os_load_close(ring);
    os_load_close(&own);
}

static void neither_descriptors_nor_children(void **state)
{
    struct os_load_ring ring;
    unsigned before = descriptors();
    (void)state;
    assert_int_equal(os_load_open(&faults, 1, 0, 2, &ring), 0);
    assert_int_equal(descriptors(), before);
    assert_int_equal(in_child(child_part, &ring), 0);
    char *at = mapping(64 * HY_PAGE);
    memset(at, 1, 64 * HY_PAGE);
    assert_true(take(&ring).samples >= 64);
    assert_int_equal(os_load_waited_pct(&ring), 0); /* nobody else has this event's counter */
    os_load_close(&ring);
    munmap(at, 64 * HY_PAGE);
    struct os_load_event none = {.type = 0x7fffffff};
    assert_true(os_load_open(&none, 1, 0, 2, &ring) < 0);
    assert_int_equal(descriptors(), before);
}

static void who_has_to_wait(void **state)
{
    static struct perf_event_mmap_page page;
    struct os_load_ring ring = {.base = &page, .bytes = 2 * HY_PAGE, .pid = getpid()};
    (void)state;
    assert_int_equal(os_load_waited_pct(&ring), 0);
    page.time_enabled = page.time_running = 10000000;
    assert_int_equal(os_load_waited_pct(&ring), 0);
    page.time_running = 7500000;
    assert_int_equal(os_load_waited_pct(&ring), 25);
    page.time_running = 0;
    assert_int_equal(os_load_waited_pct(&ring), 100);
    page.time_enabled = 1000; /* a microsecond tells nothing */
    assert_int_equal(os_load_waited_pct(&ring), 0);
    page.time_enabled = 10000000;
    page.lock = 3; /* never at rest: not known */
    assert_int_equal(os_load_waited_pct(&ring), 0);
}

/* --- which events -------------------------------------------------------------------------------
 */

#define PMU "bus/event_source/devices/"

static void the_machines_events(void **state)
{
    struct load_event e[8];
    char dir[256];
    (void)state;
    make_dir(dir, sizeof(dir));
    assert_int_equal(load_events(dir, e, 8), 0);
    tree_put(dir, PMU "software/type", "1\n");
    assert_int_equal(load_events(dir, e, 8), 0);
    /* Sandy Bridge: latency only, as its misses have no address. */
    tree_put(dir, PMU "cpu/type", "4\n");
    tree_put(dir, PMU "cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
    tree_put(dir, PMU "cpu/events/mem-stores", "event=0xcd,umask=0x2\n");
    assert_int_equal(load_events(dir, e, 8), 1);
    assert_int_equal(e[0].os.config, 0x1cd);
    assert_int_equal(e[0].os.config1, 64);
    assert_int_equal(store_events(dir, e, 8), 0); /* its precise stores need one certain counter */
    /* Haswell to Ice Lake. */
    tree_put(dir, PMU "cpu/events/mem-stores", "event=0xd0,umask=0x82\n");
    assert_int_equal(load_events(dir, e, 8), 2);
    assert_int_equal(e[0].os.type, 4);
    assert_int_equal(e[0].os.config, 0x20d1);
    assert_int_equal(e[0].os.precise, 2);
    assert_true(e[0].os.user_only && e[0].filter == SAMPLE_ALL);
    assert_int_equal(store_events(dir, e, 8), 1);
    assert_int_equal(e[0].os.config, 0x82d0);
    assert_true(e[0].os.user_only && e[0].filter == SAMPLE_MISSED_STORES);
    /* Sapphire Rapids. */
    tree_put(dir, PMU "cpu/events/mem-stores", "event=0xcd,umask=0x2\n");
    tree_put(dir, PMU "cpu/events/mem-loads-aux", "event=0x03,umask=0x82\n");
    assert_int_equal(load_events(dir, e, 8), 2);
    assert_int_equal(e[0].os.config, 0x20d1);
    assert_int_equal(load_events(dir, e, 1), 1);
    assert_int_equal(store_events(dir, e, 8), 1);
    tree_remove(dir);
    make_dir(dir, sizeof(dir));
    tree_put(dir, PMU "cpu_core/type", "4\n");
    tree_put(dir, PMU "cpu_core/events/mem-loads-aux", "event=0x03,umask=0x82\n");
    tree_put(dir, PMU "cpu_atom/type", "10\n");
    tree_put(dir, PMU "cpu_atom/events/mem-loads", "event=0xd0,umask=0x5,ldlat=3\n");
    assert_int_equal(load_events(dir, e, 8), 1);
    assert_int_equal(e[0].os.type, 4);
    tree_remove(dir);
    /* AMD: with and without the kernel's own accesses. */
    make_dir(dir, sizeof(dir));
    tree_put(dir, PMU "cpu/type", "4\n");
    tree_put(dir, PMU "ibs_op/type", "11\n");
    assert_int_equal(load_events(dir, e, 8), 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(e[i].os.type, 11);
        assert_int_equal(e[i].filter, SAMPLE_FROM_MEMORY);
        assert_int_equal(e[i].os.user_only, i < 2);
        assert_int_equal(e[i].period % e[i].unit, 0);
    }
    assert_int_equal(store_events(dir, e, 8), 0); /* the same samples tell of both */
    tree_put(dir, PMU "ibs_op/type", "nonsense\n");
    assert_int_equal(load_events(dir, e, 8), 0);
    tree_remove(dir);
}

/* --- the source
 * ----------------------------------------------------------------------------------- */

static int no_writes(void)
{
    return 0;
}

static void nothing(void)
{
}

static const struct sampler_source writes = {
    .name = "none", .writes = true, .open = no_writes, .close = nothing};

#define WORKERS 3u

static struct pass_stats pass(struct worker *w, unsigned n)
{
    struct pass_stats stats;
    assert_true(sampler_begin(UINT64_MAX) > 0);
    for (unsigned r = 0; r < HISTORY_ROUNDS; r++) {
        for (unsigned i = 0; i < n; i++)
            ask(&w[i]);
        sampler_round(r);
    }
    sampler_end(&stats);
    return stats;
}

static unsigned hot_reads(void)
{
    uint64_t totals[HY_TIERS][BANDS], on[HY_TIERS];
    sampler_totals(totals, on);
    return (unsigned)totals[HY_PM][BAND_HOT_RD];
}

static void source_child(void *memory)
{
    (void)memory;
    sampler_postfork(); /* in_child forks inside */
    child_check(!sampler_loads.alive());
    child_check(sampler_reopen() == 0);
    child_check(sampler_loads.alive());
    child_check(strcmp(sampler_source_name(false), "load-samples") == 0);
    struct pass_stats stats;
    child_check(sampler_begin(UINT64_MAX) > 0);
    for (unsigned r = 0; r < HISTORY_ROUNDS; r++)
        sampler_round(r);
    sampler_end(&stats);
    child_check(stats.observed > 0);
}

static void the_source_finds_what_is_read(void **state)
{
    const struct sampler_source *list[] = {&writes, &sampler_loads, NULL};
    struct predictor p = predictor_of(PREDICT_WINDOW);
    struct worker w[WORKERS];
    struct loads_view before, v;
    char *map = mapping(10 * MIB);
    char *at = (char *)hy_align_up((uintptr_t)map, 2 * MIB);
    (void)state;
    sampler_loads_use(&fault_event);
    assert_int_equal(sampler_open(list, &p, 1), 0);
    assert_string_equal(sampler_source_name(false), "load-samples");
    assert_int_equal(sampler_add(at, 8 * MIB, HY_PM, false), 0);
    sampler_loads_get(&before);
    for (unsigned i = 0; i < WORKERS; i++)
        start(&w[i], at + i * 2 * MIB, 256);
    for (unsigned n = 0; n < 4; n++)
        (void)pass(w, WORKERS - 1); /* the last one rests */
    assert_int_equal(hot_reads(), 2 * 256);
    sampler_loads_get(&v);
    assert_int_equal(v.threads, WORKERS);
    assert_int_equal(v.counts.lost, before.counts.lost);
    assert_true(v.counts.samples - before.counts.samples >= 4 * HISTORY_ROUNDS * 2 * 256);
    for (unsigned n = 0; n < 4; n++)
        (void)pass(w + 1, WORKERS - 1); /* now the first one */
    assert_int_equal(hot_reads(), 2 * 256);
    /* Threads come and go. */
    for (unsigned i = 0; i < WORKERS; i++)
        stop(&w[i]);
    start(&w[0], at + 6 * MIB, 100);
    for (unsigned n = 0; n < 8; n++)
        (void)pass(w, 1);
    sampler_loads_get(&v);
    assert_int_equal(v.threads, 1);
    assert_int_equal(hot_reads(), 100);
    sampler_prefork();
    int status = in_child(source_child, NULL);
    sampler_postfork();
    assert_int_equal(status, 0);
    (void)pass(w, 1);
    assert_int_equal(hot_reads(), 100);
    stop(&w[0]);
    sampler_close();
    sampler_loads_use(NULL);
    munmap(map, 10 * MIB);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    puts("skipped: the sanitizer has a thread and memory of its own, which are seen as well");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_threads_accesses),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(neither_descriptors_nor_children),
        cmocka_unit_test(who_has_to_wait),
        cmocka_unit_test(the_source_finds_what_is_read),
    };
    const struct CMUnitTest anywhere[] = {
        cmocka_unit_test(the_machines_events),
    };
    struct os_load_ring ring;
    int failed = cmocka_run_group_tests_name("anywhere", anywhere, NULL, NULL);
    int r = os_seccomp() != 0 ? -EACCES : os_load_open(&faults, 1, 0, 2, &ring);
    if (r != 0) {
        printf("page faults cannot be sampled here: %s\n", strerror(-r));
        return failed ? 1 : 77;
    }
    os_load_close(&ring);
    return failed + cmocka_run_group_tests_name("kernel", tests, NULL, NULL) ? 1 : 0;
}
