/* SPDX-License-Identifier: BSD-2-Clause
 * sys/os.h: the shared file that processes meet in, and what is known of
 * other processes. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "rounds.h"
#include "sys/os.h"
#include "sys/pages/track.h"

#define BYTES 65536

static char dir[300], path[340];

/* The file in memory, as a test likes it. */
static int open_shared(const char *name, bool writing, void **ret_base)
{
    int fd, r = os_open_shared_file(name, BYTES, writing, &fd);

    if (r == 0) {
        *ret_base =
            mmap(NULL, BYTES, writing ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
        if (*ret_base == MAP_FAILED)
            r = -errno;
        close(fd);
    }
    return r;
}

static int setup(void **state)
{
    (void)state;
    unlink(path);
    rmdir(path);
    return 0;
}

static void poke(const char *p, off_t size, mode_t mode)
{
    int fd = open(p, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

struct shared {
    uint32_t go, done;
    uint8_t zero[100];
};

static void meet(void *arg)
{
    struct shared *start = arg, *s;
    while (__atomic_load_n(&start->go, __ATOMIC_ACQUIRE) == 0)
        sched_yield(); /* else, on few CPUs, the last are never forked */
    child_check(open_shared(path, true, (void **)&s) == 0);
    __atomic_fetch_add(&s->done, 1, __ATOMIC_RELAXED);
}

/* Many processes at once: one memory. */
static void test_race(void **state)
{
    (void)state;
    enum { PROCESSES = 100 };
    struct shared *start =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned round = 0; round < rounds(5); round++) {
        struct shared *s;
        unlink(path);
        start->go = 0;
        pid_t pid[PROCESSES];
        for (int i = 0; i < PROCESSES; i++) {
            pid[i] = fork();
            if (pid[i] == 0) {
                alarm(610);
                meet(start);
                _exit(0);
            }
        }
        __atomic_store_n(&start->go, 1, __ATOMIC_RELEASE);
        for (int i = 0; i < PROCESSES; i++) {
            int status = -1;
            waitpid(pid[i], &status, 0);
            assert_int_equal(status, 0);
        }
        assert_int_equal(open_shared(path, true, (void **)&s), 0);
        assert_int_equal(s->done, PROCESSES);
        os_unmap(s, BYTES);
    }
    munmap(start, 4096);
}

/* Creators killed at any instant: the next one finds a good file or none. */
static void test_killed_creators(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        void *base;
        unlink(path);
        pid_t pid = fork();
        if (pid == 0) {
            open_shared(path, true, &base);
            _exit(0);
        }
        os_sleep_ns(i * 2000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(open_shared(path, true, &base), 0);
        ((char *)base)[BYTES - 1] = 1;
        os_unmap(base, BYTES);
    }
}

static void test_blocks_and_mode(void **state)
{
    (void)state;
    void *base;
    struct stat st;
    mode_t old = umask(0777);
    assert_int_equal(open_shared(path, true, &base), 0);
    umask(old);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, BYTES);
    assert_true(st.st_blocks * 512 >= BYTES); /* a full file system is found now */
    os_unmap(base, BYTES);
    poke(path, BYTES, 0600); /* a sparse one gets its blocks */
    assert_int_equal(open_shared(path, true, &base), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_blocks * 512 >= BYTES);
    os_unmap(base, BYTES);
}

static void test_refused(void **state)
{
    (void)state;
    void *base = &dir;
    char other[400];
    struct stat st;
    snprintf(other, sizeof(other), "%s/other", dir);

    poke(path, BYTES - 1, 0600);
    assert_int_equal(open_shared(path, true, &base), -EPROTO);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, BYTES - 1);
    poke(path, 0, 0600);
    assert_int_equal(open_shared(path, true, &base), -EPROTO);
    poke(path, BYTES, 0666);
    assert_int_equal(open_shared(path, true, &base), -EPERM);
    poke(path, BYTES, 0602);
    assert_int_equal(open_shared(path, true, &base), -EPERM);

    unlink(path);
    poke(other, BYTES, 0600);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(open_shared(path, true, &base), -EPROTO);
    unlink(other); /* dangling: nothing is created behind it */
    assert_int_equal(open_shared(path, true, &base), -EPROTO);
    assert_int_equal(stat(other, &st), -1);
    unlink(path);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(open_shared(path, true, &base), -EPROTO);
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_shared(path, true, &base), -EPROTO);
    unlink(path);
    snprintf(other, sizeof(other), "%s/none/x", dir);
    assert_int_equal(open_shared(other, true, &base), -ENOENT);
    assert_ptr_equal(base, &dir);
}

enum { SOMEBODY = 12345, SOMEBODY_ELSE = 12346, THEIR_GROUP = 12347 };

static int wanted_of_user;

/* As a user without rights, in one group. */
static void open_as_user(void *arg)
{
    uid_t user = *(const uid_t *)arg;
    gid_t group = THEIR_GROUP;
    void *base;
    child_check(setgroups(1, &group) == 0 && setgid(user) == 0 && setuid(user) == 0);
    int r = open_shared(path, true, &base);
    if (r != wanted_of_user)
        dprintf(2, "user %u: %s\n", (unsigned)user, os_error_name(r));
    _exit(r == wanted_of_user ? 0 : 1);
}

static void expect_of_user(uid_t user, int want)
{
    wanted_of_user = want;
    assert_int_equal(in_child(open_as_user, &user), 0);
}

