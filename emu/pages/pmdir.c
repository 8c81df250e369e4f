/* SPDX-License-Identifier: BSD-2-Clause
 * Which files are PM. See pmdir.h. */
#include "pages/pmdir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pages/pages.h"

static char pm_dir[PATH_MAX];
static size_t pm_dir_len;

static bool below_pm_dir(const char *path)
{
    return pm_dir_len && strncmp(path, pm_dir, pm_dir_len) == 0 &&
           (path[pm_dir_len] == '/' || path[pm_dir_len] == '\0');
}

bool emu_pmdir_has(int fd)
{
    char link[40], path[PATH_MAX];
    ssize_t n;
    int e = errno;

    if (!pm_dir_len || fd < 0)
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    errno = e;
    if (n <= 0)
        return false;
    path[n] = '\0';
    return below_pm_dir(path);
}

/* Mappings made before this library was there, by preloaded allocators. */
static void scan_maps(void)
{
    FILE *f = pm_dir_len ? fopen("/proc/self/maps", "re") : NULL;
    char line[PATH_MAX + 128];

    while (f && fgets(line, sizeof(line), f)) {
        unsigned long from, to;
        int at = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &at) != 2 || at == 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (below_pm_dir(line + at))
            (void)emu_pages_set(from, to - from, EMU_PM, NULL);
    }
    if (f)
        fclose(f);
}

int emu_pmdir_set(const char *dir)
{
    if (!realpath(dir, pm_dir))
        return -errno;
    pm_dir_len = strlen(pm_dir);
    scan_maps();
    return 0;
}
