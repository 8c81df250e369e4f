/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl status: the participants of the registry. Looks only: the file is
 * neither created nor changed. */
#include "ctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decide/text.h"
#include "service/registry.h"
#include "sys/env.h"
#include "sys/os.h"

static struct registry_view view; /* ~20 KiB: not for the stack */

struct totals {
    uint64_t dram, pm, wish, asked, threads;
};

static struct totals sum_up(void)
{
    struct totals t = {0};
    for (unsigned i = 0; i < view.n; i++) {
        t.dram += view.entry[i].dram_bytes;
        t.pm += view.entry[i].pm_bytes;
        t.wish += view.entry[i].wish_bytes;
        t.asked += view.entry[i].asked_bytes;
        t.threads += view.entry[i].threads;
    }
    return t;
}

static double age_seconds(const struct registry_entry *e)
{
    uint64_t now = os_now_ns();
    return e->heartbeat_ns && e->heartbeat_ns < now ? (double)(now - e->heartbeat_ns) / 1e9 : 0.0;
}

static void print_row(const char *pid, const char *name, const char *cls, uint64_t dram,
                      uint64_t pm, uint64_t wish, uint64_t asked, uint64_t threads, const char *age)
{
    char a[32], b[32], c[32], d[32];
    printf("%8s  %-15s %-10s %10s %10s %10s %10s %8llu %8s\n", pid, name, cls,
           ctl_size(dram, a, sizeof(a)), ctl_size(pm, b, sizeof(b)), ctl_size(wish, c, sizeof(c)),
           ctl_size(asked, d, sizeof(d)), (unsigned long long)threads, age);
}

static void print_text(const char *path)
{
    char size[32];
    struct totals t = sum_up();

    printf("Registry %s, DRAM for all: %s\n", path, ctl_size(view.dram_budget, size, sizeof(size)));
    if (view.n == 0) {
        puts("No participant.");
        return;
    }
    printf("%8s  %-15s %-10s %10s %10s %10s %10s %8s %8s\n", "PID", "NAME", "CLASS", "DRAM", "PM",
           "WISHES", "ASKED", "THREADS", "AGE");
    for (unsigned i = 0; i < view.n; i++) {
        const struct registry_entry *e = &view.entry[i];
        char pid[16], age[32], name[TEXT_QUOTE_CAP];
        /* A name is another process's text: nothing of it may steer a terminal. */
        text_quote(e->name, strnlen(e->name, sizeof(e->name)), name, sizeof(name));
        snprintf(pid, sizeof(pid), "%d", e->pid);
        snprintf(age, sizeof(age), "%.1f s", age_seconds(e));
        print_row(pid, name, hy_class_name(e->cls), e->dram_bytes, e->pm_bytes, e->wish_bytes,
                  e->asked_bytes, e->threads, age);
    }
    print_row("", "together", "", t.dram, t.pm, t.wish, t.asked, t.threads, "");
}

static void print_json(const char *path, bool exists)
{
    struct ctl_json j = {.to = stdout};
    struct totals t = sum_up();

    ctl_json_open(&j, NULL, '{');
    ctl_json_text(&j, "registry", path);
    ctl_json_bool(&j, "exists", exists);
    if (exists)
        ctl_json_number(&j, "dram_budget", view.dram_budget);
    ctl_json_open(&j, "participants", '[');
    for (unsigned i = 0; i < view.n; i++) {
        const struct registry_entry *e = &view.entry[i];
        char name[sizeof(e->name) + 1] = "";
        memcpy(name, e->name, sizeof(e->name));
        ctl_json_open(&j, NULL, '{');
        ctl_json_number(&j, "pid", (uint64_t)e->pid);
        ctl_json_text(&j, "name", name);
        ctl_json_text(&j, "class", hy_class_name(e->cls));
        ctl_json_number(&j, "dram_bytes", e->dram_bytes);
        ctl_json_number(&j, "pm_bytes", e->pm_bytes);
        ctl_json_number(&j, "wish_bytes", e->wish_bytes);
        ctl_json_number(&j, "asked_bytes", e->asked_bytes);
        ctl_json_number(&j, "threads", e->threads);
        ctl_json_number(&j, "heartbeat_age_ms", (uint64_t)(age_seconds(e) * 1000));
        ctl_json_close(&j, '}');
    }
    ctl_json_close(&j, ']');
    ctl_json_open(&j, "total", '{');
    ctl_json_number(&j, "dram_bytes", t.dram);
    ctl_json_number(&j, "pm_bytes", t.pm);
    ctl_json_number(&j, "wish_bytes", t.wish);
    ctl_json_number(&j, "asked_bytes", t.asked);
    ctl_json_number(&j, "threads", t.threads);
    ctl_json_close(&j, '}');
    ctl_json_close(&j, '}');
}

static const char *why_not(int error)
{
    return error == -EPROTO  ? "it is no registry, or that of another version of libhybrid"
           : error == -EPERM ? "it belongs to somebody else or is open to others"
                             : strerror(-error);
}

/* One look: CTL_OK, or CTL_PASSIVE without a registry to show. */
static int show(const char *path, bool json)
{
    struct registry *r;
    int error = registry_open_readonly(path, &r);

    memset(&view, 0, sizeof(view));
    if (error == 0) {
        registry_read(r, &view);
        registry_close(r);
    } else if (error != -ENOENT) {
        ctl_error("the registry %s cannot be read: %s", path, why_not(error));
        return CTL_PASSIVE;
    }
    if (json)
        print_json(path, error == 0);
    else if (error == 0)
        print_text(path);
    else
        printf("No registry at %s: no program shares DRAM now.\n", path);
    return error == 0 ? CTL_OK : CTL_PASSIVE;
}

/* The registry's path by option, environment or default; NULL: told on stderr. */
static const char *choose_path(const char *option)
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
    const char *path = choose_path(registry);
    if (!path)
        return CTL_PASSIVE;
    return seconds ? watch(path, json, (unsigned)seconds) : show(path, json);
}
