/* SPDX-License-Identifier: BSD-2-Clause
 * Lock-step of virtual clocks. See clock.h. */
#include "machine/clock_inside.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread that comes back waits so long for one that is just releasing it. */
#define RELEASE_NS 10000000000

bool emu_clock_waits_told;
static _Atomic int rushing;

static void raise_to(_Atomic int64_t *p, int64_t v)
{
    int64_t old = emu_clock_get(p);
    while (old < v && !atomic_compare_exchange_weak(p, &old, v))
        ;
}

/* Shared between processes: not the private kind of futex. False: nobody woke us. With
 * many threads each looks up more seldom: together they look as often. */
static bool futex_wait(_Atomic uint32_t *word, uint32_t seen, int threads)
{
    struct timespec t = {.tv_nsec = EMU_LOOK_NS * (1 + threads / 32)};
    return syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0) == 0 || errno != ETIMEDOUT;
}

void emu_clock_wake(struct emu_clock_thread *t)
{
    atomic_store(&t->sleeps_to, EMU_NEVER);
    atomic_fetch_add(&t->moves, 1);
    atomic_fetch_add(&t->turn, 1);
    syscall(SYS_futex, &t->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Which of two threads with the same time comes first: who has waited for a CPU most
 * recently, so that the one who finds none is another one each time. */
static bool before(struct emu_clock *c, int a, int b)
{
    int64_t at = emu_clock_get(&c->thread[a].waited), bt = emu_clock_get(&c->thread[b].waited);
    return at > bt || (at == bt && a < b);
}

/* The active thread that comes first, `slot` aside; -1: none. */
static int first_of(struct emu_clock *c, int slot, bool observers, int64_t *ret_time)
{
    int n = atomic_load(&c->used), last = -1;
    int64_t least = EMU_NEVER;
    for (int i = 0; i < n; i++) {
        int64_t t;
        if (i == slot || !emu_clock_holds_up(&c->thread[i]) ||
            (!observers && atomic_load(&c->thread[i].observes)))
            continue;
        t = emu_clock_get(&c->thread[i].time);
        if (t < least || (t == least && last >= 0 && before(c, i, last))) {
            least = t;
            last = i;
        }
    }
    *ret_time = least;
    return last;
}

static int last_one(struct emu_clock *c, int slot, int64_t *ret_time)
{
    return first_of(c, slot, true, ret_time);
}

/* After every change of times or states: wake whose wait is over. */
void emu_clock_wake_others(struct emu_clock *c)
{
    int64_t least;
    int n = atomic_load(&c->used), last = last_one(c, -1, &least);

    for (int i = 0; i < n; i++) {
        struct emu_clock_thread *t = &c->thread[i];
        if (emu_clock_get(&t->sleeps_to) <= least && (i == last || !atomic_load(&t->in_order)))
            emu_clock_wake(t);
    }
}

int64_t emu_clock_floor(struct emu_clock *c)
{
    int64_t t;
    return first_of(c, -1, false, &t) < 0 ? emu_clock_get(&c->newest) : t;
}

/* Left as away: it must not hold anybody up before it is complete. */
static int claim(struct emu_clock *c, int64_t start, bool observes, int *ret_slot)
{
    for (int i = 0; i < EMU_THREADS; i++) {
        struct emu_clock_thread *t = &c->thread[i];
        int32_t none = EMU_FREE, used = atomic_load(&c->used);
        if (!atomic_compare_exchange_strong(&t->state, &none, EMU_AWAY))
            continue;
        while (used <= i && !atomic_compare_exchange_weak(&c->used, &used, i + 1))
            ;
        atomic_store(&t->pid, (int32_t)getpid());
        atomic_store(&t->tid, 0);
        atomic_store(&t->time, start);
        atomic_store(&t->sleeps_to, EMU_NEVER);
        atomic_store(&t->waited, observes ? EMU_NEVER : 0); /* who looks comes before who acts */
        atomic_store(&t->released, false);
        atomic_store(&t->dozing, false);
        atomic_store(&t->tells_waits, emu_clock_waits_told);
        atomic_store(&t->observes, observes);
        atomic_store(&t->wait_for, 0);
        *ret_slot = i;
        return 0;
    }
    return -EAGAIN;
}

int emu_clock_join(struct emu_clock *c, int64_t start, int *ret_slot)
{
    int r = claim(c, start, false, ret_slot);
    if (r == 0)
        atomic_store(&c->thread[*ret_slot].state, EMU_STARTING);
    return r;
}

void emu_clock_begin(struct emu_clock *c, int slot)
{
    atomic_store(&c->thread[slot].tid, (int32_t)syscall(SYS_gettid));
    atomic_store(&c->thread[slot].state, EMU_ACTIVE);
}

void emu_clock_leave(struct emu_clock *c, int slot)
{
    emu_clock_set_free(&c->thread[slot]);
    emu_clock_wake_others(c);
}

void emu_clock_rush(struct emu_clock *c, bool on)
{
    int n = atomic_load(&c->used), pid = getpid();
    atomic_fetch_add(&rushing, on ? 1 : -1);
    for (int i = 0; on && i < n; i++) /* who sleeps later sees it */
        if (atomic_load(&c->thread[i].pid) == pid &&
            emu_clock_get(&c->thread[i].sleeps_to) != EMU_NEVER)
            emu_clock_wake(&c->thread[i]);
}

void emu_clock_rush_forked(void)
{
    atomic_store(&rushing, 0);
}

void emu_clock_forget(struct emu_clock *c, int pid)
{
    int n = atomic_load(&c->used);
    for (int i = 0; i < n; i++)
        if (atomic_load(&c->thread[i].state) != EMU_FREE && atomic_load(&c->thread[i].pid) == pid)
            emu_clock_set_free(&c->thread[i]);
    emu_clock_wake_others(c);
}

/* Sleep until every other active thread has `target`; in_order: and none of those that
 * have just that time comes before this one. */
static void sleep_to(struct emu_clock *c, int slot, int64_t target, bool in_order)
{
    struct emu_clock_thread *self = &c->thread[slot];
    struct emu_clock_watch w = {.slot = -1};

    for (;;) {
        uint32_t turn = atomic_load(&self->turn);
        int64_t least;
        int last;
        /* First the wish, then the look: who moves in between sees the wish. */
        atomic_store(&self->in_order, in_order);
        atomic_store(&self->sleeps_to, target);
        last = last_one(c, slot, &least);
        if (atomic_load(&rushing) || last < 0 || least > target ||
            (least == target && (!in_order || before(c, slot, last))))
            break;
        if (!futex_wait(&self->turn, turn, atomic_load(&c->used)))
            emu_clock_look(c, last, &w);
    }
    atomic_store(&self->sleeps_to, EMU_NEVER);
}

/* The owner shows itself; it may have been taken for blocked. */
static int64_t publish(struct emu_clock *c, int slot, int64_t time)
{
    struct emu_clock_thread *t = &c->thread[slot];

    atomic_fetch_add(&t->moves, 1);
    int32_t state = atomic_load(&t->state);
    if (state == EMU_AWAY || state == EMU_RELEASING)
        time = emu_clock_back(c, slot, time, emu_clock_waits_told ? time : -1);
    if (emu_clock_get(&t->time) == time)
        return time;
    atomic_store(&t->time, time);
    raise_to(&c->newest, time);
    emu_clock_wake_others(c);
    return time;
}

int64_t emu_clock_turn(struct emu_clock *c, int slot, int64_t time)
{
    int e = errno;
    time = publish(c, slot, time);
    sleep_to(c, slot, time, true);
    errno = e;
    return time;
}

int64_t emu_clock_advance(struct emu_clock *c, int slot, int64_t time, int64_t lookahead)
{
    int e = errno;
    time = publish(c, slot, time);
    sleep_to(c, slot, time - lookahead, false);
    errno = e;
    return time;
}

void emu_clock_away(struct emu_clock *c, int slot, uint64_t wait_for)
{
    struct emu_clock_thread *t = &c->thread[slot];
    atomic_fetch_add(&t->moves, 1);
    atomic_store(&t->released, false);
    atomic_store(&t->wait_for, wait_for);
    atomic_store(&t->state, EMU_AWAY);
    emu_clock_wake_others(c);
}

/* While another one releases this thread: else it would set a time that is past, and this thread,
 * asleep until a later one, and another would wait for each other. A releaser that was killed in
 * the middle is not waited for. */
static void await_releaser(struct emu_clock_thread *t)
{
    int32_t releasing = EMU_RELEASING;
    for (int64_t begin = emu_clock_real_ns();
         atomic_load(&t->state) == EMU_RELEASING && emu_clock_real_ns() - begin < RELEASE_NS;)
        syscall(SYS_sched_yield);
    (void)atomic_compare_exchange_strong(&t->state, &releasing, EMU_AWAY);
}

int64_t emu_clock_back(struct emu_clock *c, int slot, int64_t time, int64_t known)
{
    struct emu_clock_thread *t = &c->thread[slot];
    int64_t floor = known < 0 ? emu_clock_floor(c) : known;

    if (atomic_load(&t->state) == EMU_RELEASING)
        await_releaser(t);

    atomic_fetch_add(&t->moves, 1);
    /* Released: what it waited for may have been used again since, with a later time. */
    if (atomic_exchange(&t->released, false))
        floor = emu_clock_get(&t->time);
    else if (atomic_load(&t->state) == EMU_ACTIVE) /* never left */
        floor = known < 0 ? time : known;
    if (floor > time)
        time = floor;
    atomic_store(&t->time, time);
    atomic_store(&t->wait_for, 0);
    atomic_store(&t->state, EMU_ACTIVE);
    return time;
}

void emu_clock_release(struct emu_clock *c, uint64_t wait_for, int64_t time, int most)
{
    bool shared = wait_for & EMU_SHARED_KEY;
    int n = atomic_load(&c->used), pid = getpid();
    for (int i = 0; i < n && most != 0; i++) {
        struct emu_clock_thread *t = &c->thread[i];
        int32_t away = EMU_AWAY, releasing = EMU_RELEASING;
        if ((!shared && atomic_load(&t->pid) != pid) || atomic_load(&t->wait_for) != wait_for ||
            emu_clock_get(&t->time) > time ||
            !atomic_compare_exchange_strong(&t->state, &away, releasing))
            continue;
        /* From here on its owner stays where it is: it may have been elsewhere meanwhile. */
        bool waits = atomic_load(&t->wait_for) == wait_for && emu_clock_get(&t->time) <= time;
        if (waits) {
            atomic_store(&t->time, time);
            atomic_store(&t->released, true); /* wait_for stays, should it turn out to sleep on */
        }
        (void)atomic_compare_exchange_strong(&t->state, &releasing, waits ? EMU_ACTIVE : EMU_AWAY);
        if (!waits)
            continue;
        most--;
    }
}

void emu_clock_doze(struct emu_clock *c, int slot, int64_t time)
{
    atomic_store(&c->thread[slot].dozing, true);
    (void)publish(c, slot, time);
}

int64_t emu_clock_doze_end(struct emu_clock *c, int slot, int64_t before, bool early)
{
    struct emu_clock_thread *t = &c->thread[slot];
    int64_t floor, time = emu_clock_get(&t->time);

    if (early) {
        (void)first_of(c, slot, false, &floor);
        if (floor < time)
            time = floor > before ? floor : before;
        atomic_store(&t->time, time);
    }
    atomic_fetch_add(&t->moves, 1);
    atomic_store(&t->dozing, false);
    return time;
}

int emu_clock_observe(struct emu_clock *c, int64_t time, int *ret_slot)
{
    int r = claim(c, time, true, ret_slot);
    if (r < 0)
        return r;
    atomic_store(&c->thread[*ret_slot].dozing, true);
    emu_clock_begin(c, *ret_slot);
    return 0;
}

void emu_clock_turn_observer(struct emu_clock *c, int slot, int64_t time)
{
    atomic_store(&c->thread[slot].waited, EMU_NEVER);
    atomic_store(&c->thread[slot].observes, true);
    emu_clock_hold(c, slot, time);
}

void emu_clock_hold(struct emu_clock *c, int slot, int64_t time)
{
    struct emu_clock_thread *t = &c->thread[slot];

    atomic_fetch_add(&t->moves, 1);
    atomic_store(&t->dozing, true);
    atomic_store(&t->time, time);
    atomic_store(&t->state, EMU_ACTIVE); /* it may have been taken for blocked */
    emu_clock_wake_others(c);
}

int64_t emu_clock_held(struct emu_clock *c, int slot)
{
    struct emu_clock_thread *t = &c->thread[slot];
    int64_t floor = emu_clock_floor(c), time = emu_clock_get(&t->time);

    atomic_fetch_add(&t->moves, 1);
    if (atomic_load(&t->state) == EMU_AWAY) {
        /* Nobody has waited: what they have passed is past. */
        time = floor > time ? floor : time;
        atomic_store(&t->time, time);
        atomic_store(&t->state, EMU_ACTIVE);
    }
    if (floor < time && atomic_load(&t->dozing))
        return floor;
    atomic_store(&t->dozing, false);
    return time;
}

bool emu_clock_mine(const struct emu_clock *c, int slot, int tid)
{
    const struct emu_clock_thread *t = &c->thread[slot];
    return atomic_load(&t->state) != EMU_FREE && atomic_load(&t->tid) == tid;
}
