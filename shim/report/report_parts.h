/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS between its files: report.c collects and writes, report_text.c and report_json.c
 * print, into a mapped buffer: nothing is allocated. */
#ifndef HYBRID_REPORT_REPORT_PARTS_H
#define HYBRID_REPORT_REPORT_PARTS_H

#include "base/textbuf.h"
#include "place/planned.h"
#include "place/sites.h"
#include "record/record.h"
#include "report/observe.h"
#include "place/admission.h"
#include "threads/search.h"

#define REPORT_VERSION 1
#define REPORT_BYTES   ((size_t)4 << 20)

/* Per tier: field, heading of the text table. Bytes, but for the counts. */
#define TIER_FIELDS(X)                                                                             \
    X(charged, "charged", true)                                                                    \
    X(peak, "peak", true)                                                                          \
    X(limit, "limit", true)                                                                        \
    X(resident, "resident", true)                                                                  \
    X(heap_live, "heap live", true)                                                                \
    X(heap_free, "heap free", true)                                                                \
    X(mapped, "mapped", true)                                                                      \
    X(large_blocks, "large blocks", false)                                                         \
    X(mappings, "mappings", false)                                                                 \
    X(turned_away, "turned away", false)

struct tier_report {
#define FIELD(name, head, bytes) uint64_t name;
    TIER_FIELDS(FIELD)
#undef FIELD
};

struct report {
    enum hy_state state;
    char exe[256];
    struct tier_report tier[HY_TIERS];
    struct observed now;
    struct threadsearch_view search;
    struct planned_view plan;
    struct admission_view admission;
    struct record_view record;
    uint64_t rss, file_private;
};

/* Sites by bytes, largest first: a bounded selection without a sort of all; how many. */
unsigned report_top_sites(site_id *ids, unsigned max);
const char *report_policy_name(char *buf, size_t cap);
/* Why nothing was placed. */
const char *report_why_not(const struct report *r);

void report_text(const struct report *r, struct textbuf *o);
void report_json(const struct report *r, struct textbuf *o);

#endif
