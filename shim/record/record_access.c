/* SPDX-License-Identifier: BSD-2-Clause
 * Which call site's memory is read and written, from samples of accesses.
 *
 * A large block, and a sampled small one, has a run that knows its site. Of the small blocks
 * of a span nobody knows the site; samples that fall there are shared out among the sites of
 * that size class as those that fell on their sampled blocks are: these are drawn by bytes,
 * so each stands for as many others. A few samples more, by live bytes, keep sites of which
 * nothing was seen yet from getting none. Sums stay what they were. */
#include "record/record_access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heap/heap.h"
#include "place/maps.h"
#include "place/sites.h"
#include "record/record.h"
#include "record/rules/heat.h"
#include "sys/os.h"
#include "sys/pages/emulator_samples.h"

#define PERIOD     64u /* that of the page sampler */
#define RING_BYTES ((size_t)4 << 20)
#define PAIRS      8192u /* sites and classes of sampled blocks; a power of two */
#define BY_BYTES   4.0   /* samples shared out by live bytes */
#define KINDS      ACCESS_KINDS

struct pair {
    uint32_t key; /* site << 8 | class, + 1; 0: free */
    double lines[KINDS];
    uint64_t live;
};

/* Sources of lines: small blocks of a pool, of unknown site, and the sites. */
#define SITES   HEAP_POOLS
#define SOURCES (SITES + SITE_MAX)

/* The large block of a site that was used last. */
struct block {
    uintptr_t base;
    size_t bytes;
};

/* Lines that the samples stand for. */
struct access_table {
    access_lines source[BEHAVIOURS][SOURCES];
    struct behaviours by;
    double mapped[KINDS];                 /* mappings of no known site */
    double elsewhere[KINDS];              /* anything else, and blocks of no known site */
    double all[KINDS], samples_of[KINDS]; /* a sample of both is half of each */
    uint64_t samples;
    struct pair pair[PAIRS];
    struct heat heat[SITE_MAX];
    struct block last[SITE_MAX];
};

static struct access_table *t;
static access_lines *under_way; /* lines */
static bool by_loads;           /* samples of the processor, not of the emulated machine */

int record_access_open(void)
{
    void *m;
    int e = emulator_tap_open(PERIOD, RING_BYTES);

    by_loads = e == -ENODEV && record_loads_possible();
    if (e && !by_loads)
        return e;
    e = os_map_anon(sizeof(*t), &m);
    if (e) {
        emulator_tap_close();
        return e;
    }
    t = m;
    for (unsigned b = 0; b < BEHAVIOURS; b++)
        t->by.lines[b] = t->source[b];
    under_way = t->by.lines[0];
    heap_label_runs(record_settle);
    return 0;
}

void record_access_child(void)
{
    t = NULL;
    record_loads_child();
}

/* NULL: no room. */
static struct pair *pair_of(uint16_t site, unsigned cls)
{
    uint32_t key = ((uint32_t)site << 8 | cls) + 1, i = key * 2654435761u >> 16;

    for (unsigned n = 0; n < PAIRS; n++, i++) {
        struct pair *p = &t->pair[i & (PAIRS - 1)];
        if (p->key == 0)
            p->key = key;
        if (p->key == key)
            return p;
    }
    return NULL;
}

/* The block around an address of a site's. To find where a large one begins takes a while, to see
 * that it is still there, or that nothing else is yet, does not. */
static bool block_around(uintptr_t address, struct block *last)
{
    bool known = address - last->base < last->bytes;
    struct block b;

    if (!heap_block_of((const void *)(known ? last->base : address), &b.base, &b.bytes))
        return known; /* freed, and its memory is nobody else's */
    if (address - b.base >= b.bytes)
        return false;
    *last = b;
    return true;
}

static void note_heat(uint16_t site, uintptr_t address, const double lines[KINDS])
{
    struct block *b = &t->last[site];

    if (!block_around(address, b))
        heat_miss(&t->heat[site], lines);
    else if (b->bytes >= HEAT_LEAST)
        heat_add(&t->heat[site], address - b->base, b->bytes, lines);
}

