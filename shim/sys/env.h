/* SPDX-License-Identifier: BSD-2-Clause
 * The only reader of the environment. In setuid programs (AT_SECURE) every
 * look-up answers NULL and the iteration is empty (DESIGN 2, promise 6). */
#ifndef HYBRID_SYS_ENV_H
#define HYBRID_SYS_ENV_H

#include "base/types.h"

bool env_is_secure(void); /* AT_SECURE: we must not act */
const char *env_get(const char *name);
/* All of it, as the program has it now: to be passed on, not looked at. */
char *const *env_all(void);
/* Calls fn(name, name_len, value, ctx) for every variable starting with prefix. */
void env_each(const char *prefix,
              void (*fn)(const char *name, size_t name_len, const char *value, void *ctx),
              void *ctx);

/* Was the parent process started with the same LD_PRELOAD and the same HYBRID_ variables? Then
 * it had to tell what is wrong with them. Asked of /proc once, so only when there is something to
 * tell. */
bool env_parent_has_same(void);

/* The program has become another user, or has another root, since it was started: what it cannot
 * reach any more is no fault of the settings. Asks the kernel, so only when there is something to
 * tell. */
bool env_has_moved(void);

#endif
