/* SPDX-License-Identifier: BSD-2-Clause
 * The text of a run's trace: JSON lines in a buffer of fixed size. Samples come again and again
 * and hold running totals, so any of them can be left out: when the buffer is full every
 * second one goes, and from then on only every second one is taken. So a trace covers
 * its run whole, however long that is, with at least SAMPLES_LEFT samples of each kind. Other
 * lines (what the run is, warnings, the end) stay. Pure. */
#ifndef HYBRID_REPORT_RULES_TRACE_TEXT_H
#define HYBRID_REPORT_RULES_TRACE_TEXT_H

#include "base/textbuf.h"

enum trace_kind { TRACE_OTHER, TRACE_TICK, TRACE_PASS, TRACE_KINDS };

struct trace_text {
    struct textbuf text;
    size_t line; /* where the present line begins */
    enum trace_kind kind;
    uint64_t seen[TRACE_KINDS]; /* samples offered */
    unsigned every;             /* one in so many is taken */
};

/* The most that one line may take. */
#define TRACE_LINE_CAP 4096u

void trace_begin(struct trace_text *t, char *buf, size_t cap);
/* To be asked for each sample: is this one to be taken? */
bool trace_due(struct trace_text *t, enum trace_kind kind);
/* Begin a line, making room if there is none; then textbuf_add to t->text, beginning with
 * `, "name": value`; then end it. A line that did not fit is taken back. */
void trace_open(struct trace_text *t, enum trace_kind kind, const char *name);
void trace_close(struct trace_text *t);

#endif
