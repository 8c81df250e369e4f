/* SPDX-License-Identifier: BSD-2-Clause
 * Participation in the shared file (contract: registry.h; layout, states and
 * what a kill leaves behind: registry_file.h).
 *
 * Nothing here is half done: each change that others rely on is one write of a slot that
 * only we write, or of the budget while nobody else can have a slot. */
#include "place/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "place/registry_internal.h"
#include "sys/os.h"

#define ENTER_NS      1000000000ull /* for another thread of ours */
#define PATIENCE_NS   1000000000ull /* for one who decides about the budget */
#define LOOK_AGAIN_NS 200000ull

/* One for the process; tests open several. */
static struct registry pool[8];

/* --- one operation at a time -------------------------------------------- */

static int enter(struct registry *r)
{
    bool lost;

    if (!os_lock_within(&r->lock, ENTER_NS))
        return -EBUSY;
    int err = reg_ensure_open(&r->io, &lost);
    /* With the descriptor the lock went. Nobody may have come yet. */
    if (err == 0 && lost && r->slot >= 0 && reg_lock_slots(&r->io, r->slot, 1) != 0)
        __atomic_store_n(&r->slot, SLOT_NONE, __ATOMIC_SEQ_CST);
    if (err != 0)
        pthread_mutex_unlock(&r->lock);
    return err;
}

bool registry_enter(struct registry *r)
{
    return enter(r) == 0;
}

void registry_exit(struct registry *r)
{
    pthread_mutex_unlock(&r->lock);
}

static void leave_slot(struct registry *r)
{
    reg_unlock_slots(&r->io, r->slot, 1);
    __atomic_store_n(&r->slot, SLOT_NONE, __ATOMIC_SEQ_CST);
}

/* What `own` says goes into the file. */
static int put_own(struct registry *r)
{
    return reg_put_slot(&r->io, r->slot, &r->own);
}

/* Take off up to `bytes`, never below zero. */
static void give_back(struct registry *r, uint64_t bytes)
{
    r->own.dram -= HY_MIN(bytes, reg_low48(r->own.dram));
    (void)put_own(r);
}

bool registry_has_slot(struct registry *r)
{
    if (r->slot < 0 || r->pid != os_pid())
        return false;
    if (reg_refresh_slot(&r->io, r->slot) == 0 &&
        r->io.seen->slot[r->slot].word == (r->me | REG_LIVE)) {
        uint64_t owed = __atomic_exchange_n(&r->owed, 0, __ATOMIC_RELAXED);
        if (owed)
            give_back(r, owed);
        return true;
    }
    leave_slot(r); /* the file was cut short, or somebody does not keep to the rules */
    return false;
}

/* --- the dead ----------------------------------------------------------- */

static bool slot_is_of_pool(int index)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(pool); i++)
        if (__atomic_load_n(&pool[i].used, __ATOMIC_SEQ_CST) &&
            __atomic_load_n(&pool[i].slot, __ATOMIC_SEQ_CST) == index)
            return true;
    return false;
}

/* Exec without address randomisation repeats the stack's place: a slot with
 * our identity that nobody here knows of is left from before. */
static bool is_left_from_before(const struct registry *r, int i)
{
    const struct reg_slot *s = &r->io.seen->slot[i];
    /* 0: of a slot that was cut in the middle only the first word may be left. */
    uint64_t ns = s->pidns == 0 ? r->io.pidns : s->pidns;
    return r->me != 0 && s->word == (r->me | REG_LIVE) && ns == r->io.pidns &&
           ns != REG_NS_UNKNOWN && !slot_is_of_pool(i);
}

static bool owner_is_dead(struct registry *r, int i)
{
    return is_left_from_before(r, i) || reg_slot_dead(&r->io, i);
}

/* Whoever has the lock looks again: the slot may have changed hands since. */
static bool lock_if_dead(struct registry *r, int i)
{
    if (reg_lock_slots(&r->io, i, 1) != 0)
        return false;
    if (reg_refresh_slot(&r->io, i) == 0 &&
        (reg_state(r->io.seen->slot[i].word) == REG_FREE || owner_is_dead(r, i)))
        return true;
    reg_unlock_slots(&r->io, i, 1);
    return false;
}

