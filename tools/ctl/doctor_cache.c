/* SPDX-License-Identifier: BSD-2-Clause
 * Shares of the last-level cache: is there a group of resctrl that an administrator delegated, and
 * if not, how does one do that? */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/doctor.h"
#include "llc/group.h"
#include "sys/os.h"

#define SECTION "cache"

/* The steps, each as a finding of its own: they are an administrator's. */
static void tell_how(const char *root)
{
    struct finding *f;

    f = doctor_add(FOUND_INFO, SECTION, "delegate, 1",
                   "an administrator makes a group for programs that stream through the cache");
    doctor_fix(f, "mkdir %s/libhybrid", root);
    f = doctor_add(
        FOUND_INFO, SECTION, "delegate, 2",
        "and lets a group of users put their own threads into it and back; the kernel lets "
        "nobody move those of others");
    doctor_fix(f,
               "cd %s && chgrp USERS tasks libhybrid/tasks libhybrid/schemata && chmod g+w tasks "
               "libhybrid/tasks libhybrid/schemata",
               root);
}

void doctor_cache(const struct hy_settings *s)
{
    static const char group[] = "group:";
    bool named = strncmp(s->cache, group, sizeof(group) - 1) == 0;
    const char *dir = named ? s->cache + sizeof(group) - 1 : LLC_GROUP;
    struct llc_group g;
    struct finding *f;
    char why[160], root[HY_PATH_MAX];

    if (strcmp(s->cache, "off") == 0) {
        doctor_add(FOUND_INFO, SECTION, "share", "never given up, as set (HYBRID_CACHE=off)");
        return;
    }
    int e = llc_group_open(dir, "/proc/self/cpu_resctrl_groups", &g, why, sizeof(why));
    if (e == 0) {
        doctor_add(FOUND_OK, SECTION, "share",
                   "%s: programs that stream through the last-level cache fill %u of its %u ways",
                   dir, g.few, g.of);
        return;
    }
    (void)snprintf(root, sizeof(root), "%.*s", (int)(strrchr(dir, '/') - dir), dir);
    f = doctor_add(named ? FOUND_MISSING : FOUND_INFO, SECTION, "share",
                   "%s, so programs that stream through it push out what others use", why);
    if (e == -ENODEV && os_file_exists(root))
        doctor_fix(f, "mount -t resctrl resctrl %s   # where the processor can (rdt_a, cat_l3)",
                   root);
    if (e == -ENOENT || e == -EACCES)
        tell_how(root);
}
