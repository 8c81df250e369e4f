/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS=FILE. Numbers are integers, thousandths where need be: a decimal point would
 * depend on the locale. */
#include <inttypes.h>

#include "config.h"
#include "report/report_parts.h"
#include "settings/settings.h"
#include "sys/log.h"
#include "sys/os.h"

#define JSON_SITES 1000u

static void json_site(struct textbuf *o, site_id id, bool first)
{
    struct site_info s;
    char frame[160];
    if (!sites_get(id, &s))
        return;
    textbuf_add(o,
                "%s\n    {\"id\": \"%016" PRIx64 "\", \"count\": %" PRIu64 ", \"bytes\": %" PRIu64
                ", \"nth\": %u, \"live_count\": %" PRIu64 ", \"live_bytes\": %" PRIu64
                ", \"tier\": %s, \"frames\": [",
                first ? "" : ",", s.id_hash, s.count, s.bytes, s.nth, s.live_count, s.live_bytes,
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

static void json_class(const struct classify_view *v, struct textbuf *o)
{
    const struct classification *c = &v->found;
    textbuf_add(
        o, "  \"classification\": {\"class\": \"%s\", \"weak\": %s, \"write_intensive\": %s, ",
        hy_class_name(c->cls), c->weak ? "true" : "false", c->write_intensive ? "true" : "false");
    /* Thousandths: a decimal point would depend on the locale. */
    textbuf_add(o,
                "\"confidence_milli\": %u, \"slowdown_milli\": %u, \"latency_slowdown_milli\": %u, "
                "\"bandwidth_slowdown_milli\": %u, \"write_share_milli\": %u, ",
                (unsigned)(c->confidence * 1000), (unsigned)(c->slowdown * 1000),
                (unsigned)(c->latency_slowdown * 1000), (unsigned)(c->bandwidth_slowdown * 1000),
                (unsigned)(c->write_share * 1000));
    textbuf_add(o, "\"ebw_milli\": [%" PRIu64 ", %" PRIu64 "], ",
                (uint64_t)(c->ebw[HY_DRAM] * 1000), (uint64_t)(c->ebw[HY_PM] * 1000));
    textbuf_add(o, "\"windows\": %u, \"phases\": %u, \"cost_ns\": %" PRIu64 ", \"counters\": ",
                c->windows, c->phases, v->cost_ns);
    textbuf_json(o, v->counters.what);
    textbuf_add(o, ", \"why\": ");
    textbuf_json(o, v->counters.why);
    textbuf_add(o, ", \"machine\": ");
    textbuf_json(o, v->machine);
    textbuf_add(o, "},\n");
}

/* The model's times for the work of all windows that could be judged (classify/rules/tally.h). */
static void json_gain(const struct tally *a, struct textbuf *o)
{
    textbuf_add(
        o,
        "  \"gain\": {\"windows\": %" PRIu64 ", \"judged\": %" PRIu64 ", \"all_dram_ns\": %" PRIu64
        ", \"as_placed_ns\": %" PRIu64 ", \"all_pm_ns\": %" PRIu64 "},\n",
        a->windows, a->judged, (uint64_t)a->dram_ns, (uint64_t)a->placed_ns, (uint64_t)a->pm_ns);
}

static void json_text(struct textbuf *o, const char *name, const char *value)
{
    textbuf_add(o, ", \"%s\": ", name);
    textbuf_json(o, value ? value : "");
}

static void json_admission(const struct admission_view *a, struct textbuf *o)
{
    textbuf_add(o,
                "  \"admission\": {\"asked\": %s, \"limit_ns\": %" PRIu64
                ", \"waited_ns\": %" PRIu64 ", \"for_pid\": %d",
                a->asked ? "true" : "false", a->limit_ns, a->waited_ns, a->pid);
    json_text(o, "for", a->name);
    json_text(o, "why", a->why);
    textbuf_add(o, "},\n");
}

static void json_migration(const struct migrate_view *m, struct textbuf *o)
{
    static const char *const state[] = {"idle", "on", "off"};

    textbuf_add(o, "  \"migration\": {\"state\": \"%s\", \"eager\": %s", state[m->state],
                m->eager ? "true" : "false");
    json_text(o, "why", m->why);
    json_text(o, "way", m->way);
    json_text(o, "writes_by", m->writes);
    json_text(o, "reads_by", m->reads);
    textbuf_add(o,
                ",\n    \"passes\": %" PRIu64 ", \"up_bytes\": %" PRIu64
                ", \"down_bytes\": %" PRIu64 ", \"refused_pages\": %" PRIu64
                ", \"regretted_pages\": %" PRIu64 ", \"pauses\": %" PRIu64 ", \"look_ns\": %" PRIu64
                ", \"move_ns\": %" PRIu64 ",\n    \"asked_pages\": %" PRIu64
                ", \"found_pages\": %" PRIu64 ", \"undone_pages\": %" PRIu64
                ", \"truces\": %" PRIu64 "},\n",
                m->passes, m->up_bytes, m->down_bytes, m->refused_pages, m->regretted_pages,
                m->pauses, m->look_ns, m->move_ns, m->beside.asked_pages, m->beside.found_pages,
                m->beside.undone_pages, m->beside.truces);
}

static void json_tasks(const struct staging_view *v, struct textbuf *o)
{
    char id[BUILD_ID_MAX * 2 + 1];

    textbuf_add(o,
                "  \"tasks\": {\"watched\": %s, \"ended\": %" PRIu64
                ", \"dropped_events\": %" PRIu64 ", \"stages\": %" PRIu64 ", \"late\": %" PRIu64
                ", \"hits\": %" PRIu64 ",\n    \"staged_bytes\": %" PRIu64
                ", \"evicted_bytes\": %" PRIu64 ", \"saved_ns\": %" PRId64 ", \"cost_ns\": %" PRId64
                ", \"types_known\": %u, \"types_given_up\": %u, \"types\": [",
                v->watched ? "true" : "false", v->tasks, v->dropped, v->stages, v->late, v->hits,
                v->staged_pages * HY_PAGE, v->evicted_pages * HY_PAGE, v->saved_ns, v->cost_ns,
                v->types, v->types_off);
    for (unsigned i = 0; i < HY_MIN(v->types, STAGING_TYPES); i++) {
        const struct staging_type *t = &v->type[i];
        build_id_format(t->id, BUILD_ID_MAX, id, sizeof(id));
        textbuf_add(o,
                    "%s\n      {\"build_id\": \"%s\", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64
                    ", \"ran\": %" PRIu64 ", \"mean_ns\": %" PRIu64 ", \"saving_ns\": %" PRId64
                    ", \"given_up\": %s}",
                    i ? "," : "", id, t->offset, t->bytes, t->ran, t->mean_ns, t->saving_ns,
                    t->off ? "true" : "false");
    }
    textbuf_add(o, "]},\n");
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

static void json_plan(const struct planned_view *v, struct textbuf *o)
{
    textbuf_add(
        o,
        "  \"plan\": {\"on\": %s, \"sites\": %u, \"on_dram\": %u, \"share\": %" PRIu64
        ", \"quota\": %" PRIu64 ", \"kept\": %" PRIu64
        ", \"given_up\": %s, \"plans\": %u, \"scale_milli\": %u, \"slowdown_milli\": %u},\n",
        v->on ? "true" : "false", v->sites, v->on_dram, v->share, v->quota, v->kept,
        v->given_up ? "true" : "false", v->plans, (unsigned)(v->scale * 1000),
        (unsigned)(v->slowdown * 1000));
}

static void json_record(const struct record_view *v, struct textbuf *o)
{
    textbuf_add(o, "  \"record\": {\"windows\": %u, \"samples\": %" PRIu64, v->windows, v->samples);
    json_text(o, "accesses_by", v->samples ? v->accesses : "");
    json_text(o, "why", v->samples ? "" : v->accesses);
    textbuf_add(o, "},\n");
}

static void json_threads(const struct threadcap_view *t, const struct threadsearch_view *s,
                         struct textbuf *o)
{
    textbuf_add(o,
                "  \"threads\": {\"cap\": %u, \"held\": %u, \"cpus\": %u, \"others_leave\": %u, "
                "\"changes\": %u, \"left_alone\": %u,\n    \"live\": %u, \"most\": %u, "
                "\"running_milli\": %u, \"created\": %" PRIu64 ",\n    \"searches\": %u, "
                "\"knee\": %u, \"chosen\": %u, \"tried\": [",
                t->cap, t->held, t->base, t->left, t->times, t->left_alone, t->live, t->most,
                t->running_milli, t->created, s->searches, s->knee, s->chosen);
    for (unsigned i = 0; i < s->tried; i++)
        textbuf_add(o, "%s{\"threads\": %u, \"speed_milli\": %u}", i ? ", " : "", s->count[i],
                    s->permille[i]);
    textbuf_add(o, "]},\n");
}

static void json_pacing(const struct pacing_view *p, struct textbuf *o)
{
    textbuf_add(o,
                "  \"pacing\": {\"ebw_dram_milli\": %u, \"ebw_pm_milli\": %u"
                ", \"pm_written_milli\": %u, \"pm_writers_milli\": %u"
                ",\n    \"held_milli\": %u, \"most_hindered_milli\": %u"
                ", \"own_best\": %u, \"paced\": %u, \"fewest\": %u, \"times\": %u",
                hy_milli(p->traffic.ebw[HY_DRAM]), hy_milli(p->traffic.ebw[HY_PM]),
                hy_milli(p->traffic.written), hy_milli(p->traffic.writers),
                hy_milli(p->traffic.held), hy_milli(p->most_hindered), p->own_best, p->paced,
                p->fewest, p->times);
    json_text(o, "for", p->times ? p->name : "");
    textbuf_add(o, "},\n");
}

static void json_cache(const struct llc_view *v, struct textbuf *o)
{
    textbuf_add(o,
                "  \"cache\": {\"possible\": %s, \"few\": %u, \"ways\": %u, \"now\": %s"
                ", \"times\": %u, \"given_back\": %u, \"speed_milli\": %u, \"few_ns\": %" PRIu64,
                v->possible ? "true" : "false", v->few, v->of, v->now ? "true" : "false", v->times,
                v->given_back, v->speed_milli, v->few_ns);
    json_text(o, "where", v->where);
    textbuf_add(o, "},\n");
}

void report_json(const struct report *r, struct textbuf *o)
{
    char name[32];
    const struct policy_view *v = &r->now.policy;
    bool steering = r->state == HY_STEERING;
    textbuf_add(o, "{\n  \"version\": %d,\n  \"libhybrid\": \"%s\",\n  \"pid\": %d,\n  \"exe\": ",
                REPORT_VERSION, HY_VERSION, os_pid());
    textbuf_json(o, r->exe);
    textbuf_add(o, ",\n  \"state\": \"%s\",\n  \"why\": ", runtime_state_name(r->state));
    textbuf_json(o, steering ? hy_machine.why : report_why_not(r));
    textbuf_add(o, ",\n  \"policy\": \"%s\",\n  \"class\": \"%s\",\n  \"rss\": %" PRIu64 ",\n",
                report_policy_name(name, sizeof(name)),
                hy_class_name(steering ? v->cls : settings_class()), r->rss);
    json_class(&r->now.classify, o);
    json_gain(&r->now.classify.tally, o);
    json_plan(&r->plan, o);
    textbuf_add(o, "  \"profile\": ");
    textbuf_json(o, hy_config.have_profile ? hy_config.profile_file : "");
    textbuf_add(o, ",\n  \"tiers\": {");
    for (int t = 0; t < HY_TIERS; t++) {
        const char *sep = "";
        textbuf_add(o, "%s\n    \"%s\": {", t ? "," : "", hy_tier_name((enum hy_tier)t));
#define FIELD(name_, head, bytes)                                                                  \
    textbuf_add(o, "%s\"" #name_ "\": %" PRIu64, sep, r->tier[t].name_);                           \
    sep = ", ";
        TIER_FIELDS(FIELD)
#undef FIELD
        textbuf_add(o, "}");
    }
    textbuf_add(o, "\n  },\n  \"registry\": {\"path\": ");
    textbuf_json(o, v->registry);
    textbuf_add(o, ", \"joined\": %s, \"error\": ", v->in_registry ? "true" : "false");
    textbuf_json(o, v->registry_error);
    textbuf_add(o,
                ", \"dram_shared\": %" PRIu64 ", \"claimed\": %" PRIu64 ", \"wish\": %" PRIu64
                ", \"asked\": %" PRIu64 "},\n",
                v->dram_shared, v->in_registry ? v->claimed : 0, v->wish, v->asked);
    json_admission(&r->admission, o);
    json_migration(&r->now.migrate, o);
    json_tasks(&r->now.tasks, o);
    json_record(&r->record, o);
    json_threads(&r->now.threads, &r->search, o);
    json_pacing(&r->now.pacing, o);
    json_cache(&r->now.cache, o);
    textbuf_add(o,
                "  \"forced_dram_bytes\": %" PRIu64 ",\n  \"file_private_bytes\": %" PRIu64 ",\n",
                v->forced_bytes, r->file_private);
    json_warnings(o);
    json_sites(o);
}
