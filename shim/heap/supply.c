/* SPDX-License-Identifier: BSD-2-Clause
 * What was taken, and how it is given back; supply_memkind.c is where PM comes
 * from, supply_file.c how it lies on a file. */
#include "heap/supply_internal.h"

#include <errno.h>
#include <string.h>

#include "base/guard.h"
#include "sys/emulator.h"
#include "sys/filter.h"
#include "sys/os.h"

struct tier_supply hy_supply[HY_TIERS] = {{.fd = -1, .kin = -1}, {.fd = -1, .kin = -1}};

/* The first of PM needs no memkind, which takes 3 ms and 2 MiB: a twentieth of what a program takes
 * that fills so much. A file's segments need its records. */
#define PM_OWN (64 * HY_MIB)

void supply_open(enum hy_tier t, void *base, size_t bytes, const struct supply_backing *b)
{
    struct tier_supply *s = &hy_supply[t];
    s->base = base;
    s->bytes = bytes;
    s->own = t == HY_DRAM ? bytes : b->dir ? 0 : HY_MIN(PM_OWN, bytes / 2);
    s->opened = s->own;
    s->backing = *b;
    s->fd = s->kin = -1;
}

void supply_settle_dram(uint64_t nodes)
{
    struct tier_supply *s = &hy_supply[HY_DRAM];
    __atomic_store_n(&s->backing.nodes, nodes, __ATOMIC_SEQ_CST);
    size_t n = __atomic_load_n(&s->n_chunks, __ATOMIC_ACQUIRE);
    const struct chunk *c = __atomic_load_n(&s->chunk, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < n; i++) {
        if (nodes)
            (void)os_prefer_nodes(c[i].base, c[i].bytes, nodes);
        emulator_set_tier(c[i].base, c[i].bytes, HY_DRAM);
    }
}

bool supply_lend(void *base, size_t bytes, enum hy_tier to, bool bind, uint64_t nodes)
{
    if (to == HY_DRAM)
        nodes = __atomic_load_n(&hy_supply[HY_DRAM].backing.nodes, __ATOMIC_RELAXED);
    emulator_set_tier(base, bytes, to);
    if (!bind)
        return true;
    if (nodes == 0)
        return os_prefer_any_node(base, bytes) == 0;
    return os_prefer_nodes(base, bytes, nodes) == 0;
}

/* Most processes have no more, and map no table for them. */
static struct chunk first_chunks[HY_TIERS][8];

/* Room for `more` chunks. */
bool supply_grow_chunks(struct tier_supply *s, size_t more)
{
    size_t cap = s->cap_chunks ? HY_MAX(s->cap_chunks * 2, HY_PAGE / sizeof(struct chunk))
                               : HY_ARRAY_SIZE(first_chunks[0]);
    void *m;
    if (s->n_chunks + more <= s->cap_chunks)
        return true;
    if (s->cap_chunks == 0) {
        __atomic_store_n(&s->chunk, first_chunks[s - hy_supply], __ATOMIC_RELEASE);
        s->cap_chunks = cap;
        return true;
    }
    if (os_map_anon(cap * sizeof(struct chunk), &m))
        return false;
    /* The old table stays mapped: reports may be reading it. */
    memcpy(m, s->chunk, s->n_chunks * sizeof(struct chunk));
    __atomic_store_n(&s->chunk, (struct chunk *)m, __ATOMIC_RELEASE);
    s->cap_chunks = cap;
    return true;
}

#define ASKED HY_GIB /* from here on: less is small beside any machine */

bool supply_is_promised(const struct tier_supply *s, size_t bytes)
{
    return bytes < ASKED || s->backing.dir || os_could_map(bytes, true);
}

size_t supply_own_left(const struct tier_supply *s)
{
    return s->own - __atomic_load_n(&s->mapped, __ATOMIC_RELAXED);
}

/* The next part of the range, as much as was asked for. */
static void *take_own(struct tier_supply *s, size_t bytes, enum hy_tier t)
{
    char *p = s->base + s->mapped;
    if (bytes > supply_own_left(s) || !supply_is_promised(s, bytes) || os_commit(p, bytes))
        return NULL;
    __atomic_store_n(&s->mapped, s->mapped + bytes, __ATOMIC_RELAXED);
    if (s->backing.nodes)
        (void)os_prefer_nodes(p, bytes, s->backing.nodes);
    emulator_set_tier(p, bytes, t);
    return p;
}

bool supply_may_share(const struct tier_supply *s)
{
    return !s->backing.confined() && os_data_limit() == UINT64_MAX;
}

bool supply_has_files(void)
{
    return hy_supply[HY_PM].backing.dir;
}