bool registry_held_by_living(struct registry *r, int i, bool *freed)
{
    struct reg_slot *s = &r->io.seen->slot[i];

    if (reg_state(s->word) == REG_FREE)
        return false;
    if (!owner_is_dead(r, i))
        return true;
    if (!r->io.readonly && lock_if_dead(r, i)) {
        struct reg_slot none = *s;
        none.word = REG_FREE;
        *freed = reg_put_slot(&r->io, i, &none) == 0;
        reg_unlock_slots(&r->io, i, 1);
    }
    return false;
}

/* Free the slots of all dead ones; true if there was any. Looking is rationed: at most
 * about 5% of the time, however long the budget stays full. */
static bool sweep_if_due(struct registry *r)
{
    uint64_t begin = os_now_ns();
    bool freed = false;

    if (begin < r->next_sweep)
        return false;
    for (int i = 0; i < r->io.slots; i++)
        if (i != r->slot)
            (void)registry_held_by_living(r, i, &freed);
    uint64_t end = os_now_ns();
    r->next_sweep = end + 20 * (end - begin);
    return freed;
}

static bool alone_but_for(struct registry *r, int own)
{
    bool freed;

    for (int i = 0; i < r->io.slots; i++)
        if (i != own && reg_state(r->io.seen->slot[i].word) != REG_FREE &&
            registry_held_by_living(r, i, &freed))
            return false;
    return true;
}

/* Whoever is alone decides the budget: with the locks of all slots nobody else has one, nor
 * gets one meanwhile. Who does not get them is not alone, or met somebody who looks. */
static void settle_budget(struct registry *r, int own)
{
    uint64_t until = os_now_ns() + PATIENCE_NS;

    for (bool settled = false; !settled && os_now_ns() <= until;) {
        bool all = reg_lock_slots(&r->io, 0, REGISTRY_SLOTS) == 0;
        /* Words count as well as locks: a program may have closed what held one. */
        settled = (own < 0 && !all) || reg_refresh(&r->io) != 0 || !alone_but_for(r, own);
        if (!settled && !all)
            os_sleep_ns(LOOK_AGAIN_NS);
        /* A dead one's slot that was freed has lost its lock. */
        if (!settled && all && reg_lock_slots(&r->io, 0, REGISTRY_SLOTS) == 0) {
            (void)reg_put_budget(&r->io, reg_next16(r->io.seen->head.budget) | r->want_budget);
            settled = true;
        }
    }
    reg_unlock_slots(&r->io, 0, HY_MAX(own, 0));
    reg_unlock_slots(&r->io, own + 1, REGISTRY_SLOTS - own - 1);
}

/* --- opening ------------------------------------------------------------ */

void registry_default_path(char *buf, size_t cap)
{
    snprintf(buf, cap, "/dev/shm/libhybrid-%u.%u", os_uid(), REGISTRY_VERSION);
}

static struct registry *take_from_pool(void)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(pool); i++) {
        struct registry *r = &pool[i];
        int unused = 0;
        if (!__atomic_compare_exchange_n(&r->used, &unused, 1, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST))
            continue;
        r->want_budget = r->me = r->next_sweep = 0;
        r->own = (struct reg_slot){0};
        __atomic_store_n(&r->slot, SLOT_NONE, __ATOMIC_SEQ_CST);
        (void)pthread_mutex_init(&r->lock, NULL);
        return r;
    }
    return NULL;
}

/* What the file is; one of zeros becomes a registry. */
static int adopt(struct registry *r)
{
    int err = reg_refresh(&r->io);

    if (err != 0)
        return err;
    switch (reg_inspect(r->io.seen)) {
    case REG_BLANK:
        return r->io.readonly ? 0 : reg_make_ready(&r->io);
    case REG_FOREIGN:
        /* Or its creator has become ready while we read. */
        err = reg_refresh(&r->io);
        return err == 0 && reg_inspect(r->io.seen) != REG_READY ? -EPROTO : err;
    case REG_READY:
        break;
    }
    return 0;
}

