/* SPDX-License-Identifier: BSD-2-Clause
 * Which call site's memory is read and written, from samples of accesses.
 *
 * A large block, and a sampled small one, has a run that knows its site. Of the small blocks
 * of a span nobody knows the site; samples that fall there are shared out among the sites of
 * that size class as those that fell on their sampled blocks are: these are drawn by bytes,
 * so each stands for as many others. A few samples more, by live bytes, keep sites of which
 * nothing was seen yet from getting none. Sums stay what they were. */
#include <string.h>

#include "runtime/record.h"
#include "service/heap/heap.h"
#include "service/maps.h"
#include "service/sites.h"
#include "sys/emulator_samples.h"
#include "sys/os.h"

#define PERIOD     64u /* that of the page sampler */
#define RING_BYTES ((size_t)4 << 20)
#define PAIRS      8192u /* sites and classes of sampled blocks; a power of two */
#define BY_BYTES   4.0   /* samples shared out by live bytes */

enum { READ, WRITTEN, KINDS };

struct pair {
    uint32_t key; /* site << 8 | class, + 1; 0: free */
    uint32_t hits[KINDS];
    uint64_t live;
};

/* All counts are halves of samples: one of a line that was read and dirtied is half of each. */
struct access_table {
    uint64_t site[SITE_MAX][KINDS];
    uint64_t small[SIZECLASS_COUNT][KINDS]; /* in spans */
    uint64_t mapped[KINDS];                 /* mappings of no known site */
    uint64_t elsewhere[KINDS];              /* anything else, and blocks of no known site */
    uint64_t samples;
    struct pair pair[PAIRS];
};

static struct access_table *t;

int record_access_open(void)
{
    void *m;
    int e = emulator_tap_open(PERIOD, RING_BYTES);

    if (e)
        return e;
    e = os_map_anon(sizeof(*t), &m);
    if (e) {
        emulator_tap_close();
        return e;
    }
    t = m;
    heap_label_runs();
    return 0;
}

void record_access_child(void)
{
    t = NULL;
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

static void take(uintptr_t address, bool read, bool dirtied)
{
    const unsigned half[KINDS] = {read ? 2u - dirtied : 0, dirtied ? 2u - read : 0};
    uint64_t *to = t->elsewhere;
    struct heap_place place;
    enum hy_tier tier;
    site_id site = 0;

    t->samples++;
    if (heap_owns((const void *)address)) {
        heap_place_of((const void *)address, &place);
        if (place.what == HEAP_IS_SMALL)
            to = t->small[place.cls];
        else if (place.site > 0 && place.site < SITE_MAX)
            to = t->site[place.site];
        if (place.what == HEAP_IS_RUN && place.site > 0 && place.cls < SIZECLASS_COUNT) {
            struct pair *p = pair_of(place.site, place.cls);
            for (int k = 0; p && k < KINDS; k++)
                p->hits[k] += half[k];
        }
    } else if (maps_find((const void *)address, &tier, &site)) {
        to = site > 0 && site < SITE_MAX ? t->site[site] : t->mapped;
    }
    for (int k = 0; k < KINDS; k++)
        to[k] += half[k];
}

void record_access_drain(void)
{
    if (t)
        (void)emulator_tap_drain(take);
}

static void note_live(uint16_t site, unsigned cls, size_t size)
{
    struct pair *p = pair_of(site, cls);

    if (p)
        p->live += size;
}

struct class_sums {
    double hits[KINDS], live;
};

/* Shares out what fell on small blocks. Returns the halves that found a site. */
static double share_out(double (*got)[KINDS], const struct class_sums *sums)
{
    double found = 0;

    for (unsigned i = 0; i < PAIRS; i++) {
        const struct pair *p = &t->pair[i];
        unsigned site = (p->key - 1) >> 8, cls = (p->key - 1) & 255;
        if (p->key == 0)
            continue;
        const struct class_sums *c = &sums[cls];
        for (int k = 0; k < KINDS; k++) {
            double by_bytes = c->live > 0 ? 2 * BY_BYTES : 0, all = c->hits[k] + by_bytes;
            if (all <= 0)
                continue;
            double share =
                (p->hits[k] + (c->live > 0 ? by_bytes * (double)p->live / c->live : 0)) / all;
            got[site][k] += share * (double)t->small[cls][k];
            found += share * (double)t->small[cls][k];
        }
    }
    return found;
}

void record_access_get(struct profile_site *sites, unsigned n, struct profile_source *ret)
{
    static double got[SITE_MAX][KINDS];
    struct class_sums sums[SIZECLASS_COUNT] = {0};
    double all = 0, known = 0, mapped = 0;

    if (!t || t->samples == 0)
        return;
    memset(got, 0, sizeof(got));
    /* Over time: each look adds what lives then. */
    heap_each_sampled(note_live);
    for (unsigned i = 0; i < PAIRS; i++) {
        const struct pair *p = &t->pair[i];
        struct class_sums *c = &sums[(p->key - 1) & 255];
        if (p->key == 0)
            continue;
        c->live += (double)p->live;
        for (int k = 0; k < KINDS; k++)
            c->hits[k] += p->hits[k];
    }
    for (int k = 0; k < KINDS; k++) {
        for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
            all += (double)t->small[c][k];
        for (unsigned s = 1; s < SITE_MAX; s++) {
            got[s][k] = (double)t->site[s][k];
            known += got[s][k];
        }
        mapped += (double)t->mapped[k];
        all += (double)t->elsewhere[k] + (double)t->mapped[k];
    }
    all += known;
    known += share_out(got, sums);
    ret->period = emulator_tap_period();
    ret->samples = t->samples;
    ret->known = all > 0 ? 100 * known / all : 0;
    ret->mapped = all > 0 ? 100 * mapped / all : 0;
    double lost = (double)emulator_tap_lost() / (double)t->samples;
    double lines = (double)ret->period / 2 * (1 + lost);
    for (unsigned s = 0; s < n && s + 1 < SITE_MAX; s++) {
        sites[s].reads = (uint64_t)(got[s + 1][READ] * lines + 0.5);
        sites[s].writes = (uint64_t)(got[s + 1][WRITTEN] * lines + 0.5);
    }
}
