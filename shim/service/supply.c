/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/supply.h"

#include <errno.h>
#include <memkind.h>
#include <string.h>

#include "base/guard.h"
#include "sys/dl.h"
#include "sys/emulator.h"
#include "sys/log.h"
#include "sys/os.h"

#define GRANULE     ((size_t)1 << 16)
#define SEGMENT_MIN (128 * HY_MIB)
/* memkind makes 4 * CPUs arenas (a power of two) in every kind, each of which
 * takes 2 MiB of the range for itself; leave twice that. */
#define ARENA_BYTES    (2 * HY_MIB)
#define ARENAS_PER_CPU 4

struct chunk {
    char *base;
    size_t bytes;
    /* Pages of the tier's file of this number, shared: to be made private before fork.
     * 0: private or anonymous. */
    uint32_t file;
};

struct tier_supply {
    char *base;
    size_t bytes;
    size_t opened; /* of the range, by segments */
    struct supply_backing backing;
    memkind_t kind; /* of the newest segment */
    char *seg_base;
    size_t seg_bytes;
    int fd;                  /* backing file, -1 not open */
    uint32_t file;           /* its number: every file that is opened has another */
    bool keeps;              /* blocks cannot be given back before the end */
    struct os_file_id fd_id; /* the program may close our fd and reuse its number */
    bool dir_failed;
    size_t no_room_for; /* a segment for so much was not to be had; not asked again until then */
    uint64_t no_room_until;
    struct chunk *chunk; /* all that was taken */
    size_t n_chunks, cap_chunks;
};

static struct tier_supply supply[HY_TIERS];
static bool closed;
static bool strict_overcommit;
static uint32_t inside; /* threads that may be in memkind */
#define CLOSE_WAITS     20000
#define CLOSE_WAIT_NS   100000ull
#define NO_ROOM_NS      20000000ull
#define ROOM_FOR_OTHERS (64 * HY_MIB)
#define MEMKIND_RECORDS (16 * HY_MIB)
/* Its calls of malloc can make glibc map 128 MiB first, for an arena of the thread. */
#define MEMKIND_ROOM (128 * HY_MIB + MEMKIND_RECORDS)

static struct {
    int (*create_fixed)(void *, size_t, memkind_t *);
    int (*posix_memalign)(memkind_t, void **, size_t, size_t);
    void (*free)(memkind_t, void *);
} mk;

int supply_load(char *err, size_t err_cap)
{
    void *h = dl_open_private("libmemkind.so.0", err, err_cap);
    if (!h)
        return -ENOENT;
    strict_overcommit = os_overcommit_is_strict();
    mk.create_fixed = (int (*)(void *, size_t, memkind_t *))dl_symbol(h, "memkind_create_fixed");
    mk.posix_memalign =
        (int (*)(memkind_t, void **, size_t, size_t))dl_symbol(h, "memkind_posix_memalign");
    mk.free = (void (*)(memkind_t, void *))dl_symbol(h, "memkind_free");
    if (mk.create_fixed && mk.posix_memalign && mk.free) {
        emulator_ignore_code_of((const void *)(uintptr_t)mk.create_fixed);
        return 0;
    }
    if (err_cap) {
        static const char text[] =
            "libmemkind lacks memkind_create_fixed (1.13 or newer is needed)";
        size_t n = HY_MIN(sizeof(text) - 1, err_cap - 1);
        memcpy(err, text, n);
        err[n] = '\0';
    }
    return -ENOSYS;
}

void supply_open(enum hy_tier t, void *base, size_t bytes, const struct supply_backing *b)
{
    supply[t] = (struct tier_supply){.base = base, .bytes = bytes, .backing = *b, .fd = -1};
}

static size_t kind_overhead(void)
{
    size_t arenas = 1;
    while (arenas < (size_t)os_cpu_count() * ARENAS_PER_CPU)
        arenas *= 2;
    return arenas * ARENA_BYTES;
}

