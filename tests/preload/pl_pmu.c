/* SPDX-License-Identifier: BSD-2-Clause
 * Preloaded behind libhybrid: a processor that samples loads, for machines without. The kernel's
 * folder of it is PMU_TREE; events are opened, mapped and unmapped by syscall(2) as libhybrid does
 * it, their rings are ordinary memory, and a program that calls pmu_load writes the records that
 * the kernel would write. All else goes to the kernel. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER "/sys/bus/event_source/devices/cpu/"
#define PAGE   4096ul
#define EVENTS 128

static struct event {
    int tid, fd; /* tid 0: free; fd -1: mapped */
    char *base;
    unsigned long bytes;
    unsigned long long period, left;
} event[EVENTS];
static int lock;

static long kernel(long nr, const long a[6])
{
    register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
}
#define KERNEL(nr, ...) kernel((nr), (const long[6]){__VA_ARGS__})

static void take_lock(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        KERNEL(SYS_sched_yield, 0);
}

static void drop_lock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static struct event *free_event(void)
{
    for (int i = 0; i < EVENTS; i++)
        if (!event[i].tid)
            return &event[i];
    return NULL;
}

static long open_event(const struct perf_event_attr *attr, int tid)
{
    const unsigned long long sample = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC;
    if (attr->type != 4 || attr->config != 0x20d1 || attr->precise_ip != 2 ||
        attr->sample_type != sample || !attr->exclude_kernel || attr->inherit)
        return -EINVAL;
    /* A filter that kills who asks shall see it; the kernel takes no such address. */
    KERNEL(SYS_perf_event_open, 0, tid, -1, -1, 0);
    long fd = KERNEL(SYS_memfd_create, (long)"pmu", MFD_CLOEXEC);
    if (fd < 0)
        return fd;
    KERNEL(SYS_ftruncate, fd, 64 * PAGE);
    take_lock();
    struct event *e = free_event();
    if (e)
        *e = (struct event){.tid = tid ? tid : (int)KERNEL(SYS_gettid, 0),
                            .fd = (int)fd,
                            .period = attr->sample_period,
                            .left = attr->sample_period};
    drop_lock();
    return fd;
}

static long map(const long a[6])
{
    long at = kernel(SYS_mmap, a);
    take_lock();
    for (int i = 0; i < EVENTS && at > 0; i++)
        if (event[i].tid && !event[i].base && event[i].fd == (int)a[4]) {
            event[i].base = (char *)at;
            event[i].bytes = (unsigned long)a[1];
            event[i].fd = -1;
        }
    drop_lock();
    return at;
}

static long unmap(const long a[6])
{
    take_lock();
    for (int i = 0; i < EVENTS; i++)
        if (event[i].tid && event[i].base == (char *)a[0])
            event[i].tid = 0;
    long r = kernel(SYS_munmap, a);
    drop_lock();
    return r;
}

static long open_file(const long a[6])
{
    static const char folder[] = FOLDER;
    const char *tree = getenv("PMU_TREE"), *path = (const char *)a[1];
    char other[512];
    if (!tree || strncmp(path, folder, sizeof(folder) - 1) != 0 ||
        strlen(tree) + strlen(path) >= sizeof(other))
        return kernel(SYS_openat, a);
    strcpy(other, tree);
    strcat(other, "/");
    strcat(other, path + sizeof(folder) - 1);
    return KERNEL(SYS_openat, a[0], (long)other, a[2], a[3]);
}

long syscall(long nr, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, nr);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    long r = nr == SYS_perf_event_open ? open_event((const void *)a[0], (int)a[1])
             : nr == SYS_mmap          ? map(a)
             : nr == SYS_munmap        ? unmap(a)
             : nr == SYS_openat        ? open_file(a)
                                       : kernel(nr, a);
    if (r < 0 && r > -4096) {
        errno = (int)-r;
        return -1;
    }
    return r;
}

static void write_record(struct event *e, const void *address)
{
    struct perf_event_mmap_page *page = (void *)e->base;
    const unsigned long long record[3] = {24ull << 48 | PERF_RECORD_SAMPLE,
                                          (unsigned long long)address, PERF_MEM_OP_LOAD};
    unsigned long size = e->bytes - PAGE;
    if (page->data_head - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE) + 24 > size)
        return;
    for (int i = 0; i < 3; i++)
        memcpy(e->base + PAGE + ((page->data_head + 8 * (unsigned long)i) & (size - 1)), &record[i],
               8);
    __atomic_store_n(&page->data_head, page->data_head + 24, __ATOMIC_RELEASE);
}

/* The calling thread has missed the caches `times` times at this address. */
void pmu_load(const void *address, unsigned long times)
{
    int tid = (int)KERNEL(SYS_gettid, 0);
    take_lock();
    for (int i = 0; i < EVENTS; i++) {
        struct event *e = &event[i];
        if (e->tid != tid || !e->base)
            continue;
        if (e->left > times) {
            e->left -= times;
            continue;
        }
        e->left += e->period - times % e->period;
        write_record(e, address);
    }
    drop_lock();
}
