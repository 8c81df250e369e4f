/* SPDX-License-Identifier: BSD-2-Clause
 * sys/os.h: memory and files. test_os_proc.c has the processes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>

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

/* --- memory --------------------------------------------------------------- */

/* Address space of this process. */
static uint64_t vm_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu", &pages), 1);
    fclose(f);
    return pages * HY_PAGE;
}

static void test_reserve(void **state)
{
    (void)state;
    static const size_t aligns[] = {4096, 65536, 2 << 20, 1 << 30};
    for (size_t i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++) {
        uint64_t before = vm_bytes();
        char *p;
        size_t n = 3 * HY_MIB + 4096;
        assert_int_equal(os_reserve(n, aligns[i], (void **)&p), 0);
        assert_int_equal((uintptr_t)p % aligns[i], 0);
        assert_int_equal(os_commit(p, n), 0);
        assert_int_equal(p[0] + p[n - 1], 0);
        p[0] = p[n - 1] = 1;
        if (!TEST_SANITIZED) /* the alignment's slack was given back */
            assert_true(vm_bytes() - before <= n + HY_MIB);
        assert_int_equal(os_unmap(p, n), 0);
    }
    void *untouched = &dir;
    assert_int_equal(os_reserve(0, 4096, &untouched), -EINVAL);
    assert_int_equal(os_reserve(4096, 12288, &untouched), -EINVAL);
    assert_int_equal(os_reserve(SIZE_MAX - 4096, 1 << 21, &untouched), -EINVAL);
    errno = E2BIG;
    int r = os_reserve((size_t)1 << 62, 4096, &untouched);
    assert_true(r == -ENOMEM || (r == -EINVAL && under_valgrind()));
    assert_int_equal(errno, E2BIG);
    assert_ptr_equal(untouched, &dir);
}

static void test_reserve_more_than_the_machine(void **state)
{
    (void)state;
    void *p;
    uint64_t rss = os_rss_bytes();
    size_t n = (size_t)(TEST_SANITIZED || under_valgrind() ? 16 : 4096)
               << 30; /* shadows leave less */
    assert_int_equal(os_reserve(n, 4096, &p), 0);
    if (!under_valgrind()) /* it keeps books of what is mapped */
        assert_true(os_rss_bytes() < rss + 16 * HY_MIB);
    assert_int_equal(os_unmap(p, n), 0);
}

static void address_limit(void *arg)
{
    (void)arg;
    struct rlimit l = {512 << 20, 512 << 20};
    void *p = NULL;
    child_check(setrlimit(RLIMIT_AS, &l) == 0);
    child_check(os_address_limit() == 512 << 20);
    child_check(!os_could_map(512 << 20, false));
    /* A range costs nothing of the allowance; using more than it does. */
    uint64_t before = vm_bytes();
    if (os_reserve((size_t)64 << 30, 4096, &p) == 0) {
        child_check(os_could_map(64 << 20, true)); /* and keeps nothing */
        child_check(vm_bytes() == before);
        child_check(os_commit(p, 1 << 20) == 0);
        child_check(os_commit((char *)p + (1 << 20), (size_t)1 << 30) == -ENOMEM);
    } else {
        child_check(under_valgrind()); /* it allows no mapping where it was not asked */
    }
}

static void test_address_limit(void **state)
{
    (void)state;
    assert_true(os_address_limit() == UINT64_MAX || os_address_limit() > HY_MIB);
    if (TEST_SANITIZED) {
        print_message("RLIMIT_AS not tested: the sanitizer's shadow needs address space\n");
        return;
    }
    assert_int_equal(in_child(address_limit, NULL), 0);
}

