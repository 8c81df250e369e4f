/* SPDX-License-Identifier: BSD-2-Clause
 * sys/os.h: memory. test_os_files.c has the files, test_os_proc.c the processes. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "sys/os.h"
#include "tests/unit/qemu.h"

static char dir[300];

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
    SKIP_UNDER_QEMU("the address space and its limits are those that qemu keeps");
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
    SKIP_UNDER_QEMU("the address space and its limits are those that qemu keeps");
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
    SKIP_UNDER_QEMU("the address space and its limits are those that qemu keeps");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserve),        cmocka_unit_test(test_reserve_more_than_the_machine),
        cmocka_unit_test(test_address_limit),  cmocka_unit_test(test_resident_and_purge),
        cmocka_unit_test(test_file_mappings),  cmocka_unit_test(test_prefer_nodes),
        cmocka_unit_test(test_foreign_policy),
    };
    make_dir(dir, sizeof(dir));
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return r;
}
