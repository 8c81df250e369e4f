/* SPDX-License-Identifier: BSD-2-Clause
 * The state of one emulated machine: media, LLC, clocks and a slot of counters for
 * each process, in shared memory. Without a name it belongs to one process and its
 * forked children and vanishes with them. With a file name, every process that names
 * the file is on the same machine; the last one to leave removes the file. A process
 * that is killed leaves a slot, which the next one to come or go frees.
 *
 * The parameters are the first comer's; others must agree. */
#ifndef EMU_MACHINE_H
#define EMU_MACHINE_H

#include "machine/clock.h"
#include "machine/cpus.h"
#include "model/media.h"

#define EMU_PROCESSES 64

/* name, what it counts */
#define EMU_COUNTERS(X)                                                                            \
    X(instructions, "estimated from accesses and basic blocks")                                    \
    X(accesses, "instrumented loads and stores, lines of ranges")                                  \
    X(l1_misses, "")                                                                               \
    X(llc_reads_dram, "LLC misses filled from DRAM")                                               \
    X(llc_reads_pm, "")                                                                            \
    X(writebacks_dram, "lines that turned dirty in the LLC")                                       \
    X(writebacks_pm, "")                                                                           \
    X(units_read_pm, "64-byte units read by the device (blocks)")                                  \
    X(units_written_pm, "")                                                                        \
    X(dependent_misses, "at full latency")                                                         \
    X(stream_misses, "")                                                                           \
    X(compute_ns, "virtual, summed over threads")                                                  \
    X(stall_ns, "")                                                                                \
    X(cache_ns, "of stall_ns, for hits in the LLC")                                                \
    X(wait_ns, "loaded latency and bandwidth")                                                     \
    X(dram_pages, "most in use at once")                                                           \
    X(pm_pages, "")                                                                                \
    X(pages_moved_up, "to DRAM, at their cost")                                                    \
    X(pages_moved_down, "to PM")                                                                   \
    X(move_ns, "spent on it, not part of stall_ns")                                                \
    X(page_faults, "counted where fault_ns is set")                                                \
    X(cpu_wait_ns, "waiting for a turn on a CPU")                                                  \
    X(core_nj, "energy of the cores while threads ran or stalled there")                           \
    X(overflows, "batches longer than the calendar of bandwidth: times are wrong")                 \
    X(threads, "")                                                                                 \
    X(lost_threads, "not emulated: no free slot")

enum emu_counter {
#define EMU_X(n, h) EMU_C_##n,
    EMU_COUNTERS(EMU_X)
#undef EMU_X
        EMU_COUNTER_COUNT
};

struct emu_process {
    _Atomic int32_t pid;
    _Atomic int64_t born; /* start time of the process, against reuse of its number */
    _Atomic uint64_t serial;
    _Atomic int64_t begin, end;       /* virtual ps: arrival, latest settling */
    _Atomic int64_t pages[EMU_TIERS]; /* in use now (room.h) */
    _Atomic uint64_t count[EMU_COUNTER_COUNT];
};

/* What is known of the futexes with one hash, in virtual ps (qemu/futex.c). */
struct emu_futex {
    _Atomic int64_t woken;   /* highest time of a waker */
    _Atomic int64_t arrived; /* highest time of those who began to wait since */
    _Atomic uint32_t waiting;
    _Atomic uint64_t moved_to; /* requeued: the futex where the waker will come */
};
#define EMU_FUTEXES 4096 /* a power of two */

struct emu_machine {
    uint64_t magic, version, bytes;
    struct emu_params params;
    _Atomic uint64_t serials;          /* processes so far */
    _Atomic int64_t guest_clock_ns[2]; /* what guests' real-time and monotonic clock are at
                                          virtual 0; 0: nobody has asked */
    struct emu_process process[EMU_PROCESSES];
    struct emu_clock clock;
    struct emu_cpus cpus;
    struct emu_cpu_user cpu_user[EMU_THREADS]; /* by clock slot */
    /* What a CPU did lately, whoever ran there: no thread stands in the way of one that
     * has its CPU after it. */
    struct emu_past past[EMU_CPUS_MAX];
    struct emu_media media;
    struct emu_futex shared_futex[EMU_FUTEXES]; /* those that processes share */
    _Alignas(64) _Atomic uint64_t llc[];
};

/* path NULL: a machine of this process' own. -EPERM: the file has another version,
 * -EINVAL: other parameters, -EUSERS: full; else what the system said. */
int emu_machine_attach(const char *path, const struct emu_params *p, struct emu_machine **ret,
                       struct emu_process **ret_self);
/* A slot on a machine that is mapped already (after fork). */
int emu_machine_join(struct emu_machine *m, struct emu_process **ret_self);
/* Free the slots of processes that have died, and what they held. */
void emu_machine_reclaim(struct emu_machine *m, const struct emu_process *self, const char *path);
/* For those who are not on it. A machine to read only, for munmap(m, m->bytes); -EPERM: not one
 * of this version. */
int emu_machine_look(const char *path, const struct emu_machine **ret);
bool emu_process_alive(const struct emu_process *p);
/* Free what the dead have left, and remove the file when nobody lives: how many do. */
int emu_machine_tidy(const char *path);
/* Also removes the file when nobody else is left. */
void emu_machine_leave(struct emu_machine *m, struct emu_process *self, const char *path);

#endif
