/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl doctor: what the machine offers and how to enable what is missing.
 * Findings go into one list; the text and the JSON are printed from it. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "config.h"
#include "tools/ctl/doctor.h"
#include "tools/ctl/probe.h"
#include "sys/os.h"

static struct finding findings[128];
static unsigned n_findings;

struct finding *doctor_add(enum finding_state state, const char *section, const char *name,
                           const char *fmt, ...)
{
    static struct finding overflow; /* never reached by the list of today */
    bool room = n_findings < HY_ARRAY_SIZE(findings);
    struct finding *f = room ? &findings[n_findings++] : &overflow;
    va_list ap;

    f->state = state;
    f->section = section;
    f->fix[0] = '\0';
    snprintf(f->name, sizeof(f->name), "%s", name);
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    return f;
}

void doctor_fix(struct finding *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
    va_end(ap);
}

bool doctor_read(const char *path, char *buf, size_t cap)
{
    size_t len;
    if (os_read_file(path, buf, cap, &len) < 0)
        return false;
    while (len > 0 && (buf[len - 1] == '\n' || buf[len - 1] == ' '))
        buf[--len] = '\0';
    return true;
}

/* --- memories ------------------------------------------------------------ */

static void look_at_node(const struct topo_node *n, uint64_t pm_mask)
{
    char name[16], total[32], rest[32], hmat[128] = "", tier[32] = "";
    snprintf(name, sizeof(name), "node %d", n->id);
    if (!n->has_memory) {
        doctor_add(FOUND_INFO, "memory", name, "%s, no memory online",
                   n->has_cpus ? "CPUs" : "no CPUs");
        return;
    }
    if (n->memory_tier >= 0)
        snprintf(tier, sizeof(tier), ", kernel tier %d", n->memory_tier);
    if (n->read_latency_ns || n->read_bandwidth_mbs)
        snprintf(hmat, sizeof(hmat), ", HMAT: read %u ns %u MB/s, write %u ns %u MB/s",
                 n->read_latency_ns, n->read_bandwidth_mbs, n->write_latency_ns,
                 n->write_bandwidth_mbs);
    doctor_add(FOUND_OK, "memory", name, "%s: %s, %s free, %s%s%s%s",
               pm_mask >> n->id & 1 ? "PM" : "DRAM", ctl_size(n->total_bytes, total, sizeof(total)),
               ctl_size(n->free_bytes, rest, sizeof(rest)), n->has_cpus ? "CPUs" : "no CPUs",
               n->is_kmem_dax ? ", by the kmem driver" : "", tier, hmat);
}

static bool look_at_memory(const struct hy_settings *s)
{
    struct topology t;
    struct ctl_pm automatic, chosen;
    struct hy_pm_spec any = {.kind = HY_PM_AUTO};
    enum topo_why why;

    int r = topology_read("/sys", &t);
    if (r < 0)
        doctor_add(FOUND_MISSING, "memory", "nodes",
                   "the kernel tells of no NUMA nodes (%s); "
                   "one is assumed",
                   strerror(-r));
    uint64_t pm_mask = s->pm.kind == HY_PM_NODE ? s->pm.nodes : topology_find_pm(&t, &why);
    for (unsigned i = 0; i < t.n_nodes; i++)
        look_at_node(&t.node[i], pm_mask);

    ctl_find_pm(&any, &t, &automatic);
    struct finding *f = doctor_add(automatic.usable ? FOUND_OK : FOUND_MISSING, "memory",
                                   "HYBRID_PM=auto", "%s", automatic.what);
    if (!automatic.usable)
        doctor_fix(f, "hybridctl run --pm emulated -- PROGRAM   # to try it without such memory");
    if (s->source[OPT_PM] == HY_FROM_DEFAULT)
        return automatic.usable;
    ctl_find_pm(&s->pm, &t, &chosen);
    doctor_add(chosen.usable ? FOUND_OK : FOUND_MISSING, "memory", "HYBRID_PM as set", "%s",
               chosen.what);
    return chosen.usable;
}

/* --- libraries ----------------------------------------------------------- */

