/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl record: runs a program so that it leaves a profile (record.py), and, here, makes
 * one profile of several: of runs, of ranks, of recordings of counts. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "classify/figures.h"
#include "classify/rules/recording.h"
#include "classify/rules/run_facts.h"
#include "record/rules/profile_write.h"
#include "sys/os.h"
#include "tools/ctl/rules/profile_merge.h"
#include "tools/ctl/rules/profile_modules.h"

/* Sites of all inputs together, before the less important ones go. */
#define MERGE_SITES (8 * PROFILE_MAX_SITES)

struct merge_request {
    const char *output;
    double keep; /* share of bytes or lines below which a site is left out */
    struct machine_figures figures;
    int n_inputs;
    char **inputs;
};

static void tell(void *ctx, const char *message)
{
    (void)ctx;
    fprintf(stderr, "hybridctl record: %s\n", message);
}

static int read_file(const char *path, const char **ret_text, size_t *ret_len)
{
    const void *text;
    int e = os_map_copy(path, RECORDING_MAX_BYTES, false, &text, ret_len);

    if (e < 0) {
        ctl_error("%s cannot be read: %s", path, strerror(-e));
        return e;
    }
    *ret_text = text;
    return 0;
}

/* Those that --machine names, or that the library would find here. */
static int read_figures(const char *name, struct machine_figures *ret)
{
    static struct figures_found found;
    struct hy_settings s;
    struct topology t;
    struct figures_query place;

    options_defaults(&s);
    if (options_set(&s, OPT_MACHINE, name, HY_FROM_ENV, tell, NULL) < 0)
        return -EINVAL;
    (void)topology_read("/sys", &t);
    figures_query(&s.pm, &t, &place);
    figures_find(s.machine, &place, &found, tell, NULL);
    *ret = found.figures;
    return 0;
}

/* --- inputs ---------------------------------------------------------------------- */

static bool is_recording(const char *text, size_t len)
{
    static const char magic[] = "hybrid-recording ";

    return len >= sizeof(magic) - 1 && memcmp(text, magic, sizeof(magic) - 1) == 0;
}

/* A simulation of caches has no clock: instructions take what the model of the times has for
 * a core that misses nothing, and misses what it assumes of those that overlap. The shares of
 * streams and chains are not known, so the result is a weak one. */
#define SIMULATED_CPI     0.5
#define SIMULATED_EXPOSED 0.25
#define WRITE_EXPOSED     0.05

static void complete_simulated(const struct machine_figures *f, struct window *w)
{
    const struct medium_figures *dram = &f->medium[HY_DRAM];
    double ns;

    if (window_has(w, WINDOW_elapsed_ns) || !window_has(w, WINDOW_instructions))
        return;
    ns = window_get(w, WINDOW_instructions) * SIMULATED_CPI * f->cycle_ns +
         window_get(w, WINDOW_reads) * SIMULATED_EXPOSED * dram->read_ns +
         window_get(w, WINDOW_writes) * WRITE_EXPOSED * dram->write_ns;
    window_set(w, WINDOW_elapsed_ns, (uint64_t)ns);
    window_set(w, WINDOW_busy_ns, (uint64_t)ns);
    /* With them the stall would be taken for measured. */
    w->have &= ~(1u << WINDOW_instructions);
}

/* The facts that the runtime would have found in these windows. */
static int facts_of_recording(const struct merge_request *q, const char *text, size_t len,
                              struct profile *p)
{
    struct class_rules rules = class_rules_default();
    struct classifier c;
    struct run_facts facts;
    struct recording r;
    struct window w;
    int e = recording_open(&r, text, len, tell, NULL);

