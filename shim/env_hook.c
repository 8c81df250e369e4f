/* SPDX-License-Identifier: BSD-2-Clause
 * memkind makes four arenas a CPU in each kind unless this variable says otherwise, and each fork
 * of the program stops for every one of them. The supply takes large pieces only, one thread at a
 * time: an arena is enough. To set the variable would race with the program's own use of its
 * environment, so that memkind, and only while it works for us, is told by the function that it
 * asks. */
#include <string.h>

#include "base/guard.h"
#include "sys/env.h"

HY_EXPORT char *hy_ask_env(const char *name) __asm__("secure_getenv");
char *hy_ask_env(const char *name)
{
    static char one[] = "1";

    if (HY_UNLIKELY(hy_guarded()) && strcmp(name, "MEMKIND_ARENA_NUM_PER_KIND") == 0)
        return one;
    return (char *)(uintptr_t)env_get(name);
}
