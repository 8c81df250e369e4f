/* SPDX-License-Identifier: BSD-2-Clause
 * Constructor, settings, destructor. See config.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "pages.h"
#include "sync.h"

static char pm_dir[PATH_MAX];
static size_t pm_dir_len;
static const char *stats, *preset;

static void __attribute__((noreturn, format(printf, 1, 2))) refuse(const char *format, ...)
{
    char line[512];
    int n;
    __builtin_va_list ap;

    __builtin_va_start(ap, format);
    n = vsnprintf(line, sizeof(line) - 1, format, ap);
    __builtin_va_end(ap);
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n] = '\n';
    dprintf(STDERR_FILENO, "pmemu[%d]: %.*s", (int)getpid(), n + 1, line);
    _exit(78);
}

static const char *setting(const char *name)
{
    const char *v = secure_getenv(name);
    return v && *v ? v : NULL;
}

static void read_params(struct emu_params *p)
{
    const char *set = setting("HYBRID_EMU_SET"), *bad;

    preset = setting("HYBRID_EMU_PRESET");
    if (!preset)
        preset = "pram";
    if (emu_params_preset(preset, p) < 0) {
        char names[128] = "";
        for (size_t i = 0, n = 0; i < emu_preset_count(); i++)
            n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", emu_preset_name(i));
        refuse("HYBRID_EMU_PRESET=%s: no such machine; there are:%s", preset, names);
    }
    if (set && emu_params_set(p, set, &bad) < 0)
        refuse("HYBRID_EMU_SET: not a setting within its limits: %.60s", bad);
}

static bool below_pm_dir(const char *path)
{
    return pm_dir_len && strncmp(path, pm_dir, pm_dir_len) == 0 &&
           (path[pm_dir_len] == '/' || path[pm_dir_len] == '\0');
}

bool emu_is_pm_file(int fd)
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
            (void)emu_pages_set(from, to - from, EMU_PM);
    }
    if (f)
        fclose(f);
}

static void read_placement(void)
{
    const char *place = setting("HYBRID_EMU_PLACE"), *dir = setting("HYBRID_EMU_PM_DIR");

    if (place && strcmp(place, "pm") == 0)
        emu_pages_default(EMU_PM);
    else if (place && strcmp(place, "dram") != 0)
        refuse("HYBRID_EMU_PLACE=%s: dram or pm", place);
    if (!dir)
        return;
    if (!realpath(dir, pm_dir))
        refuse("HYBRID_EMU_PM_DIR=%s: %s", dir, strerror(errno));
    pm_dir_len = strlen(pm_dir);
    scan_maps();
}

static void __attribute__((constructor(101))) start(void)
{
    const char *path = setting("HYBRID_EMU_MACHINE");
    struct emu_params p;
    int r;

    read_params(&p);
    read_placement();
    stats = setting("HYBRID_EMU_STATS");
    r = emu_core_start(path, &p);
    if (r == -EPERM)
        refuse("HYBRID_EMU_MACHINE=%s: no machine of this version; remove the file", path);
    if (r == -EINVAL)
        refuse("HYBRID_EMU_MACHINE=%s: a machine with other parameters", path);
    if (r < 0)
        refuse("no emulated machine%s%s: %s", path ? ": " : "", path ? path : "",
               r == -EUSERS ? "too many processes" : strerror(-r));
    emu_sync_start();
    pthread_atfork(NULL, NULL, emu_core_forked);
}

static void __attribute__((destructor(101))) finish(void)
{
    uint64_t count[EMU_COUNTER_COUNT], unseen;
    int64_t virtual_ps;

    if (!emu_core_running())
        return;
    emu_core_stop(count, &virtual_ps, &unseen);
    if (stats)
        emu_report(stats, preset, count, virtual_ps, unseen);
}
