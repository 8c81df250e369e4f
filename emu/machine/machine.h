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
    X(wait_ns, "loaded latency and bandwidth")                                                     \
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
    _Atomic int64_t begin, end; /* virtual ps: arrival, latest settling */
    _Atomic uint64_t count[EMU_COUNTER_COUNT];
};

struct emu_machine {
    uint64_t magic, version, bytes;
    struct emu_params params;
    _Atomic uint64_t serials; /* processes so far */
    struct emu_process process[EMU_PROCESSES];
    struct emu_clock clock;
    struct emu_media media;
    _Alignas(64) _Atomic uint64_t llc[];
};

/* path NULL: a machine of this process' own. -EPERM: the file has another version,
 * -EINVAL: other parameters, -EUSERS: full; else what the system said. */
int emu_machine_attach(const char *path, const struct emu_params *p, struct emu_machine **ret,
                       struct emu_process **ret_self);
/* A slot on a machine that is mapped already (after fork). */
int emu_machine_join(struct emu_machine *m, struct emu_process **ret_self);
/* Also removes the file when nobody else is left. */
void emu_machine_leave(struct emu_machine *m, struct emu_process *self, const char *path);

#endif