static void test_resident_and_purge(void **state)
{
    (void)state;
    const size_t pages = 5000;
    char *p;
    size_t n = 99;
    assert_int_equal(os_reserve(pages * HY_PAGE, HY_PAGE, (void **)&p), 0);
    assert_int_equal(os_commit(p, pages * HY_PAGE), 0);
    assert_int_equal(madvise(p, pages * HY_PAGE, MADV_NOHUGEPAGE), 0);
    assert_int_equal(os_resident_pages(p, pages * HY_PAGE, &n), 0);
    assert_int_equal(n, 0);
    for (size_t i = 0; i < pages; i += 7)
        p[i * HY_PAGE] = 1;
    assert_int_equal(os_resident_pages(p, pages * HY_PAGE, &n), 0);
    assert_int_equal(n, (pages + 6) / 7);
    assert_int_equal(os_purge(p, pages * HY_PAGE), 0);
    assert_int_equal(os_resident_pages(p, pages * HY_PAGE, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(p[7 * HY_PAGE], 0);
    os_unmap(p, pages * HY_PAGE);
    n = 99;
    assert_int_equal(os_resident_pages(p, pages * HY_PAGE, &n), -ENOMEM);
    assert_int_equal(n, 99);
}

static void test_file_mappings(void **state)
{
    (void)state;
    int fd;
    char *shared, *private;
    const size_t n = 16 * HY_PAGE;
    assert_int_equal(os_temp_file(dir, n, &fd), 0);
    assert_int_equal(os_file_allocate(fd, 0, n), 0);
    assert_int_equal(os_reserve(n, HY_PAGE, (void **)&shared), 0);
    assert_int_equal(os_reserve(n, HY_PAGE, (void **)&private), 0);
    assert_int_equal(os_map_fd_fixed(shared, n, fd, 0, true), 0);
    assert_int_equal(os_map_fd_fixed(private, n, fd, 0, false), 0);
    shared[100] = 'a';
    assert_int_equal(private[100], 'a');
    private[100] = 'b'; /* a copy from here on */
    shared[101] = 'c';
    assert_int_equal(shared[100], 'a');
    assert_int_equal(private[101], 0);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    blkcnt_t full = st.st_blocks;
    assert_int_equal(os_file_punch(fd, 0, n), 0);
    assert_int_equal(shared[100], 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(st.st_blocks < full);
    assert_int_equal(st.st_size, n);
    os_unmap(shared, n);
    os_unmap(private, n);
    os_close(fd);
}

static void test_prefer_nodes(void **state)
{
    (void)state;
    void *p;
    assert_int_equal(os_map_anon(64 * HY_PAGE, &p), 0);
    int r = os_prefer_nodes(p, 64 * HY_PAGE, 1);
    if (r == -ENOSYS || r == -EPERM) {
        os_unmap(p, 64 * HY_PAGE);
        print_message("no NUMA policies on this kernel (%d)\n", r);
        skip();
    }
    assert_int_equal(r, 0);
    int mode = -1;
    assert_int_equal(syscall(SYS_get_mempolicy, &mode, NULL, 0, p, 2 /* MPOL_F_ADDR */), 0);
    assert_int_equal(mode, MPOL_PREFERRED);
    /* More nodes than there are: still placed, never refused. */
    assert_int_equal(os_prefer_nodes(p, 64 * HY_PAGE, 3), 0);
    assert_int_equal(syscall(SYS_get_mempolicy, &mode, NULL, 0, p, 2), 0);
    assert_true(mode == MPOL_PREFERRED || mode == 5);
    *(char *)p = 1;
    assert_int_equal(os_prefer_nodes(p, 64 * HY_PAGE, 0), -EINVAL);
    os_unmap(p, 64 * HY_PAGE);
}

static void foreign_policy(void *arg)
{
    (void)arg;
    child_check(!os_has_foreign_mempolicy());
    if (syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0) != 0)
        _exit(errno == ENOSYS || errno == EPERM ? 77 : 1);
    child_check(os_has_foreign_mempolicy());
}

static void test_foreign_policy(void **state)
{
    (void)state;
    int status = in_child(foreign_policy, NULL);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("set_mempolicy is not allowed here\n");
        skip();
    }
    assert_int_equal(status, 0);
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

static void test_map_file_ro(void **state)
{
    (void)state;
    const void *base = &dir;
    size_t n = 77;
    static char data[10000];
    memset(data, 'x', sizeof(data));
    write_file(in_dir("m"), data, sizeof(data));
    assert_int_equal(os_map_file_ro(in_dir("m"), 9999, &base, &n), -E2BIG);
    assert_int_equal(os_map_file_ro(dir, 9999, &base, &n), -EISDIR);
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    assert_int_equal(os_map_file_ro(in_dir("fifo"), 9999, &base, &n), -EINVAL);
    assert_ptr_equal(base, &dir);
    assert_int_equal(n, 77);
    assert_int_equal(os_map_file_ro(in_dir("m"), sizeof(data), &base, &n), 0);
    assert_int_equal(n, sizeof(data));
    assert_int_equal(truncate(in_dir("m"), 0), 0); /* would be SIGBUS in a mapped file */
    assert_memory_equal(base, data, sizeof(data));
    assert_int_equal(os_unmap((void *)(uintptr_t)base, n), 0);
    assert_int_equal(os_map_file_ro(in_dir("m"), 10, &base, &n), 0);
    assert_null(base);
    assert_int_equal(n, 0);
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
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_reserve_more_than_the_machine),
        cmocka_unit_test(test_address_limit),
        cmocka_unit_test(test_resident_and_purge),
        cmocka_unit_test(test_file_mappings),
        cmocka_unit_test(test_prefer_nodes),
        cmocka_unit_test(test_foreign_policy),
        cmocka_unit_test(test_read_file),
        cmocka_unit_test(test_map_file_ro),
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
