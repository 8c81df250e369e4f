/* SPDX-License-Identifier: BSD-2-Clause
 * Sources of counts: hardware events through a PAPI of ours (argv[1]; the machine need not
 * have a PMU), software events, recordings, the kernel's hints; and when not to count. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "classify/counters.h"
#include "classify/rules/recording.h"
#include "sys/usage.h"
#include "tests/filter.h"
#include "tests/unit/alone.h"
#include "tests/unit/classify/fake_papi.h"

static struct fake_papi *fake;
static const char *fake_path, *libpapi_path;

/* The emulated machine's signs. */
int pmemu_ignore_code(const void *from, const void *to);
int pmemu_ignore_code(const void *from, const void *to)
{
    return from < to ? 0 : -EINVAL;
}

int pmemu_set_tier(const void *base, size_t bytes, int pm);
int pmemu_set_tier(const void *base, size_t bytes, int pm)
{
    return base && bytes && pm >= 0 ? 0 : -EINVAL;
}

static void events(const char *const *names, unsigned n, int counters)
{
    int version = fake->version;

    memset(fake, 0, sizeof(*fake));
    fake->version = version;
    fake->counters = counters;
    for (unsigned i = 0; i < n; i++) {
        fake->event[i].name = names[i];
        fake->event[i].per_read = 1000 * (i + 1);
    }
}

static const char *const intel[] = {"PAPI_TOT_INS",
                                    "PAPI_TOT_CYC",
                                    "PAPI_L3_TCM",
                                    "LONGEST_LAT_CACHE:MISS",
                                    "CYCLE_ACTIVITY:STALLS_L3_MISS",
                                    "PAPI_L3_STM"};
static const char *const emulated[] = {
    "sde:::pmemu::VTIME_NS", "sde:::pmemu::COMPUTE_NS",  "sde:::pmemu::STALL_NS",
    "sde:::pmemu::WAIT_NS",  "sde:::pmemu::LLC_RD_DRAM", "sde:::pmemu::LLC_RD_PM",
    "sde:::pmemu::WB_DRAM",  "sde:::pmemu::WB_PM",       "sde:::pmemu::TOT_INS"};

static void fail_on_message(void *ctx, const char *message)
{
    (void)ctx;
    fail_msg("told: %s", message);
}

static int filtered(void)
{
    return os_seccomp() != 0; /* a container may run all tests under a filter */
}

static pthread_barrier_t gate;

static void *wait_at_gate(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    return NULL;
}

static void test_hardware(void **state)
{
    struct counters_info info;
    pthread_t thread[3];
    struct window w;

    (void)state;
    if (filtered()) {
        print_message("skipped: these tests run under a seccomp filter\n");
        skip();
    }
    wait_until_alone();
    events(intel, 6, 8);
    pthread_barrier_init(&gate, NULL, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, wait_at_gate, NULL), 0);
    pthread_barrier_wait(&gate);
    assert_int_equal(counters_open("hardware", fail_on_message, NULL), 0);
    counters_describe(&info);
    assert_int_equal(info.source, COUNTERS_HARDWARE);
    /* All threads but this one, which is the library's own; each hands its children on. */
    assert_int_equal(fake->attached, 3);
    assert_int_equal(fake->inherited, 3);
    assert_int_equal(fake->running, 3);
    for (int i = 0; i < 3; i++)
        assert_true(fake->thread[i] != (unsigned long)gettid());
    assert_int_equal(fake->multiplexed, 0);
    assert_int_equal(counters_window(&w), 0);
    assert_int_equal(counters_window(&w), 0);
    assert_int_equal(w.value[WINDOW_instructions], 3 * 1000);
    assert_int_equal(w.value[WINDOW_cycles], 3 * 2000);
    assert_int_equal(w.value[WINDOW_reads], 3 * 4000); /* before the preset */
    assert_int_equal(w.value[WINDOW_writes], 3 * 6000);
    assert_true(window_has(&w, WINDOW_stall_ns) && !window_has(&w, WINDOW_wait_ns));
    assert_true(w.value[WINDOW_stall_ns] <= w.value[WINDOW_busy_ns]);
    assert_false(window_has(&w, WINDOW_reads_pm));
    assert_false(window_has(&w, WINDOW_counted_pct));
    assert_non_null(strstr(info.what, "5, from 3 threads"));
    counters_close();
    assert_int_equal(fake->running, 0);
    assert_int_equal(fake->sets, 0);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&gate);
}

