/* SPDX-License-Identifier: BSD-2-Clause
 * Participation in the shared file (contract: registry.h; layout, states and
 * what a kill leaves behind: registry_file.h).
 *
 * No locks: every change that others rely on is one atomic operation, so a
 * kill -9 leaves the state before it or after it, never between. */
#include "service/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "service/registry_file.h"
#include "sys/os.h"

#define MAX_THREADS (1u << 22)
#define MAX_RATIO   1000000u /* a thousand times slower: nothing is */

/* The fields of registry_told: in the slot, in the struct, the most that is believed. The
 * class is one more. */
#define TOLD_FIELDS(X)                                                                             \
    X(threads, threads, MAX_THREADS)                                                               \
    X(cap, cap, MAX_THREADS)                                                                       \
    X(confidence, confidence, 1000u)                                                               \
    X(slowdown, slowdown, MAX_RATIO)                                                               \
    X(placed_slowdown, placed_slowdown, MAX_RATIO)                                                 \
    X(pm, pm_bytes, REGISTRY_MAX_BYTES)                                                            \
    X(wish, wish_bytes, REGISTRY_MAX_BYTES)                                                        \
    X(asked, asked_bytes, REGISTRY_MAX_BYTES)                                                      \
    X(promoted, promoted_bytes, REGISTRY_MAX_BYTES)                                                \
    X(demoted, demoted_bytes, REGISTRY_MAX_BYTES)                                                  \
    X(written, written_bytes, REGISTRY_MAX_BYTES)                                                  \
    X(tracked, tracked_bytes, REGISTRY_MAX_BYTES)

enum { SLOT_NONE = -1, SLOT_JOINING = -2 };

/* Several threads use it at once: what changes while it is open is atomic. */
struct registry {
    int used;
    bool readonly;
    struct reg_file *f;
    uint64_t want_budget;
    uint64_t me;         /* reg_identity() when we joined, 0: not joined yet */
    uint64_t tag;        /* high 16 bits of our slot's dram */
    uint64_t next_sweep; /* os_now_ns() */
    int slot;
};

/* One for the process; tests open several. */
static struct registry pool[8];

/* Our slot, or NULL: not joined, or taken from us by somebody who could not see
 * us (another PID namespace). */
static struct reg_slot *own_slot(const struct registry *r)
{
    int i = REG_LOAD(&r->slot);

    if (i < 0)
        return NULL;
    struct reg_slot *s = &r->f->slot[i];
    return REG_LOAD(&s->word) == (REG_LOAD(&r->me) | REG_LIVE) ? s : NULL;
}

/* --- the dead ----------------------------------------------------------- */

static bool slot_is_of_pool(int index)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(pool); i++)
        if (REG_LOAD(&pool[i].used) && REG_LOAD(&pool[i].slot) == index)
            return true;
    return false;
}

static bool owner_is_dead(const struct registry *r, int index, uint64_t word)
{
    uint64_t me = REG_LOAD(&r->me);

    /* Exec without address randomisation repeats the stack's place: a slot with
     * our identity that nobody here knows of is left from before. */
    if (me != 0 && word == (me | REG_LIVE))
        return !slot_is_of_pool(index);
    return reg_owner_gone(word);
}

/* Is slot `index` held by somebody alive? A dead one's slot is freed. */
static bool held_by_living(struct registry *r, int index, bool *freed)
{
    uint64_t *word = &r->f->slot[index].word, w = REG_LOAD(word);

    if (reg_state(w) == REG_FREE)
        return false;
    if (!owner_is_dead(r, index, w))
        return true;
    /* Only the word is looked at, and no other image can ever write this one. */
    if (!r->readonly && reg_cas(word, w, REG_FREE))
        *freed = true;
    return false;
}

/* Free the slots of all dead ones; true if there was any. */
static bool sweep(struct registry *r)
{
    bool freed = false;

    for (int i = 0; i < REGISTRY_SLOTS; i++)
        (void)held_by_living(r, i, &freed);
    return freed;
}

/* For claims, which are near the path of malloc: at most about 5% of the time
 * goes into looking for dead ones, however long the budget stays full. */
static bool sweep_if_due(struct registry *r)
{
    uint64_t begin = os_now_ns(), due = REG_LOAD(&r->next_sweep);

    if (begin < due || !reg_cas(&r->next_sweep, due, begin + 1000000000u))
        return false;
    bool freed = sweep(r);
    uint64_t end = os_now_ns();
    REG_STORE(&r->next_sweep, end + 20 * (end - begin));
    return freed;
}