    if (e < 0)
        return e;
    classifier_init(&c, &rules);
    memset(&facts, 0, sizeof(facts));
    while ((e = recording_next(&r, &w, tell, NULL)) != 0) {
        if (e < 0)
            return e;
        complete_simulated(&q->figures, &w);
        classifier_feed(&c, &q->figures, &w);
        run_facts_add(&facts, &q->figures, &w, &c.now);
    }
    if (facts.run.all.windows == 0) {
        ctl_error("the recording has no window");
        return -ENODATA;
    }
    run_facts_get(&facts, &q->figures, &rules, p);
    p->threads_seen =
        (uint32_t)HY_MIN(window_get(&facts.run.most, WINDOW_threads), (double)HY_CPUS);
    snprintf(p->source.method, sizeof(p->source.method), "%s", r.source);
    snprintf(p->source.figures, sizeof(p->source.figures), "%s", q->figures.name);
    p->source.runs = 1;
    return 0;
}

struct modules {
    struct profile_module list[PROFILE_MAX_MODULES];
    unsigned n;
};

static void add_modules(struct modules *all, const char *text, size_t len)
{
    struct profile_module found[PROFILE_MAX_MODULES];
    unsigned n = profile_modules(text, len, found, PROFILE_MAX_MODULES);

    for (unsigned i = 0; i < n && all->n < PROFILE_MAX_MODULES; i++) {
        unsigned k = 0;

        while (k < all->n && memcmp(all->list[k].id, found[i].id, BUILD_ID_MAX) != 0)
            k++;
        if (k == all->n)
            all->list[all->n++] = found[i];
    }
}

/* 0: taken; > 0: left out, told; < 0: it cannot be read. */
static int add_input(const struct merge_request *q, const char *path, struct profile_merge *m,
                     struct modules *modules)
{
    static struct profile_site sites[PROFILE_MAX_SITES];
    struct profile p = {.sites = sites, .write_intensive = -1, .exposure = -1, .foreseen = -1};
    const char *text;
    size_t len;
    int e = read_file(path, &text, &len);

    if (e < 0)
        return e;
    if (is_recording(text, len)) {
        e = facts_of_recording(q, text, len, &p);
        if (e < 0)
            ctl_error("%s is no recording that can be merged", path);
    } else {
        e = profile_parse(text, len, path, &p, tell, NULL);
        add_modules(modules, text, len);
    }
    if (e == 0)
        e = profile_merge_add(m, &p, path, tell, NULL) < 0;
    os_unmap(text, len);
    return e;
}

/* --- output ---------------------------------------------------------------------- */

static int write_output(const struct merge_request *q, struct profile *p,
                        const struct modules *modules, const char *comment)
{
    size_t cap = PROFILE_WRITE_CAP(p->n_sites);
    char *text = malloc(cap);
    int64_t len;
    int e;

    if (!text)
        return -ENOMEM;
    len = profile_write(p, modules->list, modules->n, comment, text, cap);
    e = len < 0 ? (int)len : os_write_file_atomic(q->output, text, (size_t)len);
    free(text);
    if (e < 0)
        ctl_error("%s cannot be written: %s", q->output, os_output_problem(e));
    return e;
}

/* The comments at a file's top: the command that made it. Of the first input. */
static void top_comment(const char *path, char *buf, size_t cap)
{
    const char *text, *end;
    size_t len, at = 0;

    buf[0] = '\0';
    if (read_file(path, &text, &len) < 0)
        return;
    for (const char *line = text; line < text + len && *line == '#'; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + len - line)) ?: text + len;
        const char *from = line + 1 + (line[1] == ' ');
        size_t n = (size_t)(end - HY_MIN(from, end));

        if (at + n + 2 > cap)
            break;
        memcpy(buf + at, HY_MIN(from, end), n);
        buf[at + n] = '\n';
        at += n + 1;
        buf[at] = '\0';
        if (end == text + len)
            break;
    }
    os_unmap(text, len);
}

