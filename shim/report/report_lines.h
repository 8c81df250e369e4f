/* SPDX-License-Identifier: BSD-2-Clause
 * The lines of the text report between the table of the tiers and the call sites, from templates
 * with the names of fields (fields.def). Pure. */
#ifndef HYBRID_REPORT_REPORT_LINES_H
#define HYBRID_REPORT_REPORT_LINES_H

#include "report/fields.h"

/* A name that is not in the table stays as it is, with its braces. */
void report_lines(struct textbuf *o, const struct report *r);

#endif
