/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/objects.h"

#include <string.h>

#include "heap/heap.h"

/* Place in the order of the first address that is not below. */
static unsigned first_from(const struct objects *o, uintptr_t address)
{
    unsigned lo = 0, hi = o->n;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (o->object[o->order[mid]].address < address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

unsigned objects_at(struct objects *o, uintptr_t address, uint64_t length)
{
    if (length < HY_PAGE) /* a name for data, as depend(inout : p[0]) */
        length = 0;
    unsigned at = first_from(o, address);
    if (at < o->n && o->object[o->order[at]].address == address) {
        struct object *x = &o->object[o->order[at]];
        if (length > x->length) {
            x->length = length;
            x->measured = false;
        }
        return o->order[at];
    }
    if (o->n == OBJECTS_MOST)
        return OBJECT_NONE;
    unsigned i = o->n++;
    memmove(&o->order[at + 1], &o->order[at], (i - at) * sizeof(o->order[0]));
    o->order[at] = (uint16_t)i;
    o->object[i] = (struct object){.address = address, .length = length};
    if (at > 0) /* it may have reached over this one */
        o->object[o->order[at - 1]].measured = false;
    return i;
}

/* `dram` is not known afterwards if the extent has changed. */
static void measure(struct objects *o, unsigned i)
{
    struct object *x = &o->object[i];
    uintptr_t block, end, base = hy_align_up(x->address, HY_PAGE);
    size_t bytes;
    uint32_t pages = 0;
    if (heap_block_of((const void *)x->address, &block, &bytes)) {
        end = block + bytes;
        unsigned next = first_from(o, x->address + 1);
        if (x->length)
            end = HY_MIN(end, x->address + x->length);
        else if (next < o->n)
            end = HY_MIN(end, o->object[o->order[next]].address);
        end &= ~(uintptr_t)(HY_PAGE - 1);
        pages = end > base ? (uint32_t)((end - base) / HY_PAGE) : 0;
    }
    if (pages != x->pages || base != x->base) {
        x->pages = pages;
        x->base = base;
        x->dram = 0;
        x->more = 0;
        x->asked_ns = 0;
    }
    x->measured = true;
}

static void ask(struct object *x, uint64_t now_ns, objects_where_fn *where)
{
    int8_t tier[OBJECTS_ASK];
    uint32_t dram = 0, there = 0;
    for (uint32_t at = 0; at < x->pages; at += OBJECTS_ASK) {
        unsigned n = HY_MIN(x->pages - at, OBJECTS_ASK);
        if (where((void *)(x->base + at * HY_PAGE), n, tier) != 0)
            return;
        for (unsigned i = 0; i < n; i++) {
            dram += tier[i] == HY_DRAM;
            there += tier[i] >= 0;
        }
    }
    if (x->asked_ns != 0 && dram != x->dram) /* the first look tells where it has been */
        x->changed_ns = x->carried_ns = now_ns;
    x->dram = there == 0 ? x->pages : dram; /* nothing is there that could be moved */
    x->asked_ns = now_ns;
    x->staged = HY_MIN(x->staged, x->dram);
    x->more = HY_MAX(HY_MIN(x->more, (int32_t)x->dram), (int32_t)x->dram - (int32_t)x->pages);
}

void objects_look(struct objects *o, unsigned i, uint64_t old_ns, uint64_t now_ns,
                  objects_where_fn *where)
{
    struct object *x = &o->object[i];
    bool old = now_ns - x->asked_ns > old_ns;
    if (!x->measured || old)
        measure(o, i); /* its block may be another one by now */
    if (x->pages > 0 && (x->asked_ns == 0 || old))
        ask(x, now_ns, where);
}
