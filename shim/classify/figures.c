/* SPDX-License-Identifier: BSD-2-Clause
 * See figures.h. */
#include "classify/figures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sys/emulator.h"
#include "sys/env.h"
#include "sys/os.h"

#define EMU_PRESET "HYBRID_EMU_PRESET"
#define EMU_SET    "HYBRID_EMU_SET"
#define PRESET     "pram" /* the emulated machine's own default */

struct search {
    const struct figures_query *query;
    struct figures_found *ret;
    hy_diag_fn diag;
    void *ctx;
};

/* --- what machine this is ------------------------------------------------------ */

/* "cpu:type:x86,ven0000fam0006mod008F:feature:..." of x86; elsewhere the number that Arm
 * processors have (midr_el1). Features are left out: they change with microcode. */
static void identify_cpu(const char *sys, char ret[FIGURES_NAME_CAP])
{
    static const char type[] = "cpu:type:", midr[] = "cpu/cpu0/regs/identification/midr_el1";
    char path[256], text[4200];
    size_t len;

    ret[0] = '\0';
    (void)snprintf(path, sizeof(path), "%s/devices/system/%s", sys, midr);
    if (os_read_file(path, text, sizeof(text), &len) == 0) {
        (void)snprintf(ret, FIGURES_NAME_CAP, "arm,%.*s", (int)strcspn(text, " \n"), text);
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/devices/system/cpu/modalias", sys);
    if (os_read_file(path, text, sizeof(text), &len) < 0 ||
        strncmp(text, type, sizeof(type) - 1) != 0)
        return;
    const char *model = text + sizeof(type) - 1;
    (void)snprintf(ret, FIGURES_NAME_CAP, "%.*s", (int)strcspn(model, ":\n"), model);
    if (text_has_control(ret, strlen(ret)))
        ret[0] = '\0';
}

void figures_query(const struct hy_pm_spec *pm, const struct topology *topo,
                   struct figures_query *ret)
{
    enum topo_why why;
    uint64_t mask = pm->kind == HY_PM_NODE   ? pm->nodes
                    : pm->kind == HY_PM_AUTO ? topology_find_pm(topo, &why)
                                             : 0;
    *ret = (struct figures_query){
        .sys = "/sys",
        .etc = "/etc",
        .topo = topo,
        .backend = pm->kind != HY_PM_AUTO ? pm->kind
                   : mask                 ? HY_PM_NODE
                                          : HY_PM_NONE,
        .dram_mask = topology_dram_mask(topo, mask),
        .pm_mask = mask,
    };
}

static const char *emulated_preset(void)
{
    return env_get(EMU_PRESET) ?: PRESET;
}

static void identify_emulated(struct figures_identity *ret)
{
    const char *set = env_get(EMU_SET);

    (void)snprintf(ret->cpu, sizeof(ret->cpu), "emulated");
    (void)snprintf(ret->pm, sizeof(ret->pm), "emulated machine %s%s%s", emulated_preset(),
                   set && *set ? "," : "", set ? set : "");
    if (text_has_control(ret->pm, strlen(ret->pm)))
        ret->pm[0] = '\0';
}

void figures_identify(const struct figures_query *p, struct figures_identity *ret)
{
    static const char *const kinds[] = {
        [HY_PM_NODE] = "node", [HY_PM_FILE] = "file", [HY_PM_EMULATED] = "emulated"};
    const char *kind = (unsigned)p->backend < HY_ARRAY_SIZE(kinds) ? kinds[p->backend] : NULL;

    memset(ret, 0, sizeof(*ret));
    if (emulator_open()) {
        identify_emulated(ret);
        return;
    }
    (void)snprintf(ret->pm, sizeof(ret->pm), "%s", kind ? kind : "");
    identify_cpu(p->sys, ret->cpu);
    uint64_t dram = p->backend == HY_PM_NODE ? p->dram_mask : topology_dram_mask(p->topo, 0);
    ret->dram_mib = (double)(topology_bytes(p->topo, dram, false) / HY_MIB);
    if (p->backend == HY_PM_NODE)
        ret->pm_mib = (double)(topology_bytes(p->topo, p->pm_mask, false) / HY_MIB);
}

/* --- files ----------------------------------------------------------------------- */

int figures_own_path(char *buf, size_t cap)
{
    const char *config = env_get("XDG_CONFIG_HOME"), *home = env_get("HOME");
    bool xdg = config && config[0] == '/';

    if (!xdg && (!home || home[0] != '/'))
        return -ENOENT;
    int n = snprintf(buf, cap, "%s%s/" FIGURES_FILE, xdg ? config : home, xdg ? "" : "/.config");
    return n > 0 && (size_t)n < cap ? 0 : -ENAMETOOLONG;
}

int figures_read(const char *path, bool trusted, struct machine_figures *ret, hy_diag_fn diag,
                 void *ctx)
{
    const void *text;
    size_t len;
    int r = os_map_copy(path, FIGURES_MAX_BYTES, trusted, &text, &len);
    if (r < 0)
        return r;
    r = figures_parse(text, len, path, ret, diag, ctx);
    os_unmap(text, len);
    return r < 0 ? -EBADMSG : 0;
}

static int read_file(const struct search *s, const char *path, bool trusted)
{
    struct machine_figures *f = &s->ret->figures;
    int r = figures_read(path, trusted, f, s->diag, s->ctx);
    if (r == 0)
        (void)snprintf(s->ret->said, sizeof(s->ret->said), "%s%s%s (%s)",
                       figures_source_name(f->source), f->measured[0] ? " " : "", f->measured,
                       path);
    return r;
}

static bool use_named_file(const struct search *s, const char *path)
{
    struct figures_identity here;
    char why[256];
    int r = read_file(s, path, false);

    if (r < 0 && r != -EBADMSG)
        options_tell(s->diag, s->ctx, "HYBRID_MACHINE=%s cannot be read (%s)", path,
                     os_error_name(r));
    if (r < 0)
        return false;
    figures_identify(s->query, &here);
    if (figures_mismatch(&s->ret->figures.of, &here, why, sizeof(why), NULL))
        options_tell(
            s->diag, s->ctx,
            "HYBRID_MACHINE=%s was measured on another machine, and is used all the same: %s", path,
            why);
    return true;
}

static bool use_found_file(const struct search *s, const char *path)
{
    struct figures_identity here;
    bool other_pm, emulated = s->query->backend == HY_PM_EMULATED || emulator_open();
    char why[256];
    int r = read_file(s, path, true);

    if (r == -EPERM)
        options_tell(s->diag, s->ctx,
                     "%s is not used: it belongs to another user, or others may write to it", path);
    else if (r == -EBADMSG)
        options_tell(s->diag, s->ctx, "%s is not used", path);
    /* A daemon that was started by root and has become another user has root's HOME. */
    else if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -EACCES)
        options_tell(s->diag, s->ctx, "%s cannot be read (%s)", path, os_error_name(r));
    if (r < 0)
        return false;
    figures_identify(s->query, &here);
    if (!figures_mismatch(&s->ret->figures.of, &here, why, sizeof(why), &other_pm))
        return true;
    /* Trying something out beside the real PM is no reason to be told. */
    if (!other_pm || !emulated)
        options_tell(
            s->diag, s->ctx,
            "%s is not used, as it was measured on another machine: %s (hybridctl calibrate "
            "measures this one)",
            path, why);
    return false;
}

