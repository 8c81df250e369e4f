/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of one thread's accesses by the processor or the kernel (perf_event_open): a part of the
 * contract for kernel calls (os.h), with its conventions.
 *
 * A ring is memory only: the mapping keeps the event, so its descriptor is closed at once and
 * neither the program nor a child ever meets it. In a child the mapping is not there. Who asks
 * makes sure that no seccomp filter is in force: perf_event_open is what filters kill for. */
#ifndef HYBRID_SYS_PAGES_LOADS_H
#define HYBRID_SYS_PAGES_LOADS_H

#include "sys/os.h"

struct os_load_event {
    uint32_t type; /* of the PMU */
    uint64_t config, config1, config2;
    uint8_t precise;
    bool user_only; /* else the kernel's accesses, too, which needs more permission */
};

struct os_load_ring {
    void *base; /* NULL: closed */
    size_t bytes;
    int32_t tid;
    int32_t pid; /* of the process that opened it */
};

/* Sample one access in `period` of a thread of this process (0: the calling one) into a ring of
 * 2^order pages. -EACCES, -EPERM: not permitted (the memory, too, has a limit); -ENOENT,
 * -EOPNOTSUPP, -EINVAL, ...: no such event here; -ESRCH: the thread has ended. */
int os_load_open(const struct os_load_event *e, uint64_t period, int32_t tid, unsigned order,
                 struct os_load_ring *ret);
void os_load_close(struct os_load_ring *r);

/* What was written, and from where it has not been read: pages/rules/sample_ring.h reads it. */
struct os_load_records {
    const uint8_t *data;
    uint64_t size, head, tail;
};
/* false: not in this process. */
bool os_load_records(const struct os_load_ring *r, struct os_load_records *ret);
/* The kernel may write over what lies before. */
void os_load_read(const struct os_load_ring *r, uint64_t tail);
/* Part of the time in which the thread ran, but the event had no counter, in percent: others
 * want the same counters, and lose as much. */
unsigned os_load_waited_pct(const struct os_load_ring *r);

#endif
