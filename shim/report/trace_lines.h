/* SPDX-License-Identifier: BSD-2-Clause
 * The lines of a trace; hybrid-trace(5) explains them field by field. Numbers are
 * integers: thousandths, nanoseconds, bytes, pages. */
#ifndef HYBRID_REPORT_TRACE_LINES_H
#define HYBRID_REPORT_TRACE_LINES_H

#include "report/observe.h"
#include "report/rules/trace_text.h"

#define TRACE_VERSION 1
#define TRACE_BINS    256u

/* What the run is: one line, and one for each setting. */
void trace_run(struct trace_text *t, uint64_t start_ns, bool virtual_clock);
/* Where counts and figures come from, once that is known or has changed. */
void trace_counters(struct trace_text *t, const struct classify_view *v);
/* What became of page moves: on, or off and why. */
void trace_migration(struct trace_text *t, const struct migrate_view *v);
void trace_warning(struct trace_text *t, uint64_t ns, const char *text);
void trace_sample(struct trace_text *t, uint64_t ns, uint64_t cost_ns, const struct observed *o);
void trace_pass(struct trace_text *t, uint64_t ns, const struct migrate_pass *p,
                const struct sampler_bin *bins, unsigned n);
void trace_end(struct trace_text *t, uint64_t ns);

#endif