/* What is taken is never unmapped. Under RLIMIT_AS a part of the allowance stays
 * for what gives it back: thread stacks, libraries, the next allocator. So does a part of
 * the memory where the kernel promises no more than there is. */
static bool leaves_room(size_t bytes)
{
    uint64_t limit = os_address_limit();
    if (strict_overcommit && !os_could_map(bytes + ROOM_FOR_OTHERS, true))
        return false;
    return limit == UINT64_MAX || os_could_map(bytes + HY_MAX(limit / 4, MEMKIND_ROOM), false);
}

/* memkind makes records for each thread and arena that it meets, and crashes where there is no room
 * for them. */
static bool memkind_has_room(void)
{
    return (!strict_overcommit || os_could_map(MEMKIND_RECORDS, true)) &&
           (os_address_limit() == UINT64_MAX || os_could_map(MEMKIND_ROOM, false));
}

/* Once the address space is used up every allocation comes here: it must not ask the system and
 * read /proc each time. */
static bool no_room(struct tier_supply *s, size_t bytes)
{
    s->no_room_for = bytes;
    s->no_room_until = os_now_ns() + NO_ROOM_NS;
    return false;
}

static bool had_no_room(const struct tier_supply *s, size_t bytes)
{
    return s->no_room_until && bytes >= s->no_room_for && os_now_ns() < s->no_room_until;
}

/* Segments double, so that few kinds are needed (memkind's arenas are limited),
 * and no more than twice what is used is ever accessible. */
static bool open_segment(enum hy_tier t, struct tier_supply *s, size_t bytes)
{
    size_t overhead = kind_overhead();
    size_t least = hy_align_up(bytes + overhead + bytes / 4 + 4 * HY_MIB, 2 * HY_MIB);
    size_t want = HY_MAX(HY_MAX((size_t)SEGMENT_MIN, 2 * overhead), s->opened);
    want = HY_MIN(HY_MAX(want, least), s->bytes - s->opened);
    if (want < least)
        return no_room(s, bytes);

    char *base = s->base + s->opened;
    if (!leaves_room(want) && !leaves_room(want = least))
        return no_room(s, bytes);
    if (os_commit(base, want) && os_commit(base, want = least))
        return no_room(s, bytes);
    if (s->backing.nodes)
        (void)os_prefer_nodes(base, want, s->backing.nodes);
    emulator_set_tier(base, want, t);
    s->opened += want; /* also when the kind fails: its pages may be touched */
    memkind_t kind = NULL;
    if (mk.create_fixed(base, want, &kind))
        return false;
    s->kind = kind;
    s->seg_base = base;
    s->seg_bytes = want;
    return true;
}

static void *from_kind(struct tier_supply *s, size_t bytes)
{
    void *p = NULL;
    if (!s->kind || bytes > s->seg_bytes || !memkind_has_room() ||
        mk.posix_memalign(s->kind, &p, GRANULE, bytes) || !p)
        return NULL;
    /* In a thread whose jemalloc state is gone, memkind serves any kind from
     * its default arena: never trust the kind, check the address. */
    if ((uintptr_t)p - (uintptr_t)s->seg_base >= s->seg_bytes) {
        mk.free(NULL, p);
        return NULL;
    }
    return p;
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
    return s->fd >= 0 && os_file_id(s->fd, &now) == 0 && now.dev == s->fd_id.dev &&
           now.ino == s->fd_id.ino;
}

static bool open_file(struct tier_supply *s)
{
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

static void *take(enum hy_tier t, size_t bytes)
{
    struct tier_supply *s = &supply[t];
    if (had_no_room(s, bytes) || !grow_chunk_table(s, 1))
        return NULL;
    char *p = from_kind(s, bytes);
    if (!p && open_segment(t, s, bytes))
        p = from_kind(s, bytes);
    if (!p)
        return NULL;
    if (s->backing.dir && !put_on_file(s, p, bytes)) {
        mk.free(s->kind, p);
        return NULL;
    }
    s->chunk[s->n_chunks] = (struct chunk){p, bytes, s->backing.dir ? s->file : 0};
    __atomic_store_n(&s->n_chunks, s->n_chunks + 1, __ATOMIC_RELEASE);
    return p;
}

void *supply_take(enum hy_tier t, size_t bytes)
{
    void *p = NULL;
    if (!mk.create_fixed || !supply[t].bytes)
        return NULL;
    __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&closed, __ATOMIC_SEQ_CST)) {
        hy_guard_enter();
        p = take(t, bytes);
        hy_guard_leave();
    }
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return p;
}

