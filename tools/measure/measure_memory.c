/* SPDX-License-Identifier: BSD-2-Clause
 * Memory of both kinds, of which it is certain that it is what it is said to be, and the
 * CPUs near it; see measure.h. */
#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/topology.h"
#include "tools/measure/measure.h"
#include "settings/rules/options.h"
#include "sys/cpu.h"
#include "sys/os.h"
#include "threads/cpu_facts.h"

/* So much more than the largest cache that what it keeps does not matter. */
#define CACHES         16
#define LEAST_BYTES    ((uint64_t)64 << 20)
#define MOST_BYTES     ((uint64_t)2 << 30)
#define HUGE_PAGE      ((uint64_t)2 << 20)
#define EMULATED_CACHE ((uint64_t)2 << 20) /* of all its presets */
#define SAMPLES        64                  /* pages whose node is looked at */

struct getting {
    struct memories *m;
    struct topology topo;
    struct hy_pm_spec pm;
    uint64_t dram_nodes, pm_nodes;
    char *why;
    size_t cap;
};

static int __attribute__((format(printf, 3, 4)))
fail(struct getting *g, int error, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(g->why, g->cap, fmt, ap);
    va_end(ap);
    return error;
}

/* --- which ------------------------------------------------------------------------ */

static void hear(void *ctx, const char *message)
{
    struct getting *g = ctx;
    const char *tail = strrchr(message, ';'); /* what the library would use instead */
    fail(g, 0, "%.*s", tail ? (int)(tail - message) : (int)strlen(message), message);
}

static int choose_nodes(struct getting *g, uint64_t mask, const char *how)
{
    int bad;

    if (topology_check_mask(&g->topo, mask, &bad) < 0)
        return fail(g, -EINVAL, "PM: there is no node %d with memory", bad);
    g->pm_nodes = mask;
    g->dram_nodes = topology_dram_mask(&g->topo, mask);
    if (!g->dram_nodes)
        return fail(g, -EINVAL, "PM: no node would be left to be DRAM");
    snprintf(g->m->pm, sizeof(g->m->pm), "NUMA node %d%s: %s", __builtin_ctzll(mask),
             mask & (mask - 1) ? " and others" : "", how);
    return 0;
}

static int choose(struct getting *g, const char *spec)
{
    struct hy_settings s;
    enum topo_why why;

    options_defaults(&s);
    if (options_set(&s, OPT_PM, spec, HY_FROM_ENV, hear, g) < 0)
        return -EINVAL;
    g->pm = s.pm;
    (void)topology_read("/sys", &g->topo);
    if (clock_is_virtual()) {
        g->m->emulated = true;
        snprintf(g->m->pm, sizeof(g->m->pm), "the emulated machine's");
        return 0;
    }
    switch (s.pm.kind) {
    case HY_PM_AUTO: {
        uint64_t mask = topology_find_pm(&g->topo, &why);
        if (!mask)
            return fail(g, -ENODEV,
                        "no second memory was found on this machine, and one alone has nothing to "
                        "be compared with; name it (--pm node:N or --pm file:DIR) if there is one");
        return choose_nodes(g, mask, topo_why_text(why));
    }
    case HY_PM_NODE:
        return choose_nodes(g, s.pm.nodes, "as named");
    case HY_PM_FILE:
        snprintf(g->m->pm, sizeof(g->m->pm), "files in %.400s", s.pm.dir);
        return 0;
    case HY_PM_EMULATED:
        g->m->ordinary = true;
        snprintf(g->m->pm, sizeof(g->m->pm), "ordinary memory that is called PM");
        return 0;
    case HY_PM_NONE:
        break;
    }
    return fail(g, -EINVAL, "PM is none: there is nothing to measure");
}

/* --- CPUs ---------------------------------------------------------------------------- */

