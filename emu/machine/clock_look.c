/* SPDX-License-Identifier: BSD-2-Clause
 * Threads that do not get on though others wait for them: asleep, stopped, computing unseen or gone
 * according to /proc. See clock.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/clock_inside.h"

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

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
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
            emu_clock_set_free(t);
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
static void look_into(struct emu_clock *c, struct emu_clock_thread *t, struct emu_clock_watch *w)
{
    int32_t state = atomic_load(&t->state), pid = atomic_load(&t->pid);
    long ticks = 0;
    bool ran = false;

    switch (look_at(pid, atomic_load(&t->tid), &ticks)) {
    case LOOK_GONE:
        bury(c, pid);
        emu_clock_wake_others(c);
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
    if (emu_clock_get(&t->sleeps_to) != EMU_NEVER) { /* asleep here, and it is the last one */
        emu_clock_wake(t);
        return;
    }
    if (atomic_load(&t->moves) == w->moves && (state == EMU_ACTIVE || state == EMU_STARTING) &&
        atomic_compare_exchange_strong(&t->state, &state, EMU_AWAY)) {
        /* Released, but the wake came just before it slept: it waits for the next one. */
        atomic_store(&t->released, false);
        if (!atomic_load(&t->observes))
            atomic_fetch_add(ran ? &c->lost_runs : &c->unseen, 1);
        emu_clock_wake_others(c);
    }
}

void emu_clock_look(struct emu_clock *c, int last, struct emu_clock_watch *w)
{
    struct emu_clock_thread *t = &c->thread[last];
    uint32_t moves = atomic_load(&t->moves);
    int64_t now = emu_clock_real_ns(), before = emu_clock_get(&c->looked);

    if (last != w->slot || moves != w->moves) {
        *w = (struct emu_clock_watch){
            .slot = last, .moves = moves, .last_ticks = -1, .last_ns = now};
        return;
    }
    w->waited_ns += least_of(now - w->last_ns, MOST_NS);
    w->last_ns = now;
    if (now - before >= EMU_LOOK_NS / 2 && atomic_compare_exchange_strong(&c->looked, &before, now))
        look_into(c, t, w);
}
