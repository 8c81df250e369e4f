/* SPDX-License-Identifier: BSD-2-Clause
 * The states of the library, from constructor to destructor: our heap serves from the start, and
 * placement begins when the process is worth it. Nothing here runs inside malloc. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "classifier.h"
#include "core/control.h"
#include "core/pause.h"
#include "core/state.h"
#include "heap/heap.h"
#include "heap/supply.h"
#include "place/admission.h"
#include "place/planned.h"
#include "place/floor.h"
#include "place/policy.h"
#include "place/sites.h"
#include "place/steer.h"
#include "process/process.h"
#include "record/record.h"
#include "report/report.h"
#include "report/trace.h"
#include "settings/settings.h"
#include "sys/dl.h"
#include "sys/emulator.h"
#include "sys/env.h"
#include "sys/filter.h"
#include "sys/lock.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/walk/unwind.h"
#include "threadcap.h"

/* From BOOT: the next allocator serves. Later: our heap goes on serving. */
static void go_passive(const char *why)
{
    bool boot = runtime_change_state(HY_BOOT, HY_PASSIVE);
    if (!boot && !runtime_change_state(HY_SERVING, HY_PASSIVE))
        return;
    size_t len = 0; /* at every start: snprintf would have to be looked up, and strlen */
    for (; len < sizeof(hy_machine.why) - 1 && why[len] != '\0'; len++)
        hy_machine.why[len] = why[len];
    hy_machine.why[len] = '\0';
    if (boot)
        runtime_set_ops(next_alloc());
    threadcap_end();
    log_info("passive: %s", why);
}

/* --- which memory is PM --------------------------------------------------------- */

