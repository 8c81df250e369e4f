/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_TRACE: what happened to this process over time, for `hybridctl report`. The control
 * thread takes samples into a buffer of fixed size (report/rules/trace_text.h), at most half a
 * percent of a core, and writes the file anew from time to time, so that a killed program
 * leaves what was up to then. */
#ifndef HYBRID_REPORT_TRACE_H
#define HYBRID_REPORT_TRACE_H

#include "base/types.h"

bool trace_wanted(void);
/* From the constructor: the directory that a relative name is in, before the program leaves it. */
void trace_name(void);
/* A sample, if one is due. */
void trace_tick(void);
/* The last sample, and the whole file. */
void trace_finish(void);
/* A child traces into a file of its own, if the name has %p in it. */
void trace_child(void);

#endif
