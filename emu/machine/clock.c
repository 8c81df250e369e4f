/* SPDX-License-Identifier: BSD-2-Clause
 * Lock-step of virtual clocks. See clock.h. */
#include "machine/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A wait is looked into after this long; normal ones last some 0.1 ms. */
#define LOOK_NS 2000000
/* From one look to the next counts at most so much, of time and (in ticks of 10 ms) of CPU time:
 * where the computer stood still or had no CPU for anybody, nobody has been waited for. */
#define MOST_NS    20000000
#define MOST_TICKS 5
/* CPU time without a settling (one takes well below 1 ms) after which a thread is
 * taken to run code that nobody sees; in ticks of 10 ms. */
#define UNSEEN_TICKS 20
/* A thread in uninterruptible sleep (paging under load, vfork) counts as blocked after
 * this long. */
#define DISK_NS 1000000000
/* ... and a thread that tells of its waits, which is held up by the host's load only. */
#define TOLD_NS 100000000
/* ... and an observer that has not asked for the time, asleep. */
#define OBSERVER_NS 100000000

/* A thread that comes back waits so long for one that is just releasing it. */
#define RELEASE_NS 10000000000

#define NEVER INT64_MAX

bool emu_clock_waits_told;
static _Atomic int rushing;

static int64_t get(_Atomic int64_t *p)
{
    return atomic_load(p);
}

static void raise_to(_Atomic int64_t *p, int64_t v)
{
    int64_t old = get(p);
    while (old < v && !atomic_compare_exchange_weak(p, &old, v))
        ;
}

static int64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Shared between processes: not the private kind of futex. False: nobody woke us. With
 * many threads each looks up more seldom: together they look as often. */
static bool futex_wait(_Atomic uint32_t *word, uint32_t seen, int threads)
{
    struct timespec t = {.tv_nsec = LOOK_NS * (1 + threads / 32)};
    return syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0) == 0 || errno != ETIMEDOUT;
}

