/* SPDX-License-Identifier: BSD-2-Clause
 * Another process that takes part in a registry, and obeys. */
#ifndef HYBRID_TESTS_REGISTRY_OTHER_H
#define HYBRID_TESTS_REGISTRY_OTHER_H

#include "registry_util.h"

/* Another process: joins, claims, tells that it has done so and then obeys. */
struct other {
    pid_t pid;
    int to, from;
};

enum order { ORDER_LEAVE = 'l', ORDER_EXEC = 'e', ORDER_EXIT = 'x' };

static inline void other_main(int in, int out, uint64_t claim)
{
    struct registry *r;
    char c = 'k';

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (registry_open(path, BUDGET, &r) != 0 || registry_join(r, HY_CLASS_CPU) != 0 ||
        registry_claim_dram(r, claim) != 0)
        c = 'f';
    if (write(out, &c, 1) != 1)
        _exit(2);
    while (read(in, &c, 1) == 1) {
        if (c == ORDER_EXIT)
            _exit(0); /* without leaving: as any program that dies */
        if (c == ORDER_EXEC)
            execlp("sleep", "sleep", "60", (char *)NULL);
        if (c == ORDER_LEAVE)
            registry_leave(r);
        if (write(out, &c, 1) != 1)
            _exit(2);
    }
    _exit(0);
}

static inline struct other other_start(uint64_t claim)
{
    int to[2], from[2];
    char c;
    struct other o;

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    o.pid = fork();
    assert_true(o.pid >= 0);
    if (o.pid == 0) {
        close(to[1]);
        close(from[0]);
        other_main(to[0], from[1], claim);
    }
    close(to[0]);
    close(from[1]);
    o.to = to[1];
    o.from = from[0];
    assert_int_equal(read(o.from, &c, 1), 1);
    assert_int_equal(c, 'k');
    return o;
}

/* Waits for the answer; after an exec the closed pipe is the answer. */
static inline void other_order(struct other *o, enum order what)
{
    char c = (char)what;
    assert_int_equal(write(o->to, &c, 1), 1);
    (void)!read(o->from, &c, 1);
}

static inline void other_end(struct other *o)
{
    kill(o->pid, SIGKILL);
    assert_int_equal(waitpid(o->pid, NULL, 0), o->pid);
    close(o->to);
    close(o->from);
}

#endif
