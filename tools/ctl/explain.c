/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl explain: what a profile says, and what would go where, by the decisions of the
 * library itself (place/rules/site_plan.h). */
#include "tools/ctl/explain.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "core/topology.h"
#include "tools/ctl/ctl.h"
#include "settings/profile_file.h"
#include "sys/os.h"
#include "tools/ctl/rules/profile_modules.h"

struct request {
    const char *dram, *machine;
    bool json, all;
};

static void __attribute__((format(printf, 2, 3))) note(struct explained *e, const char *fmt, ...)
{
    va_list ap;
    if (e->n_notes == NOTES_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(e->note[e->n_notes++], NOTE_CAP, fmt, ap);
    va_end(ap);
}

const char *explain_name(const struct explained *e, unsigned site)
{
    return site < e->profile.n_sites ? e->profile.sites[site].name : "(other memory)";
}

const char *explain_why(const struct explained *e, unsigned site)
{
    if (!e->counted && !e->site[site].fixed)
        return "no reads and writes are known: DRAM while there is room";
    switch (e->plan.place[site].why) {
    case PLAN_CHOSEN:
        return "best use of the DRAM";
    case PLAN_PART:
        return "as much of it as fits";
    case PLAN_NAMED:
        return "the profile names its memory";
    case PLAN_IDLE:
        return e->site[site].reads + e->site[site].writes > 0 ? "DRAM would save nothing"
                                                              : "hardly used";
    case PLAN_NO_ROOM:
        return "others save more for the bytes";
    case PLAN_TOO_LARGE:
        return "one block of it is more than the DRAM, and is not split";
    }
    return "";
}

/* --- the file ------------------------------------------------------------------- */

static void tell(void *ctx, const char *message)
{
    (void)ctx;
    ctl_error("%s", message);
}

/* A file of that name, or a profile of that name in the directories of HYBRID_PROFILE_PATH. */
static int find_file(const char *asked, const struct hy_settings *s, char *path, size_t cap)
{
    struct hy_settings named = *s;
    if (strchr(asked, '/') || access(asked, F_OK) == 0) {
        snprintf(path, cap, "%s", asked);
        return strlen(asked) < cap ? 0 : -ENAMETOOLONG;
    }
    if (strlen(asked) >= HY_PATH_MAX)
        return -ENAMETOOLONG;
    named.profile = asked;
    return profile_locate(&named, path, cap);
}

static int read_profile(struct explained *e, const char *path)
{
    const void *text;
    size_t len;
    int r = os_map_copy(path, PROFILE_MAX_BYTES, false, &text, &len);
    if (r < 0) {
        ctl_error("%s cannot be read: %s", path,
                  r == -E2BIG ? "it is larger than a profile may be (8 MiB)" : strerror(-r));
        return CTL_PASSIVE;
    }
    e->profile.sites = e->site_of;
    r = profile_parse(text, len, path, &e->profile, tell, NULL);
    if (r == 0)
        e->n_modules = profile_modules(text, len, e->module, PROFILE_MAX_MODULES);
    (void)os_unmap(text, len);
    if (r < 0)
        ctl_error("%s is no profile (hybrid-profile(5))", path);
    return r < 0 ? CTL_PASSIVE : CTL_OK;
}

/* --- machine and share -------------------------------------------------------------- */

static void look_at_machine(struct explained *e, const struct hy_settings *s, const char *machine)
{
    struct topology t;
    enum topo_why why;
    (void)topology_read("/sys", &t);
    uint64_t pm = s->pm.kind == HY_PM_NODE   ? s->pm.nodes
                  : s->pm.kind == HY_PM_AUTO ? topology_find_pm(&t, &why)
                                             : 0;
    uint64_t dram = topology_dram_mask(&t, pm);
    struct figures_query place = {
        .sys = "/sys",
        .etc = "/etc",
        .topo = &t,
        .backend = s->pm.kind == HY_PM_AUTO ? (pm ? HY_PM_NODE : HY_PM_NONE) : s->pm.kind,
        .dram_mask = dram,
        .pm_mask = pm,
    };
    figures_find(machine ? machine : s->machine, &place, &e->machine, tell, NULL);
    e->dram_here = topology_bytes(&t, dram, false);
}

static void find_share(struct explained *e, const struct hy_settings *s, bool asked)
{
    uint64_t wanted = hy_amount_bytes(s->dram, e->dram_here);
    e->share = HY_MIN(wanted, e->dram_here);
    e->share_from = wanted > e->dram_here                    ? "all of this machine"
                    : asked                                  ? "--dram"
                    : s->source[OPT_DRAM] == HY_FROM_ENV     ? "HYBRID_DRAM"
                    : s->source[OPT_DRAM] == HY_FROM_PROFILE ? "the profile"
                                                             : "all of this machine";
}

/* As the library: the profile's options below the environment's, --dram above both. */
static int take_settings(const struct request *q, const struct profile *p, struct hy_settings *s)
{
    int errors = 0;
    for (unsigned i = 0; i < p->n_options; i++)
        (void)options_set(s, p->option[i].id, p->option[i].value, HY_FROM_PROFILE, tell, NULL);
    if (q->dram) {
        char quoted[TEXT_QUOTE_CAP];
        struct hy_settings scratch;
        options_defaults(&scratch);
        errors = options_set(&scratch, OPT_DRAM, q->dram, HY_FROM_ENV, NULL, NULL) < 0;
        text_quote(q->dram, strlen(q->dram), quoted, sizeof(quoted));
        if (errors)
            ctl_error("--dram: '%s' is no amount; allowed: %s (as 512M, 8G or 25%%)", quoted,
                      options_info(OPT_DRAM)->allowed);
        else
            s->dram = scratch.dram;
    }
    return errors ? CTL_USAGE : CTL_OK;
}

/* --- what does not fit ---------------------------------------------------------------- */

static const struct profile_module *module_of(const struct explained *e, const uint8_t *id)
{
    for (unsigned i = 0; i < e->n_modules; i++)
        if (memcmp(e->module[i].id, id, BUILD_ID_MAX) == 0)
            return &e->module[i];
    return NULL;
}

/* Is the module that a frame lies in here, of the same build? NULL: yes, or not known. */
static const char *module_problem(const struct profile_module *m)
{
    struct ctl_program p;
    uint8_t id[BUILD_ID_MAX] = {0};
    int r = ctl_inspect_program(m->path, &p);
    if (r < 0)
        return r == -ENOENT ? "is not here" : "cannot be read";
    memcpy(id, p.build_id, HY_MIN(p.build_id_len, (unsigned)BUILD_ID_MAX));
    return memcmp(id, m->id, BUILD_ID_MAX) != 0 ? "is of another build" : NULL;
}

static void note_modules(struct explained *e)
{
    for (unsigned m = 0; m < e->n_modules; m++) {
        const char *problem = module_problem(&e->module[m]);
        unsigned sites = 0;
        for (unsigned i = 0; problem && i < e->profile.n_sites; i++) {
            const struct profile_site *s = &e->profile.sites[i];
            bool there = false;
            for (unsigned f = 0; f < s->n_frames; f++)
                there |= module_of(e, s->frames[f].build_id) == &e->module[m];
            sites += there;
        }
        if (sites > 0)
            note(e, "%s %s: its %u site%s will not be found", e->module[m].path, problem, sites,
                 sites > 1 ? "s" : "");
    }
}

static void note_all(struct explained *e, const struct hy_settings *s)
{
    const struct profile *p = &e->profile;
    char a[32], b[32];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const char *measured_on = p->source.figures;

    note_modules(e);
    if (p->n_sites == 0)
        note(e, "it has no call sites: only class, threads and options are used");
    else if (!e->counted)
        note(e, "no site has reads or writes, so there is no ranking: what is not named gets "
                "DRAM in the order in which it is allocated");
    if (measured_on[0] && strcmp(measured_on, e->machine.figures.name) != 0)
        note(e, "it was recorded with the figures of %s, and is explained with those of %s",
             measured_on, e->machine.figures.name);
    if (p->footprint > 0 && e->share >= p->footprint)
        note(e, "all of it (%s) fits the DRAM (%s): nothing is to be chosen",
             ctl_size(p->footprint, a, sizeof(a)), ctl_size(e->share, b, sizeof(b)));
    for (int t = 0; t < HY_TIERS; t++)
        if (cpus > 0 && p->threads[t] > (unsigned long)cpus)
            note(e, "its best number of threads on %s is %u, but this machine has %ld CPUs",
                 t == HY_DRAM ? "DRAM" : "PM", p->threads[t], cpus);
    if (e->counted && p->source.known > 0 && p->source.known < 80)
        note(e, "only %.0f%% of the sampled accesses belong to a known site", p->source.known);
    if (e->counted && strstr(p->source.accesses, "load-samples") &&
        !strstr(p->source.accesses, "store-samples"))
        note(e, "stores were not sampled there: a site that is only written seems not to be used");
    if (e->counted && !e->plan.exact)
        note(e, "so many sites that the choice is good, but not proven to be the best");
    if (s->policy != HY_POLICY_AUTO)
        note(e, "HYBRID_POLICY is not auto: only sites whose memory is named are steered");
}

/* --- the command ------------------------------------------------------------------------ */

/* By rank; where nothing is ranked, what is named and then by size. */
static void order_table(struct explained *e)
{
    for (unsigned k = 0; k < e->n_sites; k++) {
        unsigned i = e->plan.order[k], at = k;
        for (; !e->counted && at > 0; at--) {
            const struct plan_site *before = &e->site[e->shown[at - 1]], *s = &e->site[i];
            if (before->fixed != s->fixed ? before->fixed : before->bytes >= s->bytes)
                break;
            e->shown[at] = e->shown[at - 1];
        }
        e->shown[at] = (uint16_t)i;
    }
}

static void explain(struct explained *e)
{
    e->counted = site_plan_work(&e->profile, &e->machine.figures, &e->work) == 0;
    e->n_sites = site_plan_sites(&e->profile, e->site);
    if (e->share == e->dram_here) /* a limit is kept by whole blocks */
        site_plan_split(&e->profile, e->site);
    struct plan_scratch *scratch = malloc(sizeof(*scratch));
    if (!scratch)
        exit(CTL_FAILED);
    site_plan_make(&e->machine.figures, e->counted ? &e->work : NULL, e->site, e->n_sites, e->share,
                   scratch, &e->plan);
    free(scratch);
    order_table(e);
    if (!e->counted)
        return;
    const struct machine_figures *f = &e->machine.figures;
    double dram = site_plan_time_at(f, &e->work, 0);
    e->slowdown_pm = site_plan_time_at(f, &e->work, 1) / dram;
    e->slowdown_plan = site_plan_time(f, &e->work, e->site, &e->plan) / dram;
}

static int explain_file(const struct request *q, const char *asked)
{
    static struct explained e;
    static char path[2 * HY_PATH_MAX];
    struct hy_settings s;
    int r;

    /* HYBRID_PROFILE is for programs; the file is named here. */
    unsetenv("HYBRID_PROFILE");
    if (ctl_load_settings(&s, NULL, NULL) > 0)
        return CTL_USAGE;
    r = find_file(asked, &s, path, sizeof(path));
    if (r == -ENAMETOOLONG) {
        ctl_error("the name of the profile is too long");
        return CTL_USAGE;
    }
    if (r < 0) {
        ctl_error("%s: there is no such file here, and no %s.ini in %s", asked, asked,
                  s.profile_path);
        return CTL_PASSIVE;
    }
    e.file = path;
    e.all = q->all;
    if ((r = read_profile(&e, path)) != CTL_OK)
        return r;
    if ((r = take_settings(q, &e.profile, &s)) != CTL_OK)
        return r;
    look_at_machine(&e, &s, q->machine);
    find_share(&e, &s, q->dram != NULL);
    explain(&e);
    note_all(&e, &s);
    if (q->json)
        explain_json(&e);
    else
        explain_text(&e);
    return CTL_OK;
}

int ctl_explain(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'},
                                                 {"dram", required_argument, NULL, 'd'},
                                                 {"machine", required_argument, NULL, 'm'},
                                                 {"all", no_argument, NULL, 'a'},
                                                 {0}};
    struct request q = {0};
    char machine[PATH_MAX];
    int c;

    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'j')
            q.json = true;
        else if (c == 'a')
            q.all = true;
        else if (c == 'd')
            q.dram = optarg;
        else if (c == 'm')
            q.machine = optarg;
        else
            return CTL_USAGE;
    }
    if (argc - optind != 1) {
        ctl_error("which profile? Usage: hybridctl explain [OPTION]... FILE");
        return CTL_USAGE;
    }
    if (q.machine && ctl_machine_option(q.machine, machine) != CTL_OK)
        return CTL_USAGE;
    if (q.machine)
        q.machine = machine;
    return explain_file(&q, argv[optind]);
}
