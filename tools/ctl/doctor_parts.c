/* SPDX-License-Identifier: BSD-2-Clause
 * What the doctor looks at beside memory and libraries (ctl_doctor.h). */
#include "tools/ctl/doctor.h"

#include <pthread.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "classify/counters.h"
#include "tools/ctl/ctl.h"
#include "tools/ctl/probe.h"
#include "place/registry.h"
#include "sys/os.h"
#include "sys/usage.h"

/* --- dax ----------------------------------------------------------------- */

#define DAX_DEVICES "/sys/bus/dax/devices"
#define ND_DEVICES  "/sys/bus/nd/devices"

static uint64_t read_number(const char *folder, const char *name, const char *attribute)
{
    char path[PATH_MAX], text[64];
    snprintf(path, sizeof(path), "%s/%s/%s", folder, name, attribute);
    return doctor_read(path, text, sizeof(text)) ? strtoull(text, NULL, 0) : 0;
}

static void driver_of(const char *device, char *buf, size_t cap)
{
    char path[PATH_MAX], link[PATH_MAX];
    snprintf(path, sizeof(path), DAX_DEVICES "/%s/driver", device);
    ssize_t n = readlink(path, link, sizeof(link) - 1);
    link[n > 0 ? n : 0] = '\0';
    const char *base = strrchr(link, '/');
    snprintf(buf, cap, "%s", base ? base + 1 : "");
}

static void look_at_dax_device(const char *name)
{
    char driver[64], size[32];
    struct finding *f;

    driver_of(name, driver, sizeof(driver));
    uint64_t bytes = read_number(DAX_DEVICES, name, "size");
    uint64_t node = read_number(DAX_DEVICES, name, "target_node");
    ctl_size(bytes, size, sizeof(size));
    if (strcmp(driver, "kmem") == 0) {
        char path[96], cpulist[4096];
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%llu/meminfo",
                 (unsigned long long)node);
        bool online = doctor_read(path, cpulist, sizeof(cpulist)) &&
                      !strstr(cpulist, "MemTotal:              0 kB");
        f = doctor_add(online ? FOUND_OK : FOUND_MISSING, "dax", name,
                       "%s, system RAM of node %llu%s", size, (unsigned long long)node,
                       online ? "" : ", but not online");
        if (!online)
            doctor_fix(f, "daxctl online-memory %s", name);
    } else if (bytes > 0) {
        f = doctor_add(FOUND_MISSING, "dax", name, "%s, not given to the system (driver %s)", size,
                       *driver ? driver : "none");
        doctor_fix(f, "daxctl reconfigure-device --mode=system-ram %s", name);
    }
}

static void look_at_pmem_region(const char *name)
{
    char size[32];
    uint64_t room = read_number(ND_DEVICES, name, "available_size");
    if (strncmp(name, "region", 6) != 0 || room == 0)
        return;
    struct finding *f =
        doctor_add(FOUND_MISSING, "dax", name, "%s of persistent memory without a namespace",
                   ctl_size(room, size, sizeof(size)));
    doctor_fix(f, "ndctl create-namespace --mode=devdax --region=%s", name);
}

static unsigned each_name(const char *dir, void (*fn)(const char *name))
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    if (!d)
        return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        fn(e->d_name);
        n++;
    }
    closedir(d);
    return n;
}

/* Mount points of file systems with direct access: option "dax" or "dax=...". */
static unsigned look_at_dax_mounts(void)
{
    unsigned found = 0;
    char line[4096];
    FILE *f = fopen("/proc/self/mounts", "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f)) {
        char device[1024], where[1024], type[64], options[1024];
        if (sscanf(line, "%1023s %1023s %63s %1023s", device, where, type, options) != 4)
            continue;
        bool dax = false;
        for (char *o = strtok(options, ","); o; o = strtok(NULL, ","))
            dax |= strcmp(o, "dax") == 0 || strcmp(o, "dax=always") == 0;
        if (!dax)
            continue;
        found++;
        struct finding *x =
            doctor_add(FOUND_OK, "dax", "fsdax mount", "%s (%s on %s)", where, type, device);
        doctor_fix(x, "hybridctl run --pm file:%s -- PROGRAM", where);
    }
    fclose(f);
    return found;
}

