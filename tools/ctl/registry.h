/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl: the registry as its subcommands read it. Looks only: the file is neither
 * created nor changed. */
#ifndef HYBRID_TOOLS_CTL_REGISTRY_H
#define HYBRID_TOOLS_CTL_REGISTRY_H

#include "tools/ctl/ctl.h"
#include "place/registry.h"

/* The path by option, environment or default; NULL: told on stderr. */
const char *ctl_registry_path(const char *option);
/* 0; -ENOENT: there is none, *ret has no participant; else told on stderr. */
int ctl_registry_look(const char *path, struct registry_view *ret);
/* Since it told something. */
double ctl_registry_age(const struct registry_entry *e);
/* For how long it has been waiting for admission; 0: it runs. */
double ctl_registry_waits(const struct registry_entry *e);
/* DRAM that it would like ("+1.2G"), or is asked to give up ("-1.2G"), or "-". */
const char *ctl_registry_wish_text(const struct registry_published *t, char buf[32]);
/* Since it is paced; 0: it is not. */
double ctl_registry_paced_seconds(const struct registry_entry *e);
/* A sentence about it, for whom, to how many threads, since when; false: it is not paced. */
bool ctl_registry_pacing_text(const struct registry_view *v, const struct registry_entry *e,
                              char *buf, size_t cap);
/* A sentence about the ways of the last-level cache that it keeps to; false: it has all. */
bool ctl_registry_cache_text(const struct registry_entry *e, char *buf, size_t cap);
/* A name is another process's text: nothing of it may steer a terminal. */
const char *ctl_registry_name(const struct registry_entry *e, char *buf, size_t cap);

/* The registry as an object, left open after its participants' array was opened; each
 * participant's members but for the braces; the totals, and the end. */
void ctl_registry_json_begin(struct ctl_json *j, const char *path, const struct registry_view *v,
                             bool exists);
void ctl_registry_json_entry(struct ctl_json *j, const struct registry_entry *e);
void ctl_registry_json_end(struct ctl_json *j, const struct registry_view *v);

struct ctl_totals {
    uint64_t dram, pm, wish, asked, promoted, demoted, written, threads;
};
struct ctl_totals ctl_registry_totals(const struct registry_view *v);

#endif
