/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl status: the participants of the registry. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "tools/ctl/registry.h"

static struct registry_view view; /* ~40 KiB: not for the stack */

#define TEXT_COLUMN 2u

/* 80 columns. */
static void print_row(const char *pid, const char *name, const char *cls, uint64_t dram,
                      uint64_t pm, const char *wish, uint64_t moved, const char *threads,
                      const char *slow, const char *age)
{
    char a[16], b[16], c[16];
    printf("%7s  %-12s %-13s %6s %6s %6s %6s %5s %5s %4s\n", pid, name, cls,
           ctl_short_size(dram, a), ctl_short_size(pm, b), wish, ctl_short_size(moved, c), threads,
           slow, age);
}

/* "3.21": with all data on PM, over all of them on DRAM. */
static void slowdown_text(const struct registry_published *t, char *buf, size_t cap)
{
    if (t->slowdown == 0)
        snprintf(buf, cap, "-");
    else
        snprintf(buf, cap, "%.2f", t->slowdown / 1000.0);
}

static void print_entry(const struct registry_entry *e)
{
    const struct registry_published *t = &e->published;
    char pid[16], age[32], name[TEXT_QUOTE_CAP], cls[32], threads[32], slow[32], wish[32];

    snprintf(pid, sizeof(pid), "%d", e->pid);
    snprintf(age, sizeof(age), "%.0fs", ctl_registry_age(e));
    snprintf(cls, sizeof(cls), t->confidence ? "%s %u%%" : "%s", hy_class_name(t->cls),
             t->confidence / 10);
    if (t->arrived_ns) /* before main: there is no more to say of it */
        snprintf(cls, sizeof(cls), "%s waits", hy_class_name(t->cls));
    snprintf(threads, sizeof(threads), t->cap ? "%u/%u" : "%u", t->threads, t->cap);
    slowdown_text(t, slow, sizeof(slow));
    print_row(pid, ctl_registry_name(e, name, sizeof(name)), cls, e->dram_bytes, t->pm_bytes,
              ctl_registry_wish_text(t, wish), t->promoted_bytes + t->demoted_bytes, threads, slow,
              age);
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    unsigned width = UINT_MAX, height = 0;
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ctl_screen_size(&width, &height);
    ctl_print_wrapped(text, TEXT_COLUMN, width);
}

/* What each asks of the memories, and who makes way for whom, in sentences. */
static void print_traffic(void)
{
    char text[256];

    for (unsigned i = 0; i < view.n; i++) {
        const struct registry_entry *e = &view.entry[i];
        const struct registry_published *t = &e->published;
        if (t->ebw_dram + t->ebw_pm > 0)
            say("%d asks %.2f of DRAM and %.2f of PM (ns of latency for each ns), %u %% of that on "
                "PM written, %.1f threads writing there",
                e->pid, t->ebw_dram / 1000.0, t->ebw_pm / 1000.0, t->pm_written / 10,
                t->writers / 1000.0);
        if (t->hindered >= 1010)
            say("%d is slower by %.0f %% by the others' writes to PM, as predicted", e->pid,
                (t->hindered - 1000) / 10.0);
        if (t->time_at[0] > 0)
            say("%d is predicted to take %.1f times as long without DRAM as with all its data "
                "there, %.1f times with half, %.1f times as they lie; weight %.2f",
                e->pid, t->time_at[0] / 1000.0, t->time_at[REGISTRY_CURVE / 2] / 1000.0,
                t->curve_now / 1000.0, t->weight / 100.0);
        if (ctl_registry_pacing_text(&view, e, text, sizeof(text)))
            say("%s", text);
        if (ctl_registry_cache_text(e, text, sizeof(text)))
            say("%s", text);
    }
}

static void print_text(const char *path)
{
    char size[32], threads[32], wish[16], whole[32];
    struct ctl_totals t = ctl_registry_totals(&view);

    printf("Registry %s, DRAM for all: %s\n", path, ctl_size(view.dram_budget, size, sizeof(size)));
    if (view.n == 0) {
        puts("No participant.");
        return;
    }
    printf("%7s  %-12s %-13s %6s %6s %6s %6s %5s %5s %4s\n", "PID", "NAME", "CLASS", "DRAM", "PM",
           "WISH", "MOVED", "THR", "SLOW", "AGE");
    for (unsigned i = 0; i < view.n; i++)
        print_entry(&view.entry[i]);
    snprintf(threads, sizeof(threads), "%llu", (unsigned long long)t.threads);
    snprintf(whole, sizeof(whole), "%s%s", t.wish ? "+" : "", ctl_short_size(t.wish, wish));
    print_row("", "together", "", t.dram, t.pm, whole, t.promoted + t.demoted, threads, "", "");
    print_traffic();
}

static void print_json(const char *path, bool exists)
{
    struct ctl_json j = {.to = stdout};

    ctl_registry_json_begin(&j, path, &view, exists);
    for (unsigned i = 0; i < view.n; i++) {
        ctl_json_open(&j, NULL, '{');
        ctl_registry_json_entry(&j, &view.entry[i]);
        ctl_json_close(&j, '}');
    }
    ctl_registry_json_end(&j, &view);
}

/* One look: CTL_OK, or CTL_PASSIVE without a registry to show. */
static int show(const char *path, bool json)
{
    int error = ctl_registry_look(path, &view);

    if (error != 0 && error != -ENOENT)
        return CTL_PASSIVE;
    if (json)
        print_json(path, error == 0);
    else if (error == 0)
        print_text(path);
    else
        printf("No registry at %s: no program shares DRAM now.\n", path);
    return error == 0 ? CTL_OK : CTL_PASSIVE;
}

static int watch(const char *path, bool json, unsigned seconds)
{
    int status;
    for (;;) {
        if (ctl_use_colour() && !json)
            fputs("\033[H\033[J", stdout);
        status = show(path, json);
        /* A closed pipe ends the watch; SIGPIPE may be ignored by the parent. */
        if (fflush(stdout) != 0)
            return status;
        struct timespec t = {.tv_sec = (time_t)seconds};
        nanosleep(&t, NULL);
    }
}

int ctl_status(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'},
                                                 {"registry", required_argument, NULL, 'r'},
                                                 {"watch", required_argument, NULL, 'w'},
                                                 {0}};
    bool json = false;
    const char *registry = NULL;
    uint64_t seconds = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'j')
            json = true;
        else if (c == 'r')
            registry = optarg;
        else if (c != 'w')
            return CTL_USAGE;
        else if (text_parse_u64(optarg, strlen(optarg), &seconds) < 0 || seconds < 1 ||
                 seconds > 86400) {
            ctl_error("--watch takes seconds from 1 to 86400, not '%s'", optarg);
            return CTL_USAGE;
        }
    }
    if (optind < argc) {
        ctl_error("status takes no argument '%s'", argv[optind]);
        return CTL_USAGE;
    }
    const char *path = ctl_registry_path(registry);
    if (!path)
        return CTL_PASSIVE;
    return seconds ? watch(path, json, (unsigned)seconds) : show(path, json);
}
