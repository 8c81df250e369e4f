/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS=FILE: the fields of fields.def, and lists of what there is several of. */
#include <inttypes.h>
#include <string.h>

#include "config.h"
#include "report/report_parts.h"
#include "sys/log.h"
#include "sys/os.h"

#define JSON_SITES 1000u

static void json_site(struct textbuf *o, site_id id, bool first)
{
    struct site_info s;
    char frame[160];
    if (!sites_get(id, &s))
        return;
    textbuf_add(o, "%s\n    {\"id\": \"%016" PRIx64 "\", ", first ? "" : ",", s.id_hash);
    fields_json(o, "site", &s);
    textbuf_add(o, ", \"tier\": %s, \"frames\": [",
                !s.has_tier       ? "null"
                : s.tier == HY_PM ? "\"pm\""
                                  : "\"dram\"");
    for (unsigned f = 0; f < s.n_frames; f++) {
        char id_text[BUILD_ID_MAX * 2 + 1];
        build_id_format(s.frames[f].build_id, BUILD_ID_MAX, id_text, sizeof(id_text));
        sites_format_frame(&s.frames[f], frame, sizeof(frame));
        textbuf_add(o,
                    "%s{\"build_id\": \"%s\", \"offset\": %" PRIu64 ", \"name\": ", f ? ", " : "",
                    id_text, s.frames[f].offset);
        textbuf_json(o, frame);
        textbuf_add(o, "}");
    }
    textbuf_add(o, "]}");
}

static void json_sites(struct textbuf *o)
{
    static site_id ids[JSON_SITES];
    unsigned n = sites_ready() ? report_top_sites(ids, JSON_SITES) : 0;
    textbuf_add(o, "  \"sites\": [");
    for (unsigned i = 0; i < n && o->len < REPORT_BYTES - 8192; i++)
        json_site(o, ids[i], i == 0);
    textbuf_add(o, "\n  ]\n}\n");
}

static void json_types(const struct staging_view *v, struct textbuf *o)
{
    char id[BUILD_ID_MAX * 2 + 1];

    textbuf_add(o, ", \"types\": [");
    for (unsigned i = 0; i < HY_MIN(v->types, STAGING_TYPES); i++) {
        build_id_format(v->type[i].id, BUILD_ID_MAX, id, sizeof(id));
        textbuf_add(o, "%s\n    {\"build_id\": \"%s\", ", i ? "," : "", id);
        fields_json(o, "type", &v->type[i]);
        textbuf_add(o, "}");
    }
    textbuf_add(o, "]");
}

static void json_tried(const struct threadsearch_view *s, struct textbuf *o)
{
    textbuf_add(o, ", \"tried\": [");
    for (unsigned i = 0; i < s->tried; i++)
        textbuf_add(o, "%s{\"threads\": %u, \"speed_milli\": %u}", i ? ", " : "", s->count[i],
                    s->permille[i]);
    textbuf_add(o, "]");
}

static void json_warnings(struct textbuf *o)
{
    const char *text;

    textbuf_add(o, "  \"warnings\": [");
    for (unsigned i = 0; (text = log_warning(i)) != NULL; i++) {
        textbuf_add(o, i ? ", " : "");
        textbuf_json(o, text);
    }
    textbuf_add(o, "],\n");
}

static void json_tiers(const struct report *r, struct textbuf *o)
{
    textbuf_add(o, "  \"tiers\": {");
    for (int t = 0; t < HY_TIERS; t++) {
        textbuf_add(o, "%s\n    \"%s\": {", t ? "," : "", hy_tier_name((enum hy_tier)t));
        fields_json(o, "tier", &r->tier[t]);
        textbuf_add(o, "}");
    }
    textbuf_add(o, "\n  },\n");
}

void report_json(const struct report *r, struct textbuf *o)
{
    static const char section[][16] = {"classification", "gain",      "plan",  "registry",
                                       "admission",      "migration", "tasks", "record",
                                       "threads",        "pacing",    "cache"};

    textbuf_add(o, "{\n  \"version\": %d, \"libhybrid\": \"%s\", \"pid\": %d,\n  ", REPORT_VERSION,
                HY_VERSION, os_pid());
    fields_json(o, "run", r);
    textbuf_add(o, ",\n");
    json_tiers(r, o);
    for (unsigned i = 0; i < HY_ARRAY_SIZE(section); i++) {
        textbuf_add(o, "  \"%s\": {", section[i]);
        fields_json(o, section[i], r);
        if (strcmp(section[i], "tasks") == 0)
            json_types(&r->now.tasks, o);
        if (strcmp(section[i], "threads") == 0)
            json_tried(&r->search, o);
        textbuf_add(o, "},\n");
    }
    json_warnings(o);
    json_sites(o);
}
