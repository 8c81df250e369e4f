/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl explain, between its files: what was found, and its two printers. */
#ifndef HYBRID_TOOLS_CTL_EXPLAIN_H
#define HYBRID_TOOLS_CTL_EXPLAIN_H

#include "classify/figures.h"
#include "place/rules/site_plan.h"

#define NOTES_MAX 16
#define NOTE_CAP  320

struct explained {
    const char *file;
    struct profile profile;
    struct profile_site site_of[PROFILE_MAX_SITES];
    struct profile_module module[PROFILE_MAX_MODULES];
    unsigned n_modules;
    struct figures_found machine;
    uint64_t share, dram_here; /* DRAM for the program; of this machine */
    const char *share_from;    /* "--dram", "HYBRID_DRAM", "the profile", "all of this machine" */
    bool counted;              /* sites have reads or writes: there is a plan */
    struct plan_work work;
    struct plan_site site[PLAN_MAX];
    unsigned n_sites; /* the profile's, and perhaps the rest of the memory */
    struct site_plan plan;
    double slowdown_pm, slowdown_plan; /* by the figures, over all on DRAM */
    uint16_t shown[PLAN_MAX];          /* order of the table: by rank, or by size without counts */
    bool all;                          /* not only the first */
    char note[NOTES_MAX][NOTE_CAP];
    unsigned n_notes;
};

const char *explain_why(const struct explained *e, unsigned site);
const char *explain_name(const struct explained *e, unsigned site);
void explain_text(const struct explained *e);
void explain_json(const struct explained *e);

#endif
