/* SPDX-License-Identifier: BSD-2-Clause
 * What is in the registry's file, how it is touched, and whether the owner of a slot lives. */
#include "place/registry_file.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x3147455252425948ull /* "HYBRREG1" */

_Static_assert(sizeof(struct reg_header) == HY_PAGE, "layout is part of REGISTRY_VERSION");
_Static_assert(offsetof(struct reg_header, budget) == 64, "layout is part of REGISTRY_VERSION");
_Static_assert(sizeof(struct reg_slot) == 512, "layout is part of REGISTRY_VERSION");
_Static_assert(offsetof(struct reg_slot, name) == 104, "layout is part of REGISTRY_VERSION");
_Static_assert(sizeof(struct reg_file) == REGISTRY_BYTES, "the contract tells the size");
_Static_assert(HY_PAGE == REG_PAGE_SLOTS * sizeof(struct reg_slot),
               "no slot crosses a page: one write");

/* --- owners ------------------------------------------------------------- */

/* state:2 | pid:22 | start time:22 | stack start:18, in one word, so that taking
 * a slot and saying who took it is one step. The kernel's pids end at 2^22. Pid
 * reuse shows in both other parts, exec in the last: 1 in 2^18 passes unseen. */
enum { PID_BITS = 22, START_BITS = 22, STACK_BITS = 18 };
enum { PID_SHIFT = 2, START_SHIFT = PID_SHIFT + PID_BITS, STACK_SHIFT = START_SHIFT + START_BITS };
_Static_assert(STACK_SHIFT + STACK_BITS == 64, "the word is full");

static uint64_t low_bits(uint64_t v, int bits)
{
    return v & (((uint64_t)1 << bits) - 1);
}

uint64_t reg_identity(const struct os_proc_id *id)
{
    uint64_t stack = (id->stack_start >> 4) * 0x9e3779b97f4a7c15ull >> (64 - STACK_BITS);
    if (id->stack_start != 0 && stack == 0)
        stack = 1; /* 0: not told */
    return low_bits((uint64_t)id->pid, PID_BITS) << PID_SHIFT |
           low_bits(id->start_time, START_BITS) << START_SHIFT | stack << STACK_SHIFT;
}

int32_t reg_pid(uint64_t word)
{
    return (int32_t)low_bits(word >> PID_SHIFT, PID_BITS);
}

/* Has the process image named by `word` gone? Costs a read of /proc. When the
 * kernel does not tell, it is taken to live. */
static bool owner_gone(uint64_t word)
{
    struct os_proc_id now;
    int err = os_proc_id(reg_pid(word), &now);
    if (err != 0)
        return err == -ESRCH;
    uint64_t was = word & ~(uint64_t)3, is = reg_identity(&now);
    /* The stack's place is told to processes of the same user only. */
    if (was >> STACK_SHIFT == 0 || is >> STACK_SHIFT == 0)
        return low_bits(was, STACK_SHIFT) != low_bits(is, STACK_SHIFT);
    return was != is;
}

/* --- content ------------------------------------------------------------ */

static const struct {
    uint16_t offset;
    uint32_t value;
} constants[] = {
    {offsetof(struct reg_header, version), REGISTRY_VERSION},
    {offsetof(struct reg_header, header_bytes), sizeof(struct reg_header)},
    {offsetof(struct reg_header, slot_bytes), sizeof(struct reg_slot)},
    {offsetof(struct reg_header, n_slots), REGISTRY_SLOTS},
    {offsetof(struct reg_header, total_bytes), sizeof(struct reg_file)},
};

static bool constants_fit(const struct reg_file *f, bool or_zero)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(constants); i++) {
        uint32_t v;
        memcpy(&v, (const char *)f + constants[i].offset, sizeof(v));
        if (v != constants[i].value && !(or_zero && v == 0))
            return false;
    }
    return true;
}

enum reg_content reg_inspect(const struct reg_file *f)
{
    const uint64_t *rest = &f->head.budget, *end = (const uint64_t *)(f + 1);
    bool blank = f->head.magic == 0 && constants_fit(f, true);

    for (; blank && rest < end; rest++)
        blank = *rest == 0;
    if (blank)
        return REG_BLANK;
    return f->head.magic == MAGIC && constants_fit(f, false) ? REG_READY : REG_FOREIGN;
}

/* --- access --------------------------------------------------------------- */

/* Locks lie beyond what anybody has in a file. */
#define LOCK_BASE ((uint64_t)1 << 40)

static uint64_t slot_offset(int i)
{
    return offsetof(struct reg_file, slot) + (uint64_t)i * sizeof(struct reg_slot);
}

static int open_file(struct reg_access *a)
{
    int fd, err = os_open_shared_file(a->path, sizeof(struct reg_file), !a->readonly, &fd);

    if (err == 0 && (err = os_file_id(fd, &a->id)) != 0)
        os_close(fd);
    a->fd = err == 0 ? fd : -1;
    return err;
}

