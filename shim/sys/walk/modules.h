/* SPDX-License-Identifier: BSD-2-Clause
 * Which build of which module holds an address. Lock-free and without
 * allocation, so that malloc may ask; answers are remembered in a fixed table
 * and checked against the module's own bytes each time, because dlclose and
 * dlopen can put another build at the same address unseen. */
#ifndef HYBRID_SYS_WALK_MODULES_H
#define HYBRID_SYS_WALK_MODULES_H

#include "base/types.h"

#define MODULE_ID_BYTES 20

struct module {
    uintptr_t start, end;  /* the range that addr was found in: all, or a segment */
    uintptr_t bias;        /* address - bias = address in the ELF file */
    uintptr_t handle;      /* the loader's, for comparison only */
    uintptr_t witness;     /* 24 bytes within the range that tell a change of build, */
    uint64_t witnessed[3]; /* and what they were; address 0: nothing there can tell */
    uintptr_t low, high;   /* all its segments */
    uintptr_t eh_frame_hdr;
    uint8_t id[MODULE_ID_BYTES]; /* build-id, zero-padded; or a hash of the path */
    uint32_t build_id_len;       /* 0: the module has no build-id */
};

/* The module that holds addr: 0; -ENOENT: none; -EAGAIN: not known just now. */
int module_find(uintptr_t addr, struct module *ret);
/* The same for who only needs the range that this is true of. */
int module_range(uintptr_t addr, uintptr_t *ret_start, uintptr_t *ret_end);
/* Counts how often a known address range was seen to hold another module:
 * whatever was remembered of addresses in an earlier epoch may be wrong. */
uint64_t modules_epoch(void);
/* No writer may be in the middle of its work when the process is copied. */
void modules_prefork(void);
void modules_postfork(void);
/* Build-id of the main program; 0 when it has none. */
unsigned module_exe_build_id(uint8_t id[MODULE_ID_BYTES]);

#endif