static bool alone_but_for(struct registry *r, int own)
{
    bool freed;

    for (int i = 0; i < REGISTRY_SLOTS; i++)
        if (i != own && held_by_living(r, i, &freed))
            return false;
    return true;
}

/* Whoever is alone decides the budget. A joiner (own >= 0, its slot CLAIMING)
 * raises the generation in any case: a setter that did not see its slot yet
 * has read the older word, and its CAS fails. */
static void settle_budget(struct registry *r, int own)
{
    uint64_t *budget = &r->f->head.budget;

    for (;;) {
        uint64_t w = REG_LOAD(budget);
        bool alone = alone_but_for(r, own);
        if (!alone && own < 0)
            return;
        if (reg_cas(budget, w, reg_next16(w) | (alone ? r->want_budget : reg_low48(w))))
            return;
    }
}

/* --- opening ------------------------------------------------------------ */

void registry_default_path(char *buf, size_t cap)
{
    snprintf(buf, cap, "/dev/shm/libhybrid-%u.%u", os_uid(), REGISTRY_VERSION);
}

static struct registry *take_from_pool(struct reg_file *f, bool readonly)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(pool); i++) {
        struct registry *r = &pool[i];
        int unused = 0;
        if (!__atomic_compare_exchange_n(&r->used, &unused, 1, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST))
            continue;
        r->readonly = readonly;
        r->f = f;
        r->want_budget = 0;
        REG_STORE(&r->me, 0);
        REG_STORE(&r->tag, 0);
        REG_STORE(&r->next_sweep, 0);
        REG_STORE(&r->slot, SLOT_NONE);
        return r;
    }
    return NULL;
}

/* Everybody may write into /dev/shm: at our default path, whose name others can
 * guess, only a file of our own counts. */
static int map_file(const char *path, void **ret_base)
{
    char dflt[64];
    bool created;
    int err = os_map_shared_file(path, REGISTRY_BYTES, 0600, ret_base, &created);

    if (err != -EPERM)
        return err;
    registry_default_path(dflt, sizeof(dflt));
    if (strcmp(path, dflt) == 0)
        return err;
    return os_map_shared_file(path, REGISTRY_BYTES, 0660, ret_base, &created);
}

static int adopt(void *base, bool readonly, struct registry **ret)
{
    struct reg_file *f = base;
    enum reg_content content = reg_inspect(f);
    struct registry *r = content == REG_FOREIGN ? NULL : take_from_pool(f, readonly);

    if (r == NULL) {
        (void)os_unmap(base, REGISTRY_BYTES);
        return content == REG_FOREIGN ? -EPROTO : -EMFILE;
    }
    if (content == REG_BLANK && !readonly)
        reg_make_ready(f);
    *ret = r;
    return 0;
}

int registry_open(const char *path, uint64_t dram_budget, struct registry **ret)
{
    void *base;
    struct registry *r;
    int err = map_file(path, &base);

    if (err == 0)
        err = adopt(base, false, &r);
    if (err != 0)
        return err;
    r->want_budget = HY_MIN(dram_budget, REGISTRY_MAX_BYTES);
    settle_budget(r, SLOT_NONE);
    *ret = r;
    return 0;
}

int registry_open_readonly(const char *path, struct registry **ret)
{
    void *base;
    bool created;
    int err = os_map_shared_file(path, REGISTRY_BYTES, 0, &base, &created);

    return err != 0 ? err : adopt(base, true, ret);
}

void registry_close(struct registry *r)
{
    registry_leave(r);
    (void)os_unmap(r->f, REGISTRY_BYTES);
    r->f = NULL;
    REG_STORE(&r->used, 0);
}

/* --- joining and leaving ------------------------------------------------ */

static int take_free_slot(struct reg_file *f, uint64_t me)
{
    for (int i = 0; i < REGISTRY_SLOTS; i++) {
        uint64_t w = REG_LOAD(&f->slot[i].word);
        if (reg_state(w) == REG_FREE && reg_cas(&f->slot[i].word, w, me | REG_CLAIMING))
            return i;
    }
    return -ENOSPC;
}

