/* SPDX-License-Identifier: BSD-2-Clause
 * A group of resctrl that an administrator delegated: a directory whose `tasks` this user may write
 * to, and that of the default group, for the way back. Threads in it fill few ways of the
 * last-level cache. Nothing is mounted or made here, and nobody's rights are used but the user's:
 * the kernel lets everybody move his own tasks only, whoever may write to the file.
 *
 * A thread's group is inherited by the threads and processes that it makes, and it keeps it when it
 * executes another program; with its end it has left. -errno of a write that the kernel refused:
 * why it did stands in info/last_cmd_status. */
#ifndef HYBRID_LLC_GROUP_H
#define HYBRID_LLC_GROUP_H

#include "settings/rules/options.h"

#define LLC_GROUP "/sys/fs/resctrl/libhybrid"

struct llc_group {
    char dir[HY_PATH_MAX], root[HY_PATH_MAX];
    unsigned few, of; /* ways that it may fill, or shall; of how many */
    bool narrow;      /* its schemata gives it more as yet */
    int (*write)(const char *path, const char *text); /* os_write_to outside tests */
};

/* Only looks. `own`: /proc/self/cpu_resctrl_groups outside tests. 0; -errno and why, for people:
 * -ENODEV no shares of the last-level cache, -ENOENT no such group, -EACCES not delegated, -EBUSY
 * somebody has put this process into another group. 4 KiB of stack. */
int llc_group_open(const char *dir, const char *own, struct llc_group *ret, char *why, size_t cap);
/* All threads of this process, into it or into the default group. `ret_why` as above. */
int llc_group_move(struct llc_group *g, bool into, char *why, size_t cap);
/* Only the calling one: its next program, or child, shall not have the group. */
void llc_group_move_caller(const struct llc_group *g, bool into);

#endif
