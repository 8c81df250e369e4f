/* SPDX-License-Identifier: BSD-2-Clause
 * Where the profile is that HYBRID_PROFILE names. */
#ifndef HYBRID_SETTINGS_PROFILE_FILE_H
#define HYBRID_SETTINGS_PROFILE_FILE_H

#include "settings/rules/options.h"

/* A name with a slash is a file, and one with a dot if there is such a file in the current
 * directory; any other is looked for as NAME.ini in the
 * directories of HYBRID_PROFILE_PATH. 0, or -ENOENT when there is none. A file
 * that is there may still be unreadable. */
int profile_locate(const struct hy_settings *s, char *path, size_t cap);

#endif
