/* SPDX-License-Identifier: BSD-2-Clause
 * PAPI's functions are found at run time; the few types and numbers of its interface that
 * are needed are declared here (papi.h of 5.x to 7.x has them the same). */
#include "classify/counters_papi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "sys/dl.h"
#include "sys/emulator.h"
#include "sys/os.h"
#include "sys/usage.h"

#define PAPI_NONE     (-1) /* PAPI_NULL */
#define PAPI_CONFLICT (-8) /* PAPI_ECNFLCT */
#define PAPI_INHERIT  28   /* an option, and its value for all children */
#define PAPI_TO_ALL   1
#define CPU_COMPONENT 0
#define MAX_THREADS   256u
#define FEW_COUNTERS  4u /* of a thread: Intel with hyperthreads before Ice Lake */

struct papi_inherit {
    int set, inherit;
};
/* Larger than any member of PAPI's union. */
union papi_option {
    struct papi_inherit inherit;
    char room[512];
};

#define FUNCTIONS(X)                                                                               \
    X(library_init, int, (int))                                                                    \
    X(thread_init, int, (unsigned long (*)(void)))                                                 \
    X(multiplex_init, int, (void))                                                                 \
    X(query_named_event, int, (const char *))                                                      \
    X(create_eventset, int, (int *))                                                               \
    X(assign_eventset_component, int, (int, int))                                                  \
    X(set_opt, int, (int, union papi_option *))                                                    \
    X(attach, int, (int, unsigned long))                                                           \
    X(set_multiplex, int, (int))                                                                   \
    X(add_named_event, int, (int, const char *))                                                   \
    X(start, int, (int))                                                                           \
    X(stop, int, (int, long long *))                                                               \
    X(read, int, (int, long long *))                                                               \
    X(cleanup_eventset, int, (int))                                                                \
    X(destroy_eventset, int, (int *))                                                              \
    X(num_cmp_hwctrs, int, (int))

static struct {
#define X(name, type, arguments) type(*name) arguments;
    FUNCTIONS(X)
#undef X
} papi;

static const struct {
    enum papi_set set;
    enum papi_count count;
    const char *name;
} table[] = {
#define HY_EVENT(set, count, name, meaning) {PAPI_SET_##set, PAPI_COUNT_##count, name},
#include "classify/counters.def"
#undef HY_EVENT
};

static struct {
    unsigned n_events, n_threads, room; /* counters that the processor has */
    enum papi_count count[PAPI_COUNT_COUNT];
    const char *name[PAPI_COUNT_COUNT];
    int set[MAX_THREADS];
    bool multiplex, spares;
} open_now;

/* --- loading ------------------------------------------------------------------- */

static void look_for_papi(const struct dl_object *o, void *ctx)
{
    const char *slash = strrchr(o->name, '/');
    if (strncmp(slash ? slash + 1 : o->name, "libpapi.so", 10) == 0)
        *(bool *)ctx = true;
}

