/* SPDX-License-Identifier: BSD-2-Clause
 * Memory nodes from sysfs, and the choice of those that are slow (topology.h). */
#include "core/topology.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sys/os.h"

#define PATH_CAP 256
#define TEXT_CAP 4096 /* one attribute never exceeds a page */

/* Decimal digits at *at, which moves behind them; saturates. */
static uint64_t take_number(const char **at)
{
    uint64_t v = 0;
    for (; text_is_digit(**at); (*at)++)
        v = v > UINT64_MAX / 16 ? v : v * 10 + (uint64_t)(**at - '0');
    return v;
}

/* "0-1,4" as a bit mask; nodes beyond the mask are left out. */
static uint64_t parse_list(const char *text)
{
    uint64_t mask = 0, lo, hi;
    while (text_next_range(&text, &lo, &hi))
        for (uint64_t i = lo; i <= hi && i < TOPO_MAX_NODES; i++)
            mask |= UINT64_C(1) << i;
    return mask;
}

/* root/name. Every start comes here: snprintf would be looked up, and touch pages of the libc. */
static bool join_path(char path[PATH_CAP], const char *root, const char *name)
{
    size_t a = strlen(root), b = strlen(name);
    if (a + 1 + b >= PATH_CAP)
        return false;
    memcpy(path, root, a);
    path[a] = '/';
    memcpy(path + a + 1, name, b + 1);
    return true;
}

static int read_text(const char *root, const char *name, char *text, size_t cap)
{
    char path[PATH_CAP];
    size_t len;
    return join_path(path, root, name) ? os_read_file(path, text, cap, &len) : -ENAMETOOLONG;
}

static int read_mask(const char *root, const char *name, uint64_t *ret)
{
    char text[512];
    int r = read_text(root, name, text, sizeof(text));
    if (r == 0)
        *ret = parse_list(text);
    return r;
}

/* "Label:   123 kB" in a meminfo text; 0 when the label is not there. */
static uint64_t meminfo_bytes(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    if (!at)
        return 0;
    at += strlen(label);
    while (*at == ' ' || *at == '\t')
        at++;
    return take_number(&at) * 1024;
}

