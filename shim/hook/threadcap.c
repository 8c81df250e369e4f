/* SPDX-License-Identifier: BSD-2-Clause
 * The exported thread calls. Passed through: caps are a later capability. */
#include <pthread.h>

#include "runtime/runtime.h"

HY_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                             void *arg)
{
    runtime_before_thread();
    return next_pthread_create()(thread, attr, start, arg);
}
