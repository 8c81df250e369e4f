/* SPDX-License-Identifier: BSD-2-Clause
 * The one control thread, as every room may ask it (process/control.c). What costs system calls,
 * locks or time is done there, and not in threads of the program. */
#ifndef HYBRID_CORE_CONTROL_H
#define HYBRID_CORE_CONTROL_H

#include "base/types.h"

/* From slow paths, with no lock held: starts the thread once the process is worth it. */
void control_poke(void);
/* It has something to do before its next tick. From anywhere. */
void control_wake(void);
/* struct heap_host's await: PM is short, or the claim for DRAM. Waits for it, but not for long. */
bool control_await(enum hy_tier t, size_t bytes);
bool control_running(void);
/* How often to look now: HYBRID_INTERVAL at most. */
uint64_t control_interval_ns(void);
/* After a pause (pause.h). */
void control_begin_again(void);
/* A thread of ours: detached, all signals blocked, unseen by the hooks. */
bool control_start_thread(void *(*fn)(void *), size_t stack);
/* Threads of this process without ours; 0 unknown. */
unsigned runtime_program_threads(void);

#endif
