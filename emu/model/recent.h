/* SPDX-License-Identifier: BSD-2-Clause
 * What the threads of a machine did lately: how much of the media they used and how many
 * had requests pending at PM, per window of virtual time.
 *
 * A batch is spread evenly over the time that it took. A thread does not stand in its own
 * way: what it put there itself is taken out again. Pure over the structs; the one in
 * shared memory is all atomics, without a lock. */
#ifndef EMU_RECENT_H
#define EMU_RECENT_H

#include <stdatomic.h>
#include <stdint.h>

#define EMU_WINDOW_PS ((int64_t)10000000)
#define EMU_WINDOWS   8192
/* What is looked at: so many whole windows before now. */
#define EMU_RECENT 8

enum emu_doing {
    EMU_READS_PM, /* has reads, writes pending there */
    EMU_WRITES_PM,
    EMU_USES_DRAM, /* is served by */
    EMU_USES_PM,
    EMU_DOINGS,
};

struct emu_recent {
    /* Window number << 32 | sum over threads of the ns for which they did so. */
    _Atomic uint64_t window[EMU_DOINGS][EMU_WINDOWS];
};

/* The latest batches of one thread. All zero at its start. */
#define EMU_PAST 8
struct emu_past {
    struct {
        int64_t from, to;
        double share[EMU_DOINGS];
    } batch[EMU_PAST];
    unsigned latest;
    double load[EMU_DOINGS]; /* what others do, damped: see emu_recent_damped */
};

/* The thread did so for the shares (0 to 1) of [from, to). */
void emu_recent_add(struct emu_recent *r, struct emu_past *past, int64_t from, int64_t to,
                    const double share[EMU_DOINGS]);
/* Mean number of other threads that did so in the windows before `now`. */
void emu_recent_others(struct emu_recent *r, const struct emu_past *past, int64_t now,
                       double ret[EMU_DOINGS]);
/* The same for one of them, approached in small steps. Whoever waits the longer the more a
 * medium is used, and uses it the less the longer he waits, would swing for ever. */
double emu_recent_damped(struct emu_past *past, enum emu_doing d, double others);

#endif
