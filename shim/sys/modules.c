/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/modules.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "sys/dl.h"

#define SLOTS 512 /* power of two */
#define PROBES 32
#define WORDS (sizeof(struct module) / sizeof(uint64_t))
#define HDR_WITNESS 24 /* eh_frame_hdr: header, number of functions, first of the table */
_Static_assert(sizeof(struct module) % sizeof(uint64_t) == 0, "copied by words");

/* One writer at a time; a reader takes a copy and discards it if `seq` moved. */
struct slot {
    uint32_t seq; /* odd while it is written */
    uint64_t word[WORDS];
};
static struct slot slots[SLOTS];
static uint32_t write_lock;
static bool fork_locked;
static uint64_t epoch = 1;

uint64_t modules_epoch(void)
{
    return __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
}

static uint64_t hash_bytes(const void *p, size_t n)
{
    const uint8_t *b = p;
    uint64_t h = n;
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t w = 0;
        memcpy(&w, b + i, HY_MIN(n - i, sizeof(w)));
        h = (h ^ w) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return h;
}

static unsigned slot_of(uintptr_t handle, unsigned probe)
{
    return (unsigned)(((handle >> 4) * 0x9e3779b97f4a7c15u >> 40) + probe) & (SLOTS - 1);
}

static bool slot_read(unsigned i, struct module *ret)
{
    uint64_t w[WORDS];
    uint32_t seq = __atomic_load_n(&slots[i].seq, __ATOMIC_ACQUIRE);
    if (seq & 1)
        return false;
    for (size_t k = 0; k < WORDS; k++)
        w[k] = __atomic_load_n(&slots[i].word[k], __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&slots[i].seq, __ATOMIC_RELAXED) != seq)
        return false;
    memcpy(ret, w, sizeof(*ret));
    return true;
}

static void slot_write(unsigned i, const struct module *m)
{
    uint64_t w[WORDS];
    memcpy(w, m, sizeof(w));
    __atomic_fetch_add(&slots[i].seq, 1, __ATOMIC_ACQ_REL);
    for (size_t k = 0; k < WORDS; k++)
        __atomic_store_n(&slots[i].word[k], w[k], __ATOMIC_RELEASE);
    __atomic_fetch_add(&slots[i].seq, 1, __ATOMIC_RELEASE);
}

static size_t witness_bytes(const struct module *m)
{
    return m->build_id_len > 0 ? m->build_id_len : HDR_WITNESS;
}

static bool still_holds(const struct module *m, const struct dl_object *o)
{
    return m->start == o->start && m->end == o->end && m->bias == o->bias &&
           (m->witness == 0 ||
            hash_bytes((const void *)m->witness, witness_bytes(m)) == m->witness_hash);
}

/* The GNU build-id among the notes at [p, end), NULL if there is none. */
static const uint8_t *find_note(const uint8_t *p, const uint8_t *end, uint32_t *ret_len)
{
    while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *n = (const void *)p;
        uint64_t name = ((uint64_t)n->n_namesz + 3) & ~3ull;
        uint64_t desc = ((uint64_t)n->n_descsz + 3) & ~3ull;
        p += sizeof(*n);
        if (name + desc > (size_t)(end - p))
            break;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && memcmp(p, "GNU", 4) == 0 &&
            n->n_descsz > 0) {
            *ret_len = HY_MIN(n->n_descsz, (uint32_t)MODULE_ID_BYTES);
            return p + name;
        }
        p += name + desc;
    }
    return NULL;
}

static bool inside(const struct dl_object *o, uintptr_t from, uint64_t bytes)
{
    return from >= o->start && from <= o->end && bytes <= o->end - from;
}

/* The build-id as it lies in the module's memory (its ELF header is mapped at
 * its start in every ordinary module; where it is not, there is none). */
