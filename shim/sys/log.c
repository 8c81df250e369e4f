/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/guard.h"
#include "sys/filter.h"
#include "sys/os.h"
#include "sys/raw.h"
#include "sys/thread.h"

#define LINE_MAX_BYTES 512

static struct {
    bool known;  /* log_init ran and fd 2 was open */
    bool closed; /* log_init ran and fd 2 was not open */
    dev_t dev;
    ino_t ino;
    bool silent;
    int kept; /* a second descriptor of the user's stderr, 0 none */
    int level;
    unsigned warnings;
} log_state;

void log_init(void)
{
    struct stat st;
    if (raw_fstat(STDERR_FILENO, &st) == 0) {
        log_state.dev = st.st_dev;
        log_state.ino = st.st_ino;
        __atomic_store_n(&log_state.known, true, __ATOMIC_RELEASE);
    } else {
        /* Whatever is fd 2 later is not the user's stderr. */
        __atomic_store_n(&log_state.closed, true, __ATOMIC_RELEASE);
    }
}

void log_silence(bool silent)
{
    __atomic_store_n(&log_state.silent, silent, __ATOMIC_RELEASE);
}

void log_set_verbose(int level)
{
    __atomic_store_n(&log_state.level, level, __ATOMIC_RELAXED);
}

static bool is_users_stderr(int fd)
{
    struct stat st;
    if (fd < 0 || __atomic_load_n(&log_state.closed, __ATOMIC_ACQUIRE))
        return false;
    if (!__atomic_load_n(&log_state.known, __ATOMIC_ACQUIRE))
        return fd == STDERR_FILENO; /* before the constructor nobody can have changed it */
    return raw_fstat(fd, &st) == 0 && st.st_dev == log_state.dev && st.st_ino == log_state.ino;
}

void log_keep_stderr(void)
{
    if (is_users_stderr(STDERR_FILENO)) {
        long fd = raw3(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, 200);
        log_state.kept = fd >= 0 ? (int)fd : 0;
    }
}

void log_drop_stderr(void)
{
    int saved = errno;
    if (log_state.kept && is_users_stderr(log_state.kept))
        os_close(log_state.kept);
    log_state.kept = 0;
    errno = saved;
}

/* From a thread with a table of its own: the user's stderr as the program has it now. */
static void log_text_apart(const char *text, size_t len)
{
    const int where[] = {STDERR_FILENO, log_state.kept};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(where); i++) {
        int fd = i == 0 || where[i] > 0 ? os_table_borrow(where[i]) : -EBADF;
        bool theirs = is_users_stderr(fd);
        if (theirs)
            (void)os_write_all(fd, text, len);
        os_close(fd);
        if (theirs)
            return;
    }
}

static void write_text(const char *text, size_t len)
{
    if (os_table_apart()) {
        log_text_apart(text, len);
        return;
    }
    int fd = is_users_stderr(STDERR_FILENO)                      ? STDERR_FILENO
             : log_state.kept && is_users_stderr(log_state.kept) ? log_state.kept
                                                                 : -1;
    if (fd >= 0)
        (void)os_write_all(fd, text, len); /* nobody to tell */
}

void log_text(const char *text, size_t len)
{
    if (len == 0 || __atomic_load_n(&log_state.silent, __ATOMIC_ACQUIRE) || !os_calls_begin())
        return;
    int saved = errno;
    write_text(text, len);
    os_calls_end();
    errno = saved;
}

static struct {
    bool ready;
    char text[HY_LOG_KEPT_BYTES];
} kept[HY_LOG_MAX_WARNINGS];

const char *log_warning(unsigned n)
{
    return n < HY_LOG_MAX_WARNINGS && __atomic_load_n(&kept[n].ready, __ATOMIC_ACQUIRE)
               ? kept[n].text
               : NULL;
}

/* Each number is one thread's. */
static void keep(int number, const char *text, size_t len)
{
    if (number < 0)
        return;
    len = HY_MIN(len, sizeof(kept[0].text) - 1);
    memcpy(kept[number].text, text, len);
    kept[number].text[len] = '\0';
    __atomic_store_n(&kept[number].ready, true, __ATOMIC_RELEASE);
}

/* The prefix, the message cut to the line's length, one newline, one write. `number`: it is
 * a warning to be kept. */
static void __attribute__((format(printf, 2, 0))) log_line(int number, const char *fmt, va_list ap)
{
    char line[LINE_MAX_BYTES];
    int saved = errno;
    hy_guard_enter(); /* vsnprintf may allocate for odd formats */
    /* A filter may kill for the number, and then it is not written; nor does one come meanwhile. */
    long pid = 0;
    if (!__atomic_load_n(&log_state.silent, __ATOMIC_ACQUIRE) && os_calls_begin()) {
        pid = raw0(SYS_getpid);
        os_calls_end();
    }
    int n = snprintf(line, sizeof(line), "hybrid[%ld]: ", pid);
    int m = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
    size_t len = (size_t)n;
    if (m > 0)
        len += HY_MIN((size_t)m, sizeof(line) - (size_t)n - 1); /* newline for NUL */
    /* One message is one line, whatever a file name in it holds. */
    for (size_t i = (size_t)n; i < len; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    }
    keep(number, line + n, len - (size_t)n);
    line[len++] = '\n';
    log_text(line, len);
    hy_guard_leave();
    errno = saved;
}

void log_warn(const char *fmt, ...)
{
    unsigned n = __atomic_fetch_add(&log_state.warnings, 1, __ATOMIC_RELAXED);
    va_list ap;
    if (n >= HY_LOG_MAX_WARNINGS) {
        /* Keep the counter from wrapping round to silence's end. */
        __atomic_store_n(&log_state.warnings, HY_LOG_MAX_WARNINGS, __ATOMIC_RELAXED);
        return;
    }
    va_start(ap, fmt);
    log_line((int)n, fmt, ap);
    va_end(ap);
}

void log_info(const char *fmt, ...)
{
    va_list ap;
    if (__atomic_load_n(&log_state.level, __ATOMIC_RELAXED) < 1)
        return;
    va_start(ap, fmt);
    log_line(-1, fmt, ap);
    va_end(ap);
}
