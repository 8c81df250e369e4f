/* SPDX-License-Identifier: BSD-2-Clause
 * sys/os.h: files are read and written; what others put in the way, and what they cannot do to us.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "child.h"
#include "sys/os.h"

static char dir[300];

static char *in_dir(const char *name)
{
    static char path[4][400];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
    return p;
}

static void write_file(const char *path, const void *data, size_t n)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), (ssize_t)n);
    close(fd);
}

static unsigned files_in_dir(void)
{
    char cmd[400], out[32] = "";
    snprintf(cmd, sizeof(cmd), "ls -A '%s' | wc -l", dir);
    FILE *p = popen(cmd, "r");
    assert_non_null(fgets(out, sizeof(out), p));
    pclose(p);
    return (unsigned)atoi(out);
}

/* --- reading ----------------------------------------------------------------- */

static void test_read_file(void **state)
{
    (void)state;
    char buf[9];
    size_t n = 77;
    write_file(in_dir("r"), "12345678", 8);
    assert_int_equal(os_read_file(in_dir("r"), buf, 9, &n), 0);
    assert_int_equal(n, 8);
    assert_string_equal(buf, "12345678");
    n = 77;
    assert_int_equal(os_read_file(in_dir("r"), buf, 8, &n), -E2BIG);
    errno = 0;
    assert_int_equal(os_read_file(in_dir("absent"), buf, 8, &n), -ENOENT);
    assert_int_equal(os_read_file(dir, buf, 8, &n), -EISDIR);
    assert_int_equal(errno, 0);
    assert_int_equal(n, 77);
}

static void test_map_copy(void **state)
{
    (void)state;
    const void *base = &dir;
    size_t n = 77;
    static char data[10000];
    memset(data, 'x', sizeof(data));
    write_file(in_dir("m"), data, sizeof(data));
    assert_int_equal(os_map_copy(in_dir("m"), 9999, false, &base, &n), -E2BIG);
    assert_int_equal(os_map_copy(dir, 9999, false, &base, &n), -EISDIR);
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    assert_int_equal(os_map_copy(in_dir("fifo"), 9999, false, &base, &n), -EINVAL);
    assert_ptr_equal(base, &dir);
    assert_int_equal(n, 77);
    assert_int_equal(os_map_copy(in_dir("m"), sizeof(data), false, &base, &n), 0);
    assert_int_equal(n, sizeof(data));
    assert_int_equal(truncate(in_dir("m"), 0), 0); /* would be SIGBUS in a mapped file */
    assert_memory_equal(base, data, sizeof(data));
    assert_int_equal(os_unmap(base, n), 0);
    assert_int_equal(os_map_copy(in_dir("m"), 10, false, &base, &n), 0);
    assert_string_equal(base, "");
    assert_int_equal(n, 0);
    assert_int_equal(os_unmap(base, n), 0);
}

/* --- writing -------------------------------------------------------------------- */