static int open_as(const char *path, bool readonly, struct registry **ret)
{
    struct registry *r = take_from_pool();

    if (r == NULL)
        return -EMFILE;
    int err = reg_open(&r->io, path, readonly);
    if (err == 0 && (err = adopt(r)) != 0)
        reg_close(&r->io);
    if (err != 0)
        __atomic_store_n(&r->used, 0, __ATOMIC_SEQ_CST);
    else
        *ret = r;
    return err;
}

int registry_open(const char *path, uint64_t dram_budget, struct registry **ret)
{
    struct registry *r;
    int err = open_as(path, false, &r);

    if (err != 0)
        return err;
    r->want_budget = HY_MIN(dram_budget, REGISTRY_MAX_BYTES);
    settle_budget(r, SLOT_NONE);
    *ret = r;
    return 0;
}

int registry_open_readonly(const char *path, struct registry **ret)
{
    return open_as(path, true, ret);
}

void registry_close(struct registry *r)
{
    registry_leave(r);
    reg_close(&r->io);
    __atomic_store_n(&r->used, 0, __ATOMIC_SEQ_CST);
}

/* --- joining and leaving ------------------------------------------------ */

/* A slot that is free, or was a dead one's, with its lock. */
static int take_slot(struct registry *r, bool of_dead)
{
    bool met = false;

    for (int i = 0; i < REGISTRY_SLOTS; i++) {
        bool is_free = reg_state(r->io.seen->slot[i].word) == REG_FREE;
        if (!is_free && !(of_dead ? owner_is_dead(r, i) : is_left_from_before(r, i)))
            continue;
        if (lock_if_dead(r, i))
            return i;
        met = true;
    }
    return met ? -EBUSY : -EUSERS;
}

static int take_some_slot(struct registry *r)
{
    uint64_t until = os_now_ns() + PATIENCE_NS;

    for (;;) {
        int err = reg_refresh(&r->io), i = err != 0 ? err : take_slot(r, false);
        if (i == -EUSERS || i == -EBUSY)
            i = take_slot(r, true);
        /* -EBUSY: others take them, or one decides and has all locks for a moment. */
        if (i != -EBUSY || os_now_ns() > until)
            return i;
        os_sleep_ns(LOOK_AGAIN_NS);
    }
}

/* As ps shows it: the file may be a link to another program (redis-server). */
static void program_name(uint64_t ret_name[2])
{
    char comm[64];
    size_t len;

    ret_name[0] = ret_name[1] = 0;
    if (os_read_file("/proc/self/comm", comm, sizeof(comm), &len) != 0)
        return;
    memcpy(ret_name, comm, HY_MIN(strcspn(comm, "\n"), 2 * sizeof(uint64_t) - 1));
}

/* The owner writes; what is beyond belief is cut here, so that nobody else drops it. */
static void publish(struct reg_slot *s, const struct registry_published *published)
{
    s->cls = (uint32_t)published->cls;
#define TELL(field, name, most) s->field = HY_MIN(published->name, most);
    TOLD_FIELDS(TELL)
#undef TELL
    s->heartbeat_ns = os_now_ns();
}

/* All that a slot tells at first. */
static void fill_own(struct registry *r, int i, enum hy_class cls)
{
    uint64_t tag = reg_high16(reg_next16(r->io.seen->slot[i].dram));

    __atomic_store_n(&r->owed, 0, __ATOMIC_RELAXED);
    r->own = (struct reg_slot){.word = r->me | REG_CLAIMING, .dram = tag, .pidns = r->io.pidns};
    program_name(r->own.name);
    publish(&r->own, &(struct registry_published){.cls = cls, .threads = 1});
}

static int join_as(struct registry *r, uint64_t me, enum hy_class cls)
{
    int err = adopt(r), i = -1;

    r->me = me;
    r->pid = os_pid();
    if (err == 0 && (i = take_some_slot(r)) < 0)
        err = i;
    if (err != 0)
        return err;
    fill_own(r, i, cls);
    err = reg_put_slot(&r->io, i, &r->own);
    if (err == 0) {
        settle_budget(r, i);
        r->own.word = me | REG_LIVE;
        __atomic_store_n(&r->slot, i, __ATOMIC_SEQ_CST); /* before LIVE: see owner_is_dead() */
        err = put_own(r);
    }
    if (err != 0) {
        reg_unlock_slots(&r->io, i, 1);
        __atomic_store_n(&r->slot, SLOT_NONE, __ATOMIC_SEQ_CST);
    }
    return err;
}