/* As ps shows it: the file may be a link to another program (redis-server). */
static HY_COLD void program_name(uint64_t ret_name[2])
{
    char comm[64];
    size_t len;

    ret_name[0] = ret_name[1] = 0;
    if (os_read_file("/proc/self/comm", comm, sizeof(comm), &len) != 0)
        return;
    memcpy(ret_name, comm, HY_MIN(strcspn(comm, "\n"), 2 * sizeof(uint64_t) - 1));
}

/* The owner writes; what is beyond belief is cut here, so that nobody else drops it. */
static void tell(struct reg_slot *s, const struct registry_told *told)
{
    REG_STORE(&s->cls, (uint32_t)told->cls);
#define TELL(field, name, most) REG_STORE(&s->field, HY_MIN(told->name, most));
    TOLD_FIELDS(TELL)
#undef TELL
    REG_STORE(&s->heartbeat_ns, os_now_ns());
}

/* All that a slot tells, while it is CLAIMING and nobody reads it. */
static void fill_slot(struct registry *r, struct reg_slot *s, enum hy_class cls)
{
    uint64_t name[2];
    uint64_t tag = reg_high16(reg_next16(REG_LOAD(&s->dram)));

    program_name(name);
    REG_STORE(&s->dram, tag);
    REG_STORE(&r->tag, tag);
    tell(s, &(struct registry_told){.cls = cls, .threads = 1});
    for (int i = 0; i < REGISTRY_CPU_WORDS; i++)
        REG_STORE(&s->cpus[i], 0);
    REG_STORE(&s->name[0], name[0]);
    REG_STORE(&s->name[1], name[1]);
}

static int join_as(struct registry *r, uint64_t me, enum hy_class cls)
{
    REG_STORE(&r->me, me);
    int i = take_free_slot(r->f, me);
    if (i < 0 && sweep(r))
        i = take_free_slot(r->f, me);
    if (i < 0)
        return i;
    fill_slot(r, &r->f->slot[i], cls);
    settle_budget(r, i);
    REG_STORE(&r->slot, i); /* before LIVE: see owner_is_dead() */
    if (reg_cas(&r->f->slot[i].word, me | REG_CLAIMING, me | REG_LIVE))
        return 0;
    return -ESTALE; /* somebody who cannot see this process took it for dead */
}

