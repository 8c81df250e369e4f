/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ctl/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sys/env.h"
#include "sys/os.h"

const char *ctl_registry_path(const char *option)
{
    static char buf[HY_PATH_MAX];
    const char *path = option ? option : env_get("HYBRID_REGISTRY");

    if (!path || !*path || strcmp(path, "auto") == 0) {
        registry_default_path(buf, sizeof(buf));
        return buf;
    }
    if (strcmp(path, "none") == 0) {
        ctl_error("HYBRID_REGISTRY=none: each program decides alone, there is nothing to show");
        return NULL;
    }
    return path;
}

int ctl_registry_look(const char *path, struct registry_view *ret)
{
    struct registry *r;
    int error = registry_open_readonly(path, &r);

    memset(ret, 0, sizeof(*ret));
    if (error == 0) {
        registry_read(r, ret);
        registry_close(r);
    } else if (error != -ENOENT) {
        ctl_error("the registry %s cannot be read: %s", path, registry_problem(error));
    }
    return error;
}

double ctl_registry_age(const struct registry_entry *e)
{
    uint64_t now = os_now_ns();
    return e->heartbeat_ns && e->heartbeat_ns < now ? (double)(now - e->heartbeat_ns) / 1e9 : 0.0;
}

double ctl_registry_waits(const struct registry_entry *e)
{
    uint64_t now = os_now_ns(), since = e->published.arrived_ns;
    return since && since < now ? (double)(now - since) / 1e9 : 0.0;
}

double ctl_registry_paced_seconds(const struct registry_entry *e)
{
    uint64_t now = os_now_ns(), since = e->published.paced_since;
    return e->published.paced && since < now ? (double)(now - since) / 1e9 : 0.0;
}

const char *ctl_registry_wish_text(const struct registry_published *t, char buf[32])
{
    char size[16];
    bool asked = t->asked_bytes > 0;
    uint64_t bytes = asked ? t->asked_bytes : t->wish_bytes;

    snprintf(buf, 32, "%s%s", bytes == 0 ? "" : asked ? "-" : "+", ctl_short_size(bytes, size));
    return buf;
}

bool ctl_registry_pacing_text(const struct registry_view *v, const struct registry_entry *e,
                              char *buf, size_t cap)
{
    const struct registry_published *t = &e->published;
    char name[TEXT_QUOTE_CAP] = "a program that has ended";

    if (t->paced == 0)
        return false;
    for (unsigned i = 0; i < v->n; i++)
        if ((uint32_t)v->entry[i].pid == t->paced_for)
            (void)ctl_registry_name(&v->entry[i], name, sizeof(name));
    (void)snprintf(
        buf, cap, "%d is paced to %u of %u threads for %.1f s: its writes to PM hold up %u (%s)",
        e->pid, t->paced, t->own_best, ctl_registry_paced_seconds(e), t->paced_for, name);
    return true;
}

bool ctl_registry_cache_text(const struct registry_entry *e, char *buf, size_t cap)
{
    const struct registry_published *t = &e->published;

    if (t->cache_ways > 0)
        (void)snprintf(buf, cap, "%d keeps to %u way%s of the last-level cache%s", e->pid,
                       t->cache_ways, t->cache_ways == 1 ? "" : "s",
                       t->cache_class == REGISTRY_STREAMS ? ": it streams through its data" : "");
    else if (t->cache_class == REGISTRY_STREAMS)
        (void)snprintf(
            buf, cap, "%d streams through its data, and fills all of the last-level cache", e->pid);
    return t->cache_ways > 0 || t->cache_class == REGISTRY_STREAMS;
}

static const char *reuse_name(uint32_t cls)
{
    static const char *const names[] = {
        [REGISTRY_REUSE_UNKNOWN] = "unknown",
        [REGISTRY_REUSES] = "reuses",
        [REGISTRY_STREAMS] = "streams",
    };
    return names[cls < sizeof(names) / sizeof(names[0]) ? cls : REGISTRY_REUSE_UNKNOWN];
}

const char *ctl_registry_name(const struct registry_entry *e, char *buf, size_t cap)
{
    text_quote(e->name, strnlen(e->name, sizeof(e->name)), buf, cap);
    return buf;
}

struct ctl_totals ctl_registry_totals(const struct registry_view *v)
{
    struct ctl_totals t = {0};

    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_published *published = &v->entry[i].published;
        t.dram += v->entry[i].dram_bytes;
        t.pm += published->pm_bytes;
        t.wish += published->wish_bytes;
        t.asked += published->asked_bytes;
        t.promoted += published->promoted_bytes;
        t.demoted += published->demoted_bytes;
        t.written += published->written_bytes;
        t.threads += published->threads;
    }
    return t;
}

