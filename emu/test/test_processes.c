/* SPDX-License-Identifier: BSD-2-Clause
 * Who is on a machine, and when its file goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine/machine.h"

static char path[64];

static struct emu_machine *come(struct emu_process **ret_self)
{
    struct emu_params p;
    struct emu_machine *m;
    assert_int_equal(emu_params_preset("cxl", &p), 0);
    assert_int_equal(emu_machine_attach(path, &p, &m, ret_self), 0);
    return m;
}

static void go(struct emu_machine *m, struct emu_process *self)
{
    emu_machine_leave(m, self, path);
    munmap(m, m->bytes);
}

/* A number that no process has now: it had one. */
static int dead(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

static void the_last_one_removes_the_file(void **state)
{
    struct emu_process *self;
    struct emu_machine *m = come(&self);
    (void)state;
    assert_int_equal(access(path, F_OK), 0);
    go(m, self);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Killed before it could tell when it was born: it holds nobody up for ever. */
static void killed_on_its_way_in(void **state)
{
    struct emu_process *self;
    struct emu_machine *m = come(&self);
    (void)state;
    m->process[7].pid = dead();
    m->process[7].born = 0;
    assert_false(emu_process_alive(&m->process[7]));
    go(m, self);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void on_its_way_in(void **state)
{
    struct emu_process *self;
    struct emu_machine *m = come(&self);
    (void)state;
    m->process[7].pid = getppid();
    m->process[7].born = 0;
    assert_true(emu_process_alive(&m->process[7]));
    m->process[7].born = 1; /* another one had this number once */
    assert_false(emu_process_alive(&m->process[7]));
    go(m, self);
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_one_removes_the_file),
        cmocka_unit_test(killed_on_its_way_in),
        cmocka_unit_test(on_its_way_in),
    };
    (void)snprintf(path, sizeof(path), "/dev/shm/hybrid-emu-test-%d", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
