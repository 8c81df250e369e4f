/* SPDX-License-Identifier: BSD-2-Clause
 * Messages to the user: one line each, "hybrid[PID]: ...", one write(2) to
 * stderr, no allocation. Nothing is written if fd 2 is no longer the file that
 * it was at start (a daemon may have put its data there). At most
 * HY_LOG_MAX_WARNINGS warnings a process. Callable before the constructor. */
#ifndef HYBRID_SYS_LOG_H
#define HYBRID_SYS_LOG_H

#include "base/types.h"

#define HY_LOG_MAX_WARNINGS 40

/* Remember which file stderr is; call once in the constructor. */
void log_init(void);
/* A report at exit was asked for, and many programs close stderr before our
 * destructor: keep a second descriptor (a high number, CLOEXEC). Dropped in
 * forked children: a daemon must not hold its parent's pipe open. */
void log_keep_stderr(void);
void log_drop_stderr(void);
/* Nothing is written while a sandbox holds. Warnings are still kept. */
void log_silence(bool silent);
void log_set_verbose(int level); /* 0 warnings, 1 info, 2 debug */
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The n-th warning of this process, without prefix, cut to HY_LOG_KEPT_BYTES; NULL: there is
 * none, or not yet. */
#define HY_LOG_KEPT_BYTES 240
const char *log_warning(unsigned n);
/* Raw text to the user's stderr under the same rules (reports). */
void log_text(const char *text, size_t len);

/* Warn only the first time that *once is seen false. */
#define log_warn_once(once, ...)                                                                   \
    do {                                                                                           \
        if (!__atomic_exchange_n((once), true, __ATOMIC_RELAXED))                                  \
            log_warn(__VA_ARGS__);                                                                 \
    } while (0)

#endif
