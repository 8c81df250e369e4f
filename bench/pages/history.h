/* SPDX-License-Identifier: BSD-2-Clause
 * A recorded page history: what each page did in each tick, in the order of ticks. */
#ifndef BENCH_PAGES_HISTORY_H
#define BENCH_PAGES_HISTORY_H

#include <stdint.h>

struct seen {
    uint32_t tick, page;
    uint16_t reads, writes; /* lines; pages without any have no record */
};

#endif