/* The chunk that an address is in; its part of [at, end). */
static struct chunk *chunk_at(const struct tier_supply *s, const char *at, const char *end,
                              size_t *ret_bytes)
{
    for (size_t i = 0; i < s->n_chunks; i++) {
        struct chunk *c = &s->chunk[i];
        if ((uintptr_t)at - (uintptr_t)c->base < c->bytes) {
            *ret_bytes = (size_t)(HY_MIN(end, (const char *)c->base + c->bytes) - at);
            return c;
        }
    }
    return NULL;
}

/* What fork made private is given up for anonymous memory; its blocks stay with the old
 * file, which the child may see. */
static int purge_file(enum hy_tier t, char *base, size_t bytes)
{
    const struct tier_supply *s = &supply[t];
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
    if (supply[t].backing.dir)
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
    if (before.bytes)
        s->chunk[n++] = before;
    if (after.bytes)
        s->chunk[n++] = after;
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
    if (!c || !put_on_file(s, at, bytes))
        return false;
    split(s, c, at, bytes)->file = s->file;
    return true;
}

bool supply_restore(enum hy_tier t, void *base, size_t bytes)
{
    struct tier_supply *s = &supply[t];
    size_t part;
    if (!s->backing.dir)
        return true;
    for (char *at = base, *end = at + bytes; at < end; at += part)
        if (!chunk_at(s, at, end, &part) || !restore_part(s, at, part))
            return false;
    return true;
}

void supply_close(void)
{
    __atomic_store_n(&closed, true, __ATOMIC_SEQ_CST);
    /* Bounded: exit may have been called from a handler that interrupted one. */
    for (int i = 0; i < CLOSE_WAITS && __atomic_load_n(&inside, __ATOMIC_SEQ_CST) != 0; i++)
        os_sleep_ns(CLOSE_WAIT_NS);
}

bool supply_chunk(enum hy_tier t, size_t i, void **ret_base, size_t *ret_bytes)
{
    if (i >= __atomic_load_n(&supply[t].n_chunks, __ATOMIC_ACQUIRE))
        return false;
    const struct chunk *c = __atomic_load_n(&supply[t].chunk, __ATOMIC_ACQUIRE);
    *ret_base = c[i].base;
    *ret_bytes = c[i].bytes;
    return true;
}

uint64_t supply_resident_bytes(enum hy_tier t)
{
    uint64_t pages = 0;
    size_t n = __atomic_load_n(&supply[t].n_chunks, __ATOMIC_ACQUIRE);
    const struct chunk *c = __atomic_load_n(&supply[t].chunk, __ATOMIC_ACQUIRE);
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
    if (supply[t].backing.dir)
        for (size_t i = 0; i < supply[t].n_chunks; i++)
            if (!supply[t].chunk[i].file)
                bytes += supply[t].chunk[i].bytes;
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
        struct tier_supply *s = &supply[t];
        bool have_fd = s->backing.dir && fd_is_ours(s);
        for (size_t i = 0; s->backing.dir && i < s->n_chunks; i++)
            if (s->chunk[i].file)
                make_private(s, &s->chunk[i], have_fd && s->chunk[i].file == s->file);
    }
}

void supply_abandon(void)
{
    __atomic_store_n(&closed, true, __ATOMIC_SEQ_CST);
    __atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
}

void supply_postfork(void)
{
    for (int t = 0; t < HY_TIERS; t++)
        if (supply[t].fd >= 0) {
            if (fd_is_ours(&supply[t]))
                os_close(supply[t].fd);
            supply[t].fd = -1;
        }
}
