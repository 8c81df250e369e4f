/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS between its files: report.c collects and writes, report_text.c and report_json.c
 * print, into a mapped buffer: nothing is allocated. */
#ifndef HYBRID_REPORT_REPORT_PARTS_H
#define HYBRID_REPORT_REPORT_PARTS_H

#include "report/fields.h"

#define REPORT_VERSION 1
#define REPORT_BYTES   ((size_t)4 << 20)

/* Sites by bytes, largest first: a bounded selection without a sort of all; how many. */
unsigned report_top_sites(site_id *ids, unsigned max);

void report_text(const struct report *r, struct textbuf *o);
/* Its lines between the table of the tiers and the call sites, from templates with the names of
 * fields (fields.def). A name that is not in the table stays as it is, with its braces. Pure. */
void report_lines(struct textbuf *o, const struct report *r);
void report_json(const struct report *r, struct textbuf *o);

#endif
