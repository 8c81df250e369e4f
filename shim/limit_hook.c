/* SPDX-License-Identifier: BSD-2-Clause
 * Limits of memory that the program sets itself. Those that others set are seen at fork. */
/* With 64-bit offsets asked for, the header would rename them, and two of the four would be
 * missing. */
#undef _FILE_OFFSET_BITS
#include <sys/resource.h>

#include "process/process.h"
#include "sys/dl.h"

/* On 64-bit machines struct rlimit64 is struct rlimit. */
#define LIMITED(pid, resource, limit, call)                                                        \
    bool begun_ = fork_limit_begins((pid), (int)(resource), (limit));                              \
    int r_ = (call);                                                                               \
    if (begun_)                                                                                    \
        fork_limit_ends();                                                                         \
    return r_

HY_EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    DL_NEXT(setrlimit);
    LIMITED(0, resource, limit, fn(resource, limit));
}

HY_EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
    DL_NEXT(setrlimit64);
    LIMITED(0, resource, limit, fn(resource, limit));
}

HY_EXPORT int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *limit,
                      struct rlimit *old)
{
    DL_NEXT(prlimit);
    LIMITED(pid, resource, limit, fn(pid, resource, limit, old));
}

HY_EXPORT int prlimit64(pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *limit,
                        struct rlimit64 *old)
{
    DL_NEXT(prlimit64);
    LIMITED(pid, resource, limit, fn(pid, resource, limit, old));
}
