/* SPDX-License-Identifier: BSD-2-Clause
 * Call sites end to end: which stacks are one site, wherever and whenever they are captured.
 * "--print" as first argument prints one site. */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "rounds.h"
#include "sites_util.h"
#include "sys/walk/modules.h"
#include "sys/walk/unwind.h"
#include "tests/unit/qemu.h"

static const char *self_path;

/* The build-id that binutils see in the file. */
static void id_of_file(const char *path, char *hex, size_t cap)
{
    char cmd[600];
    hex[0] = '\0';
    snprintf(cmd, sizeof(cmd), "readelf -n '%s' | sed -n 's/.*Build ID: //p' | tr -d '\\n'", path);
    FILE *p = popen(cmd, "r");
    if (p == NULL || fgets(hex, (int)cap, p) == NULL)
        fprintf(stderr, "%s says nothing\n", cmd);
    if (p != NULL)
        pclose(p);
}

/* --- identity ---------------------------------------------------------------- */

static void test_same_stack_same_site(void **state)
{
    (void)state;
    unsigned known = 0;
    site_id id[64];
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 64; i++) {
            site_id got = (site_id)one.walk(capture, 3, i);
            assert_int_not_equal(got, 0);
            if (round == 0)
                id[i] = got;
            assert_int_equal(got, id[i]);
        }
        if (round == 0)
            known = sites_count();
        assert_int_equal(sites_count(), known);
    }
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(id[i], id[j]);
    }
}

static void test_frames_name_build_and_offset(void **state)
{
    (void)state;
    char want[64], got[64], text[128];
    site_id id = (site_id)one.walk(capture, 2, 6);
    struct site_info s = info_of(id);
    assert_true(s.n_frames >= 4 && s.n_frames <= SITE_FRAMES);
    id_of_file(plugin_path[0], want, sizeof(want));
    assert_int_equal(strlen(want), 40);
    for (int i = 0; i < 3; i++) {
        Dl_info d;
        build_id_format(s.frames[i].build_id, BUILD_ID_MAX, got, sizeof(got));
        assert_string_equal(got, want);
        assert_int_not_equal(dladdr(return_address(&s.frames[i], (void *)one.walk), &d), 0);
        assert_string_equal(d.dli_sname, "plugin_walk");
    }
    assert_true(s.frames[0].offset != s.frames[1].offset);
    /* Then the caller: this program, which is only left out at the innermost end. */
    uint8_t exe[BUILD_ID_MAX] = {0};
    assert_int_equal(module_exe_build_id(exe), 20);
    assert_memory_equal(s.frames[3].build_id, exe, BUILD_ID_MAX);
    build_id_format(exe, BUILD_ID_MAX, got, sizeof(got));
    id_of_file(self_path, want, sizeof(want));
    assert_string_equal(got, want);

    char end[64];
    const char *name = strrchr(plugin_path[0], '/') + 1;
    sites_format_frame(&s.frames[0], text, sizeof(text));
    snprintf(end, sizeof(end), "%s!0x%llx", name, (unsigned long long)s.frames[0].offset);
    assert_string_equal(text, end);
    sites_format_frame(&s.frames[3], text, sizeof(text));
    assert_memory_equal(text, "test_sites!0x", 13);
    struct hy_frame unknown = {.build_id = {0xab, 0xcd}, .offset = 16};
    sites_format_frame(&unknown, text, sizeof(text));
    assert_string_equal(text, "abcd000000000000!0x10");
}

static int print_one(void)
{
    char id[64];
    struct site_info s;
    if (!sites_get((site_id)one.walk(capture, 4, 0x1b), &s))
        return 1;
    printf("%016llx %u", (unsigned long long)s.id_hash, s.n_frames);
    for (unsigned i = 0; i < s.n_frames; i++) {
        build_id_format(s.frames[i].build_id, BUILD_ID_MAX, id, sizeof(id));
        printf(" %s+%llx", id, (unsigned long long)s.frames[i].offset);
    }
    printf("\n%p\n", (void *)one.walk);
    return 0;
}

static void test_same_in_every_run(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("a shell cannot run this program");
    char cmd[900], first[2048], line[2048], base[64], other[64];
    int moved = 0;
    snprintf(cmd, sizeof(cmd), "'%s' --print '%s' '%s'", self_path, plugin_path[0], plugin_path[1]);
    for (int run = 0; run < 5; run++) {
        FILE *p = popen(cmd, "r");
        assert_non_null(p);
        assert_non_null(fgets(run == 0 ? first : line, sizeof(line), p));
        assert_non_null(fgets(run == 0 ? base : other, sizeof(base), p));
        assert_int_equal(pclose(p), 0);
        if (run > 0) {
            assert_string_equal(line, first);
            moved += strcmp(base, other) != 0;
        }
    }
    assert_true(strlen(first) > 100);
    if (moved == 0) {
        print_message("addresses are not randomised here: equal for that reason\n");
        skip();
    }
}

