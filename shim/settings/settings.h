/* SPDX-License-Identifier: BSD-2-Clause
 * Environment and profile, read once in the constructor. */
#ifndef HYBRID_SETTINGS_SETTINGS_H
#define HYBRID_SETTINGS_SETTINGS_H

#include "settings/rules/options.h"
#include "settings/rules/profile.h"

struct runtime_config { /* what every start touches comes first, in as few pages as it needs */
    bool have_profile;
    unsigned errors; /* configuration errors told */
    struct hy_settings set;
    bool told_bad[OPT_COUNT];
    char profile_file[HY_PATH_MAX];
    struct profile profile; /* exe "" and n_sites 0 without one */
};
extern struct runtime_config hy_config;
/* Reads everything, tells what is wrong; true if any HYBRID_ variable is set. */
bool settings_load(void);
void settings_echo(void); /* HYBRID_VERBOSE */
/* More errors of an option, which only show at the machine (nodes, directory): the first one. */
void settings_error_once(enum hy_opt_id id, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Do these nodes have memory here? Else that is told. */
struct topology;
bool settings_nodes_exist(const struct topology *t, uint64_t nodes);
/* What is wrong with the settings, unless the parent process has told it. */
void settings_warn(const char *message);
/* A file that we write and the option names; -errno of os_write_file_atomic. Not where the start
 * has told it. */
void settings_cannot_write(enum hy_opt_id id, const char *path, int e);
enum hy_class settings_class(void);

#endif
