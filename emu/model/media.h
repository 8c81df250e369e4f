/* SPDX-License-Identifier: BSD-2-Clause
 * The two media: what a miss costs a thread, and how threads share bandwidth.
 * Pure over struct emu_media (in shared memory, all atomics, no lock) and the
 * costs. Times are virtual picoseconds.
 *
 * Bandwidth is a calendar: a ring of time windows for each medium, each holding
 * how much of it is booked. A batch books from its own start onwards into what is
 * free, so the real order in which threads arrive does not matter.
 *
 * Both media hang on one controller. A request to PM holds its place in the queue there
 * for as long as PM takes to get to it, and whoever comes behind waits. With q threads
 * pending at PM, the chance to come behind one of them grows with q, and so does the time
 * that it stays: DRAM takes 1 + c q^2 times as long. PM is full with few threads, so its
 * traffic says nothing of q; the waiting does (by Little's law, waiting time summed over
 * the threads and divided by time is the mean number that wait). */
#ifndef EMU_MEDIA_H
#define EMU_MEDIA_H

#include "model/misses.h"
#include "model/params.h"
#include "model/recent.h"

/* Device blocks in the write-combining and read buffers of the PM modules:
 * 2 modules of 16 KiB, 256 bytes each. */
#define EMU_BUFFERED_BLOCKS 128u

struct emu_media {
    /* Window number << 32 | booked ps. */
    _Atomic uint64_t calendar[EMU_TIERS][EMU_WINDOWS];
    _Atomic uint64_t read_block[EMU_BUFFERED_BLOCKS], write_block[EMU_BUFFERED_BLOCKS];
    struct emu_recent recent;
};

enum emu_direction { EMU_READ, EMU_WRITE, EMU_DIRECTIONS };

/* From the parameters, once. */
struct emu_costs {
    int64_t miss_ps[EMU_TIERS][EMU_MISS_KINDS], writeback_ps[EMU_TIERS], hit_ps;
    int64_t busy_ps[EMU_TIERS][EMU_DIRECTIONS]; /* 64 bytes of transfer */
    /* For how long 64 bytes are pending that one thread alone moves as fast as it can. */
    int64_t pending_ps[EMU_TIERS][EMU_DIRECTIONS];
    /* DRAM takes 1 + hold[d][e] q^2 times as long for d with q threads that have e
     * pending at PM; more than `queue` of them count as so many. */
    double hold[EMU_DIRECTIONS][EMU_DIRECTIONS], queue;
    double yield; /* PM takes 1 + yield times as long when DRAM is full */
    double load;
    unsigned block_shift; /* lines of a PM block, as a shift */
    unsigned scatter_pct;
};

/* What one thread did since it last settled. A unit is 64 bytes moved by the device. */
struct emu_batch {
    int64_t cpu_ps, hit_ps; /* computing, waiting for the LLC */
    int64_t stall_ps[EMU_TIERS];
    uint32_t read_units[EMU_TIERS], write_units[EMU_TIERS];
};

void emu_costs_init(struct emu_costs *c, const struct emu_params *p);

/* 64-byte units that the device moves for this line: 0 when its block is buffered. */
uint32_t emu_media_units(struct emu_media *m, const struct emu_costs *c, enum emu_tier t,
                         uint64_t line, bool write);
/* Book the batch that began at `start`; its end. *ret_wait: the part of it that was
 * spent on loaded latency, interference and waiting for bandwidth. `past` is the thread's. */
int64_t emu_media_settle(struct emu_media *m, const struct emu_costs *c, struct emu_past *past,
                         int64_t start, const struct emu_batch *b, int64_t *ret_wait);
/* Book `busy` ps on one medium from `start` onwards; when the last of it is done. */
int64_t emu_media_book(struct emu_media *m, enum emu_tier t, int64_t start, int64_t busy);

#endif
