/* SPDX-License-Identifier: BSD-2-Clause */
#include "llc/group.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llc/rules/resctrl.h"
#include "sys/os.h"

#define PATH_CAP (HY_PATH_MAX + 64)
#define TEXT_CAP 1024 /* a schemata of many sockets */
/* Threads made by one that was not moved yet are in the old group: list them again. */
#define ROUNDS 2

/* A file of a group; false: its name is too long. */
static bool path_in(const char *dir, const char *name, char path[PATH_CAP])
{
    return (size_t)snprintf(path, PATH_CAP, "%s/%s", dir, name) < PATH_CAP;
}

static int read_in(const char *dir, const char *name, char *buf, size_t cap)
{
    char path[PATH_CAP];
    size_t len;

    return path_in(dir, name, path) ? os_read_file(path, buf, cap, &len) : -ENAMETOOLONG;
}

static bool may_write(const char *dir, const char *name)
{
    char path[PATH_CAP];

    return path_in(dir, name, path) && os_may_write_to(path);
}

static int write_in(const struct llc_group *g, const char *dir, const char *name, const char *text)
{
    char path[PATH_CAP];

    return path_in(dir, name, path) ? g->write(path, text) : -ENAMETOOLONG;
}

/* The ways that there are, and the fewest that the kernel takes. */
static int ways_of_machine(const char *root, uint64_t *ret_all, unsigned *ret_least)
{
    static const char *const info[] = {"info/L3DATA", "info/L3"};
    char name[64], text[64];

    for (unsigned i = 0; i < HY_ARRAY_SIZE(info); i++) {
        snprintf(name, sizeof(name), "%s/cbm_mask", info[i]);
        if (read_in(root, name, text, sizeof(text)) < 0 || resctrl_mask(text, ret_all) < 0)
            continue;
        snprintf(name, sizeof(name), "%s/min_cbm_bits", info[i]);
        *ret_least = read_in(root, name, text, sizeof(text)) == 0 ? (unsigned)atoi(text) : 1;
        return 0;
    }
    return -ENODEV;
}

static int __attribute__((format(printf, 4, 5)))
problem(int e, char *why, size_t cap, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, cap, fmt, ap);
    va_end(ap);
    return e;
}

/* Where this process is now: in the default group, or in this one, as a program that was started
 * from there is. */
static int look_at_own(const struct llc_group *g, const char *own, char *why, size_t cap)
{
    char text[256], name[128];
    size_t len;

    if (os_read_file(own, text, sizeof(text), &len) < 0 ||
        resctrl_group_name(text, name, sizeof(name)) < 0 || name[0] == '\0' ||
        strcmp(name, g->dir + strlen(g->root) + 1) == 0)
        return 0;
    return problem(-EBUSY, why, cap, "somebody has put this process into the group %s", name);
}

int llc_group_open(const char *dir, const char *own, struct llc_group *ret, char *why, size_t cap)
{
    const char *slash = strrchr(dir, '/');
    struct llc_group g = {.write = os_write_to};
    char text[TEXT_CAP];
    unsigned least, ways;
    uint64_t all;

    if (!slash || slash == dir || strlen(dir) >= sizeof(g.dir))
        return problem(-ENODEV, why, cap, "%s is no group of resctrl", dir);
    memcpy(g.dir, dir, strlen(dir) + 1);
    memcpy(g.root, dir, (size_t)(slash - dir));
    if (ways_of_machine(g.root, &all, &least) < 0)
        return problem(-ENODEV, why, cap, "%s offers no shares of the last-level cache", g.root);
    if (read_in(dir, "schemata", text, sizeof(text)) < 0 || resctrl_ways(text, &ways) < 0)
        return problem(-ENOENT, why, cap, "there is no group %s", dir);
    if (!may_write(dir, "tasks"))
        return problem(-EACCES, why, cap, "this user may not write to %s/tasks", dir);
    if (!may_write(g.root, "tasks"))
        return problem(-EACCES, why, cap, "this user may not write to %s/tasks: no way back",
                       g.root);
    g.of = (unsigned)__builtin_popcountll(all);
    g.few = resctrl_few(all, least);
    /* An administrator's word holds, as long as the group is a small one. */
    g.narrow = 2 * ways > g.of;
    if (!g.narrow)
        g.few = ways;
    else if (!may_write(dir, "schemata"))
        return problem(-EACCES, why, cap, "%s/schemata has more than half of the cache", dir);
    *ret = g;
    return look_at_own(&g, own, why, cap);
}

struct round {
    const struct llc_group *g;
    const char *dir;
    int error;
};

static void move_one(void *ctx, const char *name)
{
    struct round *r = ctx;
    int e = write_in(r->g, r->dir, "tasks", name);

    if (e < 0 && e != -ESRCH) /* it has ended */
        r->error = e;
}

static void tell_why(const struct llc_group *g, int e, const char *dir, char *why, size_t cap)
{
    char status[128] = "";

    (void)read_in(g->root, "info/last_cmd_status", status, sizeof(status));
    status[strcspn(status, "\n")] = '\0';
    snprintf(why, cap, "%s: %s%s%s", dir, os_error_name(e), status[0] ? ": " : "", status);
}

static int narrow(struct llc_group *g, char *why, size_t cap)
{
    char text[TEXT_CAP], line[TEXT_CAP];
    int e = read_in(g->dir, "schemata", text, sizeof(text));

    if (e == 0)
        e = HY_MIN(resctrl_narrow(text, g->few, line, sizeof(line)), 0);
    if (e == 0)
        e = write_in(g, g->dir, "schemata", line);
    if (e < 0)
        tell_why(g, e, g->dir, why, cap);
    else
        g->narrow = false;
    return e;
}

int llc_group_move(struct llc_group *g, bool into, char *why, size_t cap)
{
    struct round r = {.g = g, .dir = into ? g->dir : g->root};
    int e = into && g->narrow ? narrow(g, why, cap) : 0;

    for (int i = 0; i < ROUNDS && e == 0 && r.error == 0; i++)
        e = os_list_dir("/proc/self/task", move_one, &r);
    if (e == 0 && r.error) {
        e = r.error;
        tell_why(g, e, r.dir, why, cap);
    }
    return e;
}

void llc_group_move_caller(const struct llc_group *g, bool into)
{
    char tid[16];

    snprintf(tid, sizeof(tid), "%d", os_gettid());
    (void)write_in(g, into ? g->dir : g->root, "tasks", tid);
}
