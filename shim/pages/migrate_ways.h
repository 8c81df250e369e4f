/* SPDX-License-Identifier: BSD-2-Clause
 * Whether, how, and by what sources pages can be watched and moved here. */
#ifndef HYBRID_PAGES_MIGRATE_WAYS_H
#define HYBRID_PAGES_MIGRATE_WAYS_H

#include "pages/mover.h"

/* NULL: pages can be moved here. What only shows when the thread starts is told then. */
const char *ways_against(void);
struct migrator ways_here(void);
int ways_open_sampler(void);
/* The calls that look and move might be what a filter kills for. It may come at any time. */
bool ways_filtered(void);

#endif
