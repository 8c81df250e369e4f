/* SPDX-License-Identifier: BSD-2-Clause
 * See record.h. The control thread adds windows; the thread that ends the program writes the
 * last file. A lock is between them, and the end does not wait for it for ever. */
#include "record/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/text.h"
#include "classify/rules/recording.h"
#include "classify/rules/run_facts.h"
#include "config.h"
#include "core/control.h"
#include "core/state.h"
#include "place/policy.h"
#include "place/sites.h"
#include "record/record_access.h"
#include "record/record_tasks.h"
#include "record/rules/profile_write.h"
#include "settings/settings.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/walk/modules.h"

#define TEXT_BYTES  ((size_t)16 << 20) /* of a recording; pages are taken as they fill */
#define MAPS_BYTES  ((size_t)4 << 20)  /* of /proc/self/maps */
#define FIRST_WRITE 16
#define AWAIT_MS    1000
#define WAIT_NS     300000000ull

static struct {
    bool begun, ended;
    char path[HY_PATH_MAX];
    uint32_t windows;
    /* A recording: its text. */
    char *text;
    size_t len;
    /* A profile. */
    bool prepared, accesses;
    const struct machine_figures *figures;
    struct class_rules rules;
    struct run_facts facts;
    char method[PROFILE_TEXT_CAP];
    uint64_t placed; /* most at a time */
    uint32_t threads;
} rec;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool forked; /* the file is the parent's */

bool record_wanted(void)
{
    return strcmp(hy_config.set.record, "0") != 0 && !forked; /* `forked`'s page stays untouched */
}

bool record_wants_sites(void)
{
    const char *name = hy_config.set.record;
    size_t len = strlen(name);

    return !forked && len > 4 && strcmp(name + len - 4, ".ini") == 0;
}

static void tell(int e)
{
    if (e)
        settings_cannot_write(OPT_RECORD, rec.path, e);
}

/* Before the program changes its directory. */
static void find_path(void)
{
    const char *spec = hy_config.set.record;
    char name[HY_PATH_MAX];

    if (rec.path[0])
        return;
    os_output_name(strcmp(spec, "1") == 0 ? "hybrid-%p.rec" : spec, name, sizeof(name));
    if (os_absolute_path(name, rec.path, sizeof(rec.path)) < 0)
        (void)snprintf(rec.path, sizeof(rec.path), "%s", name);
    tell(os_may_write_file(rec.path)); /* now, rather than after a long run */
}

static void write_file(const void *text, size_t len)
{
    tell(os_write_file_atomic(rec.path, text, len));
}

/* --- the profile -------------------------------------------------------------------- */

static bool frame_uses(const struct profile *p, const uint8_t *id)
{
    for (unsigned i = 0; i < p->n_sites; i++)
        for (unsigned f = 0; f < p->sites[i].n_frames; f++)
            if (memcmp(p->sites[i].frames[f].build_id, id, BUILD_ID_MAX) == 0)
                return true;
    for (unsigned i = 0; i < p->n_tasks; i++)
        if (memcmp(p->tasks[i].code.build_id, id, BUILD_ID_MAX) == 0)
            return true;
    return false;
}

/* One line of /proc/self/maps: is it the start of a module that frames lie in? */
static bool module_of_line(const char *line, size_t len, const struct profile *p,
                           struct profile_module *ret)
{
    const char *path = memchr(line, '/', len);
    unsigned long long start, end, offset;
    struct module m;

    if (!path || sscanf(line, "%llx-%llx %*s %llx", &start, &end, &offset) != 3 || offset != 0)
        return false;
    len -= (size_t)(path - line);
    if (len >= sizeof(ret->path) || module_find((uintptr_t)start, &m) != 0 || !frame_uses(p, m.id))
        return false;
    memcpy(ret->id, m.id, sizeof(ret->id));
    memcpy(ret->path, path, len);
    ret->path[len] = '\0';
    return true;
}

static bool has_module(const struct profile_module *list, unsigned n, const uint8_t *id)
{
    for (unsigned i = 0; i < n; i++)
        if (memcmp(list[i].id, id, BUILD_ID_MAX) == 0)
            return true;
    return false;
}

/* Not by the loader, whose lock a forked child could find taken by this thread for ever. */
static unsigned list_modules(const struct profile *p, struct profile_module *list, unsigned cap)
{
    unsigned n = 0;
    size_t len;
    void *m;

    if (os_map_anon(MAPS_BYTES, &m))
        return 0;
    char *maps = m;
    if (os_read_file("/proc/self/maps", maps, MAPS_BYTES, &len) == 0) {
        for (char *line = maps, *end = maps + len; line < end && n < cap;) {
            char *stop = memchr(line, '\n', (size_t)(end - line)) ?: end;

            if (module_of_line(line, (size_t)(stop - line), p, &list[n]))
                n += !has_module(list, n, list[n].id);
            line = stop + 1;
        }
    }
    os_unmap(m, MAPS_BYTES);
    return n;
}

