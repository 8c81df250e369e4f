/* SPDX-License-Identifier: BSD-2-Clause
 * sys/os.h: what is known of this process and of others, by their number and image. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "sys/os.h"
#include "sys/pages/track.h"
#include "tests/unit/qemu.h"

static char dir[300];

static void stop_here(void)
{
    for (;;)
        pause();
}

static void test_odd_names(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("/proc/self/stat is written by qemu, with a start time of its own");
    static const char *const names[] = {"a) R 1 2 (b", ") S 0 0 0 0", "((((", "  )", "x\ny"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int p[2];
        struct os_proc_id seen, own;
        assert_int_equal(pipe(p), 0);
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_NAME, names[i]);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (os_proc_self(&own) != 0 || write(p[1], &own, sizeof(own)) != sizeof(own))
                _exit(1);
            stop_here();
        }
        assert_int_equal(read(p[0], &own, sizeof(own)), sizeof(own));
        assert_int_equal(os_proc_id(pid, &seen), 0);
        assert_int_equal(own.pid, pid);
        assert_int_equal(seen.pid, pid);
        assert_true(seen.start_time > 0 && seen.start_time == own.start_time);
        assert_true(seen.stack_start == 0 || seen.stack_start == own.stack_start);
        kill(pid, SIGKILL);
        siginfo_t si;
        assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
        assert_int_equal(os_proc_id(pid, &seen), -ESRCH); /* a zombie */
        waitpid(pid, NULL, 0);
        assert_int_equal(os_proc_id(pid, &seen), -ESRCH); /* gone */
        close(p[0]);
        close(p[1]);
    }
}

static void test_no_process(void **state)
{
    (void)state;
    static const int32_t pids[] = {0, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
        struct os_proc_id got = {.pid = 5};
        assert_int_equal(os_proc_id(pids[i], &got), -ESRCH);
        assert_int_equal(got.pid, 5);
    }
}

/* exec keeps the pid and its start time: only the image tells. */
static void test_exec_is_another_image(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("/proc/self/stat is written by qemu, with a start time of its own");
    int p[2];
    struct os_proc_id before, after;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        os_proc_self(&before);
        if (write(p[1], &before, sizeof(before)) != sizeof(before))
            _exit(1);
        close(p[0]);
        execlp("sleep", "sleep", "30", (char *)NULL);
        _exit(1);
    }
    close(p[1]);
    char c;
    assert_int_equal(read(p[0], &before, sizeof(before)), sizeof(before));
    assert_int_equal(read(p[0], &c, 1), 0); /* closed by exec */
    assert_int_equal(os_proc_id(pid, &after), 0);
    assert_int_equal(after.start_time, before.start_time);
    bool told = after.stack_start != 0 && after.stack_start != before.stack_start;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(p[0]);
    if (!told) {
        print_message("without address randomisation exec cannot be seen\n");
        skip();
    }
}

static void *live_on(void *arg)
{
    char c = 'x';
    os_sleep_ns(100000000); /* main has ended by then */
    if (write(*(int *)arg, &c, 1) != 1)
        _exit(1);
    stop_here();
    return NULL;
}

/* The main thread may end before the others: still a living process. */
static void test_threads_outlive_main(void **state)
{
    (void)state;
    static int p[2];
    char c;
    struct os_proc_id id;
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t t;
        prctl(PR_SET_PDEATHSIG, 0);
        alarm(600);
        pthread_create(&t, NULL, live_on, &p[1]);
        syscall(SYS_exit, 0);
    }
    assert_int_equal(read(p[0], &c, 1), 1);
    int r = os_proc_id(pid, &id);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(r, 0);
}

/* main leaves by pthread_exit where there is no /proc. */
static void *main_has_left(void *arg)
{
    (void)arg;
    for (int i = 0; i < 600 && !os_main_ended(); i++)
        os_sleep_ns(100000000);
    _exit(os_main_ended() ? 0 : 3);
}

static void test_main_ends_without_proc(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("there is a /proc/self/stat without /proc, and its state is never Z");
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t t;
        alarm(600);
        if (chroot(dir) != 0 || chdir("/") != 0)
            _exit(77);
        os_note_main();
        if (os_main_ended() || os_file_exists("/proc/self/stat"))
            _exit(4);
        pthread_create(&t, NULL, main_has_left, NULL);
        syscall(SYS_exit, 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("chroot is not permitted here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static int by_wall_clock;

/* The clock that the administrator sets must not make us wait for hours. */
int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
    (void)m;
    (void)until;
    by_wall_clock++;
    return ETIMEDOUT;
}

static void test_patience_is_by_the_monotonic_clock(void **state)
{
    (void)state;
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    assert_true(os_lock_within(&m, 1000000));
    uint64_t begin = os_now_ns();
    assert_false(os_lock_within(&m, 20000000));
    assert_true(os_now_ns() - begin >= 20000000);
    assert_int_equal(by_wall_clock, 0);
    pthread_mutex_unlock(&m);
}

/* The program has closed our descriptors and uses their numbers: no ioctl goes to its files. */
static void test_numbers_that_are_the_programs_now(void **state)
{
    (void)state;
    int p[2];
    struct os_page_run run[4];
    static char page[8192] __attribute__((aligned(4096)));
    assert_int_equal(pipe(p), 0);
    struct os_track t = {.kind = OS_TRACK_SCAN, .pagemap = p[0], .other = p[1], .pid = os_pid()};
    assert_int_equal(os_track_add(&t, page, 4096), -EBADF);
    assert_int_equal(os_track_remove(&t, page, 4096), -EBADF);
    assert_int_equal(os_track_look(&t, page, 4096, true, run, 4), -EBADF);
    os_track_close(&t);
    assert_int_equal(close(p[0]), 0);
    assert_int_equal(close(p[1]), 0);
}

static void test_self(void **state)
{
    (void)state;
    char buf[1024], link[1024] = {0};
    struct os_proc_id id;
    assert_int_equal(os_exe_path(buf, sizeof(buf)), 0);
    assert_true(readlink("/proc/self/exe", link, sizeof(link) - 1) > 0);
    assert_string_equal(buf, link);
    assert_int_equal(os_exe_path(buf, strlen(link)), -ENAMETOOLONG);
    assert_int_equal(os_proc_self(&id), 0);
    assert_int_equal(id.pid, getpid());
    assert_int_equal(os_pid(), getpid());
    assert_int_equal(os_uid(), geteuid());
    assert_int_equal(os_gettid(), syscall(SYS_gettid));
    uint64_t t = os_now_ns();
    os_sleep_ns(5000000);
    assert_true(os_now_ns() - t >= 5000000);
    char *p;
    uint64_t rss = os_rss_bytes();
    assert_int_equal(os_map_anon(32 * HY_MIB, (void **)&p), 0);
    memset(p, 1, 32 * HY_MIB);
    assert_true(os_rss_bytes() >= rss + 30 * HY_MIB);
    os_unmap(p, 32 * HY_MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_no_process),
        cmocka_unit_test(test_exec_is_another_image),
        cmocka_unit_test(test_threads_outlive_main),
        cmocka_unit_test(test_numbers_that_are_the_programs_now),
        cmocka_unit_test(test_main_ends_without_proc),
        cmocka_unit_test(test_patience_is_by_the_monotonic_clock),
        cmocka_unit_test(test_self),
    };
    make_dir(dir, sizeof(dir));
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return r;
}