static int merge(const struct merge_request *q)
{
    static struct profile into;
    static struct modules modules;
    struct profile_merge m;
    char comment[4096];
    int status = CTL_OK, taken = 0;

    into.sites = calloc(MERGE_SITES, sizeof(*into.sites));
    if (!into.sites) {
        ctl_error("no memory");
        return CTL_FAILED;
    }
    profile_merge_begin(&m, &into, MERGE_SITES);
    for (int i = 0; i < q->n_inputs && status == CTL_OK; i++) {
        int e = add_input(q, q->inputs[i], &m, &modules);

        if (e < 0)
            status = CTL_PASSIVE;
        taken += e == 0;
    }
    profile_merge_end(&m);
    if (status == CTL_OK) {
        top_comment(q->inputs[0], comment, sizeof(comment));
        profile_fold_alike(&into);
        unsigned small = profile_rank_sites(&into, q->keep, PROFILE_MAX_SITES);
        profile_number_sites(&into);
        status = write_output(q, &into, &modules, comment) < 0 ? CTL_PASSIVE : CTL_OK;
        if (status == CTL_OK)
            printf("%s: %d of %d files, %u call sites, %u left out\n", q->output, taken,
                   q->n_inputs, into.n_sites, small + m.lost);
    }
    free(into.sites);
    return status;
}

/* --- the command line --------------------------------------------------------------- */

static int parse_keep(const char *text, double *ret)
{
    char *end;
    double percent = strtod(text, &end);

    if (end == text || (*end != '\0' && strcmp(end, "%") != 0) ||
        !(percent >= 0 && percent <= 100)) {
        ctl_error("--keep=%s: a percentage from 0 to 100 is needed", text);
        return CTL_USAGE;
    }
    *ret = percent / 100;
    return CTL_OK;
}

static int merge_command(int argc, char **argv)
{
    static const struct option longs[] = {{"merge", no_argument, NULL, 'm'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"keep", required_argument, NULL, 'k'},
                                          {"machine", required_argument, NULL, 'M'},
                                          {NULL, 0, NULL, 0}};
    struct merge_request q = {.keep = 0};
    const char *machine = NULL;
    char path[PATH_MAX];
    int c;

    while ((c = getopt_long(argc, argv, "o:", longs, NULL)) != -1) {
        if (c == 'o')
            q.output = optarg;
        else if (c == 'k' && parse_keep(optarg, &q.keep) != CTL_OK)
            return CTL_USAGE;
        else if (c == 'M')
            machine = optarg;
        else if (c == '?')
            return CTL_USAGE; /* getopt has told */
    }
    q.inputs = argv + optind;
    q.n_inputs = argc - optind;
    if (!q.output || q.n_inputs < 1) {
        ctl_error("record --merge needs -o FILE and the files to merge");
        return CTL_USAGE;
    }
    if (machine && ctl_machine_option(machine, path) != CTL_OK)
        return CTL_USAGE;
    if (read_figures(machine ? path : "auto", &q.figures) < 0)
        return CTL_USAGE;
    return merge(&q);
}

/* Among record's own options: behind the program's name --merge is the program's, as sort's. */
static bool wants_merge(int argc, char **argv)
{
    static const char *const with_value[] = {"-o",    "--output", "--keep",   "--machine", "--exe",
                                             "--llc", "--sample", "--period", "--note"};

    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--merge") == 0)
            return true;
        for (size_t k = 0; k < HY_ARRAY_SIZE(with_value); k++)
            if (strcmp(argv[i], with_value[k]) == 0) {
                i++;
                break;
            }
    }
    return false;
}

int ctl_record(int argc, char **argv)
{
    char library[PATH_MAX], self[PATH_MAX];
    char **args;
    int r;

    if (wants_merge(argc, argv))
        return merge_command(argc, argv);
    r = ctl_find_library(NULL, library);
    if (r != CTL_OK)
        return r;
    if (os_exe_path(self, sizeof(self)) < 0 || !(args = calloc((size_t)argc + 3, sizeof(*args)))) {
        ctl_error("record cannot start its script");
        return CTL_FAILED;
    }
    args[0] = argv[0];
    args[1] = "--tool";
    args[2] = self;
    memcpy(args + 3, argv + 1, (size_t)(argc - 1) * sizeof(*args));
    return ctl_run_script("record.py", library, argc + 2, args);
}
