/* SPDX-License-Identifier: BSD-2-Clause
 * What a process knows of itself, and the table of its fields (fields.def), from which text, JSON
 * and samples are rendered. Values are taken by their offsets, so nothing here reaches into the
 * parts that they come from. Numbers are written as integers: a decimal point would depend on the
 * locale. Pure. */
#ifndef HYBRID_REPORT_FIELDS_H
#define HYBRID_REPORT_FIELDS_H

#include "base/textbuf.h"
#include "place/admission.h"
#include "place/planned.h"
#include "place/sites.h"
#include "record/record.h"
#include "report/observe.h"
#include "threads/search.h"

struct tier_report {
    uint64_t charged, peak, limit, resident, heap_live, heap_free, mapped;
    uint64_t large_blocks, mappings, turned_away;
};

struct report {
    struct observed now; /* first: a trace's samples have this part only */
    struct tier_report tier[HY_TIERS];
    struct threadsearch_view search;
    struct planned_view plan;
    struct admission_view admission;
    struct record_view record;
    enum hy_state state;
    const char *state_name, *why, *profile;
    const char *accesses_by, *no_accesses; /* of the record */
    char exe[256], policy_name[32];
    uint64_t rss, file_private;
    /* For the text. */
    uint64_t placed, not_placed; /* bytes resident */
    unsigned slower_percent;
    char tried[16 * 24];
};

/* `"key": value` for each field of a section, with commas between them. `base`: the struct that the
 * section's members are in. */
void fields_json(struct textbuf *o, const char *section, const void *base);
/* `, "name": value` for each that a trace's samples have. */
void fields_samples(struct textbuf *o, const struct observed *base);
/* `name` is "section.key", of the tiers "dram.key" and "pm.key"; as a person reads it. False: there
 * is no such field, and nothing is written. */
bool fields_text(struct textbuf *o, const struct report *r, const char *name, size_t len);
/* Is it more than zero, "" or false? */
bool fields_has(const struct report *r, const char *name, size_t len);
/* As a person reads it: "10.0 MiB"; what is as good as endless: "-". */
void fields_bytes(uint64_t bytes, char *buf, size_t cap);
/* The table of the tiers, a line a field. */
void fields_tiers(struct textbuf *o, const struct report *r);

#endif