/* In the order of their numbers, from 1 on. */
static void list_sites(struct profile *p)
{
    struct site_info s;

    p->n_sites = 0;
    for (unsigned id = 1; id < sites_count() && p->n_sites < SITE_MAX - 1; id++) {
        struct profile_site *to = &p->sites[p->n_sites++];

        memset(to, 0, sizeof(*to));
        if (!sites_get((site_id)id, &s))
            continue;
        to->n_frames = (uint8_t)s.n_frames;
        to->nth = (uint8_t)s.nth;
        memcpy(to->frames, s.frames, sizeof(to->frames));
        to->count = s.count;
        to->bytes = s.bytes;
        to->live_bytes = p->footprint > 0 ? HY_MIN(s.peak_bytes, p->footprint) : s.peak_bytes;
        to->from = s.from;
        to->until = s.until < 1 ? s.until : 0;
        to->min_size = s.min_size;
        to->max_size = s.max_size;
    }
}

static void drop_unused(struct profile *p)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < p->n_sites; i++)
        if (p->sites[i].n_frames > 0 && p->sites[i].count > 0)
            p->sites[kept++] = p->sites[i];
    p->n_sites = kept;
}

static void describe_program(struct profile *p)
{
    char exe[HY_PATH_MAX];
    const char *slash;

    if (os_exe_path(exe, sizeof(exe)) == 0) {
        slash = strrchr(exe, '/');
        (void)snprintf(p->exe, sizeof(p->exe), "%.255s", slash ? slash + 1 : exe);
    }
    p->build_id_len = (uint8_t)module_exe_build_id(p->build_id);
}

static void describe_run(struct profile *p)
{
    struct policy_view v;

    policy_get(&v);
    /* What was placed and is used: programs ask for more than they touch. */
    uint64_t placed = HY_MAX(rec.placed, HY_MAX(v.peak[HY_DRAM], v.peak[HY_PM]));
    uint64_t resident = os_peak_rss_bytes();
    p->footprint = resident > 0 ? HY_MIN(placed, resident) : placed;
    p->threads_seen = rec.threads;
    p->source.runs = 1;
    p->source.dram_bytes = hy_machine.dram_bytes;
    p->source.pm_bytes = hy_machine.pm_bytes < TEXT_SIZE_LIMIT ? hy_machine.pm_bytes : 0;
    p->source.cpus = (uint32_t)os_cpu_count();
    (void)snprintf(p->source.libhybrid, sizeof(p->source.libhybrid), "%s", HY_VERSION);
    memcpy(p->source.method, rec.method, sizeof(p->source.method));
    if (rec.figures)
        (void)snprintf(p->source.figures, sizeof(p->source.figures), "%s", rec.figures->name);
    if (rec.figures)
        run_facts_get(&rec.facts, rec.figures, &rec.rules, p);
}

static void write_profile(void)
{
    static struct profile p;
    static struct profile_module modules[PROFILE_MAX_MODULES];
    size_t cap = PROFILE_WRITE_CAP(PROFILE_MAX_SITES);
    size_t bytes = SITE_MAX * sizeof(struct profile_site);
    void *sites, *text;

    if (os_map_anon(bytes, &sites))
        return;
    if (os_map_anon(cap, &text) == 0) {
        memset(&p, 0, sizeof(p));
        p.write_intensive = -1;
        p.exposure = p.foreseen = -1;
        p.sites = sites;
        describe_program(&p);
        describe_run(&p);
        list_sites(&p);
        record_access_get(rec.figures, &p);
        drop_unused(&p);
        record_tasks_get(&p);
        (void)profile_rank_sites(&p, 0, PROFILE_MAX_SITES);
        profile_number_sites(&p);
        unsigned n = list_modules(&p, modules, PROFILE_MAX_MODULES);
        int64_t len = profile_write(&p, modules, n, "", text, cap);
        if (len > 0)
            write_file(text, (size_t)len);
        os_unmap(text, cap);
    }
    os_unmap(sites, bytes);
}

/* --- when ------------------------------------------------------------------------------ */

void record_prepare(void)
{
    if (!record_wants_sites())
        return;
    find_path();
    rec.prepared = true;
    int e = record_access_open();
    rec.accesses = e == 0;
    if (e)
        log_info("recording: reads and writes of call sites are not known (%s)",
                 e == -ENODEV ? "nothing samples accesses here" : os_error_name(e));
}

