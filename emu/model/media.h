/* SPDX-License-Identifier: BSD-2-Clause
 * The two media: what a miss costs a thread, and how threads share bandwidth.
 * Pure over struct emu_media (in shared memory, all atomics, no lock) and the
 * costs. Times are virtual picoseconds.
 *
 * Bandwidth is a calendar: a ring of time windows for each medium, each holding
 * how much of it is booked. A batch books from its own start onwards into what is
 * free, so the real order in which threads arrive does not matter. */
#ifndef EMU_MEDIA_H
#define EMU_MEDIA_H

#include "model/params.h"

#define EMU_WINDOW_PS ((int64_t)10000000)
#define EMU_WINDOWS   8192
/* Device blocks in the write-combining and read buffers of the PM modules:
 * 2 modules of 16 KiB, 256 bytes each. */
#define EMU_BUFFERED_BLOCKS 128u

struct emu_media {
    /* Window number << 32 | booked ps. */
    _Atomic uint64_t calendar[EMU_TIERS][EMU_WINDOWS];
    _Atomic uint64_t read_block[EMU_BUFFERED_BLOCKS], write_block[EMU_BUFFERED_BLOCKS];
};

enum emu_miss {
    EMU_MISS_RANDOM, /* independent of earlier ones: overlapped */
    EMU_MISS_STREAM, /* a prefetcher's work */
    EMU_MISS_STORE,
    EMU_MISS_DEPENDENT, /* its address came from an earlier miss: full latency */
    EMU_MISS_KINDS,
};

/* From the parameters, once. */
struct emu_costs {
    int64_t miss_ps[EMU_TIERS][EMU_MISS_KINDS], writeback_ps[EMU_TIERS], hit_ps;
    int64_t read_busy_ps[EMU_TIERS], write_busy_ps[EMU_TIERS]; /* 64 bytes of transfer */
    int64_t ctl_read_ps, ctl_write_ps; /* ... of PM on the shared controller */
    int64_t load_pct;
    unsigned block_shift; /* lines of a PM block, as a shift */
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
 * spent on loaded latency and on waiting for bandwidth. */
int64_t emu_media_settle(struct emu_media *m, const struct emu_costs *c, int64_t start,
                         const struct emu_batch *b, int64_t *ret_wait);
/* Book `busy` ps on one medium from `start` onwards; when the last of it is done. */
int64_t emu_media_book(struct emu_media *m, enum emu_tier t, int64_t start, int64_t busy);

#endif
