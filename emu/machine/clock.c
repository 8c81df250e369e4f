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
/* CPU time without a settling (one takes well below 1 ms) after which a thread is
 * taken to run code that nobody sees; in ticks of 10 ms. */
#define UNSEEN_TICKS 20

#define NEVER INT64_MAX

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

static void lower_to(_Atomic int64_t *p, int64_t v)
{
    int64_t old = get(p);
    while (old > v && !atomic_compare_exchange_weak(p, &old, v))
        ;
}

/* Shared between processes: not the private kind of futex. */
static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    struct timespec t = {.tv_nsec = LOOK_NS};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void wake(struct emu_clock_thread *t)
{
    atomic_store(&t->wake_at, NEVER);
    atomic_fetch_add(&t->turn, 1);
    syscall(SYS_futex, &t->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool holds_up(struct emu_clock_thread *t)
{
    int32_t s = atomic_load(&t->state);
    return s == EMU_ACTIVE || s == EMU_STARTING;
}

/* The active thread with the least time, `slot` aside; -1: none. */
static int last_one(struct emu_clock *c, int slot, int64_t *ret_time)
{
    int n = atomic_load(&c->used), last = -1;
    int64_t least = NEVER;
    for (int i = 0; i < n; i++) {
        int64_t t;
        if (i == slot || !holds_up(&c->thread[i]))
            continue;
        t = get(&c->thread[i].time);
        if (t < least) {
            least = t;
            last = i;
        }
    }
    *ret_time = least;
    return last;
}

int64_t emu_clock_floor(struct emu_clock *c)
{
    int64_t t;
    return last_one(c, -1, &t) < 0 ? get(&c->newest) : t;
}

int emu_clock_join(struct emu_clock *c, int64_t start, int *ret_slot)
{
    for (int i = 0; i < EMU_THREADS; i++) {
        struct emu_clock_thread *t = &c->thread[i];
        int32_t none = EMU_FREE, used = atomic_load(&c->used);
        /* Claimed as away: it must not hold anybody up before its time is set. */
        if (!atomic_compare_exchange_strong(&t->state, &none, EMU_AWAY))
            continue;
        while (used <= i && !atomic_compare_exchange_weak(&c->used, &used, i + 1))
            ;
        atomic_store(&t->pid, (int32_t)getpid());
        atomic_store(&t->tid, 0);
        atomic_store(&t->time, start);
        atomic_store(&t->wake_at, NEVER);
        atomic_store(&t->wait_for, 0);
        atomic_store(&t->state, EMU_STARTING);
        *ret_slot = i;
        return 0;
    }
    return -EAGAIN;
}

void emu_clock_begin(struct emu_clock *c, int slot)
{
    atomic_store(&c->thread[slot].tid, (int32_t)syscall(SYS_gettid));
    atomic_store(&c->thread[slot].state, EMU_ACTIVE);
}

void emu_clock_leave(struct emu_clock *c, int slot)
{
    atomic_store(&c->thread[slot].state, EMU_FREE);
    wake(&c->thread[slot]);
}

void emu_clock_forget(struct emu_clock *c, int pid)
{
    int n = atomic_load(&c->used);
    for (int i = 0; i < n; i++)
        if (atomic_load(&c->thread[i].state) != EMU_FREE && atomic_load(&c->thread[i].pid) == pid)
            emu_clock_leave(c, i);
}

enum look { LOOK_RUNS, LOOK_BLOCKED, LOOK_GONE };

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
        return LOOK_RUNS;
    if (*p != 'R')
        return LOOK_BLOCKED;
    for (int field = 3; field < 14 && p; field++)
        p = strchr(p + 1, ' ');
    *ret_ticks = p ? strtol(p + 1, NULL, 10) : 0;
    return LOOK_RUNS;
}

/* `t` has not moved for a while. */
static void look_into(struct emu_clock *c, struct emu_clock_thread *t, uint32_t turn,
                      long *first_ticks)
{
    int32_t active = EMU_ACTIVE, pid = atomic_load(&t->pid);
    long ticks = 0;

    switch (look_at(pid, atomic_load(&t->tid), &ticks)) {
    case LOOK_GONE:
        if (atomic_load(&t->pid) == pid && atomic_load(&t->turn) == turn) {
            atomic_store(&t->state, EMU_FREE);
            wake(t);
        }
        return;
    case LOOK_RUNS:
        if (*first_ticks < 0)
            *first_ticks = ticks;
        if (ticks - *first_ticks < UNSEEN_TICKS)
            return;
        break;
    case LOOK_BLOCKED:
        break;
    }
    /* It may wait for its own turn behind somebody else: then it is no longer the
     * last one, and its `turn` has changed. */
    if (atomic_load(&t->turn) == turn &&
        atomic_compare_exchange_strong(&t->state, &active, EMU_AWAY)) {
        atomic_fetch_add(&c->unseen, 1);
        wake(t);
    }
}

static void wait_turn(struct emu_clock *c, int slot, int64_t time, int64_t lookahead)
{
    int watched = -1;
    uint32_t watched_turn = 0;
    long first_ticks = -1;

    for (;;) {
        int64_t least;
        int last = last_one(c, slot, &least);
        struct emu_clock_thread *t;
        uint32_t turn;
        if (last < 0 || least + lookahead >= time)
            return;
        t = &c->thread[last];
        turn = atomic_load(&t->turn);
        lower_to(&t->wake_at, time - lookahead);
        /* It may have gone past between the look and the wish to be woken. */
        if (!holds_up(t) || get(&t->time) + lookahead >= time)
            continue;
        if (last != watched || turn != watched_turn) {
            watched = last;
            watched_turn = turn;
            first_ticks = -1;
        } else {
            look_into(c, t, turn, &first_ticks);
        }
        futex_wait(&t->turn, turn);
    }
}

int64_t emu_clock_advance(struct emu_clock *c, int slot, int64_t time, int64_t lookahead)
{
    struct emu_clock_thread *t = &c->thread[slot];
    int e = errno;

    if (atomic_load(&t->state) == EMU_AWAY)
        time = emu_clock_back(c, slot, time, -1);
    atomic_store(&t->time, time);
    raise_to(&c->newest, time);
    if (time >= get(&t->wake_at))
        wake(t);
    wait_turn(c, slot, time, lookahead);
    errno = e;
    return time;
}

void emu_clock_away(struct emu_clock *c, int slot, uint64_t wait_for)
{
    struct emu_clock_thread *t = &c->thread[slot];
    atomic_store(&t->wait_for, wait_for);
    atomic_store(&t->state, EMU_AWAY);
    if (get(&t->wake_at) != NEVER)
        wake(t);
}

int64_t emu_clock_back(struct emu_clock *c, int slot, int64_t time, int64_t known)
{
    struct emu_clock_thread *t = &c->thread[slot];
    int64_t floor = known < 0 ? emu_clock_floor(c) : known;

    if (atomic_load(&t->state) == EMU_ACTIVE) /* released, or never left */
        floor = known < 0 ? time : known;
    if (floor > time)
        time = floor;
    atomic_store(&t->time, time);
    atomic_store(&t->wait_for, 0);
    atomic_store(&t->state, EMU_ACTIVE);
    return time;
}

void emu_clock_release(struct emu_clock *c, uint64_t wait_for, int64_t time)
{
    int n = atomic_load(&c->used), pid = getpid();
    for (int i = 0; i < n; i++) {
        struct emu_clock_thread *t = &c->thread[i];
        uint64_t at = wait_for;
        int32_t away = EMU_AWAY;
        if (atomic_load(&t->state) != EMU_AWAY || atomic_load(&t->pid) != pid ||
            get(&t->time) >= time || !atomic_compare_exchange_strong(&t->wait_for, &at, 0))
            continue;
        atomic_store(&t->time, time);
        atomic_compare_exchange_strong(&t->state, &away, EMU_ACTIVE);
    }
}
