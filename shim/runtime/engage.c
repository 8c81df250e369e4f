/* SPDX-License-Identifier: BSD-2-Clause
 * The states of the library, from constructor to destructor, and the step that
 * makes the heaps. Nothing here runs inside malloc. */
#include "runtime/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "runtime/classify.h"
#include "runtime/migrate.h"
#include "runtime/planned.h"
#include "runtime/record.h"
#include "runtime/threadcap.h"
#include "runtime/trace.h"
#include "service/heap/heap.h"
#include "service/maps.h"
#include "service/sites.h"
#include "service/supply.h"
#include "sys/dl.h"
#include "sys/emulator.h"
#include "sys/env.h"
#include "sys/log.h"
#include "sys/os.h"

struct runtime_machine hy_machine;
static uint8_t state = HY_BOOT; /* enum hy_state */

/* --- the table that the hooks call -------------------------------------------- */

static void *boot_malloc(size_t n)
{
    return next_alloc()->malloc(n);
}

static void boot_free(void *p)
{
    next_alloc()->free(p);
}

static void *boot_calloc(size_t count, size_t size)
{
    return next_alloc()->calloc(count, size);
}

static void *boot_realloc(void *p, size_t n)
{
    return next_alloc()->realloc(p, n);
}

static void *boot_memalign(size_t align, size_t n)
{
    return next_alloc()->memalign(align, n);
}

static size_t boot_usable_size(void *p)
{
    return next_alloc()->usable_size(p);
}

static const struct alloc_ops boot_ops = {boot_malloc,  boot_free,     boot_calloc,
                                          boot_realloc, boot_memalign, boot_usable_size};
const struct alloc_ops *hy_ops = &boot_ops;

void runtime_set_ops(const struct alloc_ops *ops)
{
    __atomic_store_n(&hy_ops, ops, __ATOMIC_RELEASE);
}

enum hy_state runtime_state(void)
{
    return (enum hy_state)__atomic_load_n(&state, __ATOMIC_SEQ_CST);
}