int registry_join(struct registry *r, enum hy_class cls)
{
    struct os_proc_id id;

    if (r->io.readonly)
        return -EROFS;
    int err = enter(r);
    if (err != 0)
        return err;
    if (!registry_has_slot(r)) {
        if (os_proc_self(&id) != 0) { /* no /proc: the lock alone tells that we live */
            id = (struct os_proc_id){.pid = os_pid()};
            r->io.pidns = REG_NS_UNKNOWN;
        }
        err = join_as(r, reg_identity(&id), cls);
    }
    registry_exit(r);
    return err;
}

void registry_leave(struct registry *r)
{
    if (__atomic_load_n(&r->slot, __ATOMIC_SEQ_CST) < 0 || !registry_enter(r))
        return;
    if (registry_has_slot(r)) {
        r->own.word = REG_FREE;
        (void)put_own(r);
        leave_slot(r);
    }
    registry_exit(r);
}

void registry_after_fork_child(struct registry *r)
{
    /* The identity too: with the parent's, its slot would look like a left-over. The lock is
     * the parent's as long as it has the file open; it must not live on with us. */
    r->me = r->next_sweep = 0;
    __atomic_store_n(&r->slot, SLOT_NONE, __ATOMIC_SEQ_CST);
    reg_drop_descriptor(&r->io);
    (void)pthread_mutex_init(&r->lock, NULL);
}

bool registry_joined(struct registry *r)
{
    bool joined = false;

    if (__atomic_load_n(&r->slot, __ATOMIC_SEQ_CST) >= 0 && registry_enter(r)) {
        joined = registry_has_slot(r);
        registry_exit(r);
    }
    return joined;
}

/* --- DRAM --------------------------------------------------------------- */

static uint64_t claimed_by_all(const struct reg_access *a, uint64_t budget)
{
    uint64_t sum = 0; /* 256 times 2^48 fits */

    for (int i = 0; i < a->slots; i++)
        if (reg_state(a->seen->slot[i].word) == REG_LIVE)
            sum += registry_believed_dram(&a->seen->slot[i], budget);
    return sum;
}

/* Add, then look at the sum: of two that add at the same time at least one sees
 * the other's bytes. Both may fail; never do both succeed where one fits. */
static int try_claim(struct registry *r, uint64_t bytes)
{
    uint64_t budget = reg_low48(r->io.seen->head.budget); /* nobody changes it while we are in */

    if (bytes > budget || reg_low48(r->own.dram) > budget - bytes)
        return -ENOSPC;
    r->own.dram += bytes;
    int err = put_own(r);
    if (err != 0) {
        r->own.dram -= bytes;
        return err;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* not before others can see it */
    if (reg_refresh(&r->io) == 0 && claimed_by_all(&r->io, budget) <= budget)
        return 0;
    give_back(r, bytes);
    return -ENOSPC;
}

int registry_claim_dram(struct registry *r, uint64_t bytes)
{
    int err = -ENOTCONN;

    if (!registry_enter(r))
        return err;
    if (registry_has_slot(r)) {
        err = try_claim(r, bytes);
        if (err == -ENOSPC && sweep_if_due(r))
            err = try_claim(r, bytes);
    }
    registry_exit(r);
    return err;
}

void registry_return_dram(struct registry *r, uint64_t bytes)
{
    __atomic_fetch_add(&r->owed, bytes, __ATOMIC_RELAXED);
    if (!registry_enter(r))
        return;
    (void)registry_has_slot(r);
    registry_exit(r);
}

/* --- telling ------------------------------------------------------------ */

void registry_publish(struct registry *r, const struct registry_published *published)
{
    if (!registry_enter(r))
        return;
    if (registry_has_slot(r)) {
        publish(&r->own, published);
        (void)put_own(r);
    }
    registry_exit(r);
}

void registry_publish_cpus(struct registry *r, const uint64_t cpus[REGISTRY_CPU_WORDS])
{
    if (!registry_enter(r))
        return;
    if (registry_has_slot(r)) {
        memcpy(r->own.cpus, cpus, sizeof(r->own.cpus));
        (void)put_own(r);
    }
    registry_exit(r);
}