static void test_whose_files_are_trusted(void **state)
{
    (void)state;
    void *base;
    struct stat st;
    if (getuid() != 0) {
        print_message("giving files away needs root\n");
        skip();
    }
    assert_int_equal(chmod(dir, 0755), 0);
    poke(path, BYTES, 0600);
    assert_int_equal(chown(path, SOMEBODY, SOMEBODY), 0);
    assert_int_equal(open_shared(path, true, &base), -EPERM);
    assert_int_equal(open_shared(path, false, &base), -EPERM);
    expect_of_user(SOMEBODY, 0);
    /* A group is the administrator's to choose: nobody accepts a user's. */
    assert_int_equal(chown(path, SOMEBODY, THEIR_GROUP), 0);
    assert_int_equal(chmod(path, 0660), 0);
    assert_int_equal(open_shared(path, true, &base), -EPERM);
    assert_int_equal(open_shared(path, false, &base), -EPERM);
    expect_of_user(SOMEBODY, -EPERM);
    expect_of_user(SOMEBODY_ELSE, -EPERM);
    /* And accepts root's, also an empty one, which the first who may gives its size. */
    poke(path, 0, 0660);
    assert_int_equal(chown(path, 0, THEIR_GROUP), 0);
    assert_int_equal(open_shared(path, false, &base), -ENOENT); /* nobody was there yet */
    expect_of_user(SOMEBODY, 0);
    expect_of_user(SOMEBODY_ELSE, 0);
    assert_int_equal(open_shared(path, true, &base), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, BYTES);
    assert_int_equal(chmod(path, 0600), 0);
    expect_of_user(SOMEBODY, -EACCES);
    os_unmap(base, BYTES);
}

/* Somebody changes the file while we use it: errors, never a signal. */
static void test_a_file_that_is_cut(void **state)
{
    (void)state;
    int fd;
    uint64_t v = 7, got = 0;
    assert_int_equal(os_open_shared_file(path, BYTES, true, &fd), 0);
    assert_int_equal(os_write_at(fd, BYTES - 8, &v, 8), 0);
    assert_int_equal(os_read_at(fd, BYTES - 8, &got, 8), 0);
    assert_int_equal(got, 7);
    assert_int_equal(os_read_at(fd, BYTES - 7, &got, 8), -ENODATA);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(os_read_at(fd, BYTES - 8, &got, 8), -ENODATA);
    assert_int_equal(os_read_at(-1, 0, &got, 8), -EBADF);
    os_close(fd);
}

static int lock_test_fd[2];

static void lock_and_die(void *arg)
{
    int fd;
    (void)arg;
    child_check(os_open_shared_file(path, BYTES, true, &fd) == 0);
    child_check(os_lock_bytes(fd, 1000000, 1) == -EAGAIN);
    child_check(os_lock_bytes(fd, 2000000, 5) == 0);
    child_check(write(lock_test_fd[1], "x", 1) == 1);
    for (;;)
        pause();
}

static void test_locks_end_with_their_holder(void **state)
{
    (void)state;
    int fd;
    char c;
    assert_int_equal(os_open_shared_file(path, BYTES, true, &fd), 0);
    assert_int_equal(os_lock_bytes(fd, 1000000, 1), 0);
    assert_int_equal(os_byte_is_locked(fd, 1000000), 0); /* by us: not asked */
    assert_int_equal(pipe(lock_test_fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(600);
        lock_and_die(NULL);
    }
    assert_int_equal(read(lock_test_fd[0], &c, 1), 1);
    assert_int_equal(os_byte_is_locked(fd, 2000004), 1);
    assert_int_equal(os_byte_is_locked(fd, 2000005), 0);
    assert_int_equal(os_lock_bytes(fd, 1999999, 3), -EAGAIN);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(os_byte_is_locked(fd, 2000004), 0);
    assert_int_equal(os_lock_bytes(fd, 1999999, 3), 0);
    assert_int_equal(os_unlock_bytes(fd, 1000000, 1), 0);
    os_close(fd);
    close(lock_test_fd[0]);
    close(lock_test_fd[1]);
}

static void write_to(void *arg)
{
    signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
    *(volatile char *)arg = 1;
}

static void test_look_only(void **state)
{
    (void)state;
    char *base, *writer;
    assert_int_equal(open_shared(path, false, (void **)&base), -ENOENT);
    assert_int_equal(open_shared(path, true, (void **)&writer), 0);
    assert_int_equal(open_shared(path, false, (void **)&base), 0);
    writer[5] = 'x';
    assert_int_equal(base[5], 'x'); /* the living memory, not a copy */
    int status = in_child(write_to, base);
    if (!TEST_SANITIZED)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_not_equal(status, 0);
    os_unmap(base, BYTES);
    os_unmap(writer, BYTES);
}

/* --- processes ------------------------------------------------------------------ */

static void stop_here(void)
{
    for (;;)
        pause();
}

static void test_odd_names(void **state)
{
    (void)state;
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
        cmocka_unit_test_setup(test_race, setup),
        cmocka_unit_test_setup(test_killed_creators, setup),
        cmocka_unit_test_setup(test_blocks_and_mode, setup),
        cmocka_unit_test_setup(test_refused, setup),
        cmocka_unit_test_setup(test_whose_files_are_trusted, setup),
        cmocka_unit_test_setup(test_a_file_that_is_cut, setup),
        cmocka_unit_test_setup(test_locks_end_with_their_holder, setup),
        cmocka_unit_test_setup(test_look_only, setup),
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
    snprintf(path, sizeof(path), "%s/meet", dir);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return r;
}