bool supply_is_shared(void)
{
    const struct tier_supply *s = &hy_supply[HY_PM];
    size_t n = s->backing.dir ? __atomic_load_n(&s->n_chunks, __ATOMIC_ACQUIRE) : 0;
    const struct chunk *c = __atomic_load_n(&s->chunk, __ATOMIC_ACQUIRE);
    while (n > 0 && !c[n - 1].shared)
        n--;
    return n > 0;
}

static void *take_pm(struct tier_supply *s, size_t bytes, bool *ret_full)
{
    struct piece *from = NULL;
    if (s->backing.dir && !supply_may_share(s))
        return NULL;
    char *p = take_own(s, bytes, HY_PM);
    if (p)
        return p;
    p = supply_from_stock(s, bytes, &from);
    if (p && s->backing.dir && !supply_file_put(s, p, bytes, ret_full)) {
        from->at -= bytes;
        return NULL;
    }
    return p;
}

void *supply_take(enum hy_tier t, size_t bytes)
{
    struct tier_supply *s = &hy_supply[t];
    unsigned long signals = 0;
    void *p = NULL;
    bool calls = s->backing.dir && os_calls_begin(), full = false;
    if (s->backing.dir && !calls)
        return NULL;
    if (calls) /* a handler that forks would find pages of the file that no chunk knows */
        os_hold_signals(&signals);
    hy_guard_enter();
    if (supply_grow_chunks(s, 1))
        p = t == HY_DRAM ? take_own(s, bytes, t) : take_pm(s, bytes, &full);
    hy_guard_leave();
    if (p) {
        s->chunk[s->n_chunks] = (struct chunk){
            .base = p, .bytes = bytes, .file = s->file, .shared = s->backing.dir, .full = full};
        supply_index_chunk(s, s->n_chunks);
        __atomic_store_n(&s->n_chunks, s->n_chunks + 1, __ATOMIC_RELEASE);
    }
    if (calls) {
        os_let_signals(signals);
        os_calls_end();
    }
    return p;
}

int supply_purge(enum hy_tier t, void *base, size_t bytes)
{
    if (hy_supply[t].backing.dir)
        return supply_file_purge(&hy_supply[t], base, bytes);
    int e = os_purge(base, bytes);
    if (e == 0)
        emulator_discard(base, bytes);
    return e;
}

/* The range is nobody else's (sys/range.c): what is released is mapped again where it was. */
int supply_release(enum hy_tier t, void *base, size_t bytes)
{
    struct tier_supply *s = &hy_supply[t];
    s->tight = true;
    if (bytes == 0) {
        supply_release_stock(s);
        return 0;
    }
    int e = s->backing.dir ? supply_file_release(s, base, bytes) : os_unmap(base, bytes);
    if (e == 0)
        emulator_discard(base, bytes);
    return e;
}

bool supply_map_again(const struct tier_supply *s, void *base, size_t bytes)
{
    if (os_replace_by_anon(base, bytes))
        return false;
    if (s->backing.nodes)
        (void)os_prefer_nodes(base, bytes, s->backing.nodes);
    emulator_set_tier(base, bytes, s == &hy_supply[HY_PM] ? HY_PM : HY_DRAM);
    return true;
}

int supply_renew(enum hy_tier t, void *base, size_t bytes, bool in_use)
{
    struct tier_supply *s = &hy_supply[t];
    if (s->backing.dir)
        return supply_file_renew(s, base, bytes, in_use);
    if (!supply_map_again(s, base, bytes))
        return -ENOMEM;
    emulator_discard(base, bytes);
    return 0;
}

bool supply_restore(enum hy_tier t, void *base, size_t bytes)
{
    struct tier_supply *s = &hy_supply[t];
    if (s->backing.dir)
        return supply_file_restore(s, base, bytes);
    return !s->tight || supply_map_again(s, base, bytes);
}

bool supply_chunk(enum hy_tier t, size_t i, void **ret_base, size_t *ret_bytes)
{
    if (i >= __atomic_load_n(&hy_supply[t].n_chunks, __ATOMIC_ACQUIRE))
        return false;
    const struct chunk *c = __atomic_load_n(&hy_supply[t].chunk, __ATOMIC_ACQUIRE);
    *ret_base = c[i].base;
    *ret_bytes = c[i].bytes;
    return true;
}

uint64_t supply_resident_bytes(enum hy_tier t)
{
    uint64_t pages = 0;
    size_t n = __atomic_load_n(&hy_supply[t].n_chunks, __ATOMIC_ACQUIRE);
    const struct chunk *c = __atomic_load_n(&hy_supply[t].chunk, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < n; i++) {
        size_t here = 0;
        if (os_resident_pages(c[i].base, c[i].bytes, &here) == 0)
            pages += here;
    }
    return pages * HY_PAGE;
}
