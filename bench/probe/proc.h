/* SPDX-License-Identifier: BSD-2-Clause
 * What the kernel says of this process, read without allocating: the growth
 * programs must not disturb what they measure. */
#ifndef BENCH_PROBE_PROC_H
#define BENCH_PROBE_PROC_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Value in KiB of a line of /proc/self/status, -1 when it is not there. */
static inline long proc_status_kib(const char *key)
{
    char text[8192];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    const char *at;

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    at = strstr(text, key);
    return at ? strtol(at + strlen(key) + 1, NULL, 10) : -1;
}

static inline long proc_mappings(void)
{
    char text[16384];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    long lines = 0;
    ssize_t n;

    if (fd < 0)
        return -1;
    while ((n = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < n; i++)
            lines += text[i] == '\n';
    }
    close(fd);
    return lines;
}

static inline void proc_report(unsigned percent)
{
    char line[160];
    int n = snprintf(line, sizeof(line), "at %u rss_kib=%ld peak_kib=%ld vm_kib=%ld maps=%ld\n",
                     percent, proc_status_kib("VmRSS"), proc_status_kib("VmHWM"),
                     proc_status_kib("VmSize"), proc_mappings());

    if (n <= 0 || write(STDOUT_FILENO, line, (size_t)n) != n)
        _exit(1);
}

#endif
