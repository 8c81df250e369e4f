/* SPDX-License-Identifier: BSD-2-Clause
 * Participants of one registry that are killed, start another program, fork, or live where their
 * process number says nothing. */
#include "registry_other.h"
#include "tests/unit/qemu.h"

#include <sched.h>
#include <sys/personality.h>

static char program[4096]; /* to start ourselves anew */

static void test_a_killed_ones_bytes_come_back(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    struct other o = other_start(BUDGET);

    (void)state;
    assert_int_equal(claim_soon(r, 0), 0);
    assert_int_equal(registry_claim_dram(r, BUDGET), -ENOSPC);
    other_end(&o);
    assert_int_equal(claim_soon(r, BUDGET), 0);
    registry_close(r);
}

static void test_a_dead_one_that_nobody_waited_for_is_dead(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    struct other o = other_start(BUDGET);
    char c = ORDER_EXIT;
    siginfo_t info;

    (void)state;
    assert_int_equal(write(o.to, &c, 1), 1);
    assert_int_equal(waitid(P_PID, (id_t)o.pid, &info, WEXITED | WNOWAIT), 0); /* a zombie */
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    assert_int_equal(registry_claim_dram(r, BUDGET), 0);
    other_end(&o);
    registry_close(r);
}

static void test_exec_of_an_unpreloaded_program_frees_the_slot(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    struct other o = other_start(BUDGET);

    (void)state;
    registry_read(r, &view);
    assert_int_equal(view.n, 2);
    other_order(&o, ORDER_EXEC);
    assert_int_equal(kill(o.pid, 0), 0); /* the same pid lives on */
    assert_int_equal(claim_soon(r, BUDGET), 0);
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    other_end(&o);
    registry_close(r);
}

/* The new image of a process finds its old slot dead, even where the kernel
 * puts its stack at the same place again. */
static void exec_and_reclaim(unsigned long persona)
{
    struct registry *r;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (personality(persona) == -1)
            _exit(77);
        execl(program, "image", "first", path, (char *)NULL);
        _exit(3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("personality() is not permitted here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    r = open_or_fail(BUDGET);
    registry_read(r, &view);
    assert_int_equal(view.n, 0);
    registry_close(r);
}

static void test_reexec_finds_its_old_slot(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("/proc/self/exe cannot be executed");
    exec_and_reclaim(PER_LINUX);
}

static void test_reexec_at_the_same_addresses_finds_its_old_slot(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("/proc/self/exe cannot be executed");
    exec_and_reclaim(PER_LINUX | ADDR_NO_RANDOMIZE);
}

/* "first" and "again" have as many letters: the stacks of both begin alike. */
static int image_main(const char *role)
{
    struct registry *r;

    if (registry_open(path, BUDGET, &r) != 0 || registry_join(r, HY_CLASS_CPU) != 0)
        return 4;
    if (claim_soon(r, BUDGET) != 0)
        return 5;
    if (strcmp(role, "first") == 0) {
        execl(program, "image", "again", path, (char *)NULL);
        return 6;
    }
    registry_read(r, &view);
    return view.n == 1 && view.entry[0].is_self ? 0 : 7;
}

static void test_forked_child_is_another_participant(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    int status;

    (void)state;
    assert_int_equal(registry_claim_dram(r, 70 * MB), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        registry_after_fork_child(r);
        int bad = registry_joined(r) ? 1 : 0;
        registry_read(r, &view); /* must not take the parent for dead */
        bad |= view.n == 1 && view.entry[0].pid == getppid() ? 0 : 2;
        bad |= registry_claim_dram(r, 1) == -ENOTCONN ? 0 : 4;
        bad |= registry_join(r, HY_CLASS_CPU) == 0 ? 0 : 8;
        bad |= registry_claim_dram(r, 31 * MB) == -ENOSPC ? 0 : 16;
        bad |= registry_claim_dram(r, 30 * MB) == 0 ? 0 : 32;
        registry_leave(r);
        _exit(bad);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(registry_joined(r));
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    assert_int_equal(view.entry[0].dram_bytes, 70 * MB);
    registry_close(r);
}

/* --- those whose process number says nothing ---------------------------------------- */

enum { LIKE_CONTAINER, LIKE_CHROOT };

/* Takes part until it is killed; reports whether it sees us, too. */
static void far_main(int how, int out)
{
    struct registry *r;
    char c = 'k';

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (how == LIKE_CHROOT && (chroot(dir) != 0 || chdir("/") != 0))
        c = 's';
    else if (registry_open(how == LIKE_CHROOT ? "/r" : path, BUDGET, &r) != 0 ||
             registry_join(r, HY_CLASS_CPU) != 0 || registry_claim_dram(r, 30 * MB) != 0)
        c = 'f';
    else {
        registry_read(r, &view);
        if (view.n != 2 || registry_claim_dram(r, 31 * MB) != -ENOSPC)
            c = 'n';
    }
    if (write(out, &c, 1) != 1)
        _exit(2);
    for (;;)
        pause();
}

/* Its first child is number 1 of a namespace of its own. */
static pid_t far_start(int how, char *ret_c)
{
    int p[2];

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (how == LIKE_CONTAINER && unshare(CLONE_NEWPID) != 0) {
            (void)!write(p[1], "s", 1);
            _exit(0);
        }
        if (how == LIKE_CHROOT || fork() == 0)
            far_main(how, p[1]);
        for (;;)
            pause();
    }
    close(p[1]);
    assert_int_equal(read(p[0], ret_c, 1), 1);
    close(p[0]);
    return pid;
}

static void far_ones(int how)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    char c;

    assert_int_equal(registry_claim_dram(r, 40 * MB), 0);
    pid_t pid = far_start(how, &c);
    if (c == 's') {
        end_sleeper(pid);
        registry_close(r);
        print_message("no right to a PID namespace or chroot here\n");
        skip();
    }
    assert_int_equal(c, 'k');
    registry_read(r, &view);
    assert_int_equal(view.n, 2);
    assert_int_equal(registry_claim_dram(r, 31 * MB), -ENOSPC); /* also with a look for dead ones */
    assert_int_equal(registry_claim_dram(r, 30 * MB), 0);
    end_sleeper(pid);
    assert_int_equal(claim_soon(r, 30 * MB), 0);
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    registry_close(r);
}

static void test_in_another_pid_namespace(void **state)
{
    (void)state;
    far_ones(LIKE_CONTAINER);
}

static void test_without_proc(void **state)
{
    (void)state;
    far_ones(LIKE_CHROOT);
}

int main(int argc, char **argv)
{
    /* Not /proc/self/exe at the exec: under valgrind that is valgrind. */
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (n <= 0)
        return 99;
    if (argc == 3) { /* started by exec_and_reclaim() */
        snprintf(path, sizeof(path), "%s", argv[2]);
        return image_main(argv[1]);
    }
#define REG_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        REG_TEST(test_a_killed_ones_bytes_come_back),
        REG_TEST(test_a_dead_one_that_nobody_waited_for_is_dead),
        REG_TEST(test_exec_of_an_unpreloaded_program_frees_the_slot),
        REG_TEST(test_reexec_finds_its_old_slot),
        REG_TEST(test_reexec_at_the_same_addresses_finds_its_old_slot),
        REG_TEST(test_forked_child_is_another_participant),
        REG_TEST(test_in_another_pid_namespace),
        REG_TEST(test_without_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
