/* SPDX-License-Identifier: BSD-2-Clause
 * Tracking of page writes by the kernel, in each of its ways: every write is seen, whoever
 * makes it, nothing in the program fails, and a child or an unmapping does no harm. A way
 * that this kernel does not have is skipped, which is said. With an argument (scan,
 * soft-dirty) that way must be there. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/pages/track.h"

#define PAGES 512u
#define BYTES (PAGES * HY_PAGE)

static struct os_track track;
static enum os_track_kind kind;

static char *mapping(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

static char *tracked(void)
{
    char *at = mapping(BYTES);
    assert_int_equal(os_track_add(&track, at, BYTES), 0);
    memset(at, 1, BYTES);
    return at;
}

static unsigned look(const char *at, bool rearm, bool seen[PAGES])
{
    static struct os_page_run runs[PAGES];
    int n = os_track_look(&track, at, BYTES, rearm, runs, PAGES);
    unsigned sum = 0;
    assert_true(n >= 0);
    memset(seen, 0, PAGES * sizeof(*seen));
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < runs[i].pages; k++) {
            size_t page = (runs[i].base - (uintptr_t)at) / HY_PAGE + k;
            assert_true(page < PAGES && !seen[page]);
            seen[page] = true;
            sum++;
        }
    return sum;
}

static void arm(const char *at)
{
    bool seen[PAGES];
    assert_int_equal(os_track_clear(&track), 0);
    if (kind == OS_TRACK_SCAN)
        look(at, true, seen);
}

static void only(const char *at, unsigned first, unsigned n)
{
    bool seen[PAGES];
    look(at, false, seen);
    for (unsigned i = 0; i < PAGES; i++)
        if (seen[i] != (i >= first && i < first + n))
            fail_msg("page %u: %s", i, seen[i] ? "seen, but not written" : "written, but not seen");
}

static void stores_are_seen(void **state)
{
    char *at = tracked();
    (void)state;
    arm(at);
    only(at, 0, 0);
    for (unsigned i = 100; i < 110; i++)
        at[i * HY_PAGE + 17] = 3;
    only(at, 100, 10);
    only(at, 100, 10); /* looking changes nothing */
    arm(at);
    only(at, 0, 0);
    volatile char sum = 0;
    for (unsigned i = 0; i < PAGES; i++)
        sum += at[i * HY_PAGE];
    only(at, 0, 0); /* reading is not writing */
    at[0] = 1;
    at[BYTES - 1] = 1;
    bool seen[PAGES];
    assert_int_equal(look(at, false, seen), 2);
    assert_true(seen[0] && seen[PAGES - 1]);
    munmap(at, BYTES);
}

static void the_kernels_writes_succeed_and_are_seen(void **state)
{
    char *at = tracked(), data[3 * 4096];
    int fd[2];
    (void)state;
    memset(data, 7, sizeof(data));
    assert_int_equal(pipe(fd), 0);
    arm(at);
    assert_int_equal(write(fd[1], data, sizeof(data)), sizeof(data));
    assert_int_equal(read(fd[0], at + 20 * HY_PAGE, sizeof(data)), sizeof(data));
    assert_memory_equal(at + 20 * HY_PAGE, data, sizeof(data));
    only(at, 20, 3);
    arm(at);
    struct iovec from = {data, sizeof(data)}, to = {at + 40 * HY_PAGE + 100, sizeof(data)};
    assert_int_equal(process_vm_writev(getpid(), &from, 1, &to, 1, 0), sizeof(data));
    only(at, 40, 4);
    close(fd[0]);
    close(fd[1]);
    munmap(at, BYTES);
}

struct writer {
    char *at;
    unsigned seed;
    pthread_t thread;
};

#define WRITERS 4u
#define WRITES  20000u

