/* SPDX-License-Identifier: BSD-2-Clause
 * How much each call site allocates and holds. */
#include <string.h>

#include "heap/rules/sizeclass.h"
#include "place/sites_internal.h"

static uint64_t volume; /* bytes allocated at all sites */

/* Rarely written once a program runs. An update that meets another may be lost, once. */
static void note_most(uint64_t *field, uint64_t value)
{
    if (value > __atomic_load_n(field, __ATOMIC_RELAXED))
        __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static void note_least(uint64_t *field, uint64_t value)
{
    uint64_t now = __atomic_load_n(field, __ATOMIC_RELAXED);
    if (value > 0 && (now == 0 || value < now))
        __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* Large blocks in use, of all blocks of the stack: by them the nth is told. */
static void count_large(struct site *s, int by)
{
    struct site *base = s->base ? sites_entry(s->base) : s;
    __atomic_fetch_add(&base->large_blocks, by, __ATOMIC_RELAXED);
}

static bool is_large(uint64_t bytes, uint64_t weight)
{
    return bytes > SIZECLASS_MAX && weight == 1; /* not a sample */
}

static void add_live(struct site *s, int64_t bytes)
{
    int64_t now = __atomic_add_fetch(&s->live_bytes, bytes, __ATOMIC_RELAXED);
    if (bytes > 0)
        note_most(&s->peak_bytes, (uint64_t)HY_MAX(now, (int64_t)0));
    else if (now <= 0)
        __atomic_store_n(&s->until, __atomic_load_n(&volume, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    sites_add_steered_live(sites_steered_of(s), bytes);
}

static void note_size(struct site *s, uint64_t bytes)
{
    note_most(&s->max_size, bytes);
    note_least(&s->min_size, bytes);
}

static void note(struct site *s, uint64_t bytes, uint64_t weight)
{
    uint64_t before = __atomic_fetch_add(&volume, bytes * weight, __ATOMIC_RELAXED);
    if (__atomic_load_n(&s->count, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&s->from, before, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->count, weight, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->bytes, bytes * weight, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->live_count, (int64_t)weight, __ATOMIC_RELAXED);
    add_live(s, (int64_t)(bytes * weight));
    note_size(s, bytes);
}

void sites_note_alloc(site_id id, uint64_t bytes, uint64_t weight)
{
    struct site *s = sites_entry(id);
    if (is_large(bytes, weight))
        count_large(s, 1);
    note(s, bytes, weight);
}

void sites_note_free(site_id id, uint64_t bytes, uint64_t weight)
{
    struct site *s = sites_entry(id);
    if (is_large(bytes, weight))
        count_large(s, -1);
    __atomic_fetch_sub(&s->live_count, (int64_t)weight, __ATOMIC_RELAXED);
    add_live(s, -(int64_t)(bytes * weight));
}

void sites_note_mapping(site_id id, uint64_t bytes)
{
    count_large(sites_entry(id), 1);
    note(sites_entry(id), bytes, 1);
}

void sites_note_resized(site_id id, uint64_t from, uint64_t to, uint64_t more)
{
    struct site *s = sites_entry(id);
    add_live(s, (int64_t)to - (int64_t)from);
    if (more == 0)
        return;
    __atomic_fetch_add(&s->bytes, more, __ATOMIC_RELAXED);
    note_size(s, to);
}

void sites_note_unmapped(site_id id)
{
    count_large(sites_entry(id), -1);
    __atomic_fetch_sub(&sites_entry(id)->live_count, 1, __ATOMIC_RELAXED);
}

bool sites_get(site_id id, struct site_info *ret)
{
    const struct site *s = sites_entry(id);
    if (id >= sites_count())
        return false;
    memset(ret, 0, sizeof(*ret));
    ret->id_hash = s->id_hash;
    ret->n_frames = s->n_frames;
    ret->nth = s->nth;
    memcpy(ret->frames, s->frame, sizeof(ret->frames));
    ret->count = __atomic_load_n(&s->count, __ATOMIC_RELAXED);
    ret->bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
    int64_t live_count = __atomic_load_n(&s->live_count, __ATOMIC_RELAXED);
    int64_t live_bytes = __atomic_load_n(&s->live_bytes, __ATOMIC_RELAXED);
    ret->live_count = (uint64_t)HY_MAX(live_count, (int64_t)0);
    ret->live_bytes = (uint64_t)HY_MAX(live_bytes, (int64_t)0);
    double all = (double)HY_MAX(__atomic_load_n(&volume, __ATOMIC_RELAXED), 1u);
    ret->from = (double)__atomic_load_n(&s->from, __ATOMIC_RELAXED) / all;
    ret->until = live_bytes > 0 ? 1 : (double)__atomic_load_n(&s->until, __ATOMIC_RELAXED) / all;
    ret->peak_bytes = __atomic_load_n(&s->peak_bytes, __ATOMIC_RELAXED);
    ret->min_size = __atomic_load_n(&s->min_size, __ATOMIC_RELAXED);
    ret->max_size = __atomic_load_n(&s->max_size, __ATOMIC_RELAXED);
    ret->has_tier = sites_tier(id, &ret->tier);
    return true;
}
