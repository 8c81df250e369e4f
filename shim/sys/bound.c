/* SPDX-License-Identifier: BSD-2-Clause
 * The library is linked for lazy binding: most of what it imports no process ever calls, and each
 * look-up would cost every start. What malloc and free call after the constructor is bound before:
 * a function whose address is taken has no lazy entry, for any caller in the library (GNU ld). So
 * the loader never works inside malloc (test `bindings`). */
#include <pthread.h>
#include <string.h>

__attribute__((used)) static void bound_at_start(void)
{
    __asm__ volatile("" ::"r"(memcpy), "r"(memmove), "r"(memset), "r"(pthread_setspecific),
                     "r"(pthread_self));
}