/* Of the DRAM nodes those that the CPUs belong to. */
static void choose_near_dram(struct getting *g)
{
    uint64_t near = 0;

    for (unsigned i = 0; g->pm_nodes && numa_available() >= 0 && i < g->m->n_cpus; i++) {
        int node = numa_node_of_cpu((int)g->m->cpu[i]);
        near |= node >= 0 && node < TOPO_MAX_NODES ? (uint64_t)1 << node : 0;
    }
    if (g->dram_nodes & near)
        g->dram_nodes &= near;
}

/* Those of the DRAM nodes that are nearest to the PM, as only there the two have the same
 * way; all where no distance is told. First one hyperthread of each core. */
static int choose_cpus(struct getting *g)
{
    static struct cpu_facts facts[HY_CPUS];
    struct hy_cpus allowed, none = {{0}}, before = {{0}};
    unsigned n, nearest = UINT32_MAX;
    int r = cpu_get(0, &allowed);

    if (r < 0)
        return fail(g, r, "the CPUs of this process are not told (%s)", strerror(-r));
    n = g->m->emulated ? 0 : cpu_facts_read("/sys", g->pm_nodes, facts);
    for (unsigned c = 0; c < n; c++)
        if (cpus_has(&allowed, c) && facts[c].distance > 0)
            nearest = HY_MIN(nearest, facts[c].distance);
    for (unsigned c = 0; c < HY_CPUS; c++)
        if (cpus_has(&allowed, c) &&
            (c >= n || nearest == UINT32_MAX || facts[c].distance <= nearest))
            cpus_add(&g->m->cpus, c);
    for (unsigned c = 0; c < HY_CPUS; c++)
        g->m->n_cores += cpus_has(&g->m->cpus, c) && (c >= n || facts[c].sibling == 0);
    g->m->n_cpus = HY_MIN(cpus_count(&g->m->cpus), (unsigned)MAX_THREADS);
    /* Each choice is a part of the next one: so the one more is the next CPU. */
    for (unsigned i = 0; i < g->m->n_cpus; i++) {
        struct hy_cpus now = cpus_choose(&g->m->cpus, &none, facts, n, 0, i + 1);
        for (unsigned c = 0; c < HY_CPUS; c++)
            if (cpus_has(&now, c) && !cpus_has(&before, c))
                g->m->cpu[i] = c;
        before = now;
    }
    choose_near_dram(g);
    return 0;
}

static uint64_t largest_cache(void)
{
    uint64_t most = 0;
    static const int names[] = {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                                _SC_LEVEL4_CACHE_SIZE};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(names); i++) {
        long v = sysconf(names[i]);
        most = v > 0 ? HY_MAX(most, (uint64_t)v) : most;
    }
    return most;
}

static int choose_bytes(struct getting *g, uint64_t bytes)
{
    uint64_t pages = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t room = pages / 8;

    if (g->pm_nodes) {
        room = HY_MIN(topology_bytes(&g->topo, g->dram_nodes, true),
                      topology_bytes(&g->topo, g->pm_nodes, true)) /
               4;
    }
    g->m->llc_bytes = g->m->emulated ? EMULATED_CACHE : largest_cache();
    if (bytes == 0 && g->m->emulated)
        bytes = LEAST_BYTES;
    else if (bytes == 0)
        bytes = HY_MIN(HY_MAX(CACHES * g->m->llc_bytes, LEAST_BYTES), HY_MIN(MOST_BYTES, room));
    g->m->bytes = bytes / HY_MIB * HY_MIB;
    if (g->m->bytes < HY_MIB)
        return fail(g, -ENOMEM, "too little memory is free");
    return 0;
}

/* --- memory ----------------------------------------------------------------------------- */

