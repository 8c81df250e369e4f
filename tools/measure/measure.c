/* SPDX-License-Identifier: BSD-2-Clause
 * hybrid-measure [--pm SPEC] [--bytes N]: tells what there is, then serves requests, one a
 * line on standard input, until that ends:
 *
 *     KIND TIER THREADS MS [beside KIND TIER THREADS]
 *
 * KIND: a loop of measure_loops.c. TIER: dram, pm, cache (DRAM that fits there) or core (16 KiB,
 * for its first cache). The answer is a line: lines a us of all threads together, ns a line of
 * each, the part of the time that they had a CPU. Those beside go on for as long as the others.
 * hybrid-measure --check FILE: is it a machine file? */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "classify/figures.h"
#include "classify/rules/machine_figures.h"
#include "tools/measure/measure.h"
#include "settings/rules/options.h"
#include "sys/cpu.h"
#include "sys/env.h"
#include "sys/os.h"

/* What is not the memory's in a loop is found in the last cache: a sixteenth of it, which
 * others leave us, and no less than fits only there. */
#define CACHE_SHARE    16
#define CACHE_LEAST    ((uint64_t)512 << 10)
#define EMULATED_CACHE CACHE_LEAST
#define CORE_LINES     256
/* Lines between looks at the clock, a few us. */
#define CHUNK_REAL     1024
#define CHUNK_EMULATED 64

enum { USAGE = 2, FAILED = 1 };
enum { TIER_CACHE = HY_TIERS, TIER_CORE, TIERS };

struct group {
    enum loop_kind kind;
    int tier;
    unsigned threads;
};

struct worker {
    pthread_t thread;
    const struct group *group;
    struct walk walk;
    bool measured; /* else it runs beside */
    unsigned cpu;
    uint64_t lines;
    int64_t begin_ns, end_ns, cpu_ns;
    bool wrong;
};

static struct {
    struct memories memory;
    uint64_t *cache, cache_bytes;
    uint64_t *chain[TIERS]; /* where the last chase ended: what is behind it may be cached */
    uint64_t stamp, chunk;
    int64_t round_ns;
    unsigned measuring; /* threads still at it */
    pthread_barrier_t all;
    struct worker worker[MAX_THREADS];
} m;

/* --- a round -------------------------------------------------------------------- */

static bool goes_on(const struct worker *w, int64_t now)
{
    if (w->measured)
        return now < w->begin_ns + m.round_ns;
    return __atomic_load_n(&m.measuring, __ATOMIC_RELAXED) > 0;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    enum loop_kind kind = w->group->kind;
    struct walk before = w->walk;
    int64_t now, warm;
    struct hy_cpus one = {{0}};

    cpus_add(&one, w->cpu);
    if (!m.memory.emulated)
        (void)cpu_set(0, &one);
    if (w->group->tier >= TIER_CACHE) /* there by now, and as the loop leaves it */
        walk_on(kind, &w->walk, w->walk.lines);
    pthread_barrier_wait(&m.all);
    warm = clock_ns() + m.round_ns / 5;
    for (now = 0; now < warm; now = clock_ns())
        walk_on(kind, &w->walk, m.chunk);
    w->begin_ns = now;
    w->cpu_ns = -clock_cpu_ns();
    while (goes_on(w, now)) {
        before = w->walk;
        walk_on(kind, &w->walk, m.chunk);
        w->lines += m.chunk;
        now = clock_ns();
    }
    w->end_ns = now;
    w->cpu_ns += clock_cpu_ns();
    if (w->measured)
        __atomic_fetch_sub(&m.measuring, 1, __ATOMIC_RELAXED);
    w->wrong = w->lines > 0 && !walk_is_right(kind, &w->walk, &before, m.chunk);
    return NULL;
}

