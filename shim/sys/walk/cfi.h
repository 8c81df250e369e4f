/* SPDX-License-Identifier: BSD-2-Clause
 * Call frame information of one module, reduced to the frame layouts that
 * compilers make. Reads the module's mapped memory only. */
#ifndef HYBRID_SYS_WALK_CFI_H
#define HYBRID_SYS_WALK_CFI_H

#include "base/types.h"

enum cfi_kind {
    CFI_STOP,      /* outermost, unknown or too unusual: the walk ends */
    CFI_RSP,       /* CFA = rsp + cfa_offset */
    CFI_RBP,       /* CFA = rbp + cfa_offset */
    CFI_REALIGNED, /* CFA = *(rbp - cfa_offset), caller's rbp = *rbp */
};

/* The return address is at CFA - 8. */
struct cfi_rule {
    enum cfi_kind kind;
    int32_t cfa_offset;   /* >= 0, multiple of 8 */
    int32_t rbp_distance; /* the caller's rbp is at CFA - this; 0: still in rbp */
};

/* The layout at pc, found through the module's .eh_frame_hdr (0: none). All
 * reading stays within [start, end), the module. */
void cfi_find(uintptr_t eh_frame_hdr, uintptr_t start, uintptr_t end, uintptr_t pc,
              struct cfi_rule *ret);

#endif
