/* SPDX-License-Identifier: BSD-2-Clause
 * Probes of page tracking, counters and libraries (ctl_probe.h). */
#include "tools/ctl/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pages/sampler.h"
#include "pages/sampler_loads.h"
#include "sys/usage.h"

/* Linux 6.7, newer than the headers of Debian 12 (include/uapi/linux/fs.h and
 * userfaultfd.h). */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan_arg {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_IOCTL             _IOWR('f', 16, struct scan_arg)
#define SCAN_WP_MATCHING       (UINT64_C(1) << 0)
#define SCAN_CHECK_WPASYNC     (UINT64_C(1) << 1)
#define SCAN_IS_WRITTEN        (UINT64_C(1) << 1)
#define SCAN_IS_PRESENT        (UINT64_C(1) << 3)
#define FEATURE_WP_UNPOPULATED (UINT64_C(1) << 13)
#define FEATURE_WP_ASYNC       (UINT64_C(1) << 15)

enum { PROBE_PAGES = 8 };

static char *populated_pages(void)
{
    char *p = mmap(NULL, PROBE_PAGES * HY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    /* one huge page would hide which small page was written */
    (void)madvise(p, PROBE_PAGES * HY_PAGE, MADV_NOHUGEPAGE);
    memset(p, 1, PROBE_PAGES * HY_PAGE);
    return p;
}

static int open_errno(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Number of regions in the answer, or -errno. */
static int scan(int pagemap, const char *base, uint64_t flags, uint64_t want,
                struct scan_region *regions, unsigned n)
{
    struct scan_arg arg = {
        .size = sizeof(arg),
        .flags = flags,
        .start = (uintptr_t)base,
        .end = (uintptr_t)base + PROBE_PAGES * HY_PAGE,
        .vec = (uintptr_t)regions,
        .vec_len = n,
        .category_mask = want,
        .return_mask = want,
    };
    int r = ioctl(pagemap, SCAN_IOCTL, &arg);
    return r < 0 ? -errno : r;
}

int probe_pagemap_scan(void)
{
    struct scan_region region[PROBE_PAGES];
    char *p = populated_pages();
    int fd = open_errno("/proc/self/pagemap", O_RDONLY);
    int r = !p ? -ENOMEM : fd < 0 ? fd : scan(fd, p, 0, SCAN_IS_PRESENT, region, PROBE_PAGES);
    if (r >= 0)
        r = r >= 1 && region[0].start == (uintptr_t)p ? 0 : -ENODATA;
    if (fd >= 0)
        close(fd);
    if (p)
        munmap(p, PROBE_PAGES * HY_PAGE);
    return r;
}

static int protect_async(int uffd, char *p)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = FEATURE_WP_ASYNC | FEATURE_WP_UNPOPULATED};
    if (ioctl(uffd, UFFDIO_API, &api) < 0)
        return -errno;
    struct uffdio_register reg = {
        .range = {.start = (uintptr_t)p, .len = PROBE_PAGES * HY_PAGE},
        .mode = UFFDIO_REGISTER_MODE_WP,
    };
    return ioctl(uffd, UFFDIO_REGISTER, &reg) < 0 ? -errno : 0;
}

static int written_page_is_found(int pagemap, char *p)
{
    struct scan_region region[PROBE_PAGES];
    const uint64_t flags = SCAN_WP_MATCHING | SCAN_CHECK_WPASYNC;

    int r = scan(pagemap, p, flags, SCAN_IS_WRITTEN, region, PROBE_PAGES);
    if (r < 0)
        return r;
    *(volatile char *)(p + 3 * HY_PAGE) = 2;
    r = scan(pagemap, p, flags, SCAN_IS_WRITTEN, region, PROBE_PAGES);
    if (r < 0)
        return r;
    return r == 1 && region[0].start == (uintptr_t)(p + 3 * HY_PAGE) &&
                   region[0].end == region[0].start + HY_PAGE
               ? 0
               : -ENODATA;
}

int probe_wp_async(void)
{
    char *p = populated_pages();
    int pagemap = open_errno("/proc/self/pagemap", O_RDONLY);
    int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    int r = uffd < 0 ? -errno : !p ? -ENOMEM : pagemap < 0 ? pagemap : protect_async(uffd, p);
    if (r == 0)
        r = written_page_is_found(pagemap, p);
    if (uffd >= 0)
        close(uffd);
    if (pagemap >= 0)
        close(pagemap);
    if (p)
        munmap(p, PROBE_PAGES * HY_PAGE);
    return r;
}

int probe_soft_dirty(void)
{
    const uint64_t bit = UINT64_C(1) << 55;
    uint64_t entry[2] = {0};
    char *p = populated_pages();
    int clear = open_errno("/proc/self/clear_refs", O_WRONLY);
    int pagemap = open_errno("/proc/self/pagemap", O_RDONLY);
    int r = !p ? -ENOMEM : clear < 0 ? clear : pagemap < 0 ? pagemap : 0;
    if (r == 0 && write(clear, "4", 1) != 1)
        r = -errno;
    if (r == 0) {
        *(volatile char *)p = 2;
        off_t at = (off_t)((uintptr_t)p / HY_PAGE * sizeof(entry[0]));
        if (pread(pagemap, entry, sizeof(entry), at) != (ssize_t)sizeof(entry))
            r = -errno;
        else if (!(entry[0] & bit) || (entry[1] & bit))
            r = -ENODATA; /* without the feature all bits read alike */
    }
    if (clear >= 0)
        close(clear);
    if (pagemap >= 0)
        close(pagemap);
    if (p)
        munmap(p, PROBE_PAGES * HY_PAGE);
    return r;
}

static int try_source(const struct sampler_source *source)
{
    int r = source->open();
    if (r == 0)
        source->close();
    return r;
}

int probe_idle_bitmap(void)
{
    return try_source(&sampler_idle);
}

int probe_load_samples(const char **ret_meaning)
{
    struct loads_view v;
    int r = try_source(&sampler_loads);
    sampler_loads_get(&v);
    *ret_meaning = v.meaning;
    return r;
}

/* DAMON tells its operations only to who starts a monitor; the names of kernel
 * functions are there for everybody. */
int probe_damon(void)
{
    int fd = open_errno("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", O_RDWR);
    if (fd < 0)
        return fd;
    close(fd);
    FILE *f = fopen("/proc/kallsyms", "re");
    if (!f)
        return -errno;
    char line[512];
    int r = -EOPNOTSUPP;
    while (r < 0 && fgets(line, sizeof(line), f)) {
        if (strstr(line, " damon_va_"))
            r = 0;
    }
    fclose(f);
    return r;
}

/* --- counters and placement ---------------------------------------------- */

static int try_counter(uint32_t type, uint64_t config)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = type,
        .config = config,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    uint64_t value = 0;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, &value, sizeof(value));
    close(fd);
    return n == (ssize_t)sizeof(value) && value > 0 ? 0 : -ENODATA;
}

