/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/env.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

bool env_is_secure(void)
{
    static int8_t secure_known; /* 1 no, 2 yes; it never changes */
    if (!secure_known)
        secure_known = getauxval(AT_SECURE) != 0 ? 2 : 1;
    return secure_known == 2;
}

const char *env_get(const char *name)
{
    return env_is_secure() ? NULL : getenv(name);
}

void env_each(const char *prefix,
              void (*fn)(const char *name, size_t name_len, const char *value, void *ctx),
              void *ctx)
{
    if (env_is_secure() || environ == NULL) /* clearenv() leaves NULL */
        return;
    for (char **e = environ; *e != NULL; e++) {
        const char *c = *e, *p = prefix;
        while (*p != '\0' && *c == *p) /* few begin so: no look-up of a function for it */
            c++, p++;
        if (*p != '\0')
            continue;
        while (*c != '\0' && *c != '=')
            c++;
        if (*c == '=')
            fn(*e, (size_t)(c - *e), c + 1, ctx);
    }
}

char *const *env_all(void)
{
    return environ;
}