static uint32_t read_hmat(const char *root, int id, const char *attribute)
{
    char name[96], text[64];
    snprintf(name, sizeof(name), "devices/system/node/node%d/access0/initiators/%s", id, attribute);
    if (read_text(root, name, text, sizeof(text)) < 0)
        return 0;
    const char *at = text;
    uint64_t v = take_number(&at);
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static void read_node(const char *root, struct topo_node *node)
{
    char name[96], text[TEXT_CAP];

    snprintf(name, sizeof(name), "devices/system/node/node%d/meminfo", node->id);
    if (read_text(root, name, text, sizeof(text)) == 0) {
        node->total_bytes = meminfo_bytes(text, "MemTotal:");
        node->free_bytes = meminfo_bytes(text, "MemFree:");
    }
    snprintf(name, sizeof(name), "devices/system/node/node%d/cpulist", node->id);
    node->has_cpus = read_text(root, name, text, sizeof(text)) == 0 && text_is_digit(text[0]);
    /* A node whose memory is all offline stays online with a size of 0. */
    node->has_memory = node->total_bytes > 0;
    node->memory_tier = -1;
    node->read_latency_ns = read_hmat(root, node->id, "read_latency");
    node->write_latency_ns = read_hmat(root, node->id, "write_latency");
    node->read_bandwidth_mbs = read_hmat(root, node->id, "read_bandwidth");
    node->write_bandwidth_mbs = read_hmat(root, node->id, "write_bandwidth");
}

struct listing {
    const char *root;
    struct topology *topo;
};

static void note_memory_tier(void *ctx, const char *entry)
{
    static const char prefix[] = "memory_tier";
    const struct listing *l = ctx;
    char name[PATH_CAP];
    uint64_t nodes = 0;

    if (strncmp(entry, prefix, sizeof(prefix) - 1) != 0 ||
        !text_is_digit(entry[sizeof(prefix) - 1]))
        return;
    const char *at = entry + sizeof(prefix) - 1;
    int tier = (int)(take_number(&at) & INT32_MAX);
    int n = snprintf(name, sizeof(name), "devices/virtual/memory_tiering/%s/nodelist", entry);
    if (n >= (int)sizeof(name) || read_mask(l->root, name, &nodes) < 0)
        return;
    for (unsigned i = 0; i < l->topo->n_nodes; i++) {
        if (nodes >> l->topo->node[i].id & 1)
            l->topo->node[i].memory_tier = tier;
    }
}

/* NVDIMMs' devices have the same name on the bus of libnvdimm. */
static bool is_nvdimm(const char *root, const char *dax)
{
    char name[PATH_CAP], path[PATH_CAP];

    (void)snprintf(name, sizeof(name), "bus/nd/devices/%.200s", dax);
    return join_path(path, root, name) && os_file_exists(path);
}

/* An entry of the kmem driver's folder: a device whose memory is system RAM. */
static void note_kmem_device(void *ctx, const char *entry)
{
    const struct listing *l = ctx;
    char name[PATH_CAP], text[64];

    if (strncmp(entry, "dax", 3) != 0)
        return;
    int n = snprintf(name, sizeof(name), "bus/dax/devices/%s/target_node", entry);
    if (n >= (int)sizeof(name) || read_text(l->root, name, text, sizeof(text)) < 0)
        return;
    if (!text_is_digit(text[0])) /* -1: the firmware did not say */
        return;
    const char *at = text;
    uint64_t id = take_number(&at);
    for (unsigned i = 0; i < l->topo->n_nodes; i++) {
        if ((uint64_t)l->topo->node[i].id == id) {
            l->topo->node[i].is_kmem_dax = true;
            l->topo->node[i].is_nvdimm = is_nvdimm(l->root, entry);
        }
    }
}

/* The memory of the only node is that of the machine. On virtual machines whose
 * host hands memory out bit by bit the node counts only what it was given so
 * far (seen: 5 of 24 GiB), while /proc/meminfo tells what it may have. */
static void use_machine_memory(const char *root, struct topo_node *node)
{
    char text[TEXT_CAP];
    if (read_text(root, "../proc/meminfo", text, sizeof(text)) < 0)
        return;
    uint64_t total = meminfo_bytes(text, "MemTotal:");
    if (total > node->total_bytes) {
        node->total_bytes = total;
        node->free_bytes = meminfo_bytes(text, "MemFree:");
    }
}

static void assume_one_node(const char *root, struct topology *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->n_nodes = 1;
    ret->node[0].has_cpus = true;
    ret->node[0].has_memory = true;
    ret->node[0].memory_tier = -1;
    use_machine_memory(root, &ret->node[0]);
}

int topology_nodes(const char *root, uint64_t *ret)
{
    return read_mask(root, "devices/system/node/online", ret);
}

/* sysfs counts folders as links: one for each node and one called power, if the kernel has that.
 * To open and read a file of sysfs takes three times as long as these two calls. */
static bool one_folder(const char *root)
{
    char path[PATH_CAP];
    unsigned folders = join_path(path, root, "devices/system/node") ? os_folder_count(path) : 0;
    return folders == 1 || (folders == 2 && join_path(path, root, "devices/system/node/power") &&
                            os_file_exists(path));
}

bool topology_single_node(const char *root)
{
    uint64_t online = 0;
    if (one_folder(root))
        return true;
    return topology_nodes(root, &online) == 0 && online != 0 && (online & (online - 1)) == 0;
}

int topology_read(const char *root, struct topology *ret)
{
    uint64_t online = 0;
    int r = read_mask(root, "devices/system/node/online", &online);
    if (r == 0 && online == 0)
        r = -ENODATA;
    if (r < 0) {
        assume_one_node(root, ret);
        return r;
    }
    memset(ret, 0, sizeof(*ret));
    for (int id = 0; id < TOPO_MAX_NODES; id++) {
        if (!(online >> id & 1))
            continue;
        struct topo_node *node = &ret->node[ret->n_nodes++];
        node->id = id;
        read_node(root, node);
    }
    if (ret->n_nodes == 1 && ret->node[0].has_memory)
        use_machine_memory(root, &ret->node[0]);
    /* Both folders are absent on many kernels: then the fields stay unknown. */
    char path[PATH_CAP];
    struct listing l = {root, ret};
    snprintf(path, sizeof(path), "%s/devices/virtual/memory_tiering", root);
    (void)os_list_dir(path, note_memory_tier, &l);
    snprintf(path, sizeof(path), "%s/bus/dax/drivers/kmem", root);
    (void)os_list_dir(path, note_kmem_device, &l);
    return 0;
}

/* --- the choice ---------------------------------------------------------- */

/* The best that a node with CPUs offers: what DRAM is on this machine. */
struct reference {
    int tier;               /* fastest tier, -1 unknown */
    uint32_t latency_ns;    /* lowest, 0 unknown */
    uint32_t bandwidth_mbs; /* highest, 0 unknown */
};

enum hmat_verdict { HMAT_SILENT, HMAT_SLOWER, HMAT_AS_FAST };

static bool is_dram_like(const struct topo_node *n)
{
    return n->has_memory && n->has_cpus && !n->is_kmem_dax;
}

static struct reference find_reference(const struct topology *t)
{
    struct reference ref = {.tier = -1};
    for (unsigned i = 0; i < t->n_nodes; i++) {
        const struct topo_node *n = &t->node[i];
        if (!is_dram_like(n))
            continue;
        if (n->memory_tier >= 0 && (ref.tier < 0 || n->memory_tier < ref.tier))
            ref.tier = n->memory_tier;
        if (n->read_latency_ns && (!ref.latency_ns || n->read_latency_ns < ref.latency_ns))
            ref.latency_ns = n->read_latency_ns;
        ref.bandwidth_mbs = HY_MAX(ref.bandwidth_mbs, n->read_bandwidth_mbs);
    }
    return ref;
}

/* Slower: latency up by a quarter, or bandwidth down by a third. High-bandwidth
 * memory has a somewhat higher latency than DRAM and is not slower: more
 * bandwidth than DRAM decides alone. */
static enum hmat_verdict judge_hmat(const struct topo_node *n, const struct reference *ref)
{
    bool know_latency = n->read_latency_ns && ref->latency_ns;
    bool know_bandwidth = n->read_bandwidth_mbs && ref->bandwidth_mbs;
    uint64_t bandwidth = n->read_bandwidth_mbs, latency = n->read_latency_ns;

    if (!know_latency && !know_bandwidth)
        return HMAT_SILENT;
    if (know_bandwidth && bandwidth > ref->bandwidth_mbs)
        return HMAT_AS_FAST;
    if (know_latency && latency * 4 >= (uint64_t)ref->latency_ns * 5)
        return HMAT_SLOWER;
    if (know_bandwidth && bandwidth * 3 <= (uint64_t)ref->bandwidth_mbs * 2)
        return HMAT_SLOWER;
    return HMAT_AS_FAST;
}

static enum topo_why judge_node(const struct topo_node *n, const struct reference *ref)
{
    if (!n->has_memory)
        return TOPO_NONE;
    enum hmat_verdict hmat = judge_hmat(n, ref);
    bool know_tier = n->memory_tier >= 0 && ref->tier >= 0;
    /* kmem also serves high-bandwidth memory, which is faster than DRAM. */
    if (hmat == HMAT_AS_FAST || (know_tier && n->memory_tier < ref->tier))
        return TOPO_NONE;
    if (n->is_kmem_dax)
        return TOPO_KMEM;
    if (know_tier && n->memory_tier > ref->tier)
        return TOPO_MEMORY_TIER;
    if (hmat == HMAT_SLOWER)
        return TOPO_HMAT;
    /* Linux before 6.9 puts such a node into DRAM's tier: that proves nothing. */
    return n->has_cpus ? TOPO_NONE : TOPO_NO_CPUS;
}

uint64_t topology_find_pm(const struct topology *t, enum topo_why *ret_why)
{
    struct reference ref = find_reference(t);
    enum topo_why best = TOPO_NONE;
    uint64_t mask = 0;

    for (unsigned i = 0; i < t->n_nodes; i++) {
        enum topo_why why = judge_node(&t->node[i], &ref);
        if (why == TOPO_NONE)
            continue;
        mask |= UINT64_C(1) << t->node[i].id;
        if (best == TOPO_NONE || why < best)
            best = why;
    }
    /* Something must remain to be called DRAM. */
    if (topology_dram_mask(t, mask) == 0) {
        mask = 0;
        best = TOPO_NONE;
    }
    *ret_why = best;
    return mask;
}

uint64_t topology_dram_mask(const struct topology *t, uint64_t pm_mask)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < t->n_nodes; i++) {
        if (t->node[i].has_memory)
            mask |= UINT64_C(1) << t->node[i].id;
    }
    return mask & ~pm_mask;
}

int topology_check_mask(const struct topology *t, uint64_t mask, int *ret_bad)
{
    uint64_t bad = mask & ~topology_dram_mask(t, 0);
    if (bad == 0)
        return 0;
    *ret_bad = __builtin_ctzll(bad);
    return -ENODEV;
}

uint64_t topology_bytes(const struct topology *t, uint64_t mask, bool only_free)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < t->n_nodes; i++) {
        if (mask >> t->node[i].id & 1)
            sum += only_free ? t->node[i].free_bytes : t->node[i].total_bytes;
    }
    return sum;
}

const char *topo_why_text(enum topo_why why)
{
    switch (why) {
    case TOPO_KMEM:
        return "given to the system by the kmem driver (persistent or CXL memory)";
    case TOPO_MEMORY_TIER:
        return "in a slower memory tier of the kernel";
    case TOPO_HMAT:
        return "slower than DRAM by the firmware's table (HMAT)";
    case TOPO_NO_CPUS:
        return "a node without CPUs";
    case TOPO_NONE:
        break;
    }
    return "no slower memory";
}
