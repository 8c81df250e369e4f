/* SPDX-License-Identifier: BSD-2-Clause
 * Blocks of the file tier that the program advises the kernel about (madvise). Shared pages of a
 * file are not zero after MADV_DONTNEED, and the kernel refuses MADV_WIPEONFORK: such pages become
 * what the program takes them for, on DRAM, until the block has been freed and its memory given
 * back. Free memory leaves the file as well where addresses are short (supply_file_release). */
#include <errno.h>

#include "heap/supply_internal.h"
#include "sys/filter.h"

/* Its blocks go back with the next look at who sees the file. */
static int leave(struct tier_supply *s, struct chunk *c, char *at, size_t bytes, bool keep)
{
    bool ours = c->file == s->file && s->fd >= 0;
    uint32_t view = c->view;
    bool closed = os_is_unreadable(at, bytes); /* as programs do to what they give back */
    if (ours && !supply_can_shed(s))
        return -ENOMEM;
    if (keep && closed)
        return -EACCES;
    int e = keep ? os_copy_to_anon(at, bytes) : os_replace_by_anon(at, bytes);
    if (e)
        return e;
    if (closed)
        (void)os_no_access(at, bytes);
    c = supply_split_chunk(s, c, at, bytes);
    c->shared = c->full = false;
    c->anon = c->advised = true;
    if (ours)
        supply_shed(s, at, bytes, view);
    return 0;
}

static int release_part(struct tier_supply *s, struct chunk *c, char *at, size_t bytes)
{
    bool ours = c->file == s->file && s->fd >= 0 && !c->anon, sheds = ours && !c->shared;
    uint32_t view = c->view;
    if (sheds && !supply_can_shed(s))
        return -ENOMEM;
    if (ours && c->shared && !s->keeps)
        (void)os_purge_shared(at, bytes);
    int e = os_unmap(at, bytes);
    if (e)
        return e;
    c = supply_split_chunk(s, c, at, bytes);
    c->shared = c->full = c->advised = false;
    c->anon = c->released = true;
    if (sheds)
        supply_shed(s, at, bytes, view);
    return 0;
}

static int leave_all(struct tier_supply *s, char *at, const char *end, bool keep)
{
    size_t part;
    for (; at < end; at += part) {
        struct chunk *c = supply_grow_chunks(s, 2) ? supply_chunk_at(s, at, end, &part) : NULL;
        if (!c)
            return -ENOMEM;
        int e = c->anon ? 0 : leave(s, c, at, part, keep);
        if (e)
            return e;
    }
    return 0;
}

int supply_leave_file(void *base, size_t bytes, bool keep)
{
    struct tier_supply *s = &hy_supply[HY_PM];
    unsigned long signals;
    bool calls = os_calls_begin(); /* a sandboxed program forks no more */
    if (calls)                     /* a handler that forks must find each chunk as it is noted */
        os_hold_signals(&signals);
    int e = leave_all(s, base, (char *)base + bytes, keep);
    if (calls) {
        os_let_signals(signals);
        os_calls_end();
    }
    return e;
}

static int renew_part(struct tier_supply *s, struct chunk *c, char *at, size_t bytes, bool in_use)
{
    bool sheds = c->file == s->file && s->fd >= 0 && !c->anon;
    uint32_t view = c->view;
    if (sheds && !supply_can_shed(s))
        return -ENOMEM;
    int e = os_replace_by_anon(at, bytes);
    if (e)
        return e;
    c = supply_split_chunk(s, c, at, bytes);
    c->shared = c->full = false;
    c->anon = true;
    c->advised = in_use;
    if (sheds)
        supply_shed(s, at, bytes, view);
    return 0;
}

enum change { RELEASE, RENEW, RENEW_IN_USE };

static int change_all(struct tier_supply *s, char *base, size_t bytes, enum change what)
{
    unsigned long signals;
    size_t part = 0;
    int e = 0;
    bool calls = os_calls_begin();
    if (calls)
        os_hold_signals(&signals);
    for (char *at = base, *end = base + bytes; e == 0 && at < end; at += part) {
        struct chunk *c = supply_grow_chunks(s, 2) ? supply_chunk_at(s, at, end, &part) : NULL;
        e = !c                ? -ENOMEM
            : what == RELEASE ? release_part(s, c, at, part)
                              : renew_part(s, c, at, part, what == RENEW_IN_USE);
    }
    if (calls) {
        os_let_signals(signals);
        os_calls_end();
    }
    return e;
}

int supply_file_release(struct tier_supply *s, char *base, size_t bytes)
{
    return change_all(s, base, bytes, RELEASE);
}

int supply_file_renew(struct tier_supply *s, char *base, size_t bytes, bool in_use)
{
    return change_all(s, base, bytes, in_use ? RENEW_IN_USE : RENEW);
}
