/* SPDX-License-Identifier: BSD-2-Clause
 * What /proc tells of processes, and the clock. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/auxv.h>
#include <time.h>

#include "sys/os.h"
#include "sys/raw.h"
#include "sys/thread.h"

bool raw_take_number(const char **p, uint64_t *ret)
{
    const char *s = *p;
    uint64_t v = 0;
    while (*s == ' ' || *s == '\t')
        s++;
    bool negative = *s == '-';
    s += negative;
    if (*s < '0' || *s > '9')
        return false;
    for (; *s >= '0' && *s <= '9'; s++)
        v = v * 10 + (uint64_t)(*s - '0');
    *p = s;
    *ret = negative ? 0 - v : v;
    return true;
}

uint64_t os_rss_bytes(void)
{
    char buf[128];
    size_t len;
    uint64_t pages; /* the size, then what is resident */
    const char *p = buf;
    bool known = os_read_file("/proc/self/statm", buf, sizeof(buf), &len) == 0 &&
                 raw_take_number(&p, &pages) && raw_take_number(&p, &pages);
    return known ? pages * getauxval(AT_PAGESZ) : 0;
}

struct stat_line {
    char state;
    uint64_t threads, start_time, stack_start;
};

/* "PID (COMM) STATE ...": COMM may hold blanks and parentheses, so fields are
 * counted from the last ')'. */
static int parse_stat(const char *text, struct stat_line *ret)
{
    enum { FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22, FIELD_STACK = 28 };
    struct stat_line s = {0};
    const char *p = strrchr(text, ')');
    if (p == NULL || p[1] != ' ' || p[2] == '\0')
        return -EPROTO;
    s.state = p[2];
    p += 3;
    for (int field = FIELD_STATE + 1; field <= FIELD_STACK; field++) {
        uint64_t v;
        if (!raw_take_number(&p, &v))
            return -EPROTO;
        if (field == FIELD_THREADS)
            s.threads = v;
        else if (field == FIELD_START)
            s.start_time = v;
        else if (field == FIELD_STACK)
            s.stack_start = v;
    }
    *ret = s;
    return 0;
}

static int proc_stat(const char *path, struct stat_line *ret)
{
    char buf[1024];
    size_t len;
    int r = os_read_file(path, buf, sizeof(buf), &len);
    return r != 0 ? r : parse_stat(buf, ret);
}

int os_proc_self(struct os_proc_id *ret)
{
    struct stat_line s;
    int r = proc_stat("/proc/self/stat", &s);
    if (r != 0)
        return r;
    *ret = (struct os_proc_id){os_pid(), s.start_time, s.stack_start};
    return 0;
}

uint64_t os_process_age_ns(void)
{
    const uint64_t tick_ns = 10000000; /* USER_HZ is 100 */
    unsigned long long s, hundredths;
    struct stat_line stat;
    char buf[64];
    size_t len;

    if (proc_stat("/proc/self/stat", &stat) != 0 ||
        os_read_file("/proc/uptime", buf, sizeof(buf), &len) != 0 ||
        sscanf(buf, "%llu.%2llu", &s, &hundredths) != 2)
        return 0;
    uint64_t now = s * 100 + hundredths;
    return now > stat.start_time ? (now - stat.start_time) * tick_ns : 0;
}

