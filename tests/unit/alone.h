/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HYBRID_TESTS_ALONE_H
#define HYBRID_TESTS_ALONE_H

#include <unistd.h>

#include "sys/os.h"

/* A thread that has been joined is listed in /proc for a moment more, on a busy computer for a
 * time slice: tests that count threads wait until this one is the only one. */
static inline void wait_until_alone(void)
{
    while (os_thread_count() > 1)
        usleep(1000);
}

#endif