static void take(uintptr_t address, const double lines[KINDS])
{
    double *to = t->elsewhere;
    struct heap_origin origin;
    enum hy_tier tier;
    site_id site = 0;

    t->samples++;
    if (heap_owns((const void *)address)) {
        heap_origin_of((const void *)address, &origin);
        if (origin.what == HEAP_IS_SMALL) {
            to = under_way[origin.cls];
        } else if (origin.site > 0 && origin.site < SITE_MAX) {
            to = under_way[SITES + origin.site];
            note_heat(origin.site, address, lines);
        }
        if (origin.what == HEAP_IS_RUN && origin.site > 0 && origin.cls < HEAP_POOLS) {
            struct pair *p = pair_of(origin.site, origin.cls);
            for (int k = 0; p && k < KINDS; k++)
                p->lines[k] += lines[k];
        }
    } else if (maps_find((const void *)address, 1, &tier, &site)) {
        to = site > 0 && site < SITE_MAX ? under_way[SITES + site] : t->mapped;
    }
    for (int k = 0; k < KINDS; k++) {
        to[k] += lines[k];
        t->all[k] += lines[k];
        t->samples_of[k] += lines[k] / (lines[ACCESS_READ] + lines[ACCESS_WRITTEN]);
    }
}

static void take_emulated(uintptr_t address, bool read, bool dirtied)
{
    double half = (double)emulator_tap_period() / 2;

    if (!read && !dirtied)
        return;
    take(address, (const double[KINDS]){[ACCESS_READ] = read ? (2 - dirtied) * half : 0,
                                        [ACCESS_WRITTEN] = dirtied ? (2 - read) * half : 0});
}

void record_access_drain(void)
{
    if (t && by_loads)
        record_loads_drain(take);
    else if (t)
        (void)emulator_tap_drain(take_emulated);
}

void record_access_tick(void)
{
    if (t && by_loads)
        record_loads_tick(take);
}

void record_access_window(const struct machine_figures *f, const struct window *w)
{
    if (!t)
        return;
    record_access_drain();
    run_sum_add(&t->by.sum[t->by.n], f, w);
    if (by_loads && !record_loads_seen_both())
        return;
    behaviours_end(&t->by, f, SITES + sites_count());
    under_way = t->by.lines[t->by.n];
}

static void note_live(uint16_t site, unsigned cls, size_t size)
{
    struct pair *p = pair_of(site, cls);

    if (p)
        p->live += size;
}

struct class_sums {
    double lines[KINDS], live;
};

/* Shares out what fell on small blocks. */
static void share_out(access_lines *got, const access_lines *small, const struct class_sums *sums)
{
    double by_bytes[KINDS];

    for (int k = 0; k < KINDS; k++)
        by_bytes[k] = t->all[k] > 0 ? BY_BYTES * t->all[k] / t->samples_of[k] : 0;
    for (unsigned i = 0; i < PAIRS; i++) {
        const struct pair *p = &t->pair[i];
        unsigned site = (p->key - 1) >> 8, cls = (p->key - 1) & 255;
        if (p->key == 0)
            continue;
        const struct class_sums *c = &sums[cls];
        for (int k = 0; k < KINDS; k++) {
            double live = c->live > 0 ? by_bytes[k] : 0, all = c->lines[k] + live;
            if (all <= 0)
                continue;
            double share =
                (p->lines[k] + (c->live > 0 ? live * (double)p->live / c->live : 0)) / all;
            got[site][k] += share * small[cls][k];
        }
    }
}

static void sum_classes(struct class_sums sums[HEAP_POOLS])
{
    /* Over time: each look adds what lives then. */
    heap_each_sampled(note_live);
    for (unsigned i = 0; i < PAIRS; i++) {
        const struct pair *p = &t->pair[i];
        struct class_sums *c = &sums[(p->key - 1) & 255];
        if (p->key == 0)
            continue;
        c->live += (double)p->live;
        for (int k = 0; k < KINDS; k++)
            c->lines[k] += p->lines[k];
    }
}

static void find_scale(const struct profile_source *src, struct access_scale *ret)
{
    struct access_sums s = {.lines = {t->all[ACCESS_READ], t->all[ACCESS_WRITTEN]},
                            .counted = {(double)src->reads, (double)src->writes}};

    if (by_loads)
        record_loads_sums(&s);
    else
        s.lost = (double)emulator_tap_lost() / (double)t->samples;
    access_scale_make(&s, ret);
}