/* A seccomp filter may kill who asks: then a child asks. */
static int open_counter(uint32_t type, uint64_t config)
{
    int status = 0;
    pid_t pid = os_seccomp() == 0 ? -1 : fork();

    if (pid == 0)
        _exit(-try_counter(type, config));
    if (pid < 0)
        return try_counter(type, config);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EPERM;
}

int probe_hardware_counter(void)
{
    return open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

int probe_software_counter(void)
{
    return open_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
}

int probe_mbind(void)
{
    enum { MPOL_PREFERRED_ = 1 };
    unsigned long mask = 1;
    char *p = populated_pages();
    if (!p)
        return -ENOMEM;
    long r =
        syscall(SYS_mbind, p, PROBE_PAGES * HY_PAGE, MPOL_PREFERRED_, &mask, sizeof(mask) * 8, 0);
    int result = r < 0 ? -errno : 0;
    munmap(p, PROBE_PAGES * HY_PAGE);
    return result;
}

int probe_move_pages(void)
{
    char *p = populated_pages();
    void *page = p;
    int status = -1;
    if (!p)
        return -ENOMEM;
    long r = syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0);
    int result = r < 0 ? -errno : status < 0 ? status : 0;
    munmap(p, PROBE_PAGES * HY_PAGE);
    return result;
}

/* --- libraries ----------------------------------------------------------- */

bool probe_library(const char *soname, char *err, size_t err_cap)
{
    void *h = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (h)
        return true;
    const char *why = dlerror();
    snprintf(err, err_cap, "%s", why ? why : "?");
    return false;
}

static void ask_memkind(struct probe_memkind *a)
{
    void *h = dlopen("libmemkind.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!h) {
        const char *why = dlerror();
        snprintf(a->error, sizeof(a->error), "%s", why ? why : "?");
        return;
    }
    a->present = true;
    int (*version)(void);
    int (*check)(void *kind);
    /* POSIX wants the object pointer's bytes to do as a function's (man dlsym) */
    *(void **)&version = dlsym(h, "memkind_get_version");
    *(void **)&check = dlsym(h, "memkind_check_available");
    void **kmem = dlsym(h, "MEMKIND_DAX_KMEM");
    if (version)
        a->version = version();
    a->dax_kmem = check && kmem ? check(*kmem) : -1;
}

/* In a child: memkind and libnuma may end the process that asks, by exit() or
 * in a destructor. */
void probe_memkind(struct probe_memkind *ret)
{
    struct probe_memkind answer = {0};
    int channel[2], status;

    memset(ret, 0, sizeof(*ret));
    ret->crashed = true;
    if (pipe2(channel, O_CLOEXEC) < 0)
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        ask_memkind(&answer);
        ssize_t n = write(channel[1], &answer, sizeof(answer));
        _exit(n == (ssize_t)sizeof(answer) ? 0 : 1);
    }
    close(channel[1]);
    if (child > 0) {
        ssize_t n = read(channel[0], &answer, sizeof(answer));
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (n == (ssize_t)sizeof(answer))
            *ret = answer;
    }
    close(channel[0]);
}