static uint8_t counts_open;

void record_counts_open(void)
{
    __atomic_store_n(&counts_open, 1, __ATOMIC_RELEASE);
}

void record_await_counts(void)
{
    for (unsigned i = 0; i < AWAIT_MS && record_wanted() && control_running(); i++) {
        if (__atomic_load_n(&counts_open, __ATOMIC_ACQUIRE))
            return;
        os_sleep_ns(1000000);
    }
}

void record_begin(const char *source, const struct machine_figures *f,
                  const struct class_rules *rules)
{
    void *m;

    if (!record_wanted())
        return;
    pthread_mutex_lock(&lock);
    find_path();
    if (record_wants_sites()) {
        rec.figures = f;
        rec.rules = *rules;
        memset(&rec.facts, 0, sizeof(rec.facts));
        (void)snprintf(rec.method, sizeof(rec.method), "%.95s", source);
        rec.begun = true;
    } else if (os_map_anon(TEXT_BYTES, &m) == 0) {
        rec.text = m;
        rec.len = recording_write_header(source, rec.text, RECORDING_LINE_CAP);
        rec.begun = true;
    }
    pthread_mutex_unlock(&lock);
}

static void add_to_text(const struct window *w)
{
    if (TEXT_BYTES - rec.len < RECORDING_LINE_CAP)
        return;
    rec.len += recording_write_window(w, rec.text + rec.len, RECORDING_LINE_CAP);
    rec.windows++;
    if (TEXT_BYTES - rec.len < RECORDING_LINE_CAP)
        log_warn("HYBRID_RECORD: the recording is full after %u windows", rec.windows);
}

static void add_to_profile(const struct window *w, const struct classification *now)
{
    struct policy_view v;

    policy_get(&v);
    rec.placed = HY_MAX(rec.placed, v.used[HY_DRAM] + v.used[HY_PM]);
    if (window_get(w, WINDOW_threads) <= HY_CPUS)
        rec.threads = HY_MAX(rec.threads, (uint32_t)window_get(w, WINDOW_threads));
    run_facts_add(&rec.facts, rec.figures, w, now);
    record_access_window(rec.figures, w);
    rec.windows++;
}

static void write_now(void)
{
    if (rec.text)
        write_file(rec.text, rec.len);
    else if (rec.prepared)
        write_profile();
}

void record_window(const struct window *w, const struct classification *now)
{
    if (!rec.begun)
        return;
    pthread_mutex_lock(&lock);
    uint32_t before = rec.windows;
    if (rec.text)
        add_to_text(w);
    else
        add_to_profile(w, now);
    bool more = rec.windows != before;
    if (!rec.ended && more && rec.windows >= FIRST_WRITE && (rec.windows & (rec.windows - 1)) == 0)
        write_now();
    pthread_mutex_unlock(&lock);
}

void record_tick(void)
{
    if (!rec.prepared)
        return;
    pthread_mutex_lock(&lock);
    if (!rec.ended && rec.accesses)
        record_access_tick();
    if (!rec.ended)
        record_tasks_tick();
    pthread_mutex_unlock(&lock);
}

void record_get(struct record_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->windows = rec.windows;
    ret->sites = rec.prepared;
    if (!rec.prepared)
        return;
    if (!rec.accesses)
        (void)snprintf(ret->accesses, sizeof(ret->accesses), "nothing samples accesses here");
    else if (pthread_mutex_trylock(&lock) == 0) {
        ret->samples = record_access_describe(false, ret->accesses, sizeof(ret->accesses));
        pthread_mutex_unlock(&lock);
    }
}

/* In a signal handler this thread may have the lock. */
void record_settle(void)
{
    if (!rec.prepared || pthread_mutex_trylock(&lock) != 0)
        return;
    record_access_drain();
    pthread_mutex_unlock(&lock);
}

void record_finish(void)
{
    if (!record_wanted() || (!rec.begun && !rec.prepared))
        return;
    if (!os_lock_within(&lock, WAIT_NS)) {
        log_warn("HYBRID_RECORD: the last windows are not written");
        return;
    }
    record_access_drain();
    if (rec.prepared)
        record_tasks_tick();
    rec.ended = true;
    if (rec.windows > 0 || rec.prepared)
        write_now();
    pthread_mutex_unlock(&lock);
}

void record_child(void)
{
    if (!record_wanted()) /* nothing was noted */
        return;
    forked = true;
    memset(&rec, 0, sizeof(rec));
    (void)pthread_mutex_init(&lock, NULL);
    record_access_child();
    record_tasks_child();
}