static void *write_at_random(void *arg)
{
    struct writer *w = arg;
    for (unsigned i = 0; i < WRITES; i++) {
        w->seed = w->seed * 1103515245u + 12345u;
        unsigned page = (w->seed >> 8) % (PAGES / 2);
        __atomic_fetch_add((uint64_t *)(w->at + page * HY_PAGE), 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Written while it is looked at and armed again and again: no store is lost, none of the pages
 * that were left alone is named, and all that were written are. */
static void nothing_is_lost_under_threads(void **state)
{
    char *at = tracked();
    struct writer w[WRITERS];
    bool ever[PAGES] = {0}, seen[PAGES];
    (void)state;
    memset(at, 0, BYTES);
    arm(at);
    for (unsigned i = 0; i < WRITERS; i++) {
        w[i] = (struct writer){.at = at, .seed = i};
        assert_int_equal(pthread_create(&w[i].thread, NULL, write_at_random, &w[i]), 0);
    }
    for (unsigned round = 0; round < 50; round++) {
        look(at, kind == OS_TRACK_SCAN, seen);
        for (unsigned i = 0; i < PAGES; i++)
            ever[i] |= seen[i];
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(w[i].thread, NULL);
    look(at, false, seen);
    uint64_t sum = 0;
    for (unsigned i = 0; i < PAGES; i++) {
        uint64_t n = *(uint64_t *)(at + i * HY_PAGE);
        sum += n;
        bool told = ever[i] || seen[i];
        /* Soft-dirty may tell more: a mapping that joins this one (a stack) makes all dirty. */
        if (n > 0 ? !told : told && kind == OS_TRACK_SCAN)
            fail_msg("page %u: %lu writes", i, n);
    }
    assert_int_equal(sum, WRITERS * WRITES);
    munmap(at, BYTES);
}

static void a_child_and_its_parent_go_on(void **state)
{
    char *at = tracked();
    (void)state;
    arm(at);
    pid_t pid = fork();
    if (pid == 0) {
        struct os_page_run runs[4];
        memset(at, 5, BYTES); /* its own copy, not tracked */
        bool refused = os_track_look(&track, at, BYTES, true, runs, 4) == -ESRCH &&
                       os_track_add(&track, at, BYTES) == -ESRCH &&
                       os_track_clear(&track) == -ESRCH;
        struct os_track own;
        bool works = os_track_open(kind, &own) == 0 && os_track_add(&own, at, BYTES) == 0;
        os_track_close(&own);
        _exit(refused && works && at[BYTES - 1] == 5 ? 0 : 1);
    }
    int status;
    at[3 * HY_PAGE] = 9;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    only(at, 3, 1);
    assert_int_equal(at[4 * HY_PAGE], 1);
    arm(at);
    at[7 * HY_PAGE] = 9; /* a page that was shared with the child */
    only(at, 7, 1);
    munmap(at, BYTES);
}

static void the_program_may_remap(void **state)
{
    char *at = tracked();
    (void)state;
    arm(at);
    munmap(at + 100 * HY_PAGE, 50 * HY_PAGE);
    at[99 * HY_PAGE] = 2;
    only(at, 99, 1);
    /* Something else comes to lie there. */
    assert_ptr_equal(mmap(at + 100 * HY_PAGE, 50 * HY_PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     at + 100 * HY_PAGE);
    memset(at + 100 * HY_PAGE, 1, 50 * HY_PAGE);
    char *moved = mremap(at, 50 * HY_PAGE, 80 * HY_PAGE, MREMAP_MAYMOVE);
    assert_ptr_not_equal(moved, MAP_FAILED);
    memset(moved, 4, 80 * HY_PAGE);
    for (unsigned i = 0; i < 80 * HY_PAGE; i++)
        if (moved[i] != 4)
            fail_msg("byte %u is lost", i);
    madvise(at + 200 * HY_PAGE, 10 * HY_PAGE, MADV_DONTNEED);
    assert_int_equal(at[205 * HY_PAGE], 0);
    at[205 * HY_PAGE] = 1;
    assert_int_equal(at[205 * HY_PAGE], 1);
    mprotect(at + 300 * HY_PAGE, HY_PAGE, PROT_READ);
    mprotect(at + 300 * HY_PAGE, HY_PAGE, PROT_READ | PROT_WRITE);
    at[300 * HY_PAGE] = 8;
    assert_int_equal(at[300 * HY_PAGE], 8);
    struct os_page_run runs[PAGES];
    assert_true(os_track_look(&track, at, BYTES, true, runs, PAGES) >= 0);
    munmap(moved, 80 * HY_PAGE);
    munmap(at, BYTES);
    assert_true(os_track_look(&track, at, BYTES, true, runs, PAGES) >= 0);
}

static void others_pages_are_left_alone(void **state)
{
    struct os_page_run runs[PAGES];
    bool seen[PAGES];
    (void)state;
    /* Shared memory and files are not ours to move: never named. */
    char *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    os_track_add(&track, shared, BYTES);
    memset(shared, 1, BYTES);
    assert_int_equal(os_track_look(&track, shared, BYTES, false, runs, PAGES), 0);
    munmap(shared, BYTES);
    /* Pages that were never written or only read do not exist. */
    char *at = mapping(BYTES);
    assert_int_equal(os_track_add(&track, at, BYTES), 0);
    volatile char sum = 0;
    for (unsigned i = 0; i < PAGES / 2; i++)
        sum += at[i * HY_PAGE];
    arm(at); /* a new mapping is soft-dirty as a whole */
    assert_int_equal(look(at, false, seen), 0);
    at[9 * HY_PAGE] = 1;
    only(at, 9, 1);
    assert_int_equal(os_track_look(&track, at, 2 * BYTES, false, runs, PAGES), -EINVAL);
    assert_int_equal(os_track_remove(&track, at, BYTES), 0);
    munmap(at, BYTES);
}

static void huge_pages_are_split_where_written(void **state)
{
    const size_t huge = 512 * HY_PAGE;
    char *map = mmap(NULL, 3 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = (char *)hy_align_up((uintptr_t)map, huge);
    struct os_page_run runs[PAGES];
    (void)state;
    madvise(at, huge, MADV_HUGEPAGE);
    assert_int_equal(os_track_add(&track, at, huge), 0);
    memset(at, 1, huge);
    int n = os_track_look(&track, at, huge, false, runs, PAGES);
    if (kind == OS_TRACK_SCAN && (n != 1 || !runs[0].huge)) {
        munmap(map, 3 * huge);
        print_message("no huge page to be had\n");
        skip();
    }
    arm(at);
    at[11 * HY_PAGE] = 2;
    n = os_track_look(&track, at, huge, false, runs, PAGES);
    assert_int_equal(n, 1);
    /* The bit of soft-dirty is the huge page's: all of it. */
    assert_true(runs[0].pages == 1 || (kind == OS_TRACK_SOFT_DIRTY && runs[0].pages == 512));
    for (unsigned i = 0; i < huge; i += 64)
        assert_int_equal(at[i], i == 11 * HY_PAGE ? 2 : 1);
    munmap(map, 3 * huge);
}

/* After closing, memory is as it was. */
static void closing_leaves_nothing(void **state)
{
    char *at = tracked();
    (void)state;
    arm(at);
    os_track_close(&track);
    memset(at, 6, BYTES);
    assert_int_equal(at[BYTES - 1], 6);
    munmap(at, BYTES);
    assert_int_equal(os_track_open(kind, &track), 0);
}

/* Descriptors of a program that closed its standard files, or all of them, stay its own. */
static void the_programs_descriptors(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct os_track t;
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        bool ok = os_track_open(kind, &t) == 0 && t.pagemap >= 200 && t.other >= 200;
        int mine[2] = {t.pagemap, t.other};
        for (int i = 0; i < 2; i++)
            close(mine[i]);
        /* a file of the program comes to have our number: nothing is written, it stays open */
        char name[] = "/tmp/track-XXXXXX";
        int fd = mkstemp(name);
        unlink(name);
        ok = ok && dup2(fd, mine[0]) == mine[0] && dup2(fd, mine[1]) == mine[1];
        (void)os_track_clear(&t);
        os_track_close(&t);
        ok = ok && fcntl(mine[0], F_GETFD) >= 0 && fcntl(mine[1], F_GETFD) >= 0;
        _exit(ok && lseek(mine[1], 0, SEEK_END) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int run(const char *name, bool must)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_are_seen),
        cmocka_unit_test(the_kernels_writes_succeed_and_are_seen),
        cmocka_unit_test(nothing_is_lost_under_threads),
        cmocka_unit_test(a_child_and_its_parent_go_on),
        cmocka_unit_test(the_program_may_remap),
        cmocka_unit_test(others_pages_are_left_alone),
        cmocka_unit_test(huge_pages_are_split_where_written),
        cmocka_unit_test(the_programs_descriptors),
        cmocka_unit_test(closing_leaves_nothing),
    };
    int r = os_track_open(kind, &track);
    if (r != 0) {
        printf("%s: this kernel does not do it: %s\n", name, strerror(-r));
        bool expected = r == -EOPNOTSUPP || r == -EPERM || r == -ENOSYS;
        return must || !expected ? 1 : -1;
    }
    r = cmocka_run_group_tests_name(name, tests, NULL, NULL);
    os_track_close(&track);
    return r;
}

int main(int argc, char **argv)
{
    const char *names[] = {[OS_TRACK_SCAN] = "scan", [OS_TRACK_SOFT_DIRTY] = "soft-dirty"};
    int failed = 0, ran = 0;
    for (unsigned k = 0; k < HY_ARRAY_SIZE(names); k++) {
        if (argc > 1 && strcmp(argv[1], names[k]) != 0)
            continue;
        kind = (enum os_track_kind)k;
        int r = run(names[k], argc > 1);
        ran += r >= 0;
        failed += r > 0;
    }
    if (failed)
        return 1;
    return ran ? 0 : 77;
}
