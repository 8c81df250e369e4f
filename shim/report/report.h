/* SPDX-License-Identifier: BSD-2-Clause
 * What the process writes of itself at its end. */
#ifndef HYBRID_REPORT_REPORT_H
#define HYBRID_REPORT_REPORT_H

#include <stdbool.h>

bool report_wanted(void);
void report_at_exit(void);

#endif