/* --- the walk itself ------------------------------------------------------------ */

static uintptr_t ours[64];
static void *theirs[64];
static unsigned n_ours;
static int n_theirs;
static int (*unw_backtrace)(void **, int);

static unsigned both(void)
{
    n_ours = unwind_stack(ours, 40, 0, 0);
    n_theirs = unw_backtrace(theirs, 40);
    return 1;
}

static void compare_walks(const char *what, unsigned at_least)
{
    /* Frame 0 is the line in both(), which differs. */
    if (n_ours < at_least || (int)n_ours > n_theirs)
        fail_msg("%s: %u frames, libunwind has %d", what, n_ours, n_theirs);
    for (unsigned i = 1; i < n_ours; i++) {
        if (ours[i] != (uintptr_t)theirs[i])
            fail_msg("%s: frame %u is %p, libunwind says %p", what, i, (void *)ours[i], theirs[i]);
    }
}

static void *walks(void *arg)
{
    (void)arg;
    for (unsigned depth = 0; depth < 30; depth += 7) {
        one.walk(both, depth, 0x12345678);
        compare_walks("recursion", depth + 3);
    }
    for (unsigned bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
        one.alloca_frame(both, bytes);
        compare_walks("alloca", 4);
        one.realigned(both, bytes);
        compare_walks("realigned stack", 4);
    }
    one.qsort_frame(both, 0);
    compare_walks("callback through libc", 5);
    one.noreturn_call(both, 0);
    compare_walks("call without return", 5);
    return NULL;
}

static void test_agrees_with_libunwind(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("libunwind's end-of-thread code crashes in ThreadSanitizer\n");
    skip();
#endif
    if (under_valgrind()) {
        print_message("libunwind probes stacks by writing them to a pipe: valgrind objects\n");
        skip();
    }
    void *h = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (h == NULL) {
        print_message("no libunwind.so.8 to compare with\n");
        skip();
    }
    *(void **)&unw_backtrace = dlsym(h, "unw_backtrace");
    assert_non_null(unw_backtrace);
    walks(NULL);
    pthread_t t;
    pthread_create(&t, NULL, walks, NULL);
    pthread_join(t, NULL);
    one.huge(both, 0); /* not more than what is sure; elsewhere the walk is libunwind's */
#ifdef __x86_64__
    assert_true(n_ours >= 1 && n_ours < (unsigned)n_theirs);
#endif
}

static volatile unsigned in_handler;

static void handler(int sig)
{
    (void)sig;
    in_handler = one.walk(capture, 2, 1);
}

static void test_in_a_signal_handler(void **state)
{
    (void)state;
    struct sigaction sa = {.sa_handler = handler};
    sigaction(SIGUSR1, &sa, NULL);
    raise(SIGUSR1);
    assert_int_not_equal(in_handler, 0);
    assert_true(info_of((site_id)in_handler).n_frames >= 3);
}

static ucontext_t main_context, coroutine;
static unsigned coroutine_site;

static void coroutine_main(void)
{
    coroutine_site = one.walk(capture, 1, 2);
}

static void test_on_a_coroutine_stack(void **state)
{
    (void)state;
    /* The stack ends at a page without access: a walk beyond it dies. */
    const size_t bytes = 65536;
    char *stack =
        mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(stack + bytes, 4096, PROT_NONE), 0);
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = bytes;
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, coroutine_main, 0);
    swapcontext(&main_context, &coroutine);
    munmap(stack, bytes + 4096);
    assert_int_not_equal(coroutine_site, 0);
    struct site_info s = info_of((site_id)coroutine_site);
    assert_true(s.n_frames >= 3 && s.n_frames < SITE_FRAMES);
}

/* From inside malloc nothing may block: in strict mode any system call but
 * read, write and exit kills. */
static void capture_without_kernel(void *arg)
{
    (void)arg;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        syscall(SYS_exit, 77);
    for (unsigned i = 0; i < 256; i++) {
        if (one.walk(capture, 5, i * 3) == 0)
            syscall(SYS_exit, 1);
    }
    if (one.qsort_frame(capture, 0) == 0)
        syscall(SYS_exit, 2);
    syscall(SYS_exit, 0);
}

