/* SPDX-License-Identifier: BSD-2-Clause
 * CPUs for guests. See cpus.h. */
#include "qemu/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program/affinity.h"
#include "qemu/guest.h"

void cpus_set_enter(int tid, uint64_t bytes, uint64_t mask)
{
    struct emu_cpuset asked = {.bits = {0}};
    unsigned char all[128];
    size_t n = bytes < sizeof(asked) ? bytes : sizeof(asked);

    if (n == 0 || guest_read(mask, &asked, n) < 0)
        return;
    /* The kernel takes what it has of these; of none, it says EINVAL. */
    memset(all, emu_affinity_set(tid, &asked) == -EINVAL ? 0 : 0xff, sizeof(all));
    (void)guest_patch(mask, all, bytes < sizeof(all) ? bytes : sizeof(all));
}

void cpus_get_leave(int tid, uint64_t bytes, uint64_t mask, int64_t result)
{
    struct emu_cpuset s;
    (void)bytes;
    if (result <= 0 || emu_affinity_get(tid, &s) < 0)
        return;
    (void)guest_write(mask, &s, (size_t)result < sizeof(s) ? (size_t)result : sizeof(s));
}

void cpus_which_leave(uint64_t cpu, uint64_t node)
{
    uint32_t c = (uint32_t)emu_cpu_current(), none = 0;
    if (cpu)
        (void)guest_write(cpu, &c, sizeof(c));
    if (node)
        (void)guest_write(node, &none, sizeof(none));
}

/* "0-19\n" */
static void write_range(int fd)
{
    int n = emu_cpu_count();
    if (n == 1)
        dprintf(fd, "0\n");
    else
        dprintf(fd, "0-%d\n", n - 1);
}

/* The host's first processor, as often as there are CPUs. */
static void write_cpuinfo(int fd)
{
    char text[8192], *rest, *end;
    int from = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = from < 0 ? 0 : read(from, text, sizeof(text) - 1);

    if (from >= 0)
        close(from);
    text[n > 0 ? n : 0] = '\0';
    rest = strchr(text, '\n');
    end = strstr(text, "\n\n");
    if (!rest)
        return;
    if (end)
        end[1] = '\0';
    for (int i = 0; i < emu_cpu_count(); i++)
        dprintf(fd, "processor\t: %d%s\n", i, rest);
}

static const struct {
    const char *path;
    void (*write)(int fd);
} files[] = {
    {"/proc/cpuinfo", write_cpuinfo},
    {"/sys/devices/system/cpu/online", write_range},
    {"/sys/devices/system/cpu/possible", write_range},
    {"/sys/devices/system/cpu/present", write_range},
};

void cpus_file_opened(uint64_t path, int fd, uint64_t flags)
{
    char name[40] = "";

    /* Most paths are shorter than what is read: then up to the end of their page. */
    for (size_t i = 0; i < sizeof(name) - 1; i++)
        if (guest_read(path + i, &name[i], 1) < 0 || name[i] == '\0')
            break;
        else if (i == 4 && strncmp(name, "/proc", 5) != 0 && strncmp(name, "/sys/", 5) != 0)
            return;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int e = errno, copy;
        if (strcmp(name, files[i].path) != 0)
            continue;
        copy = memfd_create("hybrid-emu", MFD_CLOEXEC);
        if (copy >= 0) {
            files[i].write(copy);
            lseek(copy, 0, SEEK_SET);
            dup3(copy, fd, (int)(flags & O_CLOEXEC));
            close(copy);
        }
        errno = e;
        return;
    }
}
