/* SPDX-License-Identifier: BSD-2-Clause
 * PM as pages of an unlinked file, across fork. A child has private views of what its parent had,
 * so no block of the file that it may see can be given back or used again while it lives:
 *   - what the parent frees meanwhile is shed: noted, and given back when no child is left;
 *   - where its address is used again before that, it is at another place in the file. */
#include <errno.h>
#include <string.h>

#include "heap/supply_internal.h"
#include "sys/filter.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/thread.h"

static void let(int fd)
{
    if (os_table_apart())
        os_close(fd);
}

/* A descriptor of ours for the calls of this thread, which may have left the program's table; -1:
 * the program has closed it. */
static int hold_lock(int fd, const struct os_file_id *id)
{
    int got = fd >= 0 && os_table_apart() ? os_table_borrow(fd) : fd;
    if (os_file_is(got, id))
        return got;
    let(got);
    return -1;
}

static bool fd_is_ours(const struct tier_supply *s)
{
    return !os_table_apart() && os_file_is(s->fd, &s->fd_id);
}

static void drop_kin(struct tier_supply *s)
{
    if (s->kin >= 0 && os_file_is(s->kin, &s->kin_id))
        os_close(s->kin);
    s->kin = -1;
}

/* What is on this file stays as it is until its mappings go; what comes next is on another. */
static void drop_file(struct tier_supply *s)
{
    if (!s->backing.confined()) {
        if (fd_is_ours(s))
            os_close(s->fd);
        drop_kin(s);
    }
    s->fd = s->kin = -1;
    s->n_shed = 0;
    s->shed_bytes = 0;
}

static bool open_file(struct tier_supply *s)
{
    if (os_table_apart()) /* the file is the program's threads' to open */
        return false;
    if (fd_is_ours(s))
        return true;
    drop_file(s);
    int e = s->dir_failed ? -ENOENT : os_temp_file(s->backing.dir, s->bytes, &s->fd);
    if (e == 0 && (e = os_file_id(s->fd, &s->fd_id)) == 0) {
        s->file++;
        s->keeps = os_file_maybe_dax(s->fd);
        return true;
    }
    if (!s->dir_failed && !s->inherited)
        log_warn("HYBRID_PM=file:%s: no file can be made there (%s); using DRAM instead",
                 s->backing.dir, os_error_name(e));
    s->dir_failed = true;
    s->fd = -1;
    return false;
}

static uint64_t offset_of(const struct tier_supply *s, const char *at, uint32_t view)
{
    return (uint64_t)view * s->bytes + (uint64_t)(at - s->base);
}

/* --- who else sees the file ------------------------------------------------- */

/* Nobody else sees blocks of the file (`fd` here), and none that nobody sees are left. */
static bool is_alone(struct tier_supply *s, int fd)
{
    if (s->backing.confined())
        return false;
    if (s->kin >= 0) {
        int kin = hold_lock(s->kin, &s->kin_id);
        bool gone = kin >= 0 && os_kin_gone(kin); /* closed by the program: it cannot be known */
        let(kin);
        if (!gone)
            return false;
        if (!os_table_apart())
            drop_kin(s);
    }
    while (s->n_shed > 0 && !s->keeps) {
        const struct shed *last = &s->shed[s->n_shed - 1];
        if (os_file_punch(fd, last->offset, last->bytes))
            return false;
        s->shed_bytes -= last->bytes;
        s->n_shed--;
    }
    return true;
}

bool supply_can_shed(struct tier_supply *s)
{
    size_t cap = s->cap_shed ? s->cap_shed * 2 : HY_PAGE / sizeof(struct shed);
    void *m;
    if (s->n_shed < s->cap_shed)
        return true;
    if (os_map_anon(cap * sizeof(struct shed), &m))
        return false;
    if (s->cap_shed) {
        memcpy(m, s->shed, s->n_shed * sizeof(struct shed));
        os_unmap(s->shed, s->cap_shed * sizeof(struct shed));
    }
    s->shed = m;
    s->cap_shed = cap;
    return true;
}

void supply_shed(struct tier_supply *s, const char *at, size_t bytes, uint32_t view)
{
    s->shed[s->n_shed++] = (struct shed){offset_of(s, at, view), bytes};
    s->shed_bytes += bytes;
}