static unsigned general_counters;
static bool watchdog;

unsigned __wrap_os_pmu_counters(void);
unsigned __wrap_os_pmu_counters(void)
{
    return general_counters;
}

bool __wrap_os_nmi_watchdog(void);
bool __wrap_os_nmi_watchdog(void)
{
    return watchdog;
}

static void *open_in_thread(void *ret)
{
    *(int *)ret = counters_open("hardware", fail_on_message, NULL);
    return NULL;
}

/* From a thread as the library does it, so that main is counted. */
static int open_hardware(struct counters_info *info)
{
    pthread_t t;
    int r = -1;

    wait_until_alone();
    assert_int_equal(pthread_create(&t, NULL, open_in_thread, &r), 0);
    pthread_join(t, NULL);
    counters_describe(info);
    return r;
}

static void test_multiplexed(void **state)
{
    struct counters_info info;
    struct window w;

    (void)state;
    if (filtered())
        skip();
    events(intel, 6, 3);
    assert_int_equal(open_hardware(&info), 0);
    assert_int_equal(info.source, COUNTERS_HARDWARE);
    assert_true(fake->multiplexed > 0 && fake->running == 1 && fake->sets == 1);
    assert_non_null(strstr(info.what, "in turns"));
    assert_int_equal(counters_window(&w), 0);
    assert_int_equal(w.value[WINDOW_counted_pct], 60);
    counters_close();
}

/* One counter is left to load samples where the processor has just too few, and no event where that
 * would not be enough, or is not needed. */
static void test_spared(void **state)
{
    static const char *const skylake[] = {"PAPI_TOT_INS",
                                          "PAPI_TOT_CYC",
                                          "LONGEST_LAT_CACHE:MISS",
                                          "OFFCORE_RESPONSE_0:DMND_RFO:L3_MISS:SNP_ANY",
                                          "CYCLE_ACTIVITY:STALLS_L3_MISS",
                                          "L2_RQSTS:PF_MISS"};
    const struct {
        unsigned there;
        bool watchdog, wanted;
        unsigned events, spared;
    } table[] = {
        {4, false, false, 6, 0}, {4, false, true, 5, 1}, {4, true, true, 6, 0},
        {5, true, true, 5, 1},   {8, false, true, 6, 0}, {5, false, true, 6, 0},
        {8, true, true, 6, 0},   {0, false, true, 5, 1}, /* nobody tells: few */
        {3, false, true, 6, 0},
    };
    struct counters_info info;
    struct window w;

    (void)state;
    if (filtered())
        skip();
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        events(skylake, 6, 11); /* PAPI's number: as without hyperthreads, with fixed ones */
        general_counters = table[i].there;
        watchdog = table[i].watchdog;
        counters_spare(table[i].wanted);
        assert_int_equal(open_hardware(&info), 0);
        assert_int_equal(info.source, COUNTERS_HARDWARE);
        assert_int_equal(atoi(strchr(info.what, ':') + 1), table[i].events);
        assert_int_equal(strstr(info.what, "left out for samples") != NULL, table[i].spared);
        assert_int_equal(counters_window(&w), 0);
        assert_int_equal(window_has(&w, WINDOW_foreseen), !table[i].spared);
        assert_true(window_has(&w, WINDOW_reads) && window_has(&w, WINDOW_writes) &&
                    window_has(&w, WINDOW_stall_ns) && window_has(&w, WINDOW_cycles));
        counters_close();
    }
    counters_spare(false);
}