/* Of all lines. */
static double percent(const struct access_scale *scale, const double part[KINDS])
{
    double write = scale->fetched + scale->written;
    double all = t->all[ACCESS_READ] * scale->read + t->all[ACCESS_WRITTEN] * write;

    return all > 0 ? 100 * (part[ACCESS_READ] * scale->read + part[ACCESS_WRITTEN] * write) / all
                   : 0;
}

uint64_t record_access_describe(bool scaled, char *buf, size_t cap)
{
    buf[0] = '\0';
    if (t && by_loads)
        record_loads_describe(scaled, buf, cap);
    else if (t)
        (void)snprintf(buf, cap, "the emulated machine");
    return t ? t->samples : 0;
}

/* A behaviour's lines by site, or (n) those of what was under way at the end. */
static void lines_by_site(unsigned b, const struct class_sums *sums, access_lines got[SITE_MAX])
{
    const access_lines *from = t->by.lines[b];

    memcpy(got, from + SITES, SITE_MAX * sizeof(got[0]));
    share_out(got, from, sums);
}

static void add_behaviour(unsigned b, const access_lines *got, const struct access_scale *scale,
                          struct profile *p)
{
    for (unsigned s = 0; s < p->n_sites && s + 1 < SITE_MAX; s++) {
        struct profile_site *to = &p->sites[s];
        double read = got[s + 1][ACCESS_READ], written = got[s + 1][ACCESS_WRITTEN];
        uint64_t reads = (uint64_t)(read * scale->read + written * scale->fetched + 0.5);
        uint64_t writes = (uint64_t)(written * scale->written + 0.5);

        to->reads += reads;
        to->writes += writes;
        if (b == p->n_behaviours)
            continue;
        to->reads_in[b] = reads;
        to->writes_in[b] = writes;
    }
}

/* One behaviour is the whole run, and says nothing new. */
static void list_behaviours(const struct machine_figures *f, struct profile *p)
{
    p->n_behaviours = t->by.n > 1 ? t->by.n : 0;
    for (unsigned b = 0; b < p->n_behaviours; b++)
        (void)run_sum_get(&t->by.sum[b], f, &p->behaviours[b]);
    for (unsigned s = 0; s < p->n_sites; s++)
        p->sites[s].n_reads_in = p->sites[s].n_writes_in = (uint8_t)p->n_behaviours;
}

static void describe_samples(const struct access_scale *scale, struct profile_source *ret)
{
    ret->samples = t->samples;
    ret->period = emulator_tap_period();
    if (by_loads) /* it changes with the rate: what a sample stands for, on average */
        ret->period = (uint64_t)((t->all[ACCESS_READ] * scale->read +
                                  t->all[ACCESS_WRITTEN] * scale->written) /
                                     (double)t->samples +
                                 0.5);
    (void)record_access_describe(scale->counted, ret->accesses, sizeof(ret->accesses));
}

static void list_heat(const struct machine_figures *f, struct profile *p)
{
    const struct medium_figures *pm = &f->medium[HY_PM];
    const double cost[KINDS] = {
        [ACCESS_READ] = 1 / pm->seq_read_mbs, [ACCESS_WRITTEN] = 1 / pm->seq_write_mbs};

    for (unsigned s = 0; s < p->n_sites && s + 1 < SITE_MAX; s++)
        p->sites[s].has_heat = heat_get(&t->heat[s + 1], cost, p->sites[s].heat);
}

void record_access_get(const struct machine_figures *f, struct profile *p)
{
    static access_lines got[SITE_MAX];
    struct class_sums sums[HEAP_POOLS] = {0};
    struct access_scale scale;
    double known[KINDS] = {0};

    if (!t || t->samples == 0)
        return;
    sum_classes(sums);
    find_scale(&p->source, &scale);
    list_behaviours(f, p);
    if (f)
        list_heat(f, p);
    for (unsigned b = 0; b <= t->by.n; b++) {
        lines_by_site(b, sums, got);
        for (unsigned s = 0; s < SITE_MAX; s++)
            for (int k = 0; k < KINDS; k++)
                known[k] += got[s][k];
        add_behaviour(p->n_behaviours ? b : 0, got, &scale, p);
    }
    describe_samples(&scale, &p->source);
    p->source.known = HY_MIN(percent(&scale, known), 100.0);
    p->source.mapped = percent(&scale, t->mapped);
}
