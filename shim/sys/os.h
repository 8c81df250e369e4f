/* SPDX-License-Identifier: BSD-2-Clause
 * The contract for kernel calls. Everything above this header asks the kernel
 * through it; os.c implements it, tests may link a fake instead.
 *
 * Unless stated otherwise: result 0 or -errno; ret_ parameters are untouched on
 * failure; errno of the caller is preserved; no call allocates; safe from any
 * thread and in a forked child. */
#ifndef HYBRID_SYS_OS_H
#define HYBRID_SYS_OS_H

#include <pthread.h>
#include <sys/types.h>

#include "base/types.h"

/* --- memory ------------------------------------------------------------- */

/* Choose `bytes` of address space that nothing uses, `align` a power of two; by
 * itself it cannot be accessed, and normally is not even mapped (range.c), so it
 * counts for no limit. */
int os_reserve(size_t bytes, size_t align, void **ret_base);
/* Make a part of it readable and writable, once; it reads as zero. Whole pages. */
int os_commit(void *base, size_t bytes);
/* Private zeroed memory of ours; a table is in memory as it is used, also after mlockall. */
int os_map_anon(size_t bytes, void **ret_base);
int os_map_table(size_t bytes, void **ret_base);
int os_unmap(const void *base, size_t bytes); /* nothing for 0 bytes */
/* Replace [base, base+bytes) by pages of `fd` at `offset`; shared or private. */
int os_map_fd_fixed(void *base, size_t bytes, int fd, uint64_t offset, bool shared);
/* Give the pages back; they read as zero afterwards (private anonymous only). */
int os_purge(void *base, size_t bytes);
/* The same for a shared view of a file: its blocks there become a hole (MADV_REMOVE). Never
 * on DAX: there it waits, without end and with the file locked, until nobody holds a page of
 * the file any more, be it by a pipe. */
int os_purge_shared(void *base, size_t bytes);
/* Fresh private zeroed memory in place of what lies there, at once for all threads. */
int os_replace_by_anon(void *base, size_t bytes);
int os_lock(void *base, size_t bytes); /* as mlock and munlock */
int os_unlock(void *base, size_t bytes);
/* Some of these pages are not to be read; false where the kernel cannot tell (Linux < 5.14). */
bool os_is_unreadable(void *base, size_t bytes);
int os_no_access(void *base, size_t bytes);
/* Give back blocks of a file, keeping its size (FALLOC_FL_PUNCH_HOLE); not on DAX, see
 * os_purge_shared. */
int os_file_punch(int fd, uint64_t offset, uint64_t bytes);
/* May its pages be those of the medium itself? Also true when the kernel does not tell. */
bool os_file_maybe_dax(int fd);
/* Reserve blocks of a file so that stores never meet SIGBUS (fallocate). */
int os_file_allocate(int fd, uint64_t offset, uint64_t bytes);
/* Pages of [base, base+bytes) that are in memory; base and bytes page-aligned. */
int os_resident_pages(const void *base, size_t bytes, size_t *ret_pages);
/* Prefer the nodes of `mask` (bit i = node i) for pages of the range that are
 * not there yet; falls back to other nodes when they are full, never kills. */
int os_prefer_nodes(void *base, size_t bytes, uint64_t mask);
int os_prefer_any_node(void *base, size_t bytes); /* no preference any more */
/* Is a NUMA policy in force in this thread that somebody else chose? */
bool os_has_foreign_mempolicy(void);
/* The nodes that this process may have memory from, in one system call; -errno: refused. */
int os_memory_nodes(uint64_t *ret_mask);
/* Is every new mapping in memory at once (mlockall)? By trying it. */
bool os_locks_future(void);
/* Can the word at this address, whatever it is, be read? errno stays. */
bool os_can_read(const void *word);
/* RLIMIT_AS and RLIMIT_DATA in bytes, UINT64_MAX when unlimited. */
uint64_t os_address_limit(void);
uint64_t os_data_limit(void);
bool os_is_limited(void);
/* Whether so many addresses, and of them so much to be written, could be mapped under these limits;
 * true where there are none. */
