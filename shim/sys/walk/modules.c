/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/walk/modules.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "sys/dl.h"
#include "sys/os.h"

#define SLOTS         512 /* power of two */
#define PROBES        32
#define WORDS         (sizeof(struct module) / sizeof(uint64_t))
#define WITNESS_BYTES 24
_Static_assert(sizeof(struct module) % sizeof(uint64_t) == 0, "copied by words");

/* One writer at a time; a reader takes a copy and discards it if `seq` moved. */
struct slot {
    uint32_t seq; /* odd while it is written */
    uint64_t word[WORDS];
};
static struct slot slots[SLOTS];
/* One field of a slot's module. */
#define WORD(w, field)                                                                             \
    __atomic_load_n(&(w)[offsetof(struct module, field) / sizeof(uint64_t)], __ATOMIC_ACQUIRE)
static uint32_t write_lock;
static __thread bool fork_locked __attribute__((tls_model("initial-exec"))); /* by this fork */
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

static void look_at(uintptr_t witness, uint64_t w[3])
{
    memcpy(w, (const void *)witness, WITNESS_BYTES);
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

struct headers {
    const ElfW(Phdr) * ph;
    size_t n;
};

static bool is_same_module(uintptr_t addr, const struct dl_object *o)
{
    struct dl_object at;
    return dl_find((const void *)addr, &at) == 0 && at.handle == o->handle;
}

static bool read_ehdr(uintptr_t at, struct headers *ret)
{
    const ElfW(Ehdr) *eh = (const void *)at;
    if ((at & (HY_PAGE - 1)) != 0 || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
        eh->e_phentsize != sizeof(ElfW(Phdr)) || (eh->e_phoff & 7) != 0 ||
        eh->e_phoff + (uint64_t)eh->e_phnum * sizeof(ElfW(Phdr)) > HY_PAGE)
        return false;
    ret->ph = (const void *)(at + eh->e_phoff);
    ret->n = eh->e_phnum;
    return true;
}

/* The program headers in memory: the kernel tells the main program's; others
 * begin with their ELF header, which in a module with gaps between its segments
 * lies in another range than the code. */
static bool find_headers(const struct dl_object *o, struct headers *ret)
{
    uintptr_t phdr = getauxval(AT_PHDR);
    if (phdr != 0 && is_same_module(phdr, o)) {
        ret->ph = (const void *)phdr;
        ret->n = getauxval(AT_PHNUM);
        return true;
    }
    if (read_ehdr(o->start, ret))
        return true;
    return o->bias != o->start && is_same_module(o->bias, o) && read_ehdr(o->bias, ret);
}

static bool inside(const struct module *m, uintptr_t from, uint64_t bytes)
{
    return from >= m->low && from <= m->high && bytes <= m->high - from;
}

/* Bounds of all segments, and the build-id as it lies in memory. */
static const uint8_t *read_headers(const struct headers *h, struct module *m, uint32_t *ret_len)
{
    const uint8_t *id = NULL;
    for (size_t i = 0; i < h->n; i++) {
        if (h->ph[i].p_type != PT_LOAD)
            continue;
        m->low = HY_MIN(m->low, m->bias + h->ph[i].p_vaddr);
        m->high = HY_MAX(m->high, m->bias + h->ph[i].p_vaddr + h->ph[i].p_memsz);
    }
    for (size_t i = 0; i < h->n && id == NULL; i++) {
        const uint8_t *p = (const void *)(m->bias + h->ph[i].p_vaddr);
        if (h->ph[i].p_type == PT_NOTE && ((uintptr_t)p & 3) == 0 &&
            inside(m, (uintptr_t)p, h->ph[i].p_memsz))
            id = find_note(p, p + h->ph[i].p_memsz, ret_len);
    }
    return id;
}

static void describe(const struct dl_object *o, struct module *ret)
{
    uint32_t len = 0;
    const uint8_t *id = NULL;
    struct headers h;
    uintptr_t hdr = (uintptr_t)o->eh_frame_hdr;
    memset(ret, 0, sizeof(*ret));
    ret->bias = o->bias;
    ret->start = ret->low = o->start;
    ret->end = ret->high = o->end;
    ret->handle = (uintptr_t)o->handle;
    ret->eh_frame_hdr = hdr;
    if (find_headers(o, &h))
        id = read_headers(&h, ret, &len);
    /* Only what lies in the range that the loader confirms is sure to be mapped:
     * in a module with gaps, the begin of the code must do. */
    uintptr_t witness = id != NULL ? (uintptr_t)id - 4 : hdr; /* from "GNU" on */
    if (witness < o->start || o->end - o->start < WITNESS_BYTES || witness > o->end - WITNESS_BYTES)
        witness = o->end - o->start < WITNESS_BYTES ? 0 : o->start;
    if (id != NULL) {
        memcpy(ret->id, id, len);
        ret->build_id_len = len;
    } else {
        uint64_t path = hash_bytes(o->name, strlen(o->name));
        memcpy(ret->id, &path, sizeof(path));
    }
    ret->witness = witness;
    if (witness != 0)
        look_at(witness, ret->witnessed);
}

static void drop_module(unsigned i)
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
            drop_module(i);
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
            drop_module(i);
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

/* Slot of the object, if what is remembered there is still true; else SLOTS. */
static unsigned find_slot(const struct dl_object *o)
{
    for (unsigned k = 0; k < PROBES; k++) {
        unsigned i = slot_of((uintptr_t)o->handle, k);
        const uint64_t *w = slots[i].word;
        uint32_t seq = __atomic_load_n(&slots[i].seq, __ATOMIC_ACQUIRE);
        if (WORD(w, handle) != (uintptr_t)o->handle || WORD(w, start) != o->start ||
            WORD(w, end) != o->end)
            continue;
        uint64_t now[3] = {0}, change = WORD(w, bias) ^ o->bias;
        uintptr_t witness = WORD(w, witness);
        uint64_t then[3] = {WORD(w, witnessed[0]), WORD(w, witnessed[1]), WORD(w, witnessed[2])};
        if ((seq & 1) != 0 || __atomic_load_n(&slots[i].seq, __ATOMIC_RELAXED) != seq)
            break; /* just being written */
        if (witness != 0)
            look_at(witness, now);
        change |= (now[0] ^ then[0]) | (now[1] ^ then[1]) | (now[2] ^ then[2]);
        return change == 0 ? i : SLOTS;
    }
    return SLOTS;
}

int module_find(uintptr_t addr, struct module *ret)
{
    struct dl_object o;
    struct module m;
    if (dl_find((const void *)addr, &o) != 0)
        return -ENOENT;
    unsigned i = find_slot(&o);
    if (i < SLOTS && slot_read(i, &m) && m.handle == (uintptr_t)o.handle && m.start == o.start) {
        *ret = m;
        return 0;
    }
    describe(&o, &m);
    int r = remember(&m);
    if (r == 0)
        *ret = m;
    return r;
}

int module_range(uintptr_t addr, uintptr_t *ret_start, uintptr_t *ret_end)
{
    struct dl_object o;
    struct module m;
    if (dl_find((const void *)addr, &o) != 0)
        return -ENOENT;
    if (HY_UNLIKELY(find_slot(&o) == SLOTS)) {
        int r = module_find(addr, &m);
        if (r != 0)
            return r;
    }
    *ret_start = o.start;
    *ret_end = o.end;
    return 0;
}

void modules_prefork(void)
{
    fork_locked = lock_writer();
    for (int i = 0; i < 1000 && !fork_locked; i++) {
        os_sleep_ns(1000000);
        fork_locked = lock_writer();
    }
}

void modules_postfork(void)
{
    if (fork_locked)
        __atomic_store_n(&write_lock, 0, __ATOMIC_RELEASE);
    fork_locked = false;
}

static void first_object(const struct dl_object *o, void *ctx)
{
    uintptr_t *start = ctx;
    if (*start == 0) /* the main program comes first */
        *start = o->start;
}

unsigned module_exe_build_id(uint8_t id[MODULE_ID_BYTES])
{
    uintptr_t start = 0;
    struct module m;
    dl_each_object(first_object, &start);
    if (start == 0 || module_find(start, &m) != 0 || m.build_id_len == 0)
        return 0;
    memcpy(id, m.id, sizeof(m.id));
    return m.build_id_len;
}