/* What cannot be had falls back to hints, with the reason. */
static void test_refused(void **state)
{
    struct counters_info info;
    struct window w;

    (void)state;
    if (filtered())
        skip();
    events(intel, 6, 8);
    fake->attach_error = -15;
    assert_int_equal(open_hardware(&info), 0);
    assert_int_equal(info.source, COUNTERS_KERNEL);
    assert_non_null(strstr(info.why, "does not let this process count"));
    assert_int_equal(fake->sets, 0);
    assert_int_equal(counters_window(&w), 0);
    assert_true(window_has(&w, WINDOW_elapsed_ns) && window_has(&w, WINDOW_busy_ns));
    assert_false(window_has(&w, WINDOW_reads));
    events(intel, 0, 8);
    assert_int_equal(open_hardware(&info), 0);
    assert_int_equal(info.source, COUNTERS_KERNEL);
    assert_non_null(strstr(info.why, "knows no event of this processor"));
    fake->version = 1;
    assert_int_equal(open_hardware(&info), 0);
    assert_non_null(strstr(info.why, "unknown version"));
    fake->version = 7 << 24;
    counters_use_papi("no-such-papi.so");
    assert_int_equal(open_hardware(&info), 0);
    assert_non_null(strstr(info.why, "not installed"));
    counters_use_papi(fake_path);
    counters_close();
}

/* The program ends PAPI under our hands: hints from then on. */
static void test_shut_down(void **state)
{
    struct counters_info info;
    struct window w;

    (void)state;
    if (filtered())
        skip();
    events(intel, 6, 8);
    assert_int_equal(open_hardware(&info), 0);
    fake->is_shut_down = 1;
    assert_int_equal(counters_window(&w), 0);
    assert_false(window_has(&w, WINDOW_reads));
    counters_describe(&info);
    assert_int_equal(info.source, COUNTERS_KERNEL);
    assert_non_null(strstr(info.why, "shut PAPI down"));
    assert_int_equal(counters_window(&w), 0);
    counters_close();
}

static void test_software(void **state)
{
    struct counters_info info;
    struct window w;

    (void)state;
    events(emulated, 9, 8);
    assert_int_equal(counters_open("auto", fail_on_message, NULL), 0);
    counters_describe(&info);
    assert_int_equal(info.source, COUNTERS_SOFTWARE);
    assert_int_equal(fake->attached, 0); /* they are the process' already */
    assert_int_equal(counters_window(&w), 0);
    assert_int_equal(w.value[WINDOW_elapsed_ns], 1000); /* virtual time, not the real one */
    assert_int_equal(w.value[WINDOW_busy_ns], 2000 + 3000 + 4000);
    assert_int_equal(w.value[WINDOW_stall_ns], 3000);
    assert_int_equal(w.value[WINDOW_wait_ns], 4000);
    assert_int_equal(w.value[WINDOW_reads], 5000 + 6000);
    assert_int_equal(w.value[WINDOW_reads_pm], 6000);
    assert_int_equal(w.value[WINDOW_writes], 7000 + 8000);
    assert_int_equal(w.value[WINDOW_writes_pm], 8000);
    counters_after_fork_child();
    counters_describe(&info);
    assert_int_equal(info.source, COUNTERS_OFF);
    assert_int_equal(counters_window(&w), -ENODATA);
    assert_int_equal(fake->running, 1); /* the parent's: nothing was called */
    memset(fake, 0, sizeof(*fake));
    fake->version = 7 << 24;
    /* Without its events, the real processor's are not taken instead: they would count the
     * emulation. */
    events(intel, 6, 8);
    assert_int_equal(counters_open("auto", fail_on_message, NULL), 0);
    counters_describe(&info);
    assert_int_equal(info.source, COUNTERS_KERNEL);
    counters_close();
}

static char told[512];

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    snprintf(told, sizeof(told), "%s", message);
}