int registry_join(struct registry *r, enum hy_class cls)
{
    struct os_proc_id id;
    int was = REG_LOAD(&r->slot);

    if (r->readonly)
        return -EROFS;
    if (own_slot(r) != NULL)
        return 0;
    if (was == SLOT_JOINING || !__atomic_compare_exchange_n(&r->slot, &was, SLOT_JOINING, false,
                                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return -EALREADY;
    int err = os_proc_self(&id);
    if (err == 0)
        err = join_as(r, reg_identity(&id), cls);
    if (err != 0)
        REG_STORE(&r->slot, SLOT_NONE);
    return err;
}

void registry_leave(struct registry *r)
{
    struct reg_slot *s = own_slot(r);

    if (s != NULL && reg_cas(&s->word, REG_LOAD(&r->me) | REG_LIVE, REG_FREE))
        REG_STORE(&r->slot, SLOT_NONE);
}

void registry_after_fork_child(struct registry *r)
{
    /* The identity too: with the parent's, its slot would look like a left-over. */
    REG_STORE(&r->me, 0);
    REG_STORE(&r->next_sweep, 0);
    REG_STORE(&r->slot, SLOT_NONE);
}

bool registry_joined(const struct registry *r)
{
    return own_slot(r) != NULL;
}

/* --- DRAM --------------------------------------------------------------- */

/* More than the budget was never granted to anybody: not believed. */
static uint64_t believed_dram(const struct reg_slot *s, uint64_t budget)
{
    uint64_t bytes = reg_low48(REG_LOAD(&s->dram));
    return bytes <= budget ? bytes : 0;
}

static uint64_t claimed_by_all(const struct reg_file *f, uint64_t budget)
{
    uint64_t sum = 0; /* 256 times 2^48 fits */

    for (int i = 0; i < REGISTRY_SLOTS; i++)
        if (reg_state(REG_LOAD(&f->slot[i].word)) == REG_LIVE)
            sum += believed_dram(&f->slot[i], budget);
    return sum;
}

/* Take off up to `bytes`, never below zero. */
static void give_back(const struct registry *r, struct reg_slot *s, uint64_t bytes)
{
    uint64_t w = REG_LOAD(&s->dram);

    while (reg_high16(w) == REG_LOAD(&r->tag) &&
           !__atomic_compare_exchange_n(&s->dram, &w, w - HY_MIN(bytes, reg_low48(w)), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/* Add, then look at the sum: of two that add at the same time at least one sees
 * the other's bytes. Both may fail; never do both succeed where one fits. */
static int try_claim(struct registry *r, struct reg_slot *s, uint64_t bytes)
{
    uint64_t budget = reg_low48(REG_LOAD(&r->f->head.budget));
    uint64_t w = REG_LOAD(&s->dram);

    do {
        if (reg_high16(w) != REG_LOAD(&r->tag))
            return -ENOTCONN;
        if (bytes > budget || reg_low48(w) > budget - bytes)
            return -ENOSPC;
    } while (!__atomic_compare_exchange_n(&s->dram, &w, w + bytes, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
    if (claimed_by_all(r->f, budget) <= budget)
        return 0;
    give_back(r, s, bytes);
    return -ENOSPC;
}

int registry_claim_dram(struct registry *r, uint64_t bytes)
{
    struct reg_slot *s = own_slot(r);

    if (s == NULL)
        return -ENOTCONN;
    int err = try_claim(r, s, bytes);
    if (err == -ENOSPC && sweep_if_due(r))
        err = try_claim(r, s, bytes);
    return err;
}

void registry_return_dram(struct registry *r, uint64_t bytes)
{
    struct reg_slot *s = own_slot(r);

    if (s != NULL)
        give_back(r, s, bytes);
}

/* --- telling and reading ------------------------------------------------ */

void registry_publish(struct registry *r, const struct registry_told *told)
{
    struct reg_slot *s = own_slot(r);

    if (s != NULL)
        tell(s, told);
}

void registry_publish_cpus(struct registry *r, const uint64_t cpus[REGISTRY_CPU_WORDS])
{
    struct reg_slot *s = own_slot(r);

    for (int i = 0; s && i < REGISTRY_CPU_WORDS; i++)
        REG_STORE(&s->cpus[i], cpus[i]);
}

static void believed_told(const struct reg_slot *s, struct registry_told *ret)
{
    uint32_t cls = REG_LOAD(&s->cls);

    ret->cls = cls < HY_CLASS_MAX ? (enum hy_class)cls : HY_CLASS_UNKNOWN;
#define BELIEVE(field, name, most)                                                                 \
    ret->name = REG_LOAD(&s->field);                                                               \
    if (ret->name > (most))                                                                        \
        ret->name = 0;
    TOLD_FIELDS(BELIEVE)
#undef BELIEVE
}

/* A name goes to terminals and into JSON: printable ASCII only. */
static void believed_name(const struct reg_slot *s, char ret[16])
{
    const uint64_t raw[2] = {REG_LOAD(&s->name[0]), REG_LOAD(&s->name[1])};
    size_t n = 0;

    memcpy(ret, raw, 16);
    for (; n < 15 && ret[n] != '\0'; n++)
        if (ret[n] < ' ' || ret[n] > '~')
            ret[n] = '?';
    memset(ret + n, 0, 16 - n);
}

/* A checked copy of slot `i`; false if no participant lives there. */
static bool read_slot(struct registry *r, int i, uint64_t budget, struct registry_entry *e)
{
    const struct reg_slot *s = &r->f->slot[i];
    uint64_t w = REG_LOAD(&s->word);
    bool freed, is_self = s == own_slot(r);

    if (reg_state(w) == REG_FREE || (!is_self && !held_by_living(r, i, &freed)) ||
        reg_state(w) != REG_LIVE)
        return false;
    uint64_t heartbeat = REG_LOAD(&s->heartbeat_ns), now = os_now_ns();
    e->pid = reg_pid(w);
    e->is_self = is_self;
    e->dram_bytes = believed_dram(s, budget);
    believed_told(s, &e->told);
    e->heartbeat_ns = HY_MIN(heartbeat, now);
    for (int k = 0; k < REGISTRY_CPU_WORDS; k++)
        e->cpus[k] = REG_LOAD(&s->cpus[k]);
    believed_name(s, e->name);
    return REG_LOAD(&s->word) == w; /* else the owner changed while we read */
}

void registry_read(struct registry *r, struct registry_view *ret)
{
    uint64_t budget = reg_low48(REG_LOAD(&r->f->head.budget));

    ret->dram_budget = budget;
    ret->n = 0;
    for (int i = 0; i < REGISTRY_SLOTS; i++)
        if (read_slot(r, i, budget, &ret->entry[ret->n]))
            ret->n++;
}
