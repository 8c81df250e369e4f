/* SPDX-License-Identifier: BSD-2-Clause
 * sys/os.h: the shared file that processes meet in. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "child.h"
#include "rounds.h"
#include "sys/os.h"

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
    };
    make_dir(dir, sizeof(dir));
    snprintf(path, sizeof(path), "%s/meet", dir);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return r;
}