void ctl_registry_json_begin(struct ctl_json *j, const char *path, const struct registry_view *v,
                             bool exists)
{
    ctl_json_open(j, NULL, '{');
    ctl_json_text(j, "registry", path);
    ctl_json_bool(j, "exists", exists);
    if (exists)
        ctl_json_number(j, "dram_budget", v->dram_budget);
    ctl_json_open(j, "participants", '[');
}

void ctl_registry_json_entry(struct ctl_json *j, const struct registry_entry *e)
{
    const struct registry_published *t = &e->published;
    char name[sizeof(e->name) + 1] = "";

    memcpy(name, e->name, sizeof(e->name));
    ctl_json_number(j, "pid", (uint64_t)e->pid);
    ctl_json_text(j, "name", name);
    ctl_json_text(j, "class", hy_class_name(t->cls));
    ctl_json_number(j, "confidence_milli", t->confidence);
    ctl_json_number(j, "slowdown_milli", t->slowdown);
    ctl_json_number(j, "placed_slowdown_milli", t->placed_slowdown);
    ctl_json_number(j, "dram_bytes", e->dram_bytes);
    ctl_json_number(j, "pm_bytes", t->pm_bytes);
    ctl_json_number(j, "wish_bytes", t->wish_bytes);
    ctl_json_number(j, "asked_bytes", t->asked_bytes);
    ctl_json_number(j, "promoted_bytes", t->promoted_bytes);
    ctl_json_number(j, "demoted_bytes", t->demoted_bytes);
    ctl_json_number(j, "written_bytes", t->written_bytes);
    ctl_json_number(j, "tracked_bytes", t->tracked_bytes);
    ctl_json_bool(j, "write_intensive", t->marks & REGISTRY_WRITES);
    ctl_json_bool(j, "on_pm", t->marks & REGISTRY_ON_PM);
    ctl_json_number(j, "waits_ms", (uint64_t)(ctl_registry_waits(e) * 1000));
    ctl_json_number(j, "threads", t->threads);
    ctl_json_number(j, "thread_cap", t->cap);
    ctl_json_number(j, "weight_centi", t->weight);
    ctl_json_number(j, "curve_bytes", t->curve_bytes);
    ctl_json_number(j, "curve_dram_bytes", t->curve_dram);
    ctl_json_number(j, "curve_now_milli", t->curve_now);
    ctl_json_open(j, "curve_milli", '[');
    for (unsigned k = 0; k < REGISTRY_CURVE && t->time_at[0] > 0; k++)
        ctl_json_number(j, NULL, t->time_at[k]);
    ctl_json_close(j, ']');
    ctl_json_number(j, "ebw_dram_milli", t->ebw_dram);
    ctl_json_number(j, "ebw_pm_milli", t->ebw_pm);
    ctl_json_number(j, "pm_written_milli", t->pm_written);
    ctl_json_number(j, "pm_writers_milli", t->writers);
    ctl_json_number(j, "hindered_milli", t->hindered);
    ctl_json_number(j, "paced_threads", t->paced);
    ctl_json_number(j, "paced_for_pid", t->paced_for);
    ctl_json_number(j, "paced_for_ms", (uint64_t)(ctl_registry_paced_seconds(e) * 1000));
    ctl_json_text(j, "cache_class", reuse_name(t->cache_class));
    ctl_json_number(j, "cache_ways", t->cache_ways);
    ctl_json_number(j, "heartbeat_age_ms", (uint64_t)(ctl_registry_age(e) * 1000));
}

void ctl_registry_json_end(struct ctl_json *j, const struct registry_view *v)
{
    struct ctl_totals t = ctl_registry_totals(v);

    ctl_json_close(j, ']');
    ctl_json_open(j, "total", '{');
    ctl_json_number(j, "dram_bytes", t.dram);
    ctl_json_number(j, "pm_bytes", t.pm);
    ctl_json_number(j, "wish_bytes", t.wish);
    ctl_json_number(j, "asked_bytes", t.asked);
    ctl_json_number(j, "promoted_bytes", t.promoted);
    ctl_json_number(j, "demoted_bytes", t.demoted);
    ctl_json_number(j, "threads", t.threads);
    ctl_json_close(j, '}');
    ctl_json_close(j, '}');
}