/* --- without a file ---------------------------------------------------------------- */

/* By what PM is. Nodes with CPUs are other sockets; what the kmem driver serves is an NVDIMM
 * or CXL memory, and so is a node without CPUs; a file system with DAX lies on NVDIMMs. */
static const char *technology(const struct figures_query *p)
{
    const char *found = NULL;

    if (emulator_open())
        return emulated_preset();
    for (unsigned i = 0; p->backend == HY_PM_NODE && i < p->topo->n_nodes; i++) {
        const struct topo_node *n = &p->topo->node[i];
        if (!(p->pm_mask >> n->id & 1))
            continue;
        if (n->is_nvdimm)
            return "optane"; /* the slowest of several */
        if (!n->has_cpus)
            found = "cxl";
        else if (!found)
            found = "remote-numa";
    }
    return found ? found : "optane";
}

/* The best of the nodes' latencies, and their bandwidths together. */
static struct hmat_figures hmat_of(const struct topology *t, uint64_t mask)
{
    struct hmat_figures h = {0};

    for (unsigned i = 0; i < t->n_nodes; i++) {
        const struct topo_node *n = &t->node[i];
        if (!(mask >> n->id & 1))
            continue;
        if (n->read_latency_ns && (!h.read_ns || n->read_latency_ns < h.read_ns)) {
            h.read_ns = n->read_latency_ns;
            h.write_ns = n->write_latency_ns;
        }
        h.read_mbs += n->read_bandwidth_mbs;
        h.write_mbs += n->write_bandwidth_mbs;
    }
    return h;
}

static bool use_hmat(const struct search *s, const char *name)
{
    const struct figures_query *p = s->query;
    struct hmat_figures hmat[HY_TIERS];

    if (p->backend != HY_PM_NODE)
        return false;
    hmat[HY_DRAM] = hmat_of(p->topo, p->dram_mask);
    hmat[HY_PM] = hmat_of(p->topo, p->pm_mask);
    if (figures_hmat(hmat, name, &s->ret->figures) < 0)
        return false;
    (void)snprintf(s->ret->said, sizeof(s->ret->said), "HMAT, what it lacks as %s", name);
    return true;
}

static void use_defaults(const struct search *s, const char *name)
{
    /* A preset of the emulated machine that is no technology (custom). */
    if (figures_default(name, &s->ret->figures) < 0)
        (void)figures_default(name = PRESET, &s->ret->figures);
    (void)snprintf(s->ret->said, sizeof(s->ret->said), "defaults of %s", name);
}

void figures_find(const char *machine, const struct figures_query *p, struct figures_found *ret,
                  hy_diag_fn diag, void *ctx)
{
    const struct search s = {p, ret, diag, ctx};
    const char *name = technology(p);
    char path[HY_PATH_MAX];

    memset(ret, 0, sizeof(*ret));
    if (machine[0] == '/') {
        if (use_named_file(&s, machine))
            return;
    } else if (strcmp(machine, "auto") != 0) {
        use_defaults(&s, machine);
        return;
    } else {
        if (figures_own_path(path, sizeof(path)) == 0 && use_found_file(&s, path))
            return;
        int n = snprintf(path, sizeof(path), "%s/" FIGURES_FILE, p->etc);
        if (n > 0 && (size_t)n < sizeof(path) && use_found_file(&s, path))
            return;
    }
    if (!use_hmat(&s, name))
        use_defaults(&s, name);
}