/* Huge pages, where there are any: else a random access would be two, one to the page table. */
static int map_anonymous(struct getting *g, uint64_t nodes, void **ret)
{
    struct bitmask *mask;
    uint64_t bytes = g->m->bytes;
    void *p =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return fail(g, -ENOMEM, "%llu MiB of memory are not to be had",
                    (unsigned long long)(bytes / HY_MIB));
    p = (void *)hy_align_up((uintptr_t)p, HUGE_PAGE);
    (void)madvise(p, bytes, MADV_HUGEPAGE);
    *ret = p;
    if (!nodes)
        return 0;
    if (numa_available() < 0)
        return fail(g, -ENOSYS, "this kernel lets no process choose a NUMA node");
    mask = numa_allocate_nodemask();
    for (unsigned i = 0; i < TOPO_MAX_NODES && mask; i++)
        if (nodes >> i & 1)
            numa_bitmask_setbit(mask, i);
    /* Not preferred: a node that is full must be noticed (check_nodes). */
    int policy = nodes & (nodes - 1) ? MPOL_INTERLEAVE : MPOL_BIND;
    long r = mask ? mbind(p, bytes, policy, mask->maskp, mask->size + 1, 0) : -1;
    int error = errno;
    if (mask)
        numa_free_nodemask(mask);
    return r == 0 ? 0 : fail(g, -error, "memory cannot be bound to its node (%s)", strerror(error));
}

static int check_nodes(struct getting *g, const void *base, uint64_t nodes, const char *what)
{
    void *page[SAMPLES];
    int status[SAMPLES];
    long n = sysconf(_SC_PAGESIZE);

    for (uint64_t i = 0; i < SAMPLES; i++)
        page[i] = (char *)(uintptr_t)base + g->m->bytes / SAMPLES * i / (uint64_t)n * (uint64_t)n;
    if (move_pages(0, SAMPLES, page, NULL, status, 0) != 0)
        return fail(g, -errno, "the kernel does not tell where pages are (%s)", strerror(errno));
    for (unsigned i = 0; i < SAMPLES; i++)
        if (status[i] < 0 || !(nodes >> status[i] & 1))
            return fail(g, -EIO, "%s: a page is on node %d, not where it was asked for", what,
                        status[i]);
    return 0;
}

static int map_pm_file(struct getting *g, void **ret)
{
    struct statx x;
    int fd, r = os_temp_file(g->pm.dir, g->m->bytes, &fd);

    if (r == 0 && (r = os_file_allocate(fd, 0, g->m->bytes)) < 0)
        os_close(fd);
    if (r < 0)
        return fail(g, -EINVAL, "HYBRID_PM=file:%s: no file of %llu MiB can be made there (%s)",
                    g->pm.dir, (unsigned long long)(g->m->bytes / HY_MIB), strerror(-r));
    /* Without DAX the pages are the kernel's cache of the file, that is DRAM. */
    g->m->ordinary = statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) != 0 ||
                     !(x.stx_attributes & STATX_ATTR_DAX);
    void *p = mmap(NULL, g->m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    os_close(fd);
    if (p == MAP_FAILED)
        return fail(g, -ENOMEM, "a file in %s cannot be mapped", g->pm.dir);
    *ret = p;
    return 0;
}

int memories_get(const char *spec, uint64_t bytes, struct memories *ret, char *why, size_t cap)
{
    struct getting g = {.m = ret, .why = why, .cap = cap};
    int r;

    memset(ret, 0, sizeof(*ret));
    if ((r = choose(&g, spec)) < 0 || (r = choose_cpus(&g)) < 0 ||
        (r = choose_bytes(&g, bytes)) < 0)
        return r;
    for (int t = 0; t < HY_TIERS; t++) {
        bool file = t == HY_PM && g.pm.kind == HY_PM_FILE && !ret->emulated;
        uint64_t nodes = t == HY_PM ? g.pm_nodes : g.dram_nodes;
        void *p = NULL;
        r = file ? map_pm_file(&g, &p) : map_anonymous(&g, nodes, &p);
        if (r < 0)
            return r;
        emulated_tier(p, ret->bytes, t == HY_PM);
        ret->lines[t] = p;
        if (lines_link(p, ret->bytes / LINE_BYTES, (uint64_t)t) < 0)
            return fail(&g, -ENOMEM, "too little memory is free");
        if (nodes && (r = check_nodes(&g, p, nodes, t == HY_PM ? "PM" : "DRAM")) < 0)
            return r;
    }
    return 0;
}