static void wake(struct emu_clock_thread *t)
{
    atomic_store(&t->sleeps_to, NEVER);
    atomic_fetch_add(&t->moves, 1);
    atomic_fetch_add(&t->turn, 1);
    syscall(SYS_futex, &t->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool holds_up(struct emu_clock_thread *t)
{
    int32_t s = atomic_load(&t->state);
    return s == EMU_ACTIVE || s == EMU_STARTING;
}

/* Which of two threads with the same time comes first: who has waited for a CPU most
 * recently, so that the one who finds none is another one each time. */
static bool before(struct emu_clock *c, int a, int b)
{
    int64_t at = get(&c->thread[a].waited), bt = get(&c->thread[b].waited);
    return at > bt || (at == bt && a < b);
}

/* The active thread that comes first, `slot` aside; -1: none. */
static int first_of(struct emu_clock *c, int slot, bool observers, int64_t *ret_time)
{
    int n = atomic_load(&c->used), last = -1;
    int64_t least = NEVER;
    for (int i = 0; i < n; i++) {
        int64_t t;
        if (i == slot || !holds_up(&c->thread[i]) ||
            (!observers && atomic_load(&c->thread[i].observes)))
            continue;
        t = get(&c->thread[i].time);
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
static void wake_others(struct emu_clock *c)
{
    int64_t least;
    int n = atomic_load(&c->used), last = last_one(c, -1, &least);

    for (int i = 0; i < n; i++) {
        struct emu_clock_thread *t = &c->thread[i];
        if (get(&t->sleeps_to) <= least && (i == last || !atomic_load(&t->in_order)))
            wake(t);
    }
}

int64_t emu_clock_floor(struct emu_clock *c)
{
    int64_t t;
    return first_of(c, -1, false, &t) < 0 ? get(&c->newest) : t;
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
        atomic_store(&t->sleeps_to, NEVER);
        atomic_store(&t->waited, observes ? NEVER : 0); /* who looks comes before who acts */
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

static void set_free(struct emu_clock_thread *t)
{
    atomic_store(&t->sleeps_to, NEVER);
    atomic_store(&t->state, EMU_FREE);
}

void emu_clock_leave(struct emu_clock *c, int slot)
{
    set_free(&c->thread[slot]);
    wake_others(c);
}

void emu_clock_rush(struct emu_clock *c, bool on)
{
    int n = atomic_load(&c->used), pid = getpid();
    atomic_fetch_add(&rushing, on ? 1 : -1);
    for (int i = 0; on && i < n; i++) /* who sleeps later sees it */
        if (atomic_load(&c->thread[i].pid) == pid && get(&c->thread[i].sleeps_to) != NEVER)
            wake(&c->thread[i]);
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
            set_free(&c->thread[i]);
    wake_others(c);
}

enum look { LOOK_RUNS, LOOK_STARTS, LOOK_DISK, LOOK_BLOCKED, LOOK_GONE };

/* State letter and CPU ticks of a thread, from /proc. No stdio: any thread of any
 * program may be in the middle of anything. */
static enum look look_at(int pid, int tid, long *ret_ticks)
{
    char path[64], buf[512], *p;
    ssize_t n;
    int fd;

    /* A thread that is being created has no number yet: its process must live. */
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid ? tid : pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? LOOK_GONE : LOOK_RUNS;
    n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n <= 0)
        return LOOK_GONE;
    buf[n] = '\0';
    p = strrchr(buf, ')'); /* the name may hold anything */
    if (!p || p[1] != ' ')
        return LOOK_RUNS;
    p += 2;
    if (*p == 'Z' || *p == 'X')
        return LOOK_GONE;
    if (tid == 0)
        return LOOK_STARTS;
    if (*p == 'D')
        return LOOK_DISK;
    if (*p != 'R')
        return LOOK_BLOCKED;
    for (int field = 3; field < 14 && p; field++)
        p = strchr(p + 1, ' ');
    *ret_ticks = p ? strtol(p + 1, &p, 10) : 0;
    *ret_ticks += p ? strtol(p, NULL, 10) : 0; /* in the kernel */
    return LOOK_RUNS;
}

/* What one waiter knows of the thread that it waits for. */
struct watch {
    int slot;
    uint32_t moves;
    long last_ticks, ran_ticks;
    int64_t last_ns, waited_ns;
};

/* All threads of a process that are gone: a killed process must not be found one
 * thread after the other. */
static void bury(struct emu_clock *c, int pid)
{
    int n = atomic_load(&c->used);
    for (int i = 0; i < n; i++) {
        struct emu_clock_thread *t = &c->thread[i];
        uint32_t moves = atomic_load(&t->moves);
        long ticks;
        if (atomic_load(&t->state) != EMU_FREE && atomic_load(&t->pid) == pid &&
            look_at(pid, atomic_load(&t->tid), &ticks) == LOOK_GONE &&
            atomic_load(&t->pid) == pid && atomic_load(&t->moves) == moves)
            set_free(t);
    }
}

/* Asleep for so long, and still to be waited for? */
static bool blocked_by_right(struct emu_clock_thread *t, int64_t waited_ns)
{
    if (atomic_load(&t->observes)) /* at work it holds up whoever it waits for */
        return atomic_load(&t->dozing) && waited_ns < OBSERVER_NS;
    return atomic_load(&t->dozing) || (atomic_load(&t->tells_waits) && waited_ns < TOLD_NS);
}

/* The watched thread has not moved since the last look. */
static void look_into(struct emu_clock *c, struct emu_clock_thread *t, struct watch *w)
{
    int32_t state = atomic_load(&t->state), pid = atomic_load(&t->pid);
    long ticks = 0;
    bool ran = false;

    switch (look_at(pid, atomic_load(&t->tid), &ticks)) {
    case LOOK_GONE:
        bury(c, pid);
        wake_others(c);
        return;
    case LOOK_RUNS:
        if (w->last_ticks >= 0)
            w->ran_ticks += least_of(ticks - w->last_ticks, MOST_TICKS);
        w->last_ticks = ticks;
        if (w->ran_ticks < UNSEEN_TICKS)
            return;
        ran = true;
        break;
    case LOOK_STARTS: /* QEMU may keep it from running as long as others run */
    case LOOK_DISK:
        if (w->waited_ns < DISK_NS)
            return;
        break;
    case LOOK_BLOCKED:
        if (blocked_by_right(t, w->waited_ns))
            return;
        break;
    }
    if (get(&t->sleeps_to) != NEVER) { /* asleep here, and it is the last one */
        wake(t);
        return;
    }
    if (atomic_load(&t->moves) == w->moves && (state == EMU_ACTIVE || state == EMU_STARTING) &&
        atomic_compare_exchange_strong(&t->state, &state, EMU_AWAY)) {
        /* Released, but the wake came just before it slept: it waits for the next one. */
        atomic_store(&t->released, false);
        if (!atomic_load(&t->observes))
            atomic_fetch_add(ran ? &c->lost_runs : &c->unseen, 1);
        wake_others(c);
    }
}

/* A wait has timed out. Of all who wait, one looks at a time. */
static void look(struct emu_clock *c, int last, struct watch *w)
{
    struct emu_clock_thread *t = &c->thread[last];
    uint32_t moves = atomic_load(&t->moves);
    int64_t now = real_ns(), before = get(&c->looked);

    if (last != w->slot || moves != w->moves) {
        *w = (struct watch){.slot = last, .moves = moves, .last_ticks = -1, .last_ns = now};
        return;
    }
    w->waited_ns += least_of(now - w->last_ns, MOST_NS);
    w->last_ns = now;
    if (now - before >= LOOK_NS / 2 && atomic_compare_exchange_strong(&c->looked, &before, now))
        look_into(c, t, w);
}

/* Sleep until every other active thread has `target`; in_order: and none of those that
 * have just that time comes before this one. */
static void sleep_to(struct emu_clock *c, int slot, int64_t target, bool in_order)
{
    struct emu_clock_thread *self = &c->thread[slot];
    struct watch w = {.slot = -1};

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
            look(c, last, &w);
    }
    atomic_store(&self->sleeps_to, NEVER);
}

/* The owner shows itself; it may have been taken for blocked. */
static int64_t publish(struct emu_clock *c, int slot, int64_t time)
{
    struct emu_clock_thread *t = &c->thread[slot];

    atomic_fetch_add(&t->moves, 1);
    int32_t state = atomic_load(&t->state);
    if (state == EMU_AWAY || state == EMU_RELEASING)
        time = emu_clock_back(c, slot, time, emu_clock_waits_told ? time : -1);
    if (get(&t->time) == time)
        return time;
    atomic_store(&t->time, time);
    raise_to(&c->newest, time);
    wake_others(c);
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
    wake_others(c);
}

/* While another one releases this thread: else it would set a time that is past, and this thread,
 * asleep until a later one, and another would wait for each other. A releaser that was killed in
 * the middle is not waited for. */
static void await_releaser(struct emu_clock_thread *t)
{
    int32_t releasing = EMU_RELEASING;
    for (int64_t begin = real_ns();
         atomic_load(&t->state) == EMU_RELEASING && real_ns() - begin < RELEASE_NS;)
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
        floor = get(&t->time);
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
            get(&t->time) > time || !atomic_compare_exchange_strong(&t->state, &away, releasing))
            continue;
        /* From here on its owner stays where it is: it may have been elsewhere meanwhile. */
        bool waits = atomic_load(&t->wait_for) == wait_for && get(&t->time) <= time;
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
    int64_t floor, time = get(&t->time);

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
    atomic_store(&c->thread[slot].waited, NEVER);
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
    wake_others(c);
}

int64_t emu_clock_held(struct emu_clock *c, int slot)
{
    struct emu_clock_thread *t = &c->thread[slot];
    int64_t floor = emu_clock_floor(c), time = get(&t->time);

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