static bool look_at_libraries(void)
{
    static const struct {
        const char *name, *soname[2], *package, *purpose;
    } optional[] = {
        {"PAPI", {"libpapi.so.7.0", "libpapi.so.6.0"}, "libpapi7.0", "counters"},
    };
    struct probe_memkind m;
    struct finding *f;

    probe_memkind(&m);
    if (m.present)
        doctor_add(FOUND_OK, "libraries", "memkind", "%d.%d.%d", m.version / 1000000,
                   m.version / 1000 % 1000, m.version % 1000);
    else {
        f = doctor_add(FOUND_MISSING, "libraries", "memkind",
                       "%s; without it the library is "
                       "passive",
                       m.crashed ? "it does not answer" : m.error);
        doctor_fix(f, "apt-get install libmemkind0");
    }
    if (m.present)
        doctor_add(FOUND_INFO, "libraries", "DAX_KMEM",
                   m.dax_kmem == 0 ? "available by memkind's own detection"
                                   : "not available by memkind's own detection (%d)",
                   m.dax_kmem);
    for (unsigned i = 0; i < HY_ARRAY_SIZE(optional); i++) {
        char err[256] = "", other[256];
        bool there =
            probe_library(optional[i].soname[0], err, sizeof(err)) ||
            (optional[i].soname[1] && probe_library(optional[i].soname[1], other, sizeof(other)));
        if (there) {
            doctor_add(FOUND_OK, "libraries", optional[i].name, "present (%s)",
                       optional[i].purpose);
            continue;
        }
        f = doctor_add(FOUND_MISSING, "libraries", optional[i].name, "%s (%s)", err,
                       optional[i].purpose);
        doctor_fix(f, "apt-get install %s", optional[i].package);
    }
    return m.present;
}

/* --- printing ------------------------------------------------------------ */

#define TEXT_COLUMN 26u

static const char *const state_word[] = {"ok", "missing", "info"};

static void print_json(bool can_steer)
{
    struct ctl_json j = {.to = stdout};
    ctl_json_open(&j, NULL, '{');
    ctl_json_text(&j, "version", HY_VERSION);
    ctl_json_bool(&j, "can_steer", can_steer);
    ctl_json_open(&j, "findings", '[');
    for (unsigned i = 0; i < n_findings; i++) {
        const struct finding *f = &findings[i];
        ctl_json_open(&j, NULL, '{');
        ctl_json_text(&j, "section", f->section);
        ctl_json_text(&j, "name", f->name);
        ctl_json_text(&j, "state", state_word[f->state]);
        ctl_json_text(&j, "text", f->text);
        ctl_json_text(&j, "fix", f->fix[0] ? f->fix : NULL);
        ctl_json_close(&j, '}');
    }
    ctl_json_close(&j, ']');
    ctl_json_close(&j, '}');
}

static void print_text(bool can_steer)
{
    static const char *const mark[] = {"ok", "--", "  "};
    static const char *const colour[] = {"\033[32m", "\033[33m", ""};
    bool use_colour = ctl_use_colour();
    const char *section = "";
    /* Who searches the output wants whole lines; a command stays whole, as it is to be copied. */
    unsigned width = UINT_MAX, height = 0;

    ctl_screen_size(&width, &height);

    for (unsigned i = 0; i < n_findings; i++) {
        const struct finding *f = &findings[i];
        if (strcmp(section, f->section) != 0)
            printf("%s%s\n", i ? "\n" : "", f->section);
        section = f->section;
        printf("  %s%s%s %-20s ", use_colour ? colour[f->state] : "", mark[f->state],
               use_colour && *colour[f->state] ? "\033[0m" : "", f->name);
        ctl_print_wrapped_from(f->text, TEXT_COLUMN, width);
        if (f->fix[0])
            printf("     %-20s > %s\n", "", f->fix);
    }
    printf("\n%s\n", can_steer ? "libhybrid can place memory on this machine."
                               : "libhybrid would be passive here: calls are only passed through.");
}

int ctl_doctor(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'}, {0}};
    struct hy_settings s;
    bool json = false;
    int c;

    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c != 'j')
            return CTL_USAGE;
        json = true;
    }
    if (optind < argc) {
        ctl_error("doctor takes no argument '%s'", argv[optind]);
        return CTL_USAGE;
    }
    (void)ctl_load_settings(&s, NULL, NULL); /* told on stderr; the rest is looked at */
    bool has_pm = look_at_memory(&s);
    doctor_dax();
    doctor_figures(&s);
    bool has_memkind = look_at_libraries();
    doctor_placement();
    doctor_counters();
    doctor_tracking();
    doctor_limits();
    doctor_registry(&s);
    doctor_cache(&s);
    bool can_steer = has_pm && has_memkind && s.policy != HY_POLICY_OFF;
    if (json)
        print_json(can_steer);
    else
        print_text(can_steer);
    return can_steer ? CTL_OK : CTL_PASSIVE;
}
