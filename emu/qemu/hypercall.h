/* SPDX-License-Identifier: BSD-2-Clause
 * How the library in the guest (guest_library.c) asks the plugin: by a system call that does
 * not exist, with the address of a struct emu_hypercall. Where there is no plugin the
 * kernel refuses the call and `result` stays what the caller has put there. */
#ifndef EMU_QEMU_HYPERCALL_H
#define EMU_QEMU_HYPERCALL_H

#include <stdint.h>

#define EMU_HYPERCALL 6843765

/* Named after the functions of pmemu.h whose arguments they take. */
enum emu_hypercall_function {
    EMU_HC_VTIME_NS = 1,
    EMU_HC_AWAY,
    EMU_HC_BACK,
    EMU_HC_RELEASE,
    EMU_HC_SET_TIER,
    EMU_HC_MOVE,
    EMU_HC_TIER_OF,
    EMU_HC_DISCARD,
    EMU_HC_TIER_BYTES,
    EMU_HC_IGNORE_THREAD,
    EMU_HC_EVENT,
    EMU_HC_COUNT_PAGES,
    EMU_HC_RANGE_COUNTS,
    EMU_HC_SAMPLES_OPEN, /* events, period, bytes, memory of the guest's */
    EMU_HC_SAMPLES_CLOSE,
    EMU_HC_HOLD,
    EMU_HC_RANGE_TIERS,
    EMU_HC_DRAM_FREE,
    EMU_HC_FILL_WAYS,
};

struct emu_hypercall {
    uint64_t function;
    int64_t result;
    uint64_t arg[4];
};

/* The plugin's side. */
void hypercall(uint64_t address);

#endif
