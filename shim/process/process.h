/* SPDX-License-Identifier: BSD-2-Clause
 * The life of the process: it begins, has the control thread, forks, maps memory and ends. */
#ifndef HYBRID_PROCESS_PROCESS_H
#define HYBRID_PROCESS_PROCESS_H

#include <sys/syscall.h>
#include <sys/types.h>

#include "base/types.h"

#ifndef SYS_mseal /* Linux 6.10 */
#define SYS_mseal 462
#endif

/* Settings and first decisions: once, by the constructor or by a hook that is called before it. */
void runtime_prepare(void);
/* As the libc's functions of the same names. */
void *runtime_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int runtime_munmap(void *addr, size_t len);
/* Before something else takes the place of what is there. */
void runtime_unmaps(void *addr, size_t len);
/* Before its mprotect and shmat; before mlock: alter_pages. */
void runtime_protects(void *addr, size_t len, int prot);
void runtime_attaches(int id, const void *addr, int flags);
/* After its mlockall. */
void runtime_all_locked(int flags);
/* Before the program's madvise. */
void runtime_advised(void *addr, size_t len, int advice);
int runtime_ioctl(int fd, unsigned long request, void *arg);
void *runtime_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr);

/* Before the program makes a thread. */
void runtime_before_thread(void);

/* --- engage.c ------------------------------------------------------------------- */

/* Placement begins: which memory is PM, limits, sites; to STEERING, or to PASSIVE with a
 * reason. By the control thread, or in the constructor. */
void engage_now(void);
/* Open memkind, or ready so much PM. By the control thread, or in the constructor. */
int engage_pm(size_t bytes);

/* --- host.c: what the heaps ask of the rest of the library --------------------- */

struct heap_host;
extern HY_HIDDEN const struct heap_host heap_host;

/* --- mmaps.c: the program's own mappings ------------------------------------------ */

void mmaps_init(void); /* before any is placed */

/* alter.c: the program is about to alter pages; those that are no heap's are left alone. */
void alter_pages(const void *addr, size_t len);
bool alter_is_by(int advice);
/* true: what the program is to be told of its mremap is in ret. Else it is to be made. */
bool alter_by_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr,
                     void **ret);

/* The same by the number of the call, before it is made. true: its result is in ret. */
bool alter_by_number(long nr, const long arg[5], void **ret);

/* remap.c: as mremap, with a place that the kernel chooses anew; whole pages. */
void *remap_elsewhere(void *old, size_t old_len, size_t new_len);
/* As mremap, of a range some of which is in the books (place/maps.h). No lock held. */
void *remap_watched(void *old, size_t old_len, size_t new_len, int flags, void *new_addr);

/* --- control.c: what process/ alone asks of the control thread -------------------- */

/* In the constructor, after engage_now: a program that is recorded has the thread from the
 * start, and main begins when its counters are open. */
void control_begin(void);
/* In the constructor: the control thread joins the registry, whose file shall stand in its own
 * table of descriptors, and is waited for, not long. false: no thread, or tables are not apart. */
bool control_joins(void);
/* The process has the control thread from now on, if it may; false: there was none to be had. Not
 * with a lock held. */
bool control_start(void);
void control_prefork(void);
void control_postfork_parent(void);
/* Around the loading of memkind, after which the gate's fork handlers are there: forks wait for
 * it, and it for forks. A fork still busy with handlers of the program cannot be seen yet: hence
 * a moment's grace. */
void control_load_begins(void);
void control_load_ends(void);
bool control_loading(void);
/* Has there been a thread of ours, here or in a process that this one was forked from? */
bool control_has_begun(void);
void control_postfork_child(void);

/* --- await.c: what threads of the program wait for ------------------------------------- */

/* By the heap, of the calling thread: PM was short. control_await (core/control.h) comes next. */
void control_note_short(void);
/* By the control thread. */
void await_serve(void);
void await_child(void); /* in a forked child whose parent had begun to place */

/* --- admit.c ------------------------------------------------------------------------ */

/* In the constructor, the registry joined: HYBRID_ADMISSION's wait. */
void admit_wait(void);
/* By the control thread: looks for the one that waits. */
void admit_serve(void);

/* --- windows.c ---------------------------------------------------------------------- */

/* By the control thread, before the first window: those who want windows are known. */
void windows_begin(void);

/* --- fork.c ----------------------------------------------------------------------- */

void fork_install(void);
/* Around a call that copies the process and runs no handlers. false: there is nothing of ours. */
bool fork_unhandled_begins(void);
void fork_unhandled_ends(bool child);
/* Around a call that sets a limit of this process (`limit`: a struct rlimit, which may be no
 * memory): what lies on files becomes private before, as at a fork. Afterwards the kernel might not
 * let it, and children would write to their parent's memory. false: nothing was done. */
bool fork_limit_begins(pid_t pid, int resource, const void *limit);
void fork_limit_ends(void);
/* Another process has set RLIMIT_DATA or RLIMIT_AS so low that what lies on files cannot become
 * private: the child would write to its parent's memory. So there is none, and errno is ENOMEM. */
bool fork_is_refused(void);
/* Handlers that this thread registers, while on, are kept, and called in the middle of ours. */
void fork_keep_handlers(bool on);
bool fork_keeps(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int fork_install_gate(void); /* after memkind is loaded; 0 or -errno */

#endif