bool os_limits_leave(size_t addresses, size_t written);
/* Whether so much could be mapped now, by trying it: address space, or memory to be written. */
bool os_could_map(size_t bytes, bool written);
/* Does the kernel refuse memory that it could not provide (vm.overcommit_memory 2)? */
bool os_overcommit_is_strict(void);
/* Resident set of this process in bytes, 0 if /proc does not tell. */
uint64_t os_rss_bytes(void);
/* The most that was resident at a time since the last exec, files included; 0 if /proc does
 * not tell. */
uint64_t os_peak_rss_bytes(void);

/* --- files -------------------------------------------------------------- */

/* Whole file into buf (at most cap-1 bytes, NUL added); ret_len is what was
 * read; -E2BIG when the file is larger. */
int os_read_file(const char *path, char *buf, size_t cap, size_t *ret_len);
/* A copy of a regular file in private read-only memory, as nobody's truncation can then raise
 * SIGBUS; -E2BIG above `max_bytes`. Empty: "". Freed by os_unmap(base, len). `trusted`:
 * -EPERM if it belongs neither to this user nor to root, or others may write to it. */
int os_map_copy(const char *path, size_t max_bytes, bool trusted, const void **ret_base,
                size_t *ret_len);
/* Write all bytes to fd (restarts on EINTR, waits at most 1 s for a full
 * non-blocking one). Raises no SIGPIPE or SIGXFSZ. */
int os_write_all(int fd, const void *buf, size_t len);
/* Write a file that the user named, atomically: temporary beside it, rename. Mode 0644 & ~umask.
 * FIFOs, terminals, /dev/null and what standard streams lead to are written to as they are.
 * -ELOOP a symbolic link, -ENODEV another device, -EISDIR. */
int os_write_file_atomic(const char *path, const void *buf, size_t len);
/* Would that fail for what is there, for want of a folder, or of a right in it? 0 or -errno. */
int os_may_write_file(const char *path);
/* Is it one that is written to as it is? */
bool os_is_special_file(const char *path);
/* What such an error means, for messages. */
const char *os_output_problem(int e);
/* One write to a file of the kernel's (/sys), which must be there: a command. What the kernel says
 * of it, -EIO: it took a part. And would this user be let? */
int os_write_to(const char *path, const char *text);
bool os_may_write_to(const char *path);
/* A name with %p, the process id, expanded. */
void os_output_name(const char *spec, char *path, size_t cap);
/* The name as it is from anywhere: programs change their directory. -ENOENT: it has none. */
int os_absolute_path(const char *path, char *buf, size_t cap);
/* An unlinked file of `bytes` (sparse) in `dir`, CLOEXEC. */
int os_temp_file(const char *dir, uint64_t bytes, int *ret_fd);
/* Open a file of exactly `bytes` that processes share, or create it (mode 0600, all zero);
 * not `writing`: it must exist (-ENOENT). Another size, or not regular (symbolic links
 * included): -EPROTO. Trusted are files of root that others cannot write to, and of this user
 * that neither group nor others can: else -EPERM. An empty one that root made writable for a
 * group gets its size. The descriptor has a high number. */
int os_open_shared_file(const char *path, size_t bytes, bool writing, int *ret_fd);
/* A part of an open file, whole or not at all: -ENODATA when the file ends before. Whatever
 * others do with the file, these raise no signal. */
int os_read_at(int fd, uint64_t offset, void *buf, size_t bytes);
int os_write_at(int fd, uint64_t offset, const void *buf, size_t bytes);
/* Does a process that was forked still have what it inherited? A page that only children have, and
 * their children, tells: exec and exit take it away, nothing else does. os_kin_open makes what is
 * asked (`ret_fd`, a high number), os_kin_page the page: mapped before a fork, and after it
 * unmapped in the parent. os_kin_gone: nobody has the page; true once, then close the descriptor.
 */
