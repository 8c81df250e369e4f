/* SPDX-License-Identifier: BSD-2-Clause
 * The CPUs of the emulated machine, shared by threads in virtual time. Pure over its
 * structs (in shared memory, all atomics, no lock).
 *
 * A CPU is the time from which it is free. A thread takes its turn when it settles:
 * on its last CPU if that is free, else on another that it may use and that is free,
 * else on the one that is free first, and what it did begins when the turn does. A
 * turn lasts EMU_TURN_PS or as long as the batch; who goes away gives the rest back.
 * So N threads on T CPUs advance at T/N of the speed, and with N <= T nobody waits.
 * Whatever is cut short by a kill is over within one turn. */
#ifndef EMU_CPUS_H
#define EMU_CPUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EMU_CPUS_MAX   256
#define EMU_CPUS_WORDS (EMU_CPUS_MAX / 64)
#define EMU_TURN_PS    ((int64_t)20000000)

struct emu_cpuset {
    uint64_t bits[EMU_CPUS_WORDS];
};

/* All below `cpus`. */
void emu_cpuset_fill(struct emu_cpuset *s, int cpus);
/* "0-3,8". -EINVAL: not such a list, or none of it below `cpus`. */
int emu_cpuset_parse(const char *text, int cpus, struct emu_cpuset *ret);
int emu_cpuset_count(const struct emu_cpuset *s);

/* One thread's relation to the CPUs. */
struct emu_cpu_user {
    _Atomic uint64_t allowed[EMU_CPUS_WORDS]; /* others may change it */
    _Atomic int32_t cpu;                      /* last one used */
    int64_t until;                            /* end of its turn there; the owner's */
};

struct emu_cpus {
    int32_t count;
    _Atomic uint32_t newcomers;
    _Atomic int64_t free_at[EMU_CPUS_MAX];
};

void emu_cpus_init(struct emu_cpus *c, int count);
/* A new thread: where it may run, and the CPU that it first names as its own. */
void emu_cpus_enter(struct emu_cpus *c, struct emu_cpu_user *u, const struct emu_cpuset *allowed);
/* -EINVAL: no CPU of the machine among them. */
int emu_cpus_allow(const struct emu_cpus *c, struct emu_cpu_user *u, const struct emu_cpuset *s);
void emu_cpus_allowed(const struct emu_cpu_user *u, struct emu_cpuset *ret);

/* The CPU that the thread used last, or would use next if it may not use that any more. */
int emu_cpus_current(const struct emu_cpus *c, const struct emu_cpu_user *u);

/* `cost` ps of work at `now`: when it begins. leaving: the thread goes away after it,
 * so no more than that is taken. */
int64_t emu_cpus_take(struct emu_cpus *c, struct emu_cpu_user *u, int64_t now, int64_t cost,
                      bool leaving);
/* The work took longer by this. */
void emu_cpus_extend(struct emu_cpus *c, struct emu_cpu_user *u, int64_t ps);
/* The thread's turn ends now. */
void emu_cpus_yield(struct emu_cpus *c, struct emu_cpu_user *u, int64_t now);

#endif
