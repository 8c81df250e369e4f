/* SPDX-License-Identifier: BSD-2-Clause
 * What was taken, and how it is given back; supply_memkind.c is where PM comes from. */
#include "heap/supply_internal.h"

#include <errno.h>
#include <string.h>

#include "base/guard.h"
#include "sys/emulator.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/thread.h"

struct tier_supply hy_supply[HY_TIERS] = {{.fd = -1}, {.fd = -1}};

void supply_open(enum hy_tier t, void *base, size_t bytes, const struct supply_backing *b)
{
    struct tier_supply *s = &hy_supply[t];
    s->base = base;
    s->bytes = bytes;
    s->backing = *b;
    s->fd = -1;
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

/* Room for `more` chunks. */
static bool grow_chunk_table(struct tier_supply *s, size_t more)
{
    size_t cap = s->cap_chunks ? s->cap_chunks * 2 : HY_PAGE / sizeof(struct chunk);
    void *m;
    if (s->n_chunks + more <= s->cap_chunks)
        return true;
    if (os_map_anon(cap * sizeof(struct chunk), &m))
        return false;
    /* The old table stays mapped: reports may be reading it. */
    if (s->cap_chunks)
        memcpy(m, s->chunk, s->n_chunks * sizeof(struct chunk));
    __atomic_store_n(&s->chunk, (struct chunk *)m, __ATOMIC_RELEASE);
    s->cap_chunks = cap;
    return true;
}

static bool fd_is_ours(const struct tier_supply *s)
{
    struct os_file_id now;
    return s->fd >= 0 && !os_table_apart() && os_file_id(s->fd, &now) == 0 &&
           now.dev == s->fd_id.dev && now.ino == s->fd_id.ino;
}

static bool open_file(struct tier_supply *s)
{
    if (os_table_apart()) /* the file is the program's threads' to open */
        return false;
    if (fd_is_ours(s))
        return true;
    int e = s->dir_failed ? -ENOENT : os_temp_file(s->backing.dir, s->bytes, &s->fd);
    if (e == 0 && (e = os_file_id(s->fd, &s->fd_id)) == 0) {
        s->file++;
        s->keeps = os_file_maybe_dax(s->fd);
        return true;
    }
    if (!s->dir_failed)
        log_warn("HYBRID_PM=file:%s: no file can be made there (%s); using DRAM instead",
                 s->backing.dir, os_error_name(e));
    s->dir_failed = true;
    s->fd = -1;
    return false;
}

/* Lay pages of the tier's file over a chunk. Blocks are reserved first: a store
 * into a hole of a full file system would be SIGBUS. */
static bool put_on_file(struct tier_supply *s, char *base, size_t bytes)
{
    uint64_t off = (uint64_t)(base - s->base);
    if (!open_file(s))
        return false;
    if (os_file_allocate(s->fd, off, bytes))
        return false;
    if (os_map_fd_fixed(base, bytes, s->fd, off, true) == 0)
        return true;
    if (!s->keeps)
        (void)os_file_punch(s->fd, off, bytes);
    return false;
}

/* DRAM: the next part of the range, as much as was asked for. */
static void *take_dram(struct tier_supply *s, size_t bytes)
{
    char *p = s->base + s->opened;
    if (bytes > s->bytes - s->opened || os_commit(p, bytes))
        return NULL;
    s->opened += bytes;
    if (s->backing.nodes)
        (void)os_prefer_nodes(p, bytes, s->backing.nodes);
    emulator_set_tier(p, bytes, HY_DRAM);
    return p;
}

static size_t granule_in(const struct tier_supply *s, const char *at)
{
    return (size_t)(at - s->base) / SUPPLY_GRANULE;
}

/* Fork and churn make many chunks of a file: an address is looked up, not searched for. */
static void index_chunk(struct tier_supply *s, size_t i)
{
    const struct chunk *c = &s->chunk[i];
    size_t from = granule_in(s, c->base);
    for (size_t k = 0; s->chunk_of && k < c->bytes / SUPPLY_GRANULE; k++)
        s->chunk_of[from + k] = (uint32_t)i + 1;
}

/* The index can be written to up to `end`. */
static bool grow_index(struct tier_supply *s, const char *end)
{
    size_t step = HY_PAGE / sizeof(*s->chunk_of);
    size_t want = hy_align_up(granule_in(s, end), step);
    void *m;
    if (!s->chunk_of) {
        if (os_reserve(s->bytes / SUPPLY_GRANULE * sizeof(*s->chunk_of), HY_PAGE, &m))
            return false;
        s->chunk_of = m;
    }
    if (want <= s->indexed)
        return true;
    if (os_commit(s->chunk_of + s->indexed, (want - s->indexed) * sizeof(*s->chunk_of)))
        return false;
    s->indexed = want;
    return true;
}

static void *take_pm(struct tier_supply *s, size_t bytes)
{
    struct piece *from = NULL;
    char *p = supply_from_stock(s, bytes, &from);
    if (p && s->backing.dir && !(grow_index(s, p + bytes) && put_on_file(s, p, bytes))) {
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
    if (s->backing.dir) /* a handler that forks would find pages of the file that no chunk knows */
        os_hold_signals(&signals);
    hy_guard_enter();
    if (grow_chunk_table(s, 1))
        p = t == HY_DRAM ? take_dram(s, bytes) : take_pm(s, bytes);
    hy_guard_leave();
    if (p) {
        s->chunk[s->n_chunks] = (struct chunk){p, bytes, s->backing.dir ? s->file : 0};
        index_chunk(s, s->n_chunks);
        __atomic_store_n(&s->n_chunks, s->n_chunks + 1, __ATOMIC_RELEASE);
    }
    if (s->backing.dir)
        os_let_signals(signals);
    return p;
}

/* The chunk that an address is in; its part of [at, end). */
static struct chunk *chunk_at(const struct tier_supply *s, const char *at, const char *end,
                              size_t *ret_bytes)
{
    size_t granule = granule_in(s, at);
    uint32_t i = granule < s->indexed ? s->chunk_of[granule] : 0;
    if (i == 0)
        return NULL;
    struct chunk *c = &s->chunk[i - 1];
    *ret_bytes = (size_t)(HY_MIN(end, (const char *)c->base + c->bytes) - at);
    return c;
}

/* What fork made private is given up for anonymous memory; its blocks stay with the old
 * file, which the child may see. */
static int purge_file(enum hy_tier t, char *base, size_t bytes)
{
    const struct tier_supply *s = &hy_supply[t];
    size_t part;
    for (char *at = base, *end = base + bytes; at < end; at += part) {
        const struct chunk *c = chunk_at(s, at, end, &part);
        int e = !c         ? -EINVAL
                : !c->file ? os_replace_by_anon(at, part)
                : s->keeps ? -EOPNOTSUPP
                           : os_purge_shared(at, part);
        if (e) {
            (void)supply_restore(t, base, (size_t)(at - base)); /* it goes on being in use */
            return e;
        }
    }
    return 0;
}

int supply_purge(enum hy_tier t, void *base, size_t bytes)
{
    if (hy_supply[t].backing.dir)
        return purge_file(t, base, bytes);
    int e = os_purge(base, bytes);
    if (e == 0)
        emulator_discard(base, bytes);
    return e;
}

/* A part of a chunk becomes one of its own. Room for two more must be there. */
static struct chunk *split(struct tier_supply *s, struct chunk *c, char *at, size_t bytes)
{
    struct chunk before = {c->base, (size_t)(at - c->base), c->file};
    struct chunk after = {
        at + bytes, before.bytes ? c->bytes - before.bytes - bytes : c->bytes - bytes, c->file};
    size_t n = s->n_chunks;
    *c = (struct chunk){at, bytes, c->file};
    for (int i = 0; i < 2; i++)
        if ((i ? after : before).bytes) {
            s->chunk[n] = i ? after : before;
            index_chunk(s, n++);
        }
    __atomic_store_n(&s->n_chunks, n, __ATOMIC_RELEASE);
    return c;
}

/* Free memory in a hole, or no longer on the file: back on it before it is used. */
static bool restore_part(struct tier_supply *s, char *at, size_t bytes)
{
    size_t part;
    if (!grow_chunk_table(s, 2))
        return false;
    struct chunk *c = chunk_at(s, at, at + bytes, &part);
    if (c && c->file && c->file == s->file && fd_is_ours(s))
        return os_file_allocate(s->fd, (uint64_t)(at - s->base), bytes) == 0;
    /* Without the file's descriptor it is given up for DRAM: it is free memory. */
    if (c && c->file && os_table_apart() && os_replace_by_anon(at, bytes) == 0) {
        split(s, c, at, bytes)->file = 0;
        return true;
    }
    if (!c || !put_on_file(s, at, bytes))
        return false;
    split(s, c, at, bytes)->file = s->file;
    return true;
}

/* The range is nobody else's (sys/range.c): what is released is mapped again where it was. */
int supply_release_dram(void *base, size_t bytes)
{
    int e = os_unmap(base, bytes);
    if (e == 0)
        emulator_discard(base, bytes);
    return e;
}

static bool map_dram_again(const struct tier_supply *s, void *base, size_t bytes)
{
    if (os_replace_by_anon(base, bytes))
        return false;
    if (s->backing.nodes)
        (void)os_prefer_nodes(base, bytes, s->backing.nodes);
    emulator_set_tier(base, bytes, HY_DRAM);
    return true;
}

bool supply_restore(enum hy_tier t, void *base, size_t bytes)
{
    struct tier_supply *s = &hy_supply[t];
    size_t part;
    if (t == HY_DRAM)
        return map_dram_again(s, base, bytes);
    if (!s->backing.dir)
        return true;
    unsigned long signals;
    bool ok = true;
    os_hold_signals(&signals);
    for (char *at = base, *end = at + bytes; ok && at < end; at += part)
        ok = chunk_at(s, at, end, &part) && restore_part(s, at, part);
    os_let_signals(signals);
    return ok;
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

uint64_t supply_private_bytes(enum hy_tier t)
{
    uint64_t bytes = 0;
    if (hy_supply[t].backing.dir)
        for (size_t i = 0; i < hy_supply[t].n_chunks; i++)
            if (!hy_supply[t].chunk[i].file)
                bytes += hy_supply[t].chunk[i].bytes;
    return bytes;
}

/* A chunk becomes a private view of its file; where the program has closed our
 * descriptor, a copy (other threads' stores during it may be lost: said). */
static void make_private(struct tier_supply *s, struct chunk *c, bool have_fd)
{
    static bool told;
    int e = have_fd
                ? os_map_fd_fixed(c->base, c->bytes, s->fd, (uint64_t)(c->base - s->base), false)
                : os_copy_to_anon(c->base, c->bytes);
    if (e)
        log_warn_once(&told, "fork: memory at %p stays shared with the child (%s)", (void *)c->base,
                      os_error_name(e));
    else if (!have_fd && !os_single_threaded())
        log_warn_once(&told,
                      "fork: the program closed the file behind HYBRID_PM=file:%s; "
                      "copied its pages while threads run",
                      s->backing.dir);
    if (e == 0)
        c->file = 0;
}

void supply_prefork(void)
{
    for (int t = 0; t < HY_TIERS; t++) {
        struct tier_supply *s = &hy_supply[t];
        bool have_fd = s->backing.dir && fd_is_ours(s);
        for (size_t i = 0; s->backing.dir && i < s->n_chunks; i++)
            if (s->chunk[i].file)
                make_private(s, &s->chunk[i], have_fd && s->chunk[i].file == s->file);
    }
}

void supply_postfork(void)
{
    for (int t = 0; t < HY_TIERS; t++)
        if (hy_supply[t].fd >= 0) {
            if (fd_is_ours(&hy_supply[t]))
                os_close(hy_supply[t].fd);
            hy_supply[t].fd = -1;
        }
}
