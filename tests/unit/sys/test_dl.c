/* SPDX-License-Identifier: BSD-2-Clause
 * The quick look-up of the start finds what dlsym finds. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sys/dl.h"

static const char *const names[] = {
    "malloc",         "free",       "calloc", "realloc",           "memalign", "malloc_usable_size",
    "pthread_create", "munmap",     "mremap", "sched_getaffinity", "syscall",  "posix_memalign",
    "fork",           "no_such_fn", "memcpy", /* of another kind: chosen by the processor */
};

static void as_dlsym(void)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(names); i++)
        assert_ptr_equal(dl_next(names[i]), dlsym(RTLD_NEXT, names[i]));
    assert_non_null(dl_next("malloc"));
    assert_null(dl_next("no_such_fn"));
}

static void before_main_and_after(void **state)
{
    (void)state;
    as_dlsym();
    dl_main_begins();
    as_dlsym();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(before_main_and_after)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
