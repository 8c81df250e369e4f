/* SPDX-License-Identifier: BSD-2-Clause */
#include "llc/rules/resctrl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define SIXTEENTH 16u

/* The digits at *p, behind which it points then. */
static int hexadecimal(const char **p, uint64_t *ret)
{
    uint64_t v = 0;
    unsigned digits = 0;

    for (int digit; (digit = text_hex_digit(**p)) >= 0; (*p)++, digits++) {
        if (v >> 60)
            return -EINVAL;
        v = v << 4 | (unsigned)digit;
    }
    *ret = v;
    return digits ? 0 : -EINVAL;
}

int resctrl_mask(const char *text, uint64_t *ret)
{
    uint64_t v;

    if (hexadecimal(&text, &v) < 0 || (*text && *text != '\n') || v == 0)
        return -EINVAL;
    *ret = v;
    return 0;
}

/* Behind the colon of the line of the last-level caches' data; NULL: there is none. */
static const char *line_of_l3(const char *schemata, const char **ret_name)
{
    static const char *const names[] = {"L3DATA:", "L3:"};

    for (const char *line = schemata; line && *line; line = strchr(line, '\n')) {
        line += strspn(line, "\n ");
        for (unsigned i = 0; i < HY_ARRAY_SIZE(names); i++)
            if (strncmp(line, names[i], strlen(names[i])) == 0) {
                *ret_name = names[i];
                return line + strlen(names[i]);
            }
    }
    return NULL;
}

/* One "0=fff" of the line; 1: another one follows, 0: it was the last. */
static int next_cache(const char **p, unsigned *ret_id, uint64_t *ret_mask)
{
    unsigned id = 0, digits = 0;

    *p += strspn(*p, " ");
    for (; **p >= '0' && **p <= '9' && digits < 9; (*p)++, digits++)
        id = id * 10 + (unsigned)(**p - '0');
    if (digits == 0 || *(*p)++ != '=' || hexadecimal(p, ret_mask) < 0)
        return -EINVAL;
    *ret_id = id;
    if (**p == ';') {
        (*p)++;
        return 1;
    }
    return **p == '\n' || **p == '\0' ? 0 : -EINVAL;
}

int resctrl_ways(const char *schemata, unsigned *ret_most)
{
    const char *name, *p = line_of_l3(schemata, &name);
    unsigned most = 0, id;
    uint64_t mask;
    int more = 1;

    if (!p)
        return -ENODATA;
    while (more == 1) {
        more = next_cache(&p, &id, &mask);
        if (more < 0)
            return more;
        most = HY_MAX(most, (unsigned)__builtin_popcountll(mask));
    }
    *ret_most = most;
    return 0;
}

unsigned resctrl_few(uint64_t all, unsigned least)
{
    unsigned ways = (unsigned)__builtin_popcountll(all);

    return HY_MIN(HY_MAX((ways + SIXTEENTH - 1) / SIXTEENTH, HY_MAX(least, 1u)), ways);
}

int resctrl_narrow(const char *schemata, unsigned ways, char *buf, size_t cap)
{
    const char *name, *p = line_of_l3(schemata, &name);
    uint64_t few = ways < 64 ? ((uint64_t)1 << ways) - 1 : UINT64_MAX, mask;
    size_t len;
    unsigned id;
    int more = 1;

    if (!p)
        return -ENODATA;
    len = (size_t)snprintf(buf, cap, "%s", name);
    while (more == 1 && len < cap) {
        more = next_cache(&p, &id, &mask);
        if (more < 0)
            return more;
        len += (size_t)snprintf(buf + len, cap - len, "%u=%llx%s", id, (unsigned long long)few,
                                more ? ";" : "\n");
    }
    return len < cap ? (int)len : -ENOSPC;
}

int resctrl_group_name(const char *text, char *buf, size_t cap)
{
    const char *p = strncmp(text, "res:", 4) == 0 ? text + 4 : strstr(text, "\nres:");
    size_t len;

    if (!p)
        return -ENODATA;
    p += *p == '\n' ? 5 : 0;
    p += *p == '/';
    len = strcspn(p, "\n");
    if (len >= cap)
        return -ENODATA;
    memcpy(buf, p, len);
    buf[len] = '\0';
    return 0;
}
