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
    int64_t read_mbs, write_mbs; /* peak bandwidth, 10^6 bytes/s, sequential */
    int64_t block;               /* bytes that the device reads or writes at once */
    int64_t read_pj, write_pj;   /* energy for 64 bytes */
    int64_t endurance;           /* writes that a cell bears; 0: no limit */
};

struct emu_params {
    struct emu_medium medium[EMU_TIERS];
    /* Time for which 64 bytes of PM traffic hold the shared memory controller, in
     * percent of what 64 bytes of DRAM traffic of the same kind hold it. */
    int64_t ctl_read_pct, ctl_write_pct;
    /* How many misses of a kind a core overlaps. */
    int64_t mlp_random, mlp_stream, mlp_store, mlp_writeback;
    int64_t load_pct; /* queueing: this percentage of rho / (1 - rho) on latency */
    int64_t llc_kb, hit_ps;
    int64_t instruction_ps;
    int64_t access_ps, block_ps; /* compute time per access, per basic block */
    int64_t batch_ps;            /* virtual time after which a thread settles */
    int64_t lookahead_ps;        /* no thread is further ahead of the last one */
    int64_t pm_bytes;            /* capacity, for the lifetime only */
};

size_t emu_preset_count(void);
const char *emu_preset_name(size_t i);
const char *emu_preset_help(size_t i);
/* -ENOENT: no such preset. */
int emu_params_preset(const char *name, struct emu_params *ret);
/* "pm_read_ns=300,llc_kb=4096". -EINVAL: *ret_bad is where the text is wrong
 * (within `text`), `p` is untouched. */
int emu_params_set(struct emu_params *p, const char *text, const char **ret_bad);

#endif
