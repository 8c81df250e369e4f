/* SPDX-License-Identifier: BSD-2-Clause
 * The doctor's findings, and the parts that look for them. */
#ifndef HYBRID_TOOLS_CTL_DOCTOR_H
#define HYBRID_TOOLS_CTL_DOCTOR_H

#include "settings/rules/options.h"

enum finding_state { FOUND_OK, FOUND_MISSING, FOUND_INFO };

struct finding {
    enum finding_state state;
    const char *section;
    char name[48];
    char text[HY_PATH_MAX + 256];
    char fix[256]; /* a command to enable it, "" for none */
};

struct finding *doctor_add(enum finding_state state, const char *section, const char *name,
                           const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void doctor_fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A short text file without its final newline. */
bool doctor_read(const char *path, char *buf, size_t cap);

void doctor_dax(void);
void doctor_figures(const struct hy_settings *s); /* devices and mounts that could become PM */
void doctor_placement(void);                      /* may pages be bound and asked for? */
void doctor_counters(void);
void doctor_tracking(void);
void doctor_limits(void);
void doctor_registry(const struct hy_settings *s);
void doctor_cache(const struct hy_settings *s); /* shares of the last-level cache */

#endif