static int use_nodes(uint64_t mask, const char *how)
{
    struct runtime_machine *m = &hy_machine;
    if (!settings_nodes_exist(&m->topo, mask))
        return -ENODEV;
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
        settings_error_once(OPT_PM,
                            "HYBRID_PM=file:%s: no file can be made there (%s); nothing is placed",
                            dir, os_error_name(e));
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

/* --- the heap ---------------------------------------------------------------------- */

/* Addresses for each tier: several times what it can hold, since runs are never
 * moved. They cost nothing until they are used (sys/range.c). */
#define RANGE_BYTES  (4096 * HY_GIB) /* of DRAM; twice of PM */
#define GUEST_RANGE  (16 * HY_GIB)   /* emulated: a guest's kernel walks pages */
#define LITTLE_RANGE (HY_GIB)

static struct {
    char *base;
    size_t bytes[HY_TIERS];
} heap_range;

static int reserve_heap(void)
{
    bool dram_heap = hy_config.set.dram_allocator == HY_DRAM_MEMKIND;
    size_t each = emulator_open() ? GUEST_RANGE : RANGE_BYTES;
    void *base;
    for (; each >= LITTLE_RANGE; each /= 2) { /* where addresses must be held: try half */
        size_t dram = dram_heap ? each : 0;
        if (os_reserve(dram + 2 * each, 2 * HY_MIB, &base))
            continue;
        heap_range.base = base;
        heap_range.bytes[HY_DRAM] = dram;
        heap_range.bytes[HY_PM] = 2 * each;
        return 0;
    }
    return -ENOMEM;
}

/* Nothing but memory is asked for: no file, no library, no thread. */
static const char *make_heap(void)
{
    const struct supply_backing plain = {0};

    if (reserve_heap())
        return "no address space for the heaps (RLIMIT_AS?)";
    policy_alone();
    supply_open(HY_DRAM, heap_range.base, heap_range.bytes[HY_DRAM], &plain);
    if (heap_init(heap_range.base, heap_range.bytes, &heap_host)) {
        os_unmap(heap_range.base, heap_range.bytes[HY_DRAM] + heap_range.bytes[HY_PM]);
        return "no address space for the tables of the heaps";
    }
    mmaps_init();
    return NULL;
}

/* Sites cost a little: only when a report or a profile wants them. */
#define SITES_TRIES 100
static bool sites_small; /* the profile names sites of small blocks */

static void make_sites(void)
{
    const struct hy_settings *s = &hy_config.set;
    const struct profile *p = &hy_config.profile;
    bool steer = hy_config.have_profile && p->n_sites;
    bool report = strcmp(s->stats, "0") != 0 || record_wants_sites();
    char err[160];

    bool automatic = unwind_is_harmless() && (steer || report);
    if (s->sites == HY_OFF || (s->sites == HY_AUTO && !automatic))
        return;
    int e = sites_init(err, sizeof(err));
    for (int i = 0; i < SITES_TRIES && e && control_running();
         i++) { /* a fork under way has locks */
        os_sleep_ns(1000000);
        e = sites_init(err, sizeof(err));
    }
    if (e) {
        log_warn("call sites are not known (%s); placing without them", err);
        return;
    }
    if (steer)
        sites_small = planned_begin();
    steer_enable_sites(s->site_min);
    heap_set_sample_interval((int64_t)s->site_sample);
    record_prepare();
}

/* --- placement ---------------------------------------------------------------------- */

#define LOAD_TRIES 5
#define LOAD_ROOM  (256 * HY_MIB) /* addresses for memkind, its libraries and its records */
#define LOAD_DATA  (128 * HY_MIB) /* of them to be written */

static int load_memkind(void)
{
    static char err[160];
    control_load_begins();
    fork_keep_handlers(true);
    int e = supply_load(err, sizeof(err));
    /* A thread of the program may have closed the loader's descriptor (shells move theirs). */
    for (int i = 1; i < LOAD_TRIES && e == -ENOENT && control_running(); i++) {
        os_sleep_ns(1000000);
        e = supply_load(err, sizeof(err));
    }
    fork_keep_handlers(false);
    if (e == 0)
        e = fork_install_gate();
    control_load_ends();
    if (e && os_is_limited()) /* the program's own affair */
        log_info("libmemkind cannot be used under this limit of memory (%s)", err);
    else if (e)
        settings_error_once(OPT_DRAM_ALLOCATOR,
                            "libmemkind cannot be used (%s); all other memory is DRAM", err);
    return e;
}

int engage_pm(size_t bytes)
{
    static int failed;
    static unsigned first; /* of its libraries */
    hy_guard_enter();
    bool room = supply_loaded() || os_limits_leave(LOAD_ROOM, LOAD_DATA);
    if ((hy_machine.backend == HY_PM_FILE && os_data_limit() != UINT64_MAX) || /* supply.c */
        !malloc_is_one_family()) /* as libnuma's constructor has its lines from getline */
        room = false;
    bool load = !failed && room && !supply_loaded();
    if (load) {
        first = dl_count_objects();
        failed = load_memkind();
    }
    int e = failed ? failed : !room ? -ENOMEM : supply_fill(bytes);
    if ((load || e > 0) && first) /* its code is of no use until it serves again */
        dl_drop_clean_pages(first);
    hy_guard_leave();
    return HY_MIN(e, 0);
}

/* Is there somebody who will not wait until DRAM is full? */
static bool wants_pm_at_once(void)
{
    return hy_config.set.policy == HY_POLICY_PM ||
           (hy_config.have_profile && hy_config.profile.n_sites);
}

static void open_tiers(void)
{
    const struct runtime_machine *m = &hy_machine;
    struct supply_backing pm = {
        .nodes = m->backend == HY_PM_NODE ? m->pm_mask : 0,
        .dir = m->backend == HY_PM_FILE ? hy_config.set.pm.dir : NULL,
        .confined = runtime_is_sandboxed,
    };
    policy_init(&hy_config.set, m);
    supply_open(HY_PM, heap_range.base + heap_range.bytes[HY_DRAM], heap_range.bytes[HY_PM], &pm);
    supply_settle_dram(m->pin_dram ? m->dram_mask : 0);
    floor_tick(); /* the first block may be the largest */
}

static const char *find_problem(void)
{
    if (find_pm())
        return hy_config.set.pm.kind == HY_PM_AUTO ? "this machine has one kind of memory"
                                                   : "the PM that was asked for is not there";
    if (hy_machine.backend == HY_PM_NODE && os_has_foreign_mempolicy())
        return "the program runs under a NUMA policy of its own (numactl?); hands off";
    return NULL;
}

void engage_now(void)
{
    hy_guard_enter();
    (void)emulator_open();
    const char *problem = find_problem();
    if (problem) {
        hy_machine.backend = HY_PM_NONE;
        go_passive(problem);
        hy_guard_leave();
        return;
    }
    open_tiers();
    make_sites();
    if (wants_pm_at_once() && supply_is_short(HY_MIB))
        (void)engage_pm(HY_MIB);
    heap_set_favour(hy_config.set.policy == HY_POLICY_PM ? HY_PM : HY_DRAM);
    log_info(
        "placing memory: PM is %s; DRAM for this process %llu MiB", hy_machine.why,
        (unsigned long long)(hy_amount_bytes(hy_config.set.dram, hy_machine.dram_bytes) >> 20));
    if (runtime_change_state(HY_SERVING, HY_STEERING)) { /* else the program has ended meanwhile */
        if (sites_small && hy_config.set.dram_allocator == HY_DRAM_MEMKIND)
            runtime_set_ops(&steer_site_ops);
        threadcap_engaged();
    }
    hy_guard_leave();
}

/* --- constructor, destructor ------------------------------------------------------ */

#define EXIT_CONFIG 78 /* EX_CONFIG of sysexits.h */

/* With HYBRID_STRICT also what only shows at the machine must be found now. */
static void strict_checks(void)
{
    struct topology t;
    const struct hy_pm_spec *pm = &hy_config.set.pm;
    if (pm->kind == HY_PM_FILE) {
        (void)use_directory(pm->dir);
    } else if (pm->kind == HY_PM_NODE) {
        (void)topology_read("/sys", &t);
        (void)settings_nodes_exist(&t, pm->nodes);
    }
    if (hy_config.errors)
        _exit(EXIT_CONFIG);
}

void runtime_prepare(void)
{
    static uint8_t start_begun;
    int saved = errno;
    if (__atomic_exchange_n(&start_begun, 1, __ATOMIC_ACQ_REL))
        return;
    log_init();
    (void)next_alloc();
    (void)settings_load(); /* the defaults, where the program is secure */
    if (next_is_watched())
        hy_config.set.policy = HY_POLICY_OFF;
    if (!env_is_secure()) {
        settings_echo();
        trace_name();
        if ((strcmp(hy_config.set.stats, "1") == 0 || record_wanted()) && runtime_lets_threads())
            log_keep_stderr(); /* programs close it before they end */
        if (hy_config.set.strict)
            strict_checks();
        threadcap_begin();
    }
    errno = saved;
}

/* Files tell, as who loads a library may open files; a filter may kill for get_mempolicy. */
static bool one_memory(void)
{
    uint64_t nodes;
    if (hy_config.set.pm.kind != HY_PM_AUTO)
        return false;
    if (topology_single_node("/sys"))
        return true;
    return topology_nodes("/sys", &nodes) && os_memory_nodes(&nodes) == 0 &&
           (nodes & (nodes - 1)) == 0;
}

/* Why there is nothing to place, as far as is known at once; NULL: there may be. */
static const char *nothing_to_do(void)
{
    if (env_is_secure())
        return "set-user-id program";
    if (hy_config.set.policy == HY_POLICY_OFF)
        return next_is_watched() ? "a sanitizer watches the program" : "HYBRID_POLICY=off";
    if (hy_config.set.pm.kind == HY_PM_NONE)
        return "HYBRID_PM=none";
    return one_memory() ? "this machine has one kind of memory" : make_heap();
}

static void serve_program(void)
{
    os_note_main(); /* forks and threads of ours ask for it */
    fork_install();
    if (!runtime_change_state(HY_BOOT, HY_SERVING))
        return;
    bool admission = admission_wanted();
    if (admission) /* so that others see it from the start */
        hy_config.set.start = 0;
    if (hy_config.set.start == 0 && runtime_lets_threads() && malloc_is_for_threads()) {
        engage_now();
        if (runtime_state() == HY_PASSIVE) { /* nothing lies in the heap yet */
            runtime_set_ops(next_alloc());
            return;
        }
        if (hy_config.set.policy != HY_POLICY_PM && !control_joins())
            policy_join();
    }
    if (runtime_ops_are_first())
        runtime_set_ops(hy_config.set.dram_allocator == HY_DRAM_NEXT ? &steer_next_ops
                                                                     : &steer_ops);
    if (hy_config.set.start == 0)
        control_begin();
    if (admission && runtime_state() == HY_STEERING)
        admit_wait();
}

__attribute__((constructor)) static void begin(void)
{
    int saved = errno;
    runtime_prepare();
    const char *why = nothing_to_do();
    if (why)
        go_passive(why);
    else
        serve_program();
    dl_main_begins();
    errno = saved;
}

__attribute__((destructor)) static void end(void)
{
    int saved = errno;
    /* exit from a handler of a signal that interrupted code of ours: nothing is waited for. In a
     * sandbox nothing is asked of the kernel. */
    bool calls = !hy_locks_held() && os_calls_begin();
    bool quiet = !calls || (report_wanted() && !runtime_lets_threads());
    if (!env_is_secure() && !quiet) {
        record_finish();
        trace_finish();
        report_at_exit();
    }
    if (runtime_change_state(HY_STEERING, HY_ENDED)) {
        if (!quiet)
            policy_leave();
    } else {
        (void)runtime_change_state(HY_SERVING, HY_ENDED);
    }
    if (calls)
        os_calls_end();
    errno = saved;
}