static void prepare(struct worker *w, const struct group *g, unsigned i, unsigned cpu,
                    bool measured)
{
    bool cache = g->tier >= TIER_CACHE, chain = g->kind <= LOOP_UPDATE;
    uint64_t all =
        g->tier == TIER_CORE ? CORE_LINES : (cache ? m.cache_bytes : m.memory.bytes) / LINE_BYTES;
    uint64_t part = chain ? all : all / g->threads;
    uint64_t *base = cache ? m.cache : m.memory.lines[g->tier];

    memset(w, 0, sizeof(*w));
    w->group = g;
    w->measured = measured;
    w->cpu = m.memory.cpu[cpu % m.memory.n_cpus];
    walk_begin(&w->walk, base + (chain ? 0 : i * part * LINE_WORDS), part, ++m.stamp);
    if (chain && m.chain[g->tier])
        walk_chain_from(&w->walk, m.chain[g->tier]);
}

static void print_result(const struct group *g)
{
    double per_us = 0, ns = 0, busy = 0;
    bool wrong = false;

    for (unsigned i = 0; i < g->threads; i++) {
        const struct worker *w = &m.worker[i];
        double took = (double)(w->end_ns - w->begin_ns), cpu = (double)w->cpu_ns;
        /* A latency is the same for a thread that shares its CPU: what it ran counts. */
        bool alone = g->kind <= LOOP_UPDATE || g->kind == LOOP_CYCLE;
        per_us += (double)w->lines / took * 1000;
        ns += (alone && !clock_is_virtual() ? cpu : took) / (double)w->lines / g->threads;
        busy += HY_MIN(cpu / took, 1) / g->threads;
        wrong |= w->wrong;
    }
    if (wrong)
        printf("wrong\n");
    else
        printf("lines_per_us=%.4f ns=%.4f busy=%.3f\n", per_us, ns,
               clock_is_virtual() ? 1.0 : busy);
}

/* What earlier rounds left in the last cache goes. */
static void clear_cache(int tier)
{
    struct walk w;

    walk_begin(&w, m.memory.lines[tier], m.memory.bytes / LINE_BYTES, ++m.stamp);
    walk_on(LOOP_READ, &w, HY_MIN(2 * m.memory.llc_bytes, m.memory.bytes) / LINE_BYTES);
}

static int run(const struct group *main_group, const struct group *beside)
{
    unsigned n = main_group->threads, others = beside ? beside->threads : 0, started = 0;
    int r = 0;

    if (main_group->tier < TIER_CACHE)
        clear_cache(main_group->tier == HY_DRAM ? HY_PM : HY_DRAM);
    m.measuring = n;
    for (unsigned i = 0; i < n; i++)
        prepare(&m.worker[i], main_group, i, i, true);
    for (unsigned i = 0; i < others; i++)
        prepare(&m.worker[n + i], beside, i, n + i, false);
    pthread_barrier_init(&m.all, NULL, n + others);
    for (; started < n + others && r == 0; started += r == 0)
        r = pthread_create(&m.worker[started].thread, NULL, work, &m.worker[started]);
    if (r != 0) {
        /* They wait at a barrier that will never be complete. */
        printf("error %u threads cannot be started (%s)\n", n + others, strerror(r));
        return FAILED;
    }
    for (unsigned i = 0; i < n + others; i++)
        pthread_join(m.worker[i].thread, NULL);
    pthread_barrier_destroy(&m.all);
    for (unsigned i = 0; i < n + others; i++)
        if (m.worker[i].group->kind <= LOOP_UPDATE)
            m.chain[m.worker[i].group->tier] = m.worker[i].walk.line;
    print_result(main_group);
    return 0;
}

/* --- requests --------------------------------------------------------------------- */

static bool parse_group(char **words, struct group *ret)
{
    static const char *const tiers[TIERS] = {"dram", "pm", "cache", "core"};
    char *end;

    if (!words[0] || !words[1] || !words[2])
        return false;
    ret->kind = LOOP_KINDS;
    ret->tier = TIERS;
    for (int k = 0; k < LOOP_KINDS; k++)
        if (strcmp(words[0], loop_name(k)) == 0)
            ret->kind = k;
    for (int t = 0; t < TIERS; t++)
        if (strcmp(words[1], tiers[t]) == 0)
            ret->tier = t;
    unsigned long n = strtoul(words[2], &end, 10);
    ret->threads = (unsigned)n;
    if (ret->kind == LOOP_KINDS || ret->tier == TIERS || *end || n < 1 || n > MAX_THREADS / 2)
        return false;
    /* A chain goes through all of the memory, and what others write there is not its own. */
    if (ret->kind <= LOOP_UPDATE)
        return n == 1 && ret->tier != TIER_CORE;
    return n == 1 || ret->tier < TIER_CACHE;
}

