/* SPDX-License-Identifier: BSD-2-Clause
 * Was the parent process started with the same settings, and is this one where it was started
 * (sys/env.h)? */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "sys/dl.h"
#include "sys/env.h"
#include "sys/os.h"

#define BLOCK_BYTES ((size_t)4 << 20)
#define LINE_BYTES  4096

struct search {
    const char *block; /* NAME=VALUE, each with its NUL */
    size_t len;
    bool all;
};

static bool has_line(const struct search *s, const char *line, size_t n)
{
    for (const char *at = s->block, *end = at + s->len; at < end; at += strlen(at) + 1)
        if (strncmp(at, line, n) == 0 && at[n] == '\0')
            return true;
    return false;
}

static void look_for(const char *name, size_t len, const char *value, void *ctx)
{
    struct search *s = ctx;
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof(line), "%.*s=%s", (int)len, name, value);
    s->all = s->all && n > 0 && (size_t)n < sizeof(line) && has_line(s, line, (size_t)n);
}

static bool compare(char *block)
{
    static const char preload_name[] = "LD_PRELOAD";
    const char *preload = env_get(preload_name);
    struct search s = {.block = block, .all = preload != NULL};
    char path[40];

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", os_parent_pid());
    if (!s.all || os_read_file(path, block, BLOCK_BYTES, &s.len) != 0)
        return false;
    look_for(preload_name, sizeof(preload_name) - 1, preload, &s);
    env_each("HYBRID_", look_for, &s);
    return s.all;
}

bool env_parent_has_same(void)
{
    static int8_t parent_known; /* -1 no, 1 yes */
    void *m;

    if (parent_known == 0) {
        bool same = os_map_anon(BLOCK_BYTES, &m) == 0;
        if (same) {
            same = compare(m);
            (void)os_unmap(m, BLOCK_BYTES);
        }
        parent_known = same ? 1 : -1;
    }
    return parent_known > 0;
}

/* The library itself is where it came from, unless the root is another one. */
bool env_has_moved(void)
{
    struct dl_object us;

    return os_uid() != getauxval(AT_EUID) ||
           (dl_find((const void *)(uintptr_t)&env_has_moved, &us) == 0 && us.name[0] == '/' &&
            !os_file_exists(us.name));
}
