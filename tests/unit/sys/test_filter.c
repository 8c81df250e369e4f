/* SPDX-License-Identifier: BSD-2-Clause
 * Filters of system calls: whether one may kill, which are known not to, and what is asked of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "sys/filter.h"
#include "sys/usage.h"
#include "tests/filter.h"

/* That so many do not kill holds for just as many. */
static int under_trusted_filters(void)
{
    int before = os_seccomp_filters();

    if (before < 0 || !filter(SYS_kexec_load, SECCOMP_RET_ERRNO))
        return 77;
    if (os_seccomp() != 1 || os_seccomp_filters() != before + 1)
        return 1;
    os_seccomp_trust((unsigned)before + 1);
    if (os_seccomp() != 0)
        return 2;
    os_seccomp_trust((unsigned)before + 2);
    if (os_seccomp() != 1)
        return 3;
    if (!filter(SYS_kexec_load, SECCOMP_RET_ERRNO))
        return 77;
    if (os_seccomp() != 0)
        return 4;
    os_seccomp_trust((unsigned)before + 1); /* one came later, of which nobody knows */
    return os_seccomp() == 1 ? 0 : 5;
}

static void test_trusted_filters(void **state)
{
    int r = in_fork(under_trusted_filters);

    (void)state;
    if (r == 77) {
        print_message("skipped: no filter can be installed here, or nobody counts them\n");
        skip();
    }
    assert_int_equal(r, 0);
}

/* The calls have no effect, and there is an end to them. */
static void test_filtered_calls(void **state)
{
    unsigned n = 0;

    (void)state;
    if (under_valgrind()) {
        print_message("the calls have memory that is none, which valgrind takes for errors\n");
        skip();
    }
    while (os_try_filtered(n) && n < 100)
        n++;
    assert_in_range(n, 5, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trusted_filters),
        cmocka_unit_test(test_filtered_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