static int resolve(void *handle)
{
    char name[64];
    bool all = true;
#define X(field, type, arguments)                                                                  \
    (void)snprintf(name, sizeof(name), "PAPI_%s", #field);                                         \
    papi.field = (type(*) arguments)dl_symbol(handle, name);                                       \
    all = all && papi.field != NULL;
    FUNCTIONS(X)
#undef X
    return all ? 0 : -ELIBBAD;
}

/* PAPI takes the version that it was compiled as and no other; which that is, its answer
 * to a wrong one does not tell, so those of the releases in use are offered. */
static int init_library(void)
{
    static const int versions[] = {7 << 24 | 2 << 16, 7 << 24 | 1 << 16, 7 << 24, 6 << 24,
                                   5 << 24 | 7 << 16};
    for (size_t i = 0; i < HY_ARRAY_SIZE(versions); i++)
        if (papi.library_init(versions[i]) == versions[i])
            return 0;
    return -ELIBBAD;
}

static void *open_system_papi(void)
{
    static const char *const names[] = {"libpapi.so.7.2", "libpapi.so.7.1", "libpapi.so.7.0",
                                        "libpapi.so.6.0", "libpapi.so.5.7", "libpapi.so"};
    void *handle = NULL;
    for (size_t i = 0; i < HY_ARRAY_SIZE(names) && !handle; i++)
        handle = dl_open_private(names[i], NULL, 0);
    return handle;
}

static unsigned long thread_id(void)
{
    return (unsigned long)os_gettid();
}

static int fail(int e, const char *text, char *why, size_t cap)
{
    (void)snprintf(why, cap, "%s", text);
    return e;
}

static int load(const char *soname, char *why, size_t cap)
{
    static bool ours;
    bool theirs = false;
    void *handle;

    dl_each_object(look_for_papi, &theirs);
    if (theirs && !ours)
        return fail(-EBUSY, "the program uses PAPI itself", why, cap);
    emulator_offer_events();
    handle = soname ? dl_open_private(soname, NULL, 0) : open_system_papi();
    if (!handle || resolve(handle) < 0)
        return fail(-ELIBBAD, "libpapi is not installed", why, cap);
    ours = true;
    if (init_library() < 0 || papi.thread_init(thread_id) != 0)
        return fail(-ELIBBAD, "PAPI does not start, or is of an unknown version", why, cap);
    return 0;
}

/* --- events ---------------------------------------------------------------------- */

static void choose_events(enum papi_set set)
{
    uint32_t have = 0;
    open_now.n_events = 0;
    for (size_t i = 0; i < HY_ARRAY_SIZE(table); i++) {
        unsigned n = open_now.n_events;
        if (table[i].set != set || (have >> table[i].count & 1) ||
            papi.query_named_event(table[i].name) != 0)
            continue;
        have |= 1u << table[i].count;
        open_now.count[n] = table[i].count;
        open_now.name[n] = table[i].name;
        open_now.n_events++;
    }
}

/* Counters that the events need. Instructions and cycles have some of their own, but the kernel's
 * watchdog takes that of cycles. */
static unsigned counters_needed(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < open_now.n_events; i++)
        n += open_now.count[i] == PAPI_COUNT_CYCLES ? os_nmi_watchdog()
                                                    : open_now.count[i] != PAPI_COUNT_INSTRUCTIONS;
    return n;
}

/* What is foreseen is told by how little a miss is waited for, too, though not as well. It is left
 * out where that is enough, and only then. PAPI's number of counters knows nothing of hyperthreads.
 */
static void spare_counters(unsigned others)
{
    unsigned need = counters_needed() + others, there = os_pmu_counters(), kept = 0;
    open_now.spares = false;
    if (others == 0 || need != (there ? there : FEW_COUNTERS) + 1)
        return;
    for (unsigned i = 0; i < open_now.n_events; i++)
        if (open_now.count[i] != PAPI_COUNT_FORESEEN) {
            open_now.count[kept] = open_now.count[i];
            open_now.name[kept++] = open_now.name[i];
        }
    open_now.spares = kept < open_now.n_events;
    open_now.n_events = kept;
}

static void drop(int *set)
{
    (void)papi.cleanup_eventset(*set);
    (void)papi.destroy_eventset(set);
}

/* Options and the thread come before the events: some components take none later. */
static int prepare(int set, int32_t tid)
{
    union papi_option option = {.inherit = {set, PAPI_TO_ALL}};
    int r = papi.assign_eventset_component(set, CPU_COMPONENT);
    if (r == 0)
        r = papi.set_opt(PAPI_INHERIT, &option);
    if (r == 0)
        r = papi.attach(set, (unsigned long)tid);
    if (r == 0 && open_now.multiplex)
        r = papi.set_multiplex(set);
    return r;
}

/* One running set of events; tid 0: of the whole process. PAPI's error. */
static int begin_set(int32_t tid, int *ret)
{
    int set = PAPI_NONE, r = papi.create_eventset(&set);
    if (r != 0)
        return r;
    if (tid != 0)
        r = prepare(set, tid);
    for (unsigned i = 0; r == 0 && i < open_now.n_events; i++)
        r = papi.add_named_event(set, open_now.name[i]);
    if (r == 0)
        r = papi.start(set);
    if (r != 0)
        drop(&set);
    else
        *ret = set;
    return r;
}