uint64_t os_pid_namespace(void)
{
    struct stat st;
    return raw_stat("/proc/self/ns/pid", 0, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

bool os_pid_exists(int32_t pid)
{
    return pid > 0 && raw2(SYS_kill, pid, 0) != -ESRCH;
}

int32_t os_process_group(int32_t pid)
{
    long group = pid > 0 ? raw1(SYS_getpgid, pid) : 0;
    return group > 0 ? (int32_t)group : 0;
}

static struct {
    pthread_t thread;
    int pid;
} main_thread;

void os_note_main(void)
{
    main_thread.thread = pthread_self();
    main_thread.pid = os_pid();
}

int os_noted_pid(void)
{
    return main_thread.pid;
}

/* Without /proc, and without a call that a filter may forbid: the kernel clears the number that
 * the C library keeps of a thread when that ends, and this function looks at it. The main thread's
 * record stays. */
static bool main_is_cleared(void)
{
    clockid_t unused;
    return main_thread.pid == (int)raw0(SYS_getpid) &&
           pthread_getcpuclockid(main_thread.thread, &unused) == ESRCH;
}

bool os_main_ended(void)
{
    struct stat_line s;
    int r = proc_stat("/proc/self/stat", &s);
    return r == 0 ? s.state == 'Z' : r == -ENOENT && main_is_cleared();
}

unsigned os_thread_count(void)
{
    struct stat_line s;
    return proc_stat("/proc/self/stat", &s) == 0 ? (unsigned)s.threads : 0;
}

int os_proc_id(int32_t pid, struct os_proc_id *ret)
{
    char path[32];
    struct stat_line s;
    if (pid <= 0)
        return -ESRCH;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int r = proc_stat(path, &s);
    if (r == -ENOENT || r == -ESRCH) {
        /* No such process, or /proc hides it (hidepid, not mounted): ask by signal 0. */
        return raw2(SYS_kill, pid, 0) == -ESRCH ? -ESRCH : -EACCES;
    }
    if (r != 0)
        return r;
    /* The leader is a zombie while threads outlive main(): that process is alive. */
    if (s.state == 'X' || s.state == 'x' || (s.state == 'Z' && s.threads <= 1))
        return -ESRCH;
    *ret = (struct os_proc_id){pid, s.start_time, s.stack_start};
    return 0;
}

int os_exe_path(char *buf, size_t cap)
{
    long n = raw4(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", buf, cap);
    if (n < 0)
        return (int)n;
    if ((size_t)n >= cap)
        return -ENAMETOOLONG;
    buf[n] = '\0';
    return 0;
}

static bool same_program(const char *path)
{
    struct stat a, b;
    return raw_stat(path, 0, &a) == 0 && raw_stat("/proc/self/exe", 0, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int os_program_path(char *buf, size_t cap)
{
    char beside[4096];
    const char *as = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    int r = os_exe_path(buf, cap);
    if (r != 0 || as == NULL)
        return r;
    /* The program may have another directory by now, so the name is looked for beside its file. */
    const char *base = strrchr(as, '/') ? strrchr(as, '/') + 1 : as, *slash = strrchr(buf, '/');
    if (as[0] != '/' && slash) {
        if ((size_t)snprintf(beside, sizeof(beside), "%.*s/%s", (int)(slash - buf), buf, base) >=
            sizeof(beside))
            return 0;
        as = beside;
    }
    if (strlen(as) < cap && same_program(as))
        memcpy(buf, as, strlen(as) + 1);
    return 0;
}

static bool clock_by_call;

void os_clock_by_call(bool on)
{
    __atomic_store_n(&clock_by_call, on, __ATOMIC_RELAXED);
}

uint64_t os_now_ns(void)
{
    struct timespec ts;
    if (HY_UNLIKELY(__atomic_load_n(&clock_by_call, __ATOMIC_RELAXED)))
        (void)raw2(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
    else
        clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint32_t os_uid(void)
{
    return (uint32_t)raw0(SYS_geteuid);
}

/* Each child of a fork asks for its number: without errno and the libc's syscall, which are a page's
 * fault each there. */
static inline int own_number(long nr)
{
#ifdef __x86_64__
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(nr) : "rcx", "r11", "memory");
    return (int)r;
#else
    return (int)raw0(nr);
#endif
}

int os_gettid(void)
{
    return own_number(SYS_gettid);
}

int os_cpu_count(void)
{
    int n = get_nprocs_conf();
    return n > 0 ? n : 1;
}

bool os_single_threaded(void)
{
    return __libc_single_threaded;
}

const char *os_error_name(int e)
{
    const char *name = strerrorname_np(e < 0 ? -e : e);
    return name ? name : "unknown error";
}

int os_parent_pid(void)
{
    return (int)raw0(SYS_getppid);
}

int os_pid(void)
{
    return own_number(SYS_getpid);
}

#ifdef __SANITIZE_THREAD__ /* which knows no pthread_mutex_clocklock; tries alone can starve */
bool os_lock_within(pthread_mutex_t *m, uint64_t ns)
{
    for (uint64_t until_ns = os_now_ns() + ns; pthread_mutex_trylock(m) != 0; os_sleep_ns(100000))
        if (os_now_ns() >= until_ns)
            return false;
    return true;
}
#else
bool os_lock_within(pthread_mutex_t *m, uint64_t ns)
{
    uint64_t until_ns = os_now_ns() + ns; /* CLOCK_REALTIME may be set */
    struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    return pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &until) == 0;
}
#endif

void os_hold_signals(unsigned long *ret_before)
{
    unsigned long all = ~0ul;
    (void)raw4(SYS_rt_sigprocmask, SIG_BLOCK, &all, ret_before, sizeof(all));
}

void os_let_signals(unsigned long before)
{
    (void)raw4(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

void os_sleep_ns(uint64_t ns)
{
    struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    /* clock_nanosleep of libc is a cancellation point. */
    while (raw4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, &ts) == -EINTR)
        ;
}

void os_wait_word(const uint32_t *word, uint32_t was, uint64_t ns)
{
    struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    (void)raw4(SYS_futex, word, FUTEX_WAIT_PRIVATE, was, &ts);
}

void os_wake_word(const uint32_t *word)
{
    (void)raw3(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX);
}