int reg_open(struct reg_access *a, const char *path, bool readonly)
{
    void *m;
    int err = os_absolute_path(path, a->path, sizeof(a->path));

    a->readonly = readonly;
    a->slots = 0;
    a->fd = -1;
    a->pidns = os_pid_namespace();
    if (a->pidns == 0)
        a->pidns = REG_NS_UNKNOWN;
    if (err == 0)
        err = open_file(a);
    if (err == 0 && (err = os_map_anon(sizeof(struct reg_file), &m)) == 0)
        a->seen = m;
    if (err != 0)
        reg_drop_descriptor(a);
    return err;
}

void reg_close(struct reg_access *a)
{
    reg_drop_descriptor(a);
    (void)os_unmap(a->seen, sizeof(struct reg_file));
    a->seen = NULL;
}

void reg_drop_descriptor(struct reg_access *a)
{
    if (os_file_is(a->fd, &a->id))
        os_close(a->fd);
    a->fd = -1;
}

int reg_ensure_open(struct reg_access *a, bool *ret_lost)
{
    *ret_lost = !os_file_is(a->fd, &a->id);
    if (!*ret_lost)
        return 0;
    a->fd = -1;
    /* Nothing is made anew: the program may have another root by now. */
    return os_file_exists(a->path) ? open_file(a) : -ENOENT;
}

static int read_part(struct reg_access *a, uint64_t offset, size_t bytes)
{
    int err = os_read_at(a->fd, offset, (char *)a->seen + offset, bytes);
    return err == -ENODATA ? -EPROTO : err;
}

/* All of one that is no registry yet: is it nobody else's? */
static int slots_used(const struct reg_header *h)
{
    if (h->magic == 0)
        return REGISTRY_SLOTS;
    for (int page = REG_SLOT_PAGES; page > 0; page--)
        if (h->used[page - 1])
            return page * REG_PAGE_SLOTS;
    return 0;
}

/* Slots are taken from the first one on, so most pages of the file are never used: they are neither
 * read nor, here, touched. */
int reg_refresh(struct reg_access *a)
{
    int had = a->slots, err = read_part(a, 0, slot_offset(had));
    int n = err == 0 ? slots_used(&a->seen->head) : 0;

    if (err == 0 && n > had)
        err = read_part(a, slot_offset(had), (size_t)(n - had) * sizeof(struct reg_slot));
    if (err != 0)
        return err;
    if (n < had) /* it was cut, and is long again */
        memset(&a->seen->slot[n], 0, (size_t)(had - n) * sizeof(struct reg_slot));
    a->slots = n;
    return 0;
}

static int mark_used(struct reg_access *a, int i)
{
    uint8_t *used = &a->seen->head.used[i / REG_PAGE_SLOTS];

    if (*used)
        return 0;
    *used = 1;
    return os_write_at(a->fd, (uint64_t)((char *)used - (char *)a->seen), used, 1);
}

int reg_refresh_slot(struct reg_access *a, int i)
{
    return read_part(a, slot_offset(i), sizeof(struct reg_slot));
}

int reg_put_slot(struct reg_access *a, int i, const struct reg_slot *s)
{
    int err = mark_used(a, i);

    if (err == 0)
        err = os_write_at(a->fd, slot_offset(i), s, sizeof(*s));
    if (err == 0)
        a->seen->slot[i] = *s;
    return err;
}

int reg_put_budget(struct reg_access *a, uint64_t budget)
{
    a->seen->head.budget = budget;
    return os_write_at(a->fd, offsetof(struct reg_header, budget), &budget, sizeof(budget));
}

int reg_make_ready(struct reg_access *a)
{
    struct reg_header *h = &a->seen->head;
    const size_t from = sizeof(h->magic);

    for (size_t i = 0; i < HY_ARRAY_SIZE(constants); i++)
        memcpy((char *)h + constants[i].offset, &constants[i].value, sizeof(uint32_t));
    int err =
        os_write_at(a->fd, from, (char *)h + from, offsetof(struct reg_header, budget) - from);
    h->magic = MAGIC;
    return err != 0 ? err : os_write_at(a->fd, 0, &h->magic, sizeof(h->magic));
}

int reg_lock_slots(struct reg_access *a, int first, int n)
{
    return n <= 0 ? 0 : os_lock_bytes(a->fd, LOCK_BASE + (uint64_t)first, (uint64_t)n);
}

void reg_unlock_slots(struct reg_access *a, int first, int n)
{
    if (n > 0)
        (void)os_unlock_bytes(a->fd, LOCK_BASE + (uint64_t)first, (uint64_t)n);
}

bool reg_slot_dead(struct reg_access *a, int i)
{
    const struct reg_slot *s = &a->seen->slot[i];
    uint64_t ns = s->pidns == 0 ? a->pidns : s->pidns;

    if ((reg_state(s->word) != REG_CLAIMING && reg_state(s->word) != REG_LIVE) ||
        reg_pid(s->word) == 0)
        return true; /* no participant writes such a word */
    int held = os_byte_is_locked(a->fd, LOCK_BASE + (uint64_t)i);
    /* Its number means nothing here, or something else: the lock alone tells. */
    if (ns == REG_NS_UNKNOWN || ns != a->pidns)
        return held == 0;
    /* A child that was made by a raw clone may hold a dead one's lock; a daemon that closes
     * all it finds lives on without. */
    if (held == 1)
        return !os_pid_exists(reg_pid(s->word));
    return owner_gone(s->word);
}
