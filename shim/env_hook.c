/* SPDX-License-Identifier: BSD-2-Clause
 * memkind makes four arenas a CPU in each kind unless a variable says otherwise, and each fork
 * of the program stops for every one of them. Its own jemalloc writes a page of records for each
 * of 256 arenas more, a MiB, while it is loaded. The supply takes large pieces only, one thread at
 * a time: an arena is enough. To set the variables would race with the program's own use of its
 * environment, so that memkind, and only while it works for us, is told by the function that it
 * asks. What the user says of its jemalloc goes before. */
#include <string.h>

#include "base/guard.h"
#include "sys/env.h"

HY_EXPORT char *hy_ask_env(const char *name) __asm__("secure_getenv");
char *hy_ask_env(const char *name)
{
    static char one_a_kind[] = "1", one_beside[] = "narenas:1";

    if (HY_UNLIKELY(hy_guarded()) && strcmp(name, "MEMKIND_ARENA_NUM_PER_KIND") == 0)
        return one_a_kind;
    const char *said = env_get(name);
    if (HY_UNLIKELY(hy_guarded()) && !said && strcmp(name, "JEMK_MALLOC_CONF") == 0)
        return one_beside;
    return (char *)(uintptr_t)said;
}