static int serve(char *line)
{
    struct group main_group, beside;
    char *words[10] = {0}, *at = line, *end;
    unsigned n = 0;

    for (char *w; n < 9 && (w = strsep(&at, " \n")) != NULL;)
        if (*w)
            words[n++] = w;
    double ms = n >= 4 ? strtod(words[3], &end) : 0;
    bool both = n == 8 && strcmp(words[4], "beside") == 0;
    if (!parse_group(words, &main_group) || !(ms > 0 && ms <= 60000) || *end ||
        (n != 4 && !(both && parse_group(words + 5, &beside))) ||
        (both && beside.tier == main_group.tier)) {
        printf("error no such request\n");
        return USAGE;
    }
    m.round_ns = (int64_t)(ms * 1e6);
    return run(&main_group, both ? &beside : NULL);
}

/* --- beginning ----------------------------------------------------------------------- */

static void tell_machine(const char *spec)
{
    struct topology t;
    struct hy_settings s;
    struct figures_query place;
    struct figures_identity id;

    options_defaults(&s);
    (void)options_set(&s, OPT_PM, spec, HY_FROM_ENV, NULL, NULL);
    (void)topology_read("/sys", &t);
    figures_query(&s.pm, &t, &place);
    figures_identify(&place, &id);
    printf("clock=%s\ncpus=%u\ncores=%u\nbytes=%" PRIu64 "\nllc=%" PRIu64
           "\nordinary=%d\npm_is=%s\n",
           clock_is_virtual() ? "virtual" : "real", m.memory.n_cpus, m.memory.n_cores,
           m.memory.bytes, m.memory.llc_bytes, m.memory.ordinary, m.memory.pm);
    printf("cpu=%s\npm=%s\ndram-mib=%.0f\npm-mib=%.0f\nready\n", id.cpu, id.pm, id.dram_mib,
           id.pm_mib);
}

static void complain(void *ctx, const char *message)
{
    (void)ctx;
    printf("%s\n", message);
}

static int check(const char *path)
{
    struct machine_figures f;
    int r = figures_read(path, false, &f, complain, NULL);

    if (r < 0 && r != -EBADMSG)
        printf("%s: %s\n", path, strerror(-r));
    return r == 0 ? 0 : FAILED;
}

static int make_cache_lines(void)
{
    m.cache_bytes =
        m.memory.emulated ? EMULATED_CACHE : HY_MAX(m.memory.llc_bytes / CACHE_SHARE, CACHE_LEAST);
    m.cache_bytes = hy_align_up(m.cache_bytes, HY_PAGE);
    m.cache = aligned_alloc(HY_PAGE, m.cache_bytes);
    if (!m.cache)
        return -ENOMEM;
    emulated_tier(m.cache, m.cache_bytes, HY_DRAM);
    return lines_link(m.cache, m.cache_bytes / LINE_BYTES, HY_TIERS);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"pm", required_argument, NULL, 'p'},
                                            {"bytes", required_argument, NULL, 'b'},
                                            {"check", required_argument, NULL, 'c'},
                                            {0}};
    static char line[256], why[512];
    const char *spec = env_get("HYBRID_PM");
    uint64_t bytes = 0;
    int c, r = 0;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'p')
            spec = optarg;
        else if (c == 'b')
            bytes = strtoull(optarg, NULL, 10);
        else
            return c == 'c' ? check(optarg) : USAGE;
    }
    spec = spec && *spec ? spec : "auto";
    setvbuf(stdout, NULL, _IOLBF, 0);
    r = memories_get(spec, bytes, &m.memory, why, sizeof(why));
    if (r == 0)
        r = make_cache_lines();
    if (r < 0) {
        printf("error %s\n", why[0] ? why : strerror(-r));
        return r == -EINVAL ? USAGE : FAILED;
    }
    m.chunk = m.memory.emulated ? CHUNK_EMULATED : CHUNK_REAL;
    tell_machine(spec);
    while (r == 0 && fgets(line, sizeof(line), stdin))
        r = serve(line);
    return r;
}
