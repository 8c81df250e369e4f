/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/env.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

bool env_is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

const char *env_get(const char *name)
{
    /* libc's own flag and the kernel's: a program can have entered secure mode
     * only at exec, so both are constant. */
    return env_is_secure() ? NULL : secure_getenv(name);
}

void env_each(const char *prefix,
              void (*fn)(const char *name, size_t name_len, const char *value, void *ctx),
              void *ctx)
{
    size_t n = strlen(prefix);
    if (env_is_secure() || environ == NULL) /* clearenv() leaves NULL */
        return;
    for (char **e = environ; *e != NULL; e++) {
        if (**e != *prefix || strncmp(*e, prefix, n) != 0)
            continue;
        const char *eq = strchr(*e, '=');
        if (eq != NULL)
            fn(*e, (size_t)(eq - *e), eq + 1, ctx);
    }
}

char *const *env_all(void)
{
    return environ;
}
