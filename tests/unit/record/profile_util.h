/* SPDX-License-Identifier: BSD-2-Clause
 * Random profiles, and what is told about them. */
#ifndef HYBRID_TESTS_PROFILE_UTIL_H
#define HYBRID_TESTS_PROFILE_UTIL_H

#include <stdio.h>
#include <string.h>

#include "settings/rules/profile.h"

static char heard[4096];

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s\n", message);
}

static uint64_t seed = 1;

static uint64_t any(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 20) % below;
}

static void empty(struct profile *p, struct profile_site *sites)
{
    memset(p, 0, sizeof(*p));
    p->sites = sites;
    p->write_intensive = -1;
    p->exposure = p->foreseen = -1;
}

static void random_site(struct profile_site *s, unsigned i)
{
    memset(s, 0, sizeof(*s));
    snprintf(s->name, sizeof(s->name), "f_%u+0x%x", i, (unsigned)any(4096));
    s->n_frames = (uint8_t)(1 + any(PROFILE_MAX_FRAMES));
    for (unsigned f = 0; f < s->n_frames; f++) {
        for (unsigned k = 0; k < BUILD_ID_MAX; k++)
            s->frames[f].build_id[k] = (uint8_t)any(256);
        if (any(4) == 0) /* shorter ones, as of other linkers */
            memset(s->frames[f].build_id + 8, 0, BUILD_ID_MAX - 8);
        s->frames[f].offset = any(4) ? any(1 << 30) : UINT64_MAX - any(9);
    }
    s->nth = (uint8_t)any(3);
    s->has_tier = any(2);
    s->tier = s->has_tier && any(2) ? HY_PM : HY_DRAM;
    s->count = any(3) ? any(1 << 20) : UINT64_MAX;
    s->bytes = any((uint64_t)1 << 50);
    s->live_bytes = any(1 << 30);
    s->max_size = 1 + any(1 << 30);
    s->min_size = 1 + any(s->max_size);
    s->reads = any(UINT32_MAX);
    s->writes = any(UINT32_MAX);
    s->from = (double)any(1000) / 1000;
    s->until = (double)any(1000) / 1000;
}

static void random_task(struct profile_task *t)
{
    memset(t, 0, sizeof(*t));
    for (unsigned k = 0; k < BUILD_ID_MAX; k++)
        t->code.build_id[k] = (uint8_t)any(256);
    t->code.offset = any(1 << 30);
    t->needs = (uint8_t)(1 + any(PROFILE_MAX_NEEDS));
    for (unsigned i = 0; i < t->needs; i++)
        t->bytes[i] = any(1 << 24) * HY_PAGE;
    t->count = any(1 << 30);
    for (int tier = 0; tier < HY_TIERS; tier++)
        t->ns[tier] = any(3) ? any(3000000) * 1000 : 0;
}

#endif
