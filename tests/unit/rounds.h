/* SPDX-License-Identifier: BSD-2-Clause
 * How much of a long test: a tenth under valgrind (HY_TEST_SMALL), which is 50 times slower. */
#ifndef HY_TEST_ROUNDS_H
#define HY_TEST_ROUNDS_H

#include <stdlib.h>

static inline unsigned rounds(unsigned n)
{
    return getenv("HY_TEST_SMALL") ? (n + 9) / 10 : n;
}

#endif