static const uint8_t *find_build_id(const struct dl_object *o, uint32_t *ret_len)
{
    const ElfW(Ehdr) *eh = (const void *)o->start;
    if (o->end - o->start < HY_PAGE || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
        eh->e_phentsize != sizeof(ElfW(Phdr)) ||
        eh->e_phoff + (uint64_t)eh->e_phnum * sizeof(ElfW(Phdr)) > HY_PAGE)
        return NULL;
    const ElfW(Phdr) *ph = (const void *)(o->start + eh->e_phoff);
    for (int i = 0; i < eh->e_phnum; i++) {
        uintptr_t at = o->bias + ph[i].p_vaddr;
        if (ph[i].p_type != PT_NOTE || (at & 3) != 0 || !inside(o, at, ph[i].p_memsz))
            continue;
        const uint8_t *p = (const void *)at;
        const uint8_t *id = find_note(p, p + ph[i].p_memsz, ret_len);
        if (id != NULL)
            return id;
    }
    return NULL;
}

static void describe(const struct dl_object *o, struct module *ret)
{
    uint32_t len = 0;
    const uint8_t *id = find_build_id(o, &len);
    uintptr_t hdr = (uintptr_t)o->eh_frame_hdr;
    memset(ret, 0, sizeof(*ret));
    ret->bias = o->bias;
    ret->start = o->start;
    ret->end = o->end;
    ret->handle = (uintptr_t)o->handle;
    ret->eh_frame_hdr = hdr;
    if (id != NULL) {
        memcpy(ret->id, id, len);
        ret->build_id_len = len;
        ret->witness = (uintptr_t)id;
    } else {
        uint64_t h = hash_bytes(o->name, strlen(o->name));
        memcpy(ret->id, &h, sizeof(h));
        ret->witness = hdr != 0 && inside(o, hdr, HDR_WITNESS) ? hdr : 0;
    }
    if (ret->witness != 0)
        ret->witness_hash = hash_bytes((const void *)ret->witness, witness_bytes(ret));
}

static void forget_slot(unsigned i)
{
    static const struct module none;
    slot_write(i, &none);
}

/* Writers are rare and quick; give up rather than wait for one that is not
 * scheduled. */
static bool lock_writer(void)
{
    for (int i = 0; i < 10000; i++) {
        if (__atomic_exchange_n(&write_lock, 1, __ATOMIC_ACQUIRE) == 0)
            return true;
        __asm__ volatile("" ::: "memory");
    }
    return false;
}

/* Enter m. Any older entry that overlaps it is of a module that has gone. */
static int remember(const struct module *m)
{
    struct module old;
    bool changed = false;
    unsigned at = SLOTS;
    if (!lock_writer())
        return -EAGAIN; /* without a new epoch, old knowledge would be taken for good */
    for (unsigned i = 0; i < SLOTS; i++) {
        if (slot_read(i, &old) && old.handle != 0 && old.start < m->end && m->start < old.end) {
            forget_slot(i);
            changed = true;
        }
    }
    for (unsigned k = 0; k < PROBES && at == SLOTS; k++) {
        unsigned i = slot_of(m->handle, k);
        if (slot_read(i, &old) && old.handle == 0)
            at = i;
    }
    if (at == SLOTS) { /* crowded by modules that have gone: start anew */
        for (unsigned i = 0; i < SLOTS; i++)
            forget_slot(i);
        changed = true;
        at = slot_of(m->handle, 0);
    }
    /* The epoch first: who finds the new entry must know that old ones are void. */
    if (changed)
        __atomic_fetch_add(&epoch, 1, __ATOMIC_ACQ_REL);
    slot_write(at, m);
    __atomic_store_n(&write_lock, 0, __ATOMIC_RELEASE);
    return 0;
}

int module_find(uintptr_t addr, struct module *ret)
{
    struct dl_object o;
    struct module m;
    if (dl_find((const void *)addr, &o) != 0)
        return -ENOENT;
    for (unsigned k = 0; k < PROBES; k++) {
        unsigned i = slot_of((uintptr_t)o.handle, k);
        if (!slot_read(i, &m) || m.handle == 0 || m.handle != (uintptr_t)o.handle)
            continue;
        if (!still_holds(&m, &o))
            break;
        *ret = m;
        return 0;
    }
    describe(&o, &m);
    int r = remember(&m);
    if (r == 0)
        *ret = m;
    return r;
}

void modules_prefork(void)
{
    fork_locked = lock_writer();
}

void modules_postfork(void)
{
    if (fork_locked)
        __atomic_store_n(&write_lock, 0, __ATOMIC_RELEASE);
    fork_locked = false;
}
