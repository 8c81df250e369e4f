/* SPDX-License-Identifier: BSD-2-Clause
 * Writes hybrid-report.5 and hybrid-trace.5 from their templates and the table of fields.
 * gen-fields TEMPLATE VERSION > PAGE */
#include <stdio.h>
#include <string.h>

#include "roff.h"

static const struct row {
    const char *section, *key, *sample, *unit, *what;
} rows[] = {
#define FIELD(section, key, sample, unit, member, what) {#section, #key, sample, #unit, what},
#define PART(section, owner, member, key, unit, what)   {#section, #key, "", #unit, what},
#include "report/fields.def"
#undef FIELD
#undef PART
};
#define ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

static void put_field(const char *name, const struct row *row)
{
    static const char *const unit[][2] = {
        {"BYTES", "bytes"}, {"PAGES", "bytes"}, {"NS", "ns"}, {"MILLI", "thousandths"}};

    printf(".TP\n\\fB%s\\fR", name);
    for (unsigned i = 0; i < sizeof(unit) / sizeof(unit[0]); i++)
        if (strcmp(row->unit, unit[i][0]) == 0)
            printf(" (%s)", unit[i][1]);
    printf("\n");
    roff_text(row->what);
    printf("\n");
}

static void put_section(const char *section, const char *heading)
{
    printf(".SS \"%s\"\n", heading);
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].section, section) == 0)
            put_field(rows[i].key, &rows[i]);
}

static void put_report(void)
{
    static const char *const section[][2] = {
        {"run", "The run (not in an object)"},
        {"tier", "tiers: an object each for dram and pm"},
        {"registry", "registry: DRAM that programs share"},
        {"classification", "classification: what limits the program"},
        {"gain", "gain: the same work with all data on one memory"},
        {"plan", "plan: the DRAM of a profile's call sites"},
        {"admission", "admission: a start that waits"},
        {"migration", "migration: pages that move"},
        {"tasks", "tasks: data of OpenMP tasks"},
        {"type", "types (in tasks): one type of tasks"},
        {"record", "record: what was recorded"},
        {"threads", "threads"},
        {"pacing", "pacing: fewer writers to PM for others' sake"},
        {"cache", "cache: ways of the last-level cache"},
        {"site", "sites: one call site"},
    };
    for (unsigned i = 0; i < sizeof(section) / sizeof(section[0]); i++)
        put_section(section[i][0], section[i][1]);
}

static void put_samples(void)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].sample[0])
            put_field(rows[i].sample, &rows[i]);
}

int main(int argc, char **argv)
{
    static const struct roff_part report = {"@REPORT@", put_report},
                                  samples = {"@SAMPLES@", put_samples};
    const char *page = argc > 1 ? argv[1] : "";

    return roff_fill(argc, argv, "gen-fields", strstr(page, "hybrid-trace") ? &samples : &report,
                     1);
}