void doctor_dax(void)
{
    unsigned n = each_name(DAX_DEVICES, look_at_dax_device);
    n += each_name(ND_DEVICES, look_at_pmem_region);
    n += look_at_dax_mounts();
    if (n == 0)
        doctor_add(FOUND_INFO, "dax", "devices", "no DAX device, NVDIMM or fsdax mount");
}

/* --- placement ----------------------------------------------------------- */

static void add_probe(const char *section, const char *name, int r, const char *works,
                      const char *hint)
{
    if (r == 0) {
        doctor_add(FOUND_OK, section, name, "%s", works);
        return;
    }
    const char *why = r == -ENODATA ? "answers, but wrongly" : strerror(-r);
    struct finding *f = doctor_add(FOUND_MISSING, section, name, "%s", why);
    if (hint)
        doctor_fix(f, "%s", hint);
}

void doctor_placement(void)
{
    /* Docker's seccomp profile refuses both without this capability. */
    static const char hint[] = "docker run --cap-add SYS_NICE ...   # in a container";
    add_probe("placement", "mbind", probe_mbind(), "permitted", hint);
    add_probe("placement", "move_pages", probe_move_pages(), "permitted", hint);
    char text[64];
    if (doctor_read("/proc/sys/kernel/numa_balancing", text, sizeof(text)))
        doctor_add(FOUND_INFO, "placement", "numa_balancing", "%s%s", text,
                   strcmp(text, "0") == 0   ? ": the kernel moves no pages by itself"
                   : strcmp(text, "1") == 0 ? ": the kernel may move pages between nodes"
                                            : ": the kernel promotes hot pages itself");
}

/* --- counters ------------------------------------------------------------ */

/* As the library does it, from a thread of its own: that one is not counted. */
static void *open_counters(void *info)
{
    if (counters_open("auto", NULL, NULL) == 0)
        counters_describe(info);
    counters_close();
    return NULL;
}

static void look_for_source(void)
{
    struct counters_info info = {0};
    pthread_t thread;

    if (pthread_create(&thread, NULL, open_counters, &info) != 0 || pthread_join(thread, NULL) != 0)
        return;
    doctor_add(info.source >= COUNTERS_HARDWARE ? FOUND_OK : FOUND_INFO, "counters", "class from",
               "%s%s%s%s", info.what, info.why[0] ? " (" : "", info.why, info.why[0] ? ")" : "");
}