bool runtime_change_state(enum hy_state from, enum hy_state to)
{
    uint8_t expected = (uint8_t)from;
    return __atomic_compare_exchange_n(&state, &expected, (uint8_t)to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

const char *runtime_state_name(enum hy_state s)
{
    static const char *const names[] = {"boot",     "passive",  "watching",
                                        "engaging", "steering", "ended"};
    return names[s];
}

void runtime_go_passive(const char *why)
{
    enum hy_state now = runtime_state();
    (void)snprintf(hy_machine.why, sizeof(hy_machine.why), "%s", why);
    while (now < HY_STEERING && !runtime_change_state(now, HY_PASSIVE))
        now = runtime_state();
    if (now >= HY_STEERING)
        return; /* blocks of the heaps may be about, or the program has ended */
    runtime_set_ops(next_alloc());
    threadcap_end();
    log_info("passive: %s", why);
}

void runtime_freeze(void)
{
    heap_abandon();
    maps_abandon();
    supply_abandon();
    runtime_set_ops(&frozen_ops);
    (void)runtime_change_state(HY_STEERING, HY_ENDED);
}

/* --- which memory is PM --------------------------------------------------------- */

static int use_nodes(uint64_t mask, const char *how)
{
    struct runtime_machine *m = &hy_machine;
    int bad;
    if (topology_check_mask(&m->topo, mask, &bad)) {
        settings_error("HYBRID_PM: node %d does not exist or has no memory here; nothing is placed",
                       bad);
        return -ENODEV;
    }
    m->backend = HY_PM_NODE;
    m->pm_mask = mask;
    m->dram_mask = topology_dram_mask(&m->topo, mask);
    if (!m->dram_mask) /* every node was named PM: for tests on one node */
        m->dram_mask = mask;
    m->pm_bytes = topology_bytes(&m->topo, mask, false);
    for (unsigned i = 0; i < m->topo.n_nodes; i++)
        if ((mask >> m->topo.node[i].id & 1) && m->topo.node[i].has_cpus)
            m->pin_dram = m->dram_mask != mask;
    (void)snprintf(m->why, sizeof(m->why), "%s", how);
    return 0;
}

static int use_directory(const char *dir)
{
    int fd, e = os_temp_file(dir, HY_PAGE, &fd);
    if (e) {
        settings_error("HYBRID_PM=file:%s: no file can be made there (%s); nothing is placed", dir,
                       os_error_name(e));
        return e;
    }
    os_close(fd);
    hy_machine.backend = HY_PM_FILE;
    hy_machine.pm_bytes = UINT64_MAX / 4; /* the file system tells when it is full */
    (void)snprintf(hy_machine.why, sizeof(hy_machine.why), "files in %.100s", dir);
    return 0;
}

/* 0: PM was found and hy_machine describes it. */
static int find_pm(void)
{
    struct runtime_machine *m = &hy_machine;
    const struct hy_pm_spec *spec = &hy_config.set.pm;
    enum topo_why why;
    uint64_t mask;

    (void)topology_read("/sys", &m->topo);
    mask = topology_find_pm(&m->topo, &why);
    m->dram_bytes = topology_bytes(&m->topo, topology_dram_mask(&m->topo, mask), false);
    switch (spec->kind) {
    case HY_PM_AUTO:
        return mask ? use_nodes(mask, topo_why_text(why)) : -ENODEV;
    case HY_PM_NODE:
        m->dram_bytes = topology_bytes(&m->topo, topology_dram_mask(&m->topo, spec->nodes), false);
        if (!m->dram_bytes)
            m->dram_bytes = topology_bytes(&m->topo, spec->nodes, false);
        return use_nodes(spec->nodes, "nodes named by HYBRID_PM");
    case HY_PM_FILE:
        return use_directory(spec->dir);
    case HY_PM_EMULATED:
        m->backend = HY_PM_EMULATED;
        if (emulator_bytes(HY_DRAM))
            m->dram_bytes = emulator_bytes(HY_DRAM);
        m->pm_bytes = spec->bytes ? spec->bytes : m->dram_bytes;
        if (emulator_bytes(HY_PM) && !spec->bytes)
            m->pm_bytes = emulator_bytes(HY_PM);
        (void)snprintf(m->why, sizeof(m->why), "emulated: %s",
                       emulator_open() ? "the machine that this program runs on"
                                       : "ordinary memory that is called PM");
        return 0;
    case HY_PM_NONE:
        break;
    }
    return -ENODEV;
}

/* --- the heaps --------------------------------------------------------------------- */

/* Addresses for each tier: several times what it can hold, since runs are never
 * moved. They cost nothing until they are used (sys/range.c). */
static uint64_t range_bytes(uint64_t capacity)
{
    uint64_t want = HY_MIN(HY_MAX(capacity * 4, 64 * HY_GIB), 4096 * HY_GIB);
    if (emulator_open()) /* its capacity is not this computer's, and a guest's kernel walks pages */
        want = 16 * HY_GIB;
    return want & ~(uint64_t)(HEAP_STEP - 1);
}

static int reserve(size_t bytes[HY_TIERS], void **ret_base)
{
    bool dram_heap = hy_config.set.dram_allocator == HY_DRAM_MEMKIND;
    uint64_t pm_cap = HY_MIN(hy_machine.pm_bytes, hy_machine.dram_bytes * 16);
    bytes[HY_DRAM] = dram_heap ? range_bytes(hy_machine.dram_bytes) : 0;
    bytes[HY_PM] = range_bytes(HY_MAX(pm_cap, hy_machine.dram_bytes));
    while (bytes[HY_PM] >= HEAP_STEP && (!dram_heap || bytes[HY_DRAM] >= HEAP_STEP)) {
        if (os_reserve(bytes[HY_DRAM] + bytes[HY_PM], 2 * HY_MIB, ret_base) == 0)
            return 0;
        for (int t = 0; t < HY_TIERS; t++) /* strict overcommit, a small limit: try half */
            bytes[t] = (bytes[t] / 2) & ~(HEAP_STEP - 1);
    }
    return -ENOMEM;
}

static int purge(enum hy_tier t, void *base, size_t bytes)
{
    int r = supply_purge(t, base, bytes);
    if (r == 0)
        migrate_discarded(base, bytes, t);
    return r;
}

static const char *make_heaps(void)
{
    static const struct heap_host host = {supply_take,      purge,       policy_charge,
                                          policy_discharge, policy_room, supply_restore};
    const struct runtime_machine *m = &hy_machine;
    static char err[160];
    size_t bytes[HY_TIERS];
    void *base;

    if (supply_load(err, sizeof(err))) {
        settings_error("libmemkind cannot be used (%s); nothing is placed", err);
        return "libmemkind cannot be used";
    }
    if (reserve(bytes, &base))
        return "no address space for the heaps (RLIMIT_AS?)";
    policy_init(&hy_config.set, m);
    struct supply_backing dram = {.nodes = m->pin_dram ? m->dram_mask : 0};
    struct supply_backing pm = {
        .nodes = m->backend == HY_PM_NODE ? m->pm_mask : 0,
        .dir = m->backend == HY_PM_FILE ? hy_config.set.pm.dir : NULL,
    };
    supply_open(HY_DRAM, base, bytes[HY_DRAM], &dram);
    supply_open(HY_PM, (char *)base + bytes[HY_DRAM], bytes[HY_PM], &pm);
    if (heap_init(base, bytes, &host)) {
        os_unmap(base, bytes[HY_DRAM] + bytes[HY_PM]);
        return "no address space for the tables of the heaps";
    }
    heap_set_favour(hy_config.set.policy == HY_POLICY_PM ? HY_PM : HY_DRAM);
    mmaps_init();
    return NULL;
}

/* Sites cost a little: only when a report or a profile wants them. */
static bool sites_small; /* the profile names sites of small blocks */

static void make_sites(void)
{
    const struct hy_settings *s = &hy_config.set;
    const struct profile *p = &hy_config.profile;
    bool steer = hy_config.have_profile && p->n_sites;
    bool report = strcmp(s->stats, "0") != 0 || record_wants_sites();
    char err[160];

    if (s->sites == HY_OFF || (s->sites == HY_AUTO && !steer && !report))
        return;
    if (sites_init(err, sizeof(err))) {
        log_warn("call sites are not known (%s); placing without them", err);
        return;
    }
    if (steer)
        sites_small = planned_begin();
    steer_enable_sites(s->site_min);
    heap_set_sample_interval((int64_t)s->site_sample);
    record_prepare();
}

/* memkind's destructor runs before ours, and before threads that outlive main
 * have ended: from exit() on nothing more is taken from it. */
static void before_memkind_ends(void)
{
    supply_close();
}

void engage_now(void)
{
    const char *problem = NULL;
    hy_guard_enter();
    unsigned objects = dl_count_objects();
    (void)emulator_open();
    if (find_pm())
        problem = hy_config.set.pm.kind == HY_PM_AUTO ? "this machine has one kind of memory"
                                                      : "the PM that was asked for is not there";
    else if (hy_machine.backend == HY_PM_NODE && os_has_foreign_mempolicy())
        problem = "the program runs under a NUMA policy of its own (numactl?); hands off";
    else
        problem = make_heaps();
    if (problem) {
        hy_machine.backend = HY_PM_NONE;
        runtime_go_passive(problem);
        hy_guard_leave();
        return;
    }
    make_sites();
    dl_drop_clean_pages(objects);
    (void)atexit(before_memkind_ends);
    log_info(
        "placing memory: PM is %s; DRAM for this process %llu MiB", hy_machine.why,
        (unsigned long long)(hy_amount_bytes(hy_config.set.dram, hy_machine.dram_bytes) >> 20));
    if (fork_install_locks()) {
        runtime_go_passive("no memory for the fork handlers");
        hy_guard_leave();
        return;
    }
    control_loaded();
    if (!runtime_change_state(runtime_state() == HY_BOOT ? HY_BOOT : HY_ENGAGING, HY_STEERING)) {
        hy_guard_leave(); /* the program has ended meanwhile */
        return;
    }
    runtime_set_ops(hy_config.set.dram_allocator == HY_DRAM_NEXT ? &steer_next_ops
                    : sites_small                                ? &steer_site_ops
                                                                 : &steer_ops);
    threadcap_engaged();
    hy_guard_leave();
}

/* --- constructor, destructor ------------------------------------------------------ */

#define EXIT_CONFIG 78 /* EX_CONFIG of sysexits.h */

/* With HYBRID_STRICT also what only shows at the machine must be found now. */
static void strict_checks(void)
{
    struct topology t;
    const struct hy_pm_spec *pm = &hy_config.set.pm;
    int bad;
    if (pm->kind == HY_PM_FILE) {
        (void)use_directory(pm->dir);
    } else if (pm->kind == HY_PM_NODE) {
        (void)topology_read("/sys", &t);
        if (topology_check_mask(&t, pm->nodes, &bad))
            settings_error("HYBRID_PM: node %d does not exist or has no memory here", bad);
    }
    if (hy_config.errors)
        _exit(EXIT_CONFIG);
}

void runtime_prepare(void)
{
    static uint8_t begun;
    int saved = errno;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
        return;
    log_init();
    (void)next_alloc();
    if (!env_is_secure()) {
        (void)settings_load();
        settings_echo();
        trace_name();
        if (strcmp(hy_config.set.stats, "1") == 0 || record_wanted())
            log_keep_stderr(); /* programs close it before they end */
        if (hy_config.set.strict)
            strict_checks();
        threadcap_begin();
    }
    errno = saved;
}

__attribute__((constructor)) static void begin(void)
{
    int saved = errno;
    runtime_prepare();
    if (env_is_secure()) {
        runtime_go_passive("set-user-id program");
    } else {
        if (hy_config.set.policy == HY_POLICY_OFF) {
            runtime_go_passive("HYBRID_POLICY=off");
        } else if (hy_config.set.pm.kind == HY_PM_NONE) {
            runtime_go_passive("HYBRID_PM=none");
        } else {
            fork_install();
            if (hy_config.set.start == 0) {
                engage_now();
                control_begin();
            } else {
                (void)runtime_change_state(HY_BOOT, HY_WATCH);
                runtime_set_ops(&watch_ops);
            }
        }
    }
    errno = saved;
}

__attribute__((destructor)) static void end(void)
{
    int saved = errno;
    if (!env_is_secure()) {
        classify_finish();
        trace_finish();
        report_at_exit();
    }
    if (runtime_change_state(HY_STEERING, HY_ENDED))
        policy_leave();
    else if (!runtime_change_state(HY_WATCH, HY_ENDED))
        (void)runtime_change_state(HY_ENGAGING, HY_ENDED);
    errno = saved;
}