static void test_replay(void **state)
{
    static const char text[] = "hybrid-recording 1\nsource x\nw elapsed-ns=5 reads=7\nrubbish\n"
                               "w elapsed-ns=6\n";
    char path[] = "/tmp/recording-XXXXXX", spec[64];
    struct counters_info info;
    struct window w;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    snprintf(spec, sizeof(spec), "replay:%s", path);
    assert_int_equal(counters_open(spec, hear, NULL), 0);
    counters_describe(&info);
    assert_int_equal(info.source, COUNTERS_REPLAY);
    assert_non_null(strstr(info.what, path));
    assert_int_equal(counters_window(&w), 0);
    assert_int_equal(w.value[WINDOW_reads], 7);
    assert_int_equal(counters_window(&w), 0);
    assert_int_equal(w.value[WINDOW_elapsed_ns], 6);
    assert_int_equal(counters_window(&w), -ENODATA);
    assert_int_equal(ftruncate(fd, 3), 0); /* somebody's truncation harms nobody */
    assert_int_equal(counters_window(&w), -ENODATA);
    assert_int_equal(counters_open(spec, hear, NULL), -EINVAL);
    assert_non_null(strstr(told, "no recording"));
    unlink(path);
    close(fd);
    assert_int_equal(counters_open(spec, hear, NULL), -EINVAL);
    assert_non_null(strstr(told, "cannot be read (ENOENT)"));
    counters_describe(&info);
    assert_int_equal(info.source, COUNTERS_OFF);
    assert_string_equal(info.what, "none");
}

/* perf_event_open kills: 298 on x86-64, 241 where the generic table holds. */
static int under_killing_filter(void)
{
    struct counters_info info;

    if (!filter(SYS_perf_event_open, SECCOMP_RET_KILL_PROCESS))
        return 77;
    counters_use_papi(NULL); /* the real one, which opens events to see what works */
    if (counters_open("hardware", NULL, NULL) != 0)
        return 1;
    counters_describe(&info);
    return info.source == COUNTERS_KERNEL && strstr(info.why, "seccomp") ? 0 : 2;
}

static void test_seccomp(void **state)
{
    int r = in_fork(under_killing_filter);

    (void)state;
    if (r == 77) {
        print_message("skipped: no filter can be installed here\n");
        skip();
    }
    assert_int_equal(r, 0);
}

/* A program that has a PAPI keeps it for itself. */
static int beside_the_programs_own(void)
{
    struct counters_info info;

    if (!dlopen(libpapi_path, RTLD_NOW | RTLD_GLOBAL))
        return 1;
    if (counters_open("hardware", NULL, NULL) != 0)
        return 2;
    counters_describe(&info);
    return info.source == COUNTERS_KERNEL && strstr(info.why, "uses PAPI itself") ? 0 : 3;
}

static void test_programs_own(void **state)
{
    (void)state;
    if (filtered())
        skip();
    assert_int_equal(in_fork(beside_the_programs_own), 0);
}

/* The system's PAPI, whatever this machine has: no harm, a description, windows. */
static int with_the_systems(void)
{
    struct counters_info info;
    struct window w;

    counters_use_papi(NULL);
    if (counters_open("hardware", NULL, NULL) != 0 || counters_window(&w) != 0)
        return 1;
    counters_describe(&info);
    counters_close();
    return info.what[0] && (info.source == COUNTERS_HARDWARE || info.why[0]) ? 0 : 2;
}

static void test_systems(void **state)
{
    (void)state;
    assert_int_equal(in_fork(with_the_systems), 0);
}

int main(int argc, char **argv)
{
#ifdef __SANITIZE_THREAD__
    puts("skipped: the sanitizer has a thread of its own, which is counted with the program's");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        /* first: later the fake is loaded in this process, and in its children */
        cmocka_unit_test(test_seccomp),      cmocka_unit_test(test_systems),
        cmocka_unit_test(test_programs_own), cmocka_unit_test(test_hardware),
        cmocka_unit_test(test_multiplexed),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_spared),       cmocka_unit_test(test_shut_down),
        cmocka_unit_test(test_software),     cmocka_unit_test(test_replay),
    };
    void *handle;

    if (argc != 3) {
        fprintf(stderr, "usage: test_counters FAKE-PAPI FAKE-PAPI-NAMED-LIBPAPI\n");
        return 2;
    }
    fake_path = argv[1];
    libpapi_path = argv[2];
    handle = dlopen(fake_path, RTLD_NOW | RTLD_LOCAL);
    fake = handle ? dlsym(handle, "fake_papi") : NULL;
    if (!fake) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    fake->version = 7 << 24;
    counters_use_papi(fake_path);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