int os_kin_open(int *ret_fd);
int os_kin_page(int fd, void **ret_page);
bool os_kin_gone(int fd);
/* Bytes of an open file as locks (they need not exist): held by the open file, until it is
 * closed everywhere or its processes die, whoever asks. -EAGAIN: somebody else holds one. */
int os_lock_bytes(int fd, uint64_t offset, uint64_t bytes);
int os_unlock_bytes(int fd, uint64_t offset, uint64_t bytes);
/* Does another open file hold it? 1, 0 or -errno. */
int os_byte_is_locked(int fd, uint64_t offset);
bool os_file_exists(const char *path);
/* How many folders a folder holds, by its count of links; 0: none, or the file system does not
 * count them so. */
unsigned os_folder_count(const char *path);
void os_close(int fd);
/* Which file a descriptor is, to notice that the program closed it. */
struct os_file_id {
    uint64_t dev, ino;
};
int os_file_id(int fd, struct os_file_id *ret);
bool os_file_is(int fd, const struct os_file_id *id);
/* Put private anonymous memory with the same content under [base, base+bytes). */
int os_copy_to_anon(void *base, size_t bytes);
/* Calls fn for every name in a folder but the hidden ones, in no order. */
int os_list_dir(const char *path, void (*fn)(void *ctx, const char *name), void *ctx);

/* --- process ------------------------------------------------------------ */

/* Identity of a process image: pid reuse changes starttime, exec changes
 * stack start (0 when the kernel does not tell). */
struct os_proc_id {
    int32_t pid;
    uint64_t start_time;  /* clock ticks since boot, /proc/PID/stat field 22 */
    uint64_t stack_start; /* /proc/PID/stat field 28 */
};
int os_proc_self(struct os_proc_id *ret);
/* Since this process was made (exec does not count); 0 when the kernel does not tell. */
uint64_t os_process_age_ns(void);
/* Which PID namespace this process is in: a number, 0 when the kernel does not tell. */
uint64_t os_pid_namespace(void);
/* Is there a process of this number? True also for a zombie. */
bool os_pid_exists(int32_t pid);
int32_t os_process_group(int32_t pid); /* of our PID namespace; 0: not known */
/* -ESRCH when there is no such process (or a zombie). */
int os_proc_id(int32_t pid, struct os_proc_id *ret);
int os_exe_path(char *buf, size_t cap); /* of the running program; 0 or -errno */
/* The same by the name that it was started by, where that is a link to it. For people. */
int os_program_path(char *buf, size_t cap);
uint64_t os_now_ns(void); /* CLOCK_MONOTONIC */
uint32_t os_uid(void);
int os_gettid(void);
int os_pid(void);
int os_parent_pid(void);
/* Lock a mutex, but wait for it no longer than so. */
bool os_lock_within(pthread_mutex_t *m, uint64_t ns);
/* No handler of the program runs in this thread in between. */
void os_hold_signals(unsigned long *ret_before);
void os_let_signals(unsigned long before);
void os_sleep_ns(uint64_t ns); /* whole time, signals or not */
/* Sleep while the word is still `was`, at most so long (futex); and wake all that do. */
void os_wait_word(const uint32_t *word, uint32_t was, uint64_t ns);
void os_wake_word(const uint32_t *word);
int os_cpu_count(void); /* configured CPUs, >= 1 */
bool os_single_threaded(void);
void os_note_main(void);  /* this thread runs main, or a forked child began with it */
int os_noted_pid(void);   /* this process's at that time; in a forked child before: the parent's */
bool os_main_ended(void); /* the main thread has left by pthread_exit */
unsigned os_thread_count(void); /* of this process, ours included; 0 unknown */
/* "ENOSPC" for -ENOSPC or ENOSPC; never NULL. */
const char *os_error_name(int e);

#endif
