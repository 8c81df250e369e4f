/* SPDX-License-Identifier: BSD-2-Clause
 * sys/os.h: the shared file that processes meet in, and what is known of
 * other processes. */
#include <errno.h>
#include <fcntl.h>
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

#define BYTES 65536

static char dir[300], path[340];

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
    uint32_t go, creators, done;
    uint8_t zero[100];
};

static void meet(void *arg)
{
    struct shared *start = arg, *s;
    bool created;
    while (__atomic_load_n(&start->go, __ATOMIC_ACQUIRE) == 0)
        sched_yield(); /* else, on few CPUs, the last are never forked */
    child_check(os_map_shared_file(path, BYTES, 0600, (void **)&s, &created) == 0);
    __atomic_fetch_add(&s->creators, created, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->done, 1, __ATOMIC_RELAXED);
}

/* Many processes at once: one creator, one memory. */
static void test_race(void **state)
{
    (void)state;
    enum { PROCESSES = 100 };
    struct shared *start =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned round = 0; round < rounds(5); round++) {
        struct shared *s;
        bool created;
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
        assert_int_equal(os_map_shared_file(path, BYTES, 0600, (void **)&s, &created), 0);
        assert_false(created);
        assert_int_equal(s->creators, 1);
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
        bool created;
        unlink(path);
        pid_t pid = fork();
        if (pid == 0) {
            os_map_shared_file(path, BYTES, 0600, &base, &created);
            _exit(0);
        }
        os_sleep_ns(i * 2000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), 0);
        ((char *)base)[BYTES - 1] = 1;
        os_unmap(base, BYTES);
    }
}

static void test_blocks_and_mode(void **state)
{
    (void)state;
    void *base;
    bool created = false;
    struct stat st;
    static const mode_t modes[] = {0600, 0660};
    for (int i = 0; i < 2; i++) {
        unlink(path);
        mode_t old = umask(0077);
        assert_int_equal(os_map_shared_file(path, BYTES, modes[i], &base, &created), 0);
        umask(old);
        assert_true(created);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, modes[i]);
        assert_int_equal(st.st_size, BYTES);
        assert_true(st.st_blocks * 512 >= BYTES); /* a full file system is found now */
        os_unmap(base, BYTES);
    }
    poke(path, BYTES, 0600); /* a sparse one gets its blocks */
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), 0);
    assert_false(created);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_blocks * 512 >= BYTES);
    os_unmap(base, BYTES);
}

static void test_refused(void **state)
{
    (void)state;
    void *base = &dir;
    bool created = true;
    char other[400];
    struct stat st;
    snprintf(other, sizeof(other), "%s/other", dir);

    poke(path, BYTES - 1, 0600);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPROTO);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, BYTES - 1);
    poke(path, BYTES, 0666); /* anybody could truncate it */
    assert_int_equal(os_map_shared_file(path, BYTES, 0660, &base, &created), -EPERM);
    poke(path, BYTES, 0660);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPERM);

    unlink(path);
    poke(other, BYTES, 0600);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPROTO);
    unlink(other); /* dangling: nothing is created behind it */
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPROTO);
    assert_int_equal(stat(other, &st), -1);
    unlink(path);

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPROTO);
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPROTO);
    unlink(path);
    snprintf(other, sizeof(other), "%s/none/x", dir);
    assert_int_equal(os_map_shared_file(other, BYTES, 0600, &base, &created), -ENOENT);
    assert_ptr_equal(base, &dir);
    assert_true(created);
}

static void test_foreign_owner(void **state)
{
    (void)state;
    void *base;
    bool created;
    if (getuid() != 0) {
        print_message("giving files away needs root\n");
        skip();
    }
    poke(path, BYTES, 0600);
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPERM);
    assert_int_equal(os_map_shared_file(path, BYTES, 0, &base, &created), -EPERM);
    assert_int_equal(chmod(path, 0660), 0);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, &base, &created), -EPERM);
    assert_int_equal(os_map_shared_file(path, BYTES, 0660, &base, &created), 0);
    os_unmap(base, BYTES);
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
    bool created = true;
    assert_int_equal(os_map_shared_file(path, BYTES, 0, (void **)&base, &created), -ENOENT);
    assert_int_equal(os_map_shared_file(path, BYTES, 0600, (void **)&writer, &created), 0);
    assert_int_equal(os_map_shared_file(path, BYTES, 0, (void **)&base, &created), 0);
    assert_false(created);
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
        assert_true(os_proc_alive(&own));
        struct os_proc_id reused = own;
        reused.start_time++;
        assert_false(os_proc_alive(&reused));
        reused.start_time = reused.stack_start = 0;
        assert_true(os_proc_alive(&reused));
        kill(pid, SIGKILL);
        siginfo_t si;
        assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
        assert_int_equal(os_proc_id(pid, &seen), -ESRCH); /* a zombie */
        assert_false(os_proc_alive(&own));
        waitpid(pid, NULL, 0);
        assert_false(os_proc_alive(&own)); /* gone */
        close(p[0]);
        close(p[1]);
    }
}

static void test_no_process(void **state)
{
    (void)state;
    static const int32_t pids[] = {0, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
        struct os_proc_id id = {.pid = pids[i]}, got = {.pid = 5};
        assert_int_equal(os_proc_id(pids[i], &got), -ESRCH);
        assert_int_equal(got.pid, 5);
        assert_false(os_proc_alive(&id));
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
    if (told)
        assert_false(os_proc_alive(&before));
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
    assert_true(os_proc_alive(&id));
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
        cmocka_unit_test_setup(test_foreign_owner, setup),
        cmocka_unit_test_setup(test_look_only, setup),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_no_process),
        cmocka_unit_test(test_exec_is_another_image),
        cmocka_unit_test(test_threads_outlive_main),
        cmocka_unit_test(test_self),
    };
    make_dir(dir, sizeof(dir));
    snprintf(path, sizeof(path), "%s/meet", dir);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return r;
}
