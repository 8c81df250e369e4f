/* SPDX-License-Identifier: BSD-2-Clause
 * See spare.h. */
#include "heap/spare.h"

#include "sys/os.h"

#define HELD ((size_t)4 * HY_MIB)
#define UNIT                                                                                       \
    ((size_t)2 * HY_MIB) /* memkind's jemalloc wants multiples, where they are multiples           \
                          */

static char *at, *end;
static __thread bool serves __attribute__((tls_model("initial-exec")));

/* Nothing under mlockall, where all of it would be in memory. */
bool spare_hold(void)
{
    void *p;
    if (os_locks_future())
        return true;
    if (os_map_anon(HELD + UNIT, &p))
        return false;
    at = (char *)hy_align_up((uintptr_t)p, UNIT);
    end = at + HELD;
    if (at > (char *)p)
        (void)os_unmap(p, (size_t)(at - (char *)p));
    if (end < (char *)p + HELD + UNIT)
        (void)os_unmap(end, (size_t)((char *)p + HELD + UNIT - end));
    return true;
}

void spare_unlock(void)
{
    if (at < end && os_unlock(at, (size_t)(end - at)) == 0)
        (void)os_purge(at, (size_t)(end - at));
}

void spare_serves(bool on)
{
    serves = on;
    if (!on && at < end && (size_t)(end - at) < HELD)
        (void)spare_hold(); /* what is left of the old one is without pages */
}

void *spare_take(size_t bytes)
{
    char *p = at;
    if (!serves || bytes > (size_t)(end - p))
        return NULL;
    at += hy_align_up(bytes, UNIT);
    return p;
}