void doctor_counters(void)
{
    char paranoid[32] = "?";
    int hw = probe_hardware_counter(), sw = probe_software_counter();
    bool known = doctor_read("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
    struct finding *f;

    if (hw == 0)
        doctor_add(FOUND_OK, "counters", "hardware", "counters open (perf_event_paranoid %s)",
                   paranoid);
    else if (os_seccomp() > 0 && ctl_harmless_filters() == 0) {
        f = doctor_add(FOUND_MISSING, "counters", "hardware",
                       "a seccomp filter is in force, which kills for counting or moving pages, or "
                       "nobody knows: both are left alone");
        doctor_fix(f, "docker run --security-opt seccomp=unconfined ...   # in a container");
    } else if (hw == -EACCES || hw == -EPERM) {
        f = doctor_add(FOUND_MISSING, "counters", "hardware",
                       "not permitted (perf_event_paranoid %s)", paranoid);
        doctor_fix(f, "sysctl kernel.perf_event_paranoid=1");
    } else if (hw == -ENOENT || hw == -EOPNOTSUPP || hw == -ENODEV)
        doctor_add(FOUND_MISSING, "counters", "hardware",
                   "this machine has no performance monitoring unit (a virtual machine?); set "
                   "HYBRID_CLASS or use a profile");
    else
        doctor_add(FOUND_MISSING, "counters", "hardware", "%s",
                   hw == -ENODATA ? "they open but do not count" : strerror(-hw));
    if (sw == 0)
        doctor_add(FOUND_OK, "counters", "software", "perf_event_open works");
    else {
        f = doctor_add(FOUND_MISSING, "counters", "software", "perf_event_open: %s", strerror(-sw));
        if (known && (sw == -EACCES || sw == -EPERM))
            doctor_fix(f, "sysctl kernel.perf_event_paranoid=1");
    }
    look_for_source();
}

/* --- page tracking ------------------------------------------------------- */

static int look_at_load_samples(const char *section)
{
    const char *meaning;
    int r = probe_load_samples(&meaning), paranoid = 0;
    struct finding *f;
    if (r == 0)
        doctor_add(FOUND_OK, section, "load samples", "work: %s", meaning);
    else if (os_seccomp() > 0)
        doctor_add(FOUND_MISSING, section, "load samples",
                   "a seccomp filter is in force, which may kill who samples: left alone");
    else if (r == -EACCES || r == -EPERM) {
        (void)os_perf_paranoid(&paranoid);
        f = doctor_add(FOUND_MISSING, section, "load samples",
                       "not permitted (perf_event_paranoid %d)", paranoid);
        /* 3 and 4 are Debian's and others'; what cannot leave the kernel out needs 1. */
        doctor_fix(f, "sysctl kernel.perf_event_paranoid=%d", paranoid > 2 ? 2 : 1);
    } else if (r == -ENODEV)
        doctor_add(
            FOUND_MISSING, section, "load samples",
            "the processor offers no event that tells addresses of loads (a virtual machine?)");
    else
        doctor_add(FOUND_MISSING, section, "load samples", "%s", strerror(-r));
    return r;
}

/* In the order in which the library takes them. */
static void look_at_reads(const char *section, const char *writes)
{
    int loads = look_at_load_samples(section), idle = probe_idle_bitmap();
    if (idle == -ENOENT)
        doctor_add(FOUND_MISSING, section, "idle page bitmap",
                   "this kernel is built without it (CONFIG_IDLE_PAGE_TRACKING)%s",
                   loads == 0 ? "; not needed, load samples work" : "");
    else
        add_probe(section, "idle page bitmap", idle, "works", loads == 0 ? NULL : "run as root");
    doctor_add(FOUND_INFO, section, "pages", "writes by %s, reads by %s", writes,
               loads == 0  ? "load-samples"
               : idle == 0 ? "page-idle"
                           : "nothing: what is not written counts as read or cold");
}

void doctor_tracking(void)
{
    static const char section[] = "page tracking";
    static const char newer[] = "apt-get install -t bookworm-backports linux-image-amd64   "
                                "# Linux 6.7 or later";
    int wp = probe_wp_async(), dirty = probe_soft_dirty();
    bool writes = wp == 0 || dirty == 0;

    add_probe(section, "PAGEMAP_SCAN", probe_pagemap_scan(), "works", writes ? NULL : newer);
    add_probe(section, "WP_ASYNC", wp, "works: writes are found without root",
              wp == -EPERM ? "sysctl vm.unprivileged_userfaultfd=1"
              : writes     ? NULL
                           : newer);
    if (dirty == -ENODATA)
        doctor_add(FOUND_MISSING, section, "soft-dirty",
                   "this kernel is built without it (CONFIG_MEM_SOFT_DIRTY)%s",
                   wp == 0 ? "; not needed, WP_ASYNC works" : "");
    else
        add_probe(section, "soft-dirty", dirty, "works", NULL);
    look_at_reads(section, wp == 0 ? "pagemap-scan" : dirty == 0 ? "soft-dirty" : "nothing");
    int damon = probe_damon();
    if (damon == -ENOENT || damon == -EOPNOTSUPP)
        doctor_add(FOUND_MISSING, section, "DAMON",
                   damon == -ENOENT ? "this kernel is built without it (CONFIG_DAMON_SYSFS)"
                                    : "this kernel monitors no process addresses "
                                      "(CONFIG_DAMON_VADDR)");
    else
        add_probe(section, "DAMON", damon, "can be used", "run as root");
}

/* --- limits -------------------------------------------------------------- */

static void look_at_shm(void)
{
    struct statvfs fs;
    char size[32];
    int fd, r = os_temp_file("/dev/shm", HY_PAGE, &fd);
    if (r == 0) {
        os_close(fd);
        uint64_t room = statvfs("/dev/shm", &fs) == 0 ? fs.f_bavail * fs.f_frsize : 0;
        doctor_add(FOUND_OK, "limits", "/dev/shm", "writable, %s free",
                   ctl_size(room, size, sizeof(size)));
        return;
    }
    struct finding *f = doctor_add(FOUND_MISSING, "limits", "/dev/shm",
                                   "not writable (%s): no registry there", strerror(-r));
    doctor_fix(f, r == -EROFS ? "mount -o remount,rw /dev/shm"
                              : "mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
}

void doctor_limits(void)
{
    char text[256], size[32];
    struct finding *f;

    look_at_shm();
    if (doctor_read("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text))) {
        const char *open = strchr(text, '[');
        int len = open ? (int)strcspn(open + 1, "]") : 0;
        doctor_add(FOUND_INFO, "limits", "huge pages", "transparent_hugepage is %.*s", len,
                   open ? open + 1 : "");
    }
    if (doctor_read("/proc/sys/vm/overcommit_memory", text, sizeof(text))) {
        bool strict = strcmp(text, "2") == 0;
        f = doctor_add(strict ? FOUND_MISSING : FOUND_OK, "limits", "overcommit",
                       "vm.overcommit_memory is %s%s", text,
                       strict ? ": memory is committed at once, programs meet the limit sooner"
                              : "");
        if (strict)
            doctor_fix(f, "sysctl vm.overcommit_memory=0");
    }
    if (doctor_read("/proc/sys/vm/max_map_count", text, sizeof(text))) {
        bool low = strtoull(text, NULL, 10) < 65530;
        f = doctor_add(low ? FOUND_MISSING : FOUND_OK, "limits", "max_map_count", "%s%s", text,
                       low ? ", less than the kernel's default" : "");
        if (low)
            doctor_fix(f, "sysctl vm.max_map_count=65530");
    }
    uint64_t limit = os_address_limit();
    if (limit == UINT64_MAX)
        doctor_add(FOUND_OK, "limits", "address space", "unlimited");
    else {
        f = doctor_add(FOUND_MISSING, "limits", "address space",
                       "limited to %s (RLIMIT_AS); the "
                       "heaps reserve address space",
                       ctl_size(limit, size, sizeof(size)));
        doctor_fix(f, "ulimit -v unlimited");
    }
}

/* --- registry ------------------------------------------------------------ */

void doctor_registry(const struct hy_settings *s)
{
    static struct registry_view view;
    struct registry *r;
    char path[HY_PATH_MAX], size[32];

    struct finding *users =
        doctor_add(FOUND_INFO, "registry", "users of a group",
                   "meet in a file that root makes: HYBRID_REGISTRY=/dev/shm/libhybrid-GROUP");
    doctor_fix(users, "echo 'f /dev/shm/libhybrid-GROUP 0660 root GROUP' "
                      ">/etc/tmpfiles.d/libhybrid.conf && systemd-tmpfiles --create");
    if (strcmp(s->registry, "none") == 0) {
        doctor_add(FOUND_INFO, "registry", "registry", "none, as set");
        return;
    }
    if (strcmp(s->registry, "auto") == 0)
        registry_default_path(path, sizeof(path));
    else
        snprintf(path, sizeof(path), "%s", s->registry);
    int error = registry_open_readonly(path, &r);
    if (error == 0) {
        registry_read(r, &view);
        registry_close(r);
        doctor_add(FOUND_OK, "registry", "registry", "%s: %u participant%s, %s of DRAM to share",
                   path, view.n, view.n == 1 ? "" : "s",
                   ctl_size(view.dram_budget, size, sizeof(size)));
    } else if (error == -ENOENT)
        doctor_add(FOUND_OK, "registry", "registry",
                   "%s: not there yet, the first program makes it", path);
    else {
        struct finding *f = doctor_add(FOUND_MISSING, "registry", "registry",
                                       "%s cannot be used (%s); programs decide alone", path,
                                       registry_problem(error));
        if (error == -EPROTO)
            doctor_fix(f, "rm %s   # when no program uses it", path);
    }
}
