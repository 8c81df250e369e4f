/* SPDX-License-Identifier: BSD-2-Clause
 * Preloaded behind libhybrid: a processor that samples loads and stores, for machines without. The
 * kernel's folder of it is PMU_TREE; events are opened, mapped and unmapped by syscall(2) as
 * libhybrid does it, their rings are ordinary memory, and a program that calls pmu_load or
 * pmu_store writes the records that the kernel would write. All else goes to the kernel.
 * PMU_TREE/nmi_watchdog stands for the kernel's. With PMU_STORES=0 stores are not sampled. As many
 * counters as the processor has (4 where it does not tell): with a PAPI of the tests' own, which
 * says what it takes (pmu_taken), a sampled event may have to wait. */
#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER   "/sys/bus/event_source/devices/cpu/"
#define WATCHDOG "/proc/sys/kernel/nmi_watchdog"
#define LOADS    0x20d1
#define STORES   0x82d0
#define PAGE     4096ul
#define EVENTS   128

static struct event {
    int tid, fd; /* tid 0: free; fd -1: mapped */
    char *base;
    unsigned long bytes;
    unsigned long long config, period, left, lost;
} event[EVENTS];
static int lock, taken;

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
    const char *stores = getenv("PMU_STORES");
    if (attr->type != 4 || attr->precise_ip != 2 ||
        (attr->config != LOADS && (attr->config != STORES || (stores && *stores == '0'))) ||
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
                            .config = attr->config,
                            .period = attr->sample_period,
                            .left = attr->sample_period};
    drop_lock();
    return fd;
}

static int counters(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0xa, &a, &b, &c, &d) && (a & 255) && (a >> 8 & 255) ? (int)(a >> 8 & 255)
                                                                           : 4;
}

/* Events that count for the thread of this one, and who else does. */
static void share_counters(struct event *e)
{
    struct perf_event_mmap_page *page = (void *)e->base;
    int wanted = __atomic_load_n(&taken, __ATOMIC_RELAXED);
    for (int i = 0; i < EVENTS; i++)
        wanted += event[i].tid == e->tid && event[i].base;
    page->time_enabled = 1000000000;
    page->time_running =
        wanted > counters() ? 1000000000ull * (unsigned)counters() / (unsigned)wanted : 1000000000;
}

/* By the tests' PAPI: counters that each thread's events take. */
void pmu_taken(int n);
void pmu_taken(int n)
{
    __atomic_store_n(&taken, n, __ATOMIC_RELAXED);
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
            share_counters(&event[i]);
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
    int watchdog = strcmp(path, WATCHDOG) == 0;
    if (!tree || (!watchdog && strncmp(path, folder, sizeof(folder) - 1) != 0) ||
        strlen(tree) + strlen(path) >= sizeof(other))
        return kernel(SYS_openat, a);
    strcpy(other, tree);
    strcat(other, "/");
    strcat(other, watchdog ? "nmi_watchdog" : path + sizeof(folder) - 1);
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

static int put(struct event *e, const unsigned long long record[3])
{
    struct perf_event_mmap_page *page = (void *)e->base;
    unsigned long size = e->bytes - PAGE;
    if (page->data_head - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE) + 24 > size)
        return 0;
    for (int i = 0; i < 3; i++)
        memcpy(e->base + PAGE + ((page->data_head + 8 * (unsigned long)i) & (size - 1)), &record[i],
               8);
    __atomic_store_n(&page->data_head, page->data_head + 24, __ATOMIC_RELEASE);
    return 1;
}

static void write_sample(struct event *e, const void *address, unsigned long long source)
{
    const unsigned long long lost[3] = {24ull << 48 | PERF_RECORD_LOST, 0, e->lost};
    const unsigned long long sample[3] = {24ull << 48 | PERF_RECORD_SAMPLE,
                                          (unsigned long long)address, source};
    if (e->lost && put(e, lost))
        e->lost = 0;
    if (e->lost || !put(e, sample))
        e->lost++;
}

static void count(unsigned long long config, const void *address, unsigned long times,
                  unsigned long long source)
{
    int tid = (int)KERNEL(SYS_gettid, 0);
    take_lock();
    for (int i = 0; i < EVENTS; i++) {
        struct event *e = &event[i];
        if (e->tid != tid || !e->base || e->config != config)
            continue;
        if (e->left > times) {
            e->left -= times;
            continue;
        }
        e->left += e->period - times % e->period;
        share_counters(e);
        write_sample(e, address, source);
    }
    drop_lock();
}

/* The calling thread has missed the caches `times` times at this address (fewer than a period). */
void pmu_load(const void *address, unsigned long times);
void pmu_load(const void *address, unsigned long times)
{
    count(LOADS, address, times, PERF_MEM_OP_LOAD);
}

/* It has stored there, and L1 had the line or not. */
void pmu_store(const void *address, unsigned long times, int hit);
void pmu_store(const void *address, unsigned long times, int hit)
{
    const union perf_mem_data_src source = {
        .mem_op = PERF_MEM_OP_STORE,
        .mem_lvl = PERF_MEM_LVL_L1 | (hit ? PERF_MEM_LVL_HIT : PERF_MEM_LVL_MISS),
    };
    count(STORES, address, times, source.val);
}

/* Is the calling thread sampled? */
int pmu_watches(void);
int pmu_watches(void)
{
    int tid = (int)KERNEL(SYS_gettid, 0), found = 0;
    take_lock();
    for (int i = 0; i < EVENTS; i++)
        found |= event[i].tid == tid && event[i].base && event[i].bytes > 2 * PAGE;
    drop_lock();
    return found;
}
