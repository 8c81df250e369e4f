/* SPDX-License-Identifier: BSD-2-Clause
 * The emulated machine as a workload sees it, when there is one: found at run time, so that
 * one program runs on it (linked with it, or under its QEMU plugin) and without. */
#ifndef BENCH_WORKLOADS_MACHINE_H
#define BENCH_WORKLOADS_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Virtual, or real where there is no machine. */
int64_t machine_time_ns(void);
/* pmemu.h's calls of the same names; nothing without a machine. */
void machine_away(uint64_t key);
void machine_back(int64_t vtime_ns);
void machine_release(uint64_t key, int64_t vtime_ns);
/* pmemu_ignore_thread: from now on the calling thread has no virtual time. */
void machine_ignore(void);

/* Of the timed part. */
void machine_begin(void);
void machine_end(void);
/* "time clock=... begin_ns=... end_ns=... work_ns=...", then every count of the machine
 * over that part, and a newline; the length, below `size`. */
int machine_line(char *line, size_t size);

#endif
