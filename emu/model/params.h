/* SPDX-License-Identifier: BSD-2-Clause
 * The numbers that make an emulated machine: presets.def, and settings by name on
 * top of one. Pure; the environment is read in settings.c. */
#ifndef EMU_PARAMS_H
#define EMU_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#include "model/cache.h"

/* All int64_t, no padding: compared byte by byte between processes. */
struct emu_medium {
    int64_t read_ps, write_ps;   /* latency of one access, idle */
    int64_t mlp_stream;          /* read latency over the time of a line in a stream */
    int64_t read_mbs, write_mbs; /* peak bandwidth, 10^6 bytes/s, sequential */
    int64_t block;               /* bytes that the device reads or writes at once */
    int64_t read_pj, write_pj;   /* energy for 64 bytes */
    int64_t endurance;           /* writes that a cell bears; 0: no limit */
};

struct emu_params {
    struct emu_medium medium[EMU_TIERS];
    /* Interference on a shared controller: q threads with requests pending at PM add
     * q^2 times these percents to the time of DRAM: PM reads to DRAM's reads, writes to
     * writes, each to the other; q counts up to ctl_queue. And what a full DRAM adds to PM. */
    int64_t ctl_read_pct, ctl_write_pct, ctl_cross_pct, ctl_queue, ctl_dram_pct;
    /* Of 100 lines written back next to one just written, so many do not meet it in the
     * PM's buffer, and have their whole block written for themselves. */
    int64_t scatter_pct;
    /* How many misses of a kind a core overlaps. */
    int64_t mlp_random, mlp_store, mlp_writeback;
    int64_t load_pct; /* queueing: this percentage of rho / (1 - rho) on latency */
    int64_t llc_kb, hit_ps;
    int64_t instruction_ps;
    int64_t access_ps, block_ps;         /* compute time per access, per basic block */
    int64_t batch_ps;                    /* virtual time after which a thread settles */
    int64_t lookahead_ps;                /* no thread is further ahead of the last one */
    int64_t pm_bytes;                    /* capacity, for the lifetime only */
    int64_t cpus;                        /* HYBRID_EMU_CPUS, in no preset */
    int64_t dram_bytes;                  /* capacity; 0: as much as is asked for */
    int64_t move_page_ps, move_batch_ps; /* a page's move beside its transfers; a call */
    int64_t fault_ps;                    /* a page fault; 0, in all presets: free */
    int64_t core_mw, core_low_mw;        /* of a core that runs, at EMU_MHZ and EMU_LOW_MHZ */
};

/* The clock that the times hold for, and a lower one whose power is known (001, section 3). */
#define EMU_MHZ     2400
#define EMU_LOW_MHZ 1600

/* The times of computing and of hits at another clock; memory's stay. */
void emu_params_clock(struct emu_params *p, unsigned mhz);
/* Power of a core that runs, on the line through the two that are known. */
int64_t emu_core_mw(const struct emu_params *p, unsigned mhz);
size_t emu_preset_count(void);
const char *emu_preset_name(size_t i);
const char *emu_preset_help(size_t i);
/* -ENOENT: no such preset. */
int emu_params_preset(const char *name, struct emu_params *ret);
/* "pm_read_ns=300,llc_kb=4096". -EINVAL: *ret_bad is where the text is wrong
 * (within `text`), `p` is untouched. */
int emu_params_set(struct emu_params *p, const char *text, const char **ret_bad);

#endif
