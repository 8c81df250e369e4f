/* SPDX-License-Identifier: BSD-2-Clause
 * The topology files of sysfs for the emulated CPUs: one socket of cores with one thread
 * each. libgomp reads them for OMP_PLACES and OMP_PROC_BIND. */
#include <stdio.h>
#include <string.h>

#include "program/affinity.h"
#include "instrument/real.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* The text of such a file; false: the path is another one. */
static bool topology(const char *path, char *text, size_t bytes)
{
    int cpu, end = 0;

    if (sscanf(path, "/sys/devices/system/cpu/cpu%d/topology/%n", &cpu, &end) != 1 || end == 0 ||
        cpu < 0 || cpu >= emu_cpu_count())
        return false;
    if (strcmp(path + end, "thread_siblings_list") == 0 ||
        strcmp(path + end, "core_cpus_list") == 0 || strcmp(path + end, "core_id") == 0)
        snprintf(text, bytes, "%d\n", cpu);
    else if (strcmp(path + end, "core_siblings_list") == 0 ||
             strcmp(path + end, "package_cpus_list") == 0)
        snprintf(text, bytes, "0-%d\n", emu_cpu_count() - 1);
    else if (strcmp(path + end, "physical_package_id") == 0)
        snprintf(text, bytes, "0\n");
    else
        return false;
    return true;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    REAL(FILE *, fopen, const char *, const char *);
    char text[32];
    FILE *file;

    if (!path || strncmp(path, "/sys/", 5) != 0 || !topology(path, text, sizeof(text)))
        return f(path, mode);
    /* Its own buffer, as ours is gone when the caller reads. */
    file = fmemopen(NULL, strlen(text) + 1, "w+");
    if (file) {
        fputs(text, file);
        rewind(file);
    }
    return file;
}