static void write_all_checks(void *arg)
{
    int p[2];
    static char big[300000];
    sigset_t pending;
    (void)arg;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    child_check(pipe(p) == 0);
    close(p[0]);
    errno = 0;
    child_check(os_write_all(p[1], "x", 1) == -EPIPE); /* and we live */
    child_check(errno == 0);
    child_check(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
    close(p[1]);

    /* A SIGPIPE of the program's own stays. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGPIPE);
    child_check(pipe(p) == 0);
    close(p[0]);
    child_check(os_write_all(p[1], "x", 1) == -EPIPE);
    child_check(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE));
    close(p[1]);

    /* A full non-blocking pipe that nobody reads: an end in bounded time. */
    child_check(pipe2(p, O_NONBLOCK) == 0);
    child_check(os_write_all(p[1], big, sizeof(big)) == -EAGAIN);

    struct rlimit l = {4096, 4096};
    child_check(setrlimit(RLIMIT_FSIZE, &l) == 0);
    child_check(os_write_file_atomic(in_dir("limited"), big, sizeof(big)) == -EFBIG);
    child_check(access(in_dir("limited"), F_OK) != 0);
    int fd = -5;
    child_check(os_temp_file(dir, 1 << 20, &fd) == -EFBIG && fd == -5);
    child_check(os_open_shared_file(in_dir("limited"), 1 << 20, true, &fd) == -EFBIG);
}

static void test_write_all_raises_nothing(void **state)
{
    (void)state;
    unsigned before = files_in_dir();
    assert_int_equal(in_child(write_all_checks, NULL), 0);
    assert_int_equal(files_in_dir(), before);
}

static void *slow_reader(void *arg)
{
    char buf[4096];
    size_t *sum = arg;
    ssize_t n;
    while ((n = read((int)sum[1], buf, sizeof(buf))) > 0) {
        sum[0] += (size_t)n;
        usleep(500);
    }
    return NULL;
}

static void test_write_all_waits_for_a_reader(void **state)
{
    (void)state;
    int p[2];
    static char big[400000];
    pthread_t t;
    assert_int_equal(pipe(p), 0);
    assert_int_equal(fcntl(p[1], F_SETFL, O_NONBLOCK), 0);
    size_t sum[2] = {0, (size_t)p[0]};
    pthread_create(&t, NULL, slow_reader, sum);
    assert_int_equal(os_write_all(p[1], big, sizeof(big)), 0);
    close(p[1]);
    pthread_join(t, NULL);
    close(p[0]);
    assert_int_equal(sum[0], sizeof(big));
}

static void *rewrite(void *arg)
{
    static char text[2][20000];
    memset(text[0], 'a', sizeof(text[0]));
    memset(text[1], 'b', sizeof(text[1]));
    for (int i = 0; i < 300; i++)
        assert_int_equal(os_write_file_atomic(arg, text[i & 1], sizeof(text[0])), 0);
    return NULL;
}

static void test_write_file_atomic(void **state)
{
    (void)state;
    char path[400], buf[20001];
    size_t n;
    pthread_t t;
    snprintf(path, sizeof(path), "%s/whole", dir);
    rewrite(path);
    unsigned files = files_in_dir();
    pthread_create(&t, NULL, rewrite, path);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(os_read_file(path, buf, sizeof(buf), &n), 0);
        assert_int_equal(n, 20000);
        assert_int_equal(buf[0], buf[19999]); /* of one writing */
    }
    pthread_join(t, NULL);
    assert_int_equal(files_in_dir(), files);
    struct stat st;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644 & ~mask);
    assert_int_equal(os_write_file_atomic(in_dir("no/such"), "x", 1), -ENOENT);
    /* What is no regular file is written to, not replaced. */
    assert_int_equal(mkfifo(in_dir("out"), 0600), 0);
    int fd = open(in_dir("out"), O_RDONLY | O_NONBLOCK);
    assert_int_equal(os_write_file_atomic(in_dir("out"), "hello", 5), 0);
    assert_int_equal(read(fd, buf, 10), 5);
    close(fd);
    assert_int_equal(os_write_file_atomic(in_dir("out"), "hello", 5), -ENXIO); /* no reader */
    assert_int_equal(stat(in_dir("out"), &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

/* Anybody may have put it into a folder for all. */
static void test_planted_outputs(void **state)
{
    (void)state;
    char path[400], target[400], buf[16];
    size_t n;
    struct stat st;
    snprintf(path, sizeof(path), "%s", in_dir("planted"));
    snprintf(target, sizeof(target), "%s", in_dir("target"));
    assert_int_equal(os_write_file_atomic(target, "kept", 4), 0);
    for (int dangling = 0; dangling < 2; dangling++) {
        assert_int_equal(symlink(dangling ? in_dir("nothing") : target, path), 0);
        assert_int_equal(os_may_write_file(path), -ELOOP);
        assert_int_equal(os_write_file_atomic(path, "gone", 4), -ELOOP);
        assert_false(os_is_special_file(path));
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(os_read_file(target, buf, sizeof(buf), &n), 0);
    assert_string_equal(buf, "kept");
    assert_int_equal(access(in_dir("nothing"), F_OK), -1);
    /* Nor is a device reached through a link, or by its name. */
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(os_write_file_atomic(path, "x", 1), -ELOOP);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(os_write_file_atomic("/dev/null", "x", 1), 0);
    assert_int_equal(os_write_file_atomic("/dev/zero", "x", 1), -ENODEV);
    assert_int_equal(os_write_file_atomic(dir, "x", 1), -EISDIR);
    if (mknod(path, S_IFBLK | 0600, makedev(7, 250)) == 0) {
        assert_int_equal(os_may_write_file(path), -ENODEV);
        assert_int_equal(os_write_file_atomic(path, "x", 1), -ENODEV);
        assert_int_equal(unlink(path), 0);
    }
    /* What a standard stream leads to is written behind what is there. */
    int fd = open(target, O_WRONLY | O_APPEND);
    snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    assert_true(os_is_special_file(path));
    assert_int_equal(os_may_write_file(path), 0);
    assert_int_equal(os_write_file_atomic(path, " all", 4), 0);
    close(fd);
    assert_int_equal(os_read_file(target, buf, sizeof(buf), &n), 0);
    assert_string_equal(buf, "kept all");
    assert_int_equal(stat("/dev/stderr", &st), 0);
    assert_int_equal(os_may_write_file("/dev/stderr"), 0);
    assert_int_equal(unlink(target), 0);
}

static void test_temp_file(void **state)
{
    (void)state;
    int fd = -7;
    struct stat st;
    unsigned files = files_in_dir();
    assert_int_equal(os_temp_file(in_dir("nowhere"), 100, &fd), -ENOENT);
    assert_int_equal(fd, -7);
    assert_int_equal(os_temp_file(dir, (uint64_t)1 << 36, &fd), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    assert_true((uint64_t)st.st_size == (uint64_t)1 << 36);
    assert_int_equal(st.st_blocks, 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_true(fd >= 100); /* the program's next open() gets the number it expects */
    assert_int_equal(files_in_dir(), files);
    os_close(fd);
}

static void closed_standard_files(void *arg)
{
    int fd;
    (void)arg;
    struct rlimit l = {64, 64}; /* no high numbers either */
    child_check(setrlimit(RLIMIT_NOFILE, &l) == 0);
    close(0);
    close(1);
    close(2);
    if (os_temp_file(dir, 4096, &fd) != 0)
        _exit(2);
    _exit(fd > 2 && fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0 ? 0
                                                                                            : 3);
}

static void test_closed_standard_files(void **state)
{
    (void)state;
    if (under_valgrind()) {
        print_message("valgrind keeps high descriptors for itself\n");
        skip();
    }
    assert_int_equal(in_child(closed_standard_files, NULL), 0);
}

static void *read_while_cancelled(void *arg)
{
    char buf[64];
    size_t n;
    bool *came_back = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    os_read_file(in_dir("r"), buf, sizeof(buf), &n);
    os_write_file_atomic(in_dir("c"), "x", 1);
    os_sleep_ns(1000);
    *came_back = true;
    pthread_testcancel();
    *came_back = false;
    return NULL;
}

static void test_no_cancellation_point(void **state)
{
    (void)state;
    bool came_back = false;
    pthread_t t;
    pthread_create(&t, NULL, read_while_cancelled, &came_back);
    pthread_join(t, NULL);
    assert_true(came_back);
}

static void test_paths(void **state)
{
    char buf[256], here[256], small[8];

    (void)state;
    assert_non_null(getcwd(here, sizeof(here)));
    strcat(here, "/a/b");
    assert_int_equal(os_absolute_path("a/b", buf, sizeof(buf)), 0);
    assert_string_equal(buf, here);
    assert_int_equal(os_absolute_path("/x", buf, sizeof(buf)), 0);
    assert_string_equal(buf, "/x");
    assert_int_equal(os_absolute_path("/1234567", small, sizeof(small)), -ENAMETOOLONG);
    assert_int_equal(os_absolute_path("/123456", small, sizeof(small)), 0);
    assert_string_equal(small, "/123456");
    assert_true(os_absolute_path("x", buf, 4) < 0);
    assert_true(os_is_special_file("/dev/null"));
    assert_false(os_is_special_file("/proc/self/exe"));
    assert_false(os_is_special_file(in_dir("nobody")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_read_file),
        cmocka_unit_test(test_map_copy),
        cmocka_unit_test(test_write_all_raises_nothing),
        cmocka_unit_test(test_write_all_waits_for_a_reader),
        cmocka_unit_test(test_write_file_atomic),
        cmocka_unit_test(test_planted_outputs),
        cmocka_unit_test(test_temp_file),
        cmocka_unit_test(test_closed_standard_files),
        cmocka_unit_test(test_no_cancellation_point),
    };
    make_dir(dir, sizeof(dir));
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return r;
}