/* --- chunks ----------------------------------------------------------------- */

static size_t granule_in(const struct tier_supply *s, const char *at)
{
    return (size_t)(at - s->base) / SUPPLY_GRANULE;
}

/* Fork and churn make many chunks of a file: an address is looked up, not searched for. */
void supply_index_chunk(struct tier_supply *s, size_t i)
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

struct chunk *supply_chunk_at(const struct tier_supply *s, const char *at, const char *end,
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

struct chunk *supply_split_chunk(struct tier_supply *s, struct chunk *c, char *at, size_t bytes)
{
    struct chunk before = *c, after = *c;
    size_t n = s->n_chunks;
    before.bytes = (size_t)(at - c->base);
    after.base = at + bytes;
    after.bytes = c->bytes - before.bytes - bytes;
    c->base = at;
    c->bytes = bytes;
    for (int i = 0; i < 2; i++)
        if ((i ? after : before).bytes) {
            s->chunk[n] = i ? after : before;
            supply_index_chunk(s, n++);
        }
    __atomic_store_n(&s->n_chunks, n, __ATOMIC_RELEASE);
    return c;
}

/* --- pages onto the file, and off it ----------------------------------------- */

/* Blocks are reserved first: a store into a hole of a full file system would be SIGBUS. */
static bool put_at(struct tier_supply *s, char *base, size_t bytes, uint32_t view, bool reserve)
{
    uint64_t off = offset_of(s, base, view);
    if (reserve && os_file_allocate(s->fd, off, bytes))
        return false;
    if (os_map_fd_fixed(base, bytes, s->fd, off, true) == 0)
        return true;
    if (!s->keeps)
        (void)os_file_punch(s->fd, off, bytes);
    return false;
}

bool supply_file_put(struct tier_supply *s, char *base, size_t bytes, bool *ret_full)
{
    if (!grow_index(s, base + bytes) || !open_file(s))
        return false;
    *ret_full = s->keeps || bytes <= SUPPLY_AT_ONCE;
    if (!put_at(s, base, bytes, 0, *ret_full))
        return false;
    s->file_bytes += bytes;
    return true;
}

static bool to_anon(struct tier_supply *s, struct chunk *c, char *at, size_t bytes)
{
    if (os_replace_by_anon(at, bytes))
        return false;
    c = supply_split_chunk(s, c, at, bytes);
    c->shared = c->full = false;
    c->anon = true;
    return true;
}

/* A part of the file that nobody else sees is shared again. */
static bool share_again(struct tier_supply *s, struct chunk *c, char *at, size_t bytes)
{
    if (!supply_may_share(s))
        return false;
    int fd = hold_lock(s->fd, &s->fd_id);
    bool ok = fd >= 0 && is_alone(s, fd) &&
              os_map_fd_fixed(at, bytes, fd, offset_of(s, at, c->view), true) == 0;
    let(fd);
    if (ok)
        supply_split_chunk(s, c, at, bytes)->shared = true; /* and not full */
    return ok;
}

/* Off the private view that a fork has left. Where nobody else sees the blocks, the file is there
 * again; else they are shed, or are another file's, and go with it. */
static int purge_private(struct tier_supply *s, struct chunk *c, char *at, size_t bytes)
{
    uint32_t view = c->view;
    bool ours = c->file == s->file && s->fd >= 0;
    if (ours && share_again(s, c, at, bytes))
        return s->keeps ? -EOPNOTSUPP : os_purge_shared(at, bytes);
    if ((ours && !supply_can_shed(s)) || !to_anon(s, c, at, bytes))
        return -ENOMEM;
    if (ours)
        supply_shed(s, at, bytes, view);
    return 0;
}

static int purge_part(struct tier_supply *s, char *at, const char *end, size_t *ret_bytes)
{
    *ret_bytes = 0;
    if (!supply_grow_chunks(s, 2))
        return -ENOMEM;
    struct chunk *c = supply_chunk_at(s, at, end, ret_bytes);
    if (!c)
        return -EINVAL;
    if (c->anon) {
        supply_split_chunk(s, c, at, *ret_bytes)->advised = false;
        return os_purge(at, *ret_bytes);
    }
    if (!c->shared)
        return purge_private(s, c, at, *ret_bytes);
    c->full = s->keeps;
    return s->keeps ? -EOPNOTSUPP : os_purge_shared(at, *ret_bytes);
}

int supply_file_purge(struct tier_supply *s, char *base, size_t bytes)
{
    unsigned long signals;
    size_t part;
    int e = 0;
    bool calls = os_calls_begin(); /* a sandboxed program forks no more */
    if (calls)                     /* a handler that forks must find each chunk as it is noted */
        os_hold_signals(&signals);
    for (char *at = base, *end = base + bytes; e == 0 && at < end; at += part) {
        e = purge_part(s, at, end, &part);
        if (e) /* it goes on being in use */
            (void)supply_file_restore(s, base, (size_t)(at - base));
    }
    if (calls) {
        os_let_signals(signals);
        os_calls_end();
    }
    return e;
}

/* Free memory in a hole, or no longer on the file: back on it before it is used. */
static bool restore_part(struct tier_supply *s, char *at, const char *end, size_t *ret_bytes)
{
    if (!supply_grow_chunks(s, 2))
        return false;
    struct chunk *c = supply_chunk_at(s, at, end, ret_bytes);
    size_t bytes = c ? *ret_bytes : 0;
    if (c && c->released) {
        if (os_replace_by_anon(at, bytes))
            return false;
        c = supply_split_chunk(s, c, at, bytes);
        c->released = false;
    }
    if (!c || (!c->shared && !supply_may_share(s))) /* private memory serves as it is */
        return c;
    if (c->shared && c->file == s->file && fd_is_ours(s))
        return os_file_allocate(s->fd, offset_of(s, at, c->view), bytes) == 0;
    if (os_table_apart()) { /* without the file's descriptor it is given up for DRAM: it is free */
        if (!to_anon(s, c, at, bytes))
            return false;
        c->file = 0;
        return true;
    }
    if (!open_file(s))
        return false;
    uint32_t view = 0;
    if (c->file == s->file && (!is_alone(s, s->fd) || s->keeps)) {
        /* Children bind no more of the file than the heap has ever had. */
        if (s->shed_bytes > s->file_bytes || !supply_can_shed(s))
            return false;
        view = c->view + 1;
    }
    bool leaves = c->file == s->file && !c->anon && view != c->view;
    uint32_t before = c->view;
    if (!put_at(s, at, bytes, view, true))
        return !c->shared && os_is_limited();
    if (leaves) /* a free run that lay in the private view */
        supply_shed(s, at, bytes, before);
    c = supply_split_chunk(s, c, at, bytes);
    *c = (struct chunk){at, bytes, s->file, view, .shared = true, .full = true};
    return true;
}

/* Nothing of it has been given back yet. */
static bool is_full(const struct tier_supply *s, const char *base, size_t bytes)
{
    size_t part;
    for (const char *at = base, *end = at + bytes; at < end; at += part) {
        const struct chunk *c = supply_chunk_at(s, at, end, &part);
        if (!c || !c->full)
            return false;
    }
    return true;
}

bool supply_file_restore(struct tier_supply *s, char *base, size_t bytes)
{
    unsigned long signals;
    size_t part = 0;
    bool ok = true;
    if (is_full(s, base, bytes))
        return true;
    if (!os_calls_begin())
        return false;
    os_hold_signals(&signals);
    for (char *at = base, *end = at + bytes; ok && at < end; at += part)
        ok = restore_part(s, at, end, &part);
    os_let_signals(signals);
    os_calls_end();
    return ok;
}

uint64_t supply_private_bytes(enum hy_tier t)
{
    uint64_t bytes = 0;
    if (hy_supply[t].backing.dir)
        for (size_t i = 0; i < hy_supply[t].n_chunks; i++)
            if (!hy_supply[t].chunk[i].shared)
                bytes += hy_supply[t].chunk[i].bytes;
    return bytes;
}

/* --- fork -------------------------------------------------------------------- */

/* Where the program has closed our descriptor, a copy (other threads' stores during it may be
 * lost: said). */
static void copy_chunk(struct tier_supply *s, struct chunk *c)
{
    static bool warned;
    int e = os_copy_to_anon(c->base, c->bytes);
    if (e)
        log_warn_once(&warned, "fork: memory at %p cannot become private (%s)",
                      (void *)c->base, os_error_name(e));
    else if (!os_single_threaded())
        log_warn_once(&warned,
                      "fork: the program closed the file behind HYBRID_PM=file:%s; "
                      "copied its pages while threads run",
                      s->backing.dir);
    if (e == 0) {
        c->shared = c->full = false;
        c->anon = true;
        c->file = 0;
    }
}

/* `c` can be made private with `first` by one call: shared, or free memory whose blocks have gone
 * back. The latter would else be a mapping of its own for each free run. */
static bool goes_with(const struct tier_supply *s, const struct chunk *c, const struct chunk *first,
                      bool alone)
{
    if (c->file != s->file)
        return false;
    return c->shared ? c->view == first->view
                     : c->anon && !c->advised && !c->released && alone && !s->keeps;
}

/* Those side by side with the first, which ends at `end`: their end. */
static char *run_end(struct tier_supply *s, char *end, const struct chunk *first, bool alone)
{
    const char *all = s->base + s->indexed * SUPPLY_GRANULE;
    size_t part;
    while (end < all) {
        const struct chunk *c = supply_chunk_at(s, end, all, &part);
        if (!c || !goes_with(s, c, first, alone))
            break;
        end = c->base + c->bytes;
    }
    return end;
}

static void note_private(struct tier_supply *s, char *at, const char *end, uint32_t view)
{
    size_t part;
    for (; at < end; at += part) {
        struct chunk *c = supply_chunk_at(s, at, end, &part);
        c->view = view;
        c->shared = c->anon = c->full = false;
    }
}

/* All shared chunks become private views, with one call for those side by side. */
static void make_private(struct tier_supply *s, bool have_fd, bool alone)
{
    char *all = s->base + s->indexed * SUPPLY_GRANULE, *next;
    size_t part;
    for (char *at = s->base; at < all; at = next) {
        struct chunk *c = supply_chunk_at(s, at, all, &part);
        next = c ? c->base + c->bytes : at + SUPPLY_GRANULE;
        if (!c || !(c->shared || (have_fd && goes_with(s, c, c, alone))))
            continue;
        char *end = have_fd && c->file == s->file ? run_end(s, next, c, alone) : at;
        if (end > at &&
            os_map_fd_fixed(at, (size_t)(end - at), s->fd, offset_of(s, at, c->view), false) == 0) {
            note_private(s, at, end, c->view);
            next = end;
        } else if (c->shared) {
            copy_chunk(s, c);
        }
    }
}

/* From here on the child counts as one that sees the file. */
static bool announce_child(struct tier_supply *s, bool alone)
{
    if (!alone && s->kin >= 0 && !os_file_is(s->kin, &s->kin_id))
        return false;
    if (s->kin < 0 && (os_kin_open(&s->kin) || os_file_id(s->kin, &s->kin_id))) {
        drop_kin(s);
        return false;
    }
    return os_kin_page(s->kin, &s->kin_page) == 0;
}

void supply_prefork(void)
{
    for (int t = 0; t < HY_TIERS; t++) {
        struct tier_supply *s = &hy_supply[t];
        if (!s->backing.dir)
            continue;
        bool have_fd = fd_is_ours(s), alone = have_fd && is_alone(s, s->fd);
        bool announced = have_fd && !s->keeps && !s->backing.confined() && announce_child(s, alone);
        make_private(s, have_fd, alone);
        /* It could not be known when its blocks are free, or they would not go back (DAX): they go
         * with the file. */
        if (have_fd && !announced)
            drop_file(s);
    }
}

void supply_postfork(bool child)
{
    for (int t = 0; t < HY_TIERS; t++) {
        struct tier_supply *s = &hy_supply[t];
        if (child && s->fd >= 0)
            drop_file(s);
        if (!child && s->kin_page)
            os_unmap(s->kin_page, HY_PAGE);
        if (s->kin_page) /* its page stays as it is */
            s->kin_page = NULL;
    }
}
