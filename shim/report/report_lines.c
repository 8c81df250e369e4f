/* SPDX-License-Identifier: BSD-2-Clause
 * The lines of HYBRID_STATS=1. */
#include "report/report_parts.h"

#include <string.h>

/* A line is there if all fields of `when` are set, or not set those behind '!'. In the text {name}
 * is a field's value, and what [brackets] hold is there if any field in them is set. Arrays, not
 * pointers: the loader would have to relocate these at every start. */
static const struct line {
    char when[64], text[176];
} lines[] = {
    {"", "  resident in all {text.placed}, {text.not_placed} of it not placed"
         " (program, stacks, from before)\n  shared DRAM budget {registry.dram_shared}, "},
    {"registry.joined", "claimed {registry.claimed}\n"},
    {"!registry.joined", "alone (no registry)\n"},
    {"classification.counters", "  counts: {classification.counters}[ ({classification.why})];"
                                " figures of {classification.machine}\n"},
    {"classification.windows",
     "  class found: {classification.class}[{classification.write_intensive}, write-intensive],"
     " confidence {classification.confidence_milli}"},
    {"classification.windows", "[{classification.weak} (a hint)], {classification.windows} windows,"
                               " {classification.phases} changes\n"},
    {"classification.windows !classification.weak",
     "  slowdown on PM: {classification.slowdown_milli} (by latency "
     "{classification.latency_slowdown_milli}, by bandwidth "
     "{classification.bandwidth_slowdown_milli})\n"},
    {"", "[  wishes {registry.wish} of DRAM; asked to give up {registry.asked}\n]"},
    {"admission.asked", "  began after {admission.waited_ns}"
                        "[ of waiting for {admission.for} ({admission.for_pid})]:"
                        " {admission.why}\n"},
    {"plan.on", "  plan: {plan.on_dram} of {plan.sites} call sites get {plan.quota} of {plan.share}"
                " DRAM; {plan.kept} kept for what did not come; "},
    {"plan.on", "slowdown by the figures {plan.slowdown_milli}\n"},
    {"gain.judged", "  predicted time of the same work: {gain.all_dram_ns} on DRAM,"
                    " {gain.as_placed_ns} as it lay, {gain.all_pm_ns} on PM\n"},
    {"record.windows", "  recorded: {record.windows} windows\n"},
    {"record.samples", "  accesses of call sites by {record.accesses_by}: {record.samples}"
                       " samples\n"},
    {"record.to_profile !record.samples", "  accesses of call sites are not known"
                                          "[ ({record.why})]\n"},
    {"migration.why", "  pages are not moved: {migration.why}\n"},
    {"migration.passes !migration.why",
     "  pages moved: {migration.up_bytes} to DRAM, {migration.down_bytes} to PM in"
     " {migration.passes} looks; {migration.refused_pages} pages refused;"
     " {migration.pauses} pauses\n"},
    {"migration.passes !migration.why", "  pages watched by {migration.writes_by}"
                                        "[, reads by {migration.reads_by}],"
                                        " moved by {migration.way}\n"},
    {"migration.found_pages !migration.why",
     "  others moved {migration.found_pages} pages that were found so,"
     " {migration.undone_pages} of them undoing moves\n"},
    {"migration.truces !migration.why", "  moves rested {migration.truces} times as others undid"
                                        " them\n"},
    {"tasks.ended", "  tasks: {tasks.ended} with dependences watched, {tasks.types_known}"
                    " types, {tasks.types_given_up} given up\n"},
    {"tasks.stages", "  tasks' data staged: {tasks.staged_bytes} to DRAM for {tasks.stages} tasks,"
                     " {tasks.evicted_bytes} made room; {tasks.late} were late\n"},
    {"tasks.stages", "  tasks that ran on staged data: {tasks.hits}; {tasks.saved_ns} of their time"
                     " saved for {tasks.cost_ns} of moves\n"},
    {"threads.created", "  threads: {threads.created} made, {threads.most} at most,"
                        " {threads.running_milli} running at a time\n"},
    {"threads.cap", "  threads on {threads.cap} of {threads.cpus} CPUs at the end;"
                    " {threads.changes} changes, {threads.left_alone} threads left alone\n"},
    {"!threads.cap threads.changes",
     "  threads on all of {threads.cpus} CPUs at the end; {threads.changes} changes,"
     " {threads.left_alone} threads left alone\n"},
    {"threads.searches", "  threads searched {threads.searches} times; the last time {threads.knee}"
                         " on PM fill it; tried (speed){text.tried}: "},
    {"threads.searches threads.chosen", "{threads.chosen}\n"},
    {"threads.searches !threads.chosen", "not finished\n"},
    {"pacing.times",
     "  paced {pacing.times} times, to {pacing.fewest} of {pacing.fewest_of} threads"
     " at the fewest[{pacing.paced}, also at the end]; the last time"
     " for {pacing.for}\n"},
    {"text.slower_percent", "  slower by {text.slower_percent} % at most by others' writes to PM,"
                            " as predicted\n"},
    {"cache.few_ns",
     "  {cache.few} of {cache.ways} ways of the last-level cache for {cache.few_ns}"},
    {"cache.few_ns cache.times", "; kept {cache.times} times[{cache.now}, also at the end],"
                                 " {cache.speed_milli} of the speed with all"},
    {"cache.few_ns", "[; slower by it and given back {cache.given_back} times]\n"},
    {"run.forced_dram_bytes", "  {run.forced_dram_bytes} went to DRAM beyond its limit: "},
    {"run.forced_dram_bytes pm.turned_away", "PM was full\n"},
    {"run.forced_dram_bytes !pm.turned_away", "memory that was there and grew in place\n"},
    {"run.file_private_bytes", "  {run.file_private_bytes} of the PM files became private at fork:"
                               " pages written since lie in DRAM\n"},
};

static bool holds(const char *when, const struct report *r)
{
    for (size_t n; *when; when += n + (when[n] == ' ')) {
        n = strcspn(when, " ");
        bool not = *when == '!';
        if (fields_has(r, when + not, n - not ) == not )
            return false;
    }
    return true;
}

/* Of the text from `at` to `end`, in which no bracket is open. */
static void fill(struct textbuf *o, const struct report *r, const char *at, const char *end);

static void fill_if_any(struct textbuf *o, const struct report *r, const char *at, const char *end)
{
    for (const char *name = at; (name = memchr(name, '{', (size_t)(end - name))) != NULL;) {
        name++;
        if (fields_has(r, name, strcspn(name, "}"))) {
            fill(o, r, at, end);
            return;
        }
    }
}

static void fill(struct textbuf *o, const struct report *r, const char *at, const char *end)
{
    while (at < end) {
        const char *stop = at + strcspn(at, *at == '[' ? "]" : *at == '{' ? "}" : "[{");

        if (*at == '[')
            fill_if_any(o, r, at + 1, stop);
        else if (*at != '{')
            textbuf_add(o, "%.*s", (int)(HY_MIN(stop, end) - at), at);
        else if (!fields_text(o, r, at + 1, (size_t)(stop - at - 1)))
            textbuf_add(o, "%.*s", (int)(stop + 1 - at), at);
        at = stop + (*at == '[' || *at == '{');
    }
}

void report_lines(struct textbuf *o, const struct report *r)
{
    for (const struct line *l = lines; l < lines + HY_ARRAY_SIZE(lines); l++)
        if (holds(l->when, r))
            fill(o, r, l->text, l->text + strlen(l->text));
}