/* Threads that end before they can be attached are none of ours any more. */
static int begin_threads(void)
{
    int32_t ids[MAX_THREADS], self = os_gettid();
    int n = os_thread_ids(ids, MAX_THREADS), last = 0;
    if (n < 0)
        return n;
    for (int i = 0; i < HY_MIN(n, (int)MAX_THREADS); i++) {
        int r = ids[i] == self ? 0 : begin_set(ids[i], &open_now.set[open_now.n_threads]);
        if (r == PAPI_CONFLICT && !open_now.multiplex)
            return -EAGAIN;
        if (ids[i] != self && r == 0)
            open_now.n_threads++;
        else if (r != 0)
            last = r;
    }
    return open_now.n_threads > 0 ? 0 : last == 0 ? -ESRCH : -EACCES;
}

static int begin_hardware(char *why, size_t cap)
{
    int r;
    open_now.room = (unsigned)HY_MAX(papi.num_cmp_hwctrs(CPU_COMPONENT), 0);
    open_now.multiplex = false;
    r = begin_threads();
    if (r == -EAGAIN && papi.multiplex_init() == 0) {
        papi_end();
        open_now.multiplex = true;
        r = begin_threads();
    }
    return r == 0 ? 0 : fail(r, "the kernel does not let this process count", why, cap);
}

int papi_begin(const char *soname, enum papi_set set, unsigned spare, char *why, size_t cap)
{
    int r, saved = errno;
    hy_guard_enter(); /* PAPI allocates */
    r = load(soname, why, cap);
    if (r == 0) {
        choose_events(set);
        spare_counters(set == PAPI_SET_HARDWARE ? spare : 0);
        if (open_now.n_events == 0) {
            r = fail(-ENODEV,
                     set == PAPI_SET_HARDWARE
                         ? "PAPI knows no event of this processor (a virtual machine?)"
                         : "PAPI knows no event of this machine",
                     why, cap);
        } else if (set == PAPI_SET_SOFTWARE) {
            if (begin_set(0, &open_now.set[0]) != 0)
                r = fail(-EIO, "PAPI's software events cannot be read", why, cap);
            open_now.n_threads = r == 0;
        } else {
            r = begin_hardware(why, cap);
        }
    }
    if (r != 0)
        papi_end();
    hy_guard_leave();
    errno = saved;
    return r;
}

int papi_values(struct papi_values *ret)
{
    long long v[PAPI_COUNT_COUNT];
    struct papi_values sum = {0};
    int saved = errno, r = 0;
    hy_guard_enter();
    for (unsigned t = 0; t < open_now.n_threads && r == 0; t++) {
        r = papi.read(open_now.set[t], v) == 0 ? 0 : -EIO;
        for (unsigned i = 0; i < open_now.n_events && r == 0; i++) {
            sum.have |= 1u << open_now.count[i];
            sum.value[open_now.count[i]] += (uint64_t)HY_MAX(v[i], 0);
        }
    }
    hy_guard_leave();
    errno = saved;
    if (r == 0 && open_now.n_threads > 0)
        *ret = sum;
    return open_now.n_threads > 0 ? r : -EIO;
}

void papi_end(void)
{
    long long v[PAPI_COUNT_COUNT];
    int saved = errno;
    hy_guard_enter();
    for (unsigned t = 0; t < open_now.n_threads; t++) {
        (void)papi.stop(open_now.set[t], v);
        drop(&open_now.set[t]);
    }
    open_now.n_threads = 0;
    hy_guard_leave();
    errno = saved;
}

void papi_child(void)
{
    open_now.n_threads = 0;
}

struct papi_open papi_get(void)
{
    struct papi_open o = {open_now.n_events, open_now.n_threads, 100, open_now.spares};

    if (open_now.multiplex && o.events > 0)
        o.counted_pct = HY_MIN(100u, 100 * HY_MAX(open_now.room, 1u) / o.events);
    return o;
}