static void test_no_system_call(void **state)
{
    (void)state;
    if (TEST_SANITIZED || under_valgrind()) {
        print_message("the checker makes system calls of its own\n");
        skip();
    }
    int status = in_child(capture_without_kernel, NULL);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("seccomp is not available here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* --- many threads --------------------------------------------------------------- */

enum { THREADS = 8, STACKS = 256, ROUNDS = 300 };
static site_id by_thread[THREADS][STACKS];
static unsigned wrong[THREADS];

static void *capture_all(void *arg)
{
    unsigned t = (unsigned)(uintptr_t)arg;
    for (unsigned r = 0; r < ROUNDS; r++) {
        for (unsigned i = 0; i < STACKS; i++) {
            unsigned k = (i * 37 + t * 11) % STACKS;
            site_id id = (site_id)one.walk(capture, 7, 0x1500 + k);
            /* 0 is allowed while another thread enters a site. */
            if (id != 0 && by_thread[t][k] == 0)
                by_thread[t][k] = id;
            wrong[t] += id != 0 && by_thread[t][k] != id;
            sites_note_alloc(id, 100, 2);
            if (r & 1)
                sites_note_free(id, 100, 2);
        }
    }
    /* That takes a time slice or several on a busy computer: this thread may have missed a site
     * each time. */
    for (unsigned k = 0; k < STACKS; k++)
        while (by_thread[t][k] == 0)
            by_thread[t][k] = (site_id)one.walk(capture, 7, 0x1500 + k);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t t[THREADS];
    struct site_info before = info_of(0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, capture_all, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    uint64_t count = 0, bytes = 0, live = 0;
    for (unsigned k = 0; k < STACKS; k++) {
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(by_thread[i][k], by_thread[0][k]);
        for (unsigned j = 0; j < k; j++)
            assert_int_not_equal(by_thread[0][k], by_thread[0][j]);
        struct site_info s = info_of(by_thread[0][k]);
        count += s.count;
        bytes += s.bytes;
        live += s.live_bytes;
    }
    struct site_info other = info_of(0);
    uint64_t all = (uint64_t)THREADS * STACKS * ROUNDS;
    assert_int_equal(count + other.count - before.count, 2 * all);
    assert_int_equal(bytes + other.bytes - before.bytes, 200 * all);
    assert_int_equal(live + other.live_bytes - before.live_bytes, 100 * all);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(wrong[i], 0);
    /* Now nobody enters one: all are told. */
    for (unsigned k = 0; k < STACKS; k++)
        assert_int_equal(one.walk(capture, 7, 0x1500 + k), by_thread[0][k]);
}

static bool stop;

static void *capture_on(void *arg)
{
    for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
        one.walk(capture, 6, i % 64 + (unsigned)(uintptr_t)arg * 4096);
    return NULL;
}

static void capture_after_fork(void *arg)
{
    unsigned i = *(unsigned *)arg;
    sites_postfork();
    child_check(one.walk(capture, 3, 5) != 0);      /* known */
    child_check(one.walk(capture, 7, i * 64) != 0); /* new */
}

static void test_fork_beside_capturing_threads(void **state)
{
    (void)state;
    pthread_t t[3];
    one.walk(capture, 3, 5);
    for (unsigned i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, capture_on, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < rounds(150); i++) {
        sites_prefork();
        int status = in_child(capture_after_fork, &i);
        sites_postfork();
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
}

/* --- modules that come and go ----------------------------------------------------- */

static void test_modules_come_and_go(void **state)
{
    (void)state;
    char id[2][64], got[64];
    site_id site[2] = {0};
    unsigned same_place = 0, known = 0;
    void *last = NULL;
    for (int i = 0; i < 2; i++)
        id_of_file(plugin_path[i], id[i], sizeof(id[i]));
    assert_string_not_equal(id[0], id[1]);
    dlclose(one.handle);
    for (unsigned round = 0; round < 400; round++) {
        unsigned which = round & 1;
        struct plugin p = load(plugin_path[which]);
        same_place += last == (void *)p.walk;
        last = (void *)p.walk;
        site_id s = (site_id)p.walk(capture, 4, 0x77);
        assert_int_not_equal(s, 0);
        struct site_info info = info_of(s);
        for (int f = 0; f < 5; f++) {
            build_id_format(info.frames[f].build_id, BUILD_ID_MAX, got, sizeof(got));
            assert_string_equal(got, id[which]);
        }
        if (round < 2)
            site[which] = s;
        assert_int_equal(s, site[which]);
        if (round == 1)
            known = sites_count();
        dlclose(p.handle);
    }
    assert_int_equal(sites_count(), known);
    one = load(plugin_path[0]);
    /* The case is only worth something if both builds lay at one address; qemu takes others. */
    assert_true(same_place > 100 || TEST_SANITIZED || under_qemu());
}

int main(int argc, char **argv)
{
    bool print = argc == 4 && strcmp(argv[1], "--print") == 0;
    if (argc != 3 + print) {
        fprintf(stderr, "usage: %s [--print] PLUGIN PLUGIN\n", argv[0]);
        return 2;
    }
    self_path = argv[0];
    int r = sites_begin(argv + 1 + print);
    if (r != 0)
        return r;
    if (print)
        return print_one();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_stack_same_site),
        cmocka_unit_test(test_frames_name_build_and_offset),
        cmocka_unit_test(test_same_in_every_run),
        cmocka_unit_test(test_agrees_with_libunwind),
        cmocka_unit_test(test_in_a_signal_handler),
        cmocka_unit_test(test_on_a_coroutine_stack),
        cmocka_unit_test(test_no_system_call),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork_beside_capturing_threads),
        cmocka_unit_test(test_modules_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
