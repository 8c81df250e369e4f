/* SPDX-License-Identifier: BSD-2-Clause
 * Threads of ours as the program and the kernel see them. Capabilities, namespaces, keeping
 * capabilities, filters: all of these belong to a thread in Linux, and some calls fail where there
 * are several. So our threads end before the program makes such a call, and begin again after it
 * with what the program has then. */
#ifndef HYBRID_CORE_PAUSE_H
#define HYBRID_CORE_PAUSE_H

#include <pthread.h>
#include <stddef.h>

#include "base/types.h"

/* --- the program's threads ---------------------------------------------------- */

/* End our threads, and wait (two seconds at most) until the kernel counts them no more. false:
 * nothing was done, as in a child of vfork, whose memory is its parent's. */
bool control_pause(void);
/* They may begin again; `paused`: what control_pause said. */
void control_resume(bool paused);
/* false as well where nothing of ours ever begins. */
bool control_is_main(pthread_t thread);
/* Before the main thread ends. The process outlives it, its last thread runs the program's exit
 * handlers, and these need the program's descriptors: from now on our threads share them. */
void control_main_leaves(void);
/* Have fn run by a thread of ours, which has the descriptors for it, and wait for it, a second at
 * most. Holding no lock of ours. */
bool control_ask(void (*fn)(void *base, size_t bytes), void *base, size_t bytes);
/* Do our threads have descriptors of their own? */
bool control_apart(void);
/* In the constructor and in a forked child: this memory is this process's. */
void pause_own_process(void);
/* Once, in the first process: its children's memory is known to be theirs. */
void pause_own_page(void);

/* --- sandbox.c ------------------------------------------------------------------- */

/* A sandbox is about to begin (seccomp, landlock): our threads end and are never begun again,
 * and nobody makes calls for us that only they made. */
void runtime_sandboxed(void);
/* It was refused. */
void runtime_sandbox_failed(void);
bool runtime_is_sandboxed(void);
/* May threads of ours be made, or was the program started under a filter that may kill for it?
 * Reads files the first time. Then the process stays on DRAM, and says nothing, until a thread of
 * its own shows that they may. */
bool runtime_lets_threads(void);
/* The program has made a thread: filters let it, and its allocator stands it. */
void runtime_thread_made(void);
bool runtime_has_made_thread(void);
/* Not in a child of vfork, where this memory is another process's. */
bool pause_memory_is_ours(void);
/* A child for which no handler ran (a raw system call): it has no thread of ours to wait for. */
bool pause_is_copy(void);

/* --- threads of ours ---------------------------------------------------------------- */

/* May one begin? */
bool pause_may_start(void);
/* A place for one that is about to be made (-1: it may not be); in it, at its begin and end. */
int pause_enlist(void);
void pause_began(int slot);
void pause_ended(int slot);
void pause_withdraw(int slot); /* it was not made */
/* Shall they end? */
bool pause_wanted(void);
/* The first of them, before anything else: a table of descriptors of its own. */
void pause_leave_table(void);
/* Sleep that ends when they shall, or when something is asked of them (control_ask). */
void pause_sleep(uint64_t ns);
void pause_serve(void);

#endif
