/* SPDX-License-Identifier: BSD-2-Clause
 * Locks that know their owner: exclusion under contention, what a handler sees, and fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/lock.h"
#include "sys/os.h"

enum { THREADS = 4, ROUNDS = 100000 };
static struct hy_lock lock;
static long counter, inside;

static void *count(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        hy_lock_take(&lock);
        if (inside++ != 0)
            counter = -ROUNDS * THREADS;
        counter++;
        if (i % 1000 == 0)
            os_sleep_ns(1000); /* so that others go to sleep on it */
        inside--;
        hy_lock_release(&lock);
    }
    return NULL;
}

static void one_at_a_time(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, count, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(counter, THREADS * ROUNDS);
    assert_true(lock.word == 0 && !hy_locks_held());
}

static void *try_it(void *ret)
{
    *(bool *)ret = hy_lock_is_mine(&lock) || hy_lock_try(&lock) || hy_locks_held();
    return NULL;
}

static void its_owner_is_known(void **state)
{
    pthread_t t;
    bool other = true;
    (void)state;
    assert_false(hy_lock_is_mine(&lock));
    hy_lock_take(&lock);
    assert_true(hy_lock_is_mine(&lock) && hy_locks_held());
    assert_int_equal(pthread_create(&t, NULL, try_it, &other), 0);
    pthread_join(t, NULL);
    assert_false(other);
    hy_lock_release(&lock);
    assert_true(!hy_lock_is_mine(&lock) && !hy_locks_held());
}

/* One is held by the code that was interrupted, the other is free: both are right afterwards. */
static void fork_in_a_handler_waits_for_nothing(void **state)
{
    struct hy_lock other = {0};
    int status;
    (void)state;
    hy_lock_take(&lock);
    hy_lock_prefork(&lock);
    hy_lock_prefork(&other);
    pid_t pid = fork();
    hy_lock_postfork(&other);
    hy_lock_postfork(&lock);
    bool ok = hy_lock_is_mine(&lock) && other.word == 0;
    hy_lock_release(&lock);
    ok = ok && lock.word == 0 && !hy_locks_held();
    if (pid == 0)
        _exit(ok ? 0 : 1);
    assert_true(ok);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(its_owner_is_known),
        cmocka_unit_test(fork_in_a_handler_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
