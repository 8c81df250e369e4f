/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP tasks. libgomp runs them where threads wait (barriers, taskwait), so each is
 * wrapped: the thread comes back from being away for as long as the task runs, and not
 * before the time at which the task was made. Who waits for tasks goes on not before
 * the latest one that has ended in its team.
 *
 * libgomp copies a task's argument block; ours is a header with the program's behind.
 * It also writes into the program's block: an event's handle into the first word, the
 * bounds of a taskloop's piece into the first two, and reads the third (reductions).
 * So the header begins with three words that are carried over. */
#include <stdint.h>
#include <string.h>

#include "core/core.h"
#include "instrument/openmp.h"
#include "instrument/real.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define FLAG_DEPEND    8u
#define FLAG_NOGROUP   (1u << 11)
#define FLAG_REDUCTION (1u << 12)
#define FLAG_DETACH    (1u << 13)

typedef void copy_fn(void *, void *);

struct task {
    uintptr_t word[3];
    void (*run)(void *);
    copy_fn *copy;
    void *data; /* of the program */
    size_t bytes, offset;
    bool event, loop;
    int64_t made;
};

static void copy_task(void *to, void *from)
{
    struct task *t = to, *s = from;
    char *data = (char *)to + s->offset;

    *t = *s;
    if (s->event)
        memcpy(s->data, &s->word[0], sizeof(s->word[0]));
    if (s->copy)
        s->copy(data, s->data);
    else if (s->bytes)
        memcpy(data, s->data, s->bytes);
}

static void run_task(void *p)
{
    struct task *t = p;
    char *data = (char *)p + t->offset;
    bool was = emu_task_begins(t->made);

    if (t->loop)
        memcpy(data, t->word, 2 * sizeof(t->word[0]));
    t->run(data);
    emu_task_ends(was);
}

static long align_up(long n, long align)
{
    return (n + align - 1) / align * align;
}

/* The header for a task, and what libgomp is told of the block's size. */
static struct task header(void (*run)(void *), void *data, copy_fn *copy, long *bytes, long *align)
{
    struct task t = {.run = run, .copy = copy, .data = data, .bytes = (size_t)*bytes};

    if (*align < (long)_Alignof(struct task))
        *align = (long)_Alignof(struct task);
    t.offset = (size_t)align_up((long)sizeof(t), *align);
    *bytes = align_up((long)t.offset + *bytes, *align);
    emu_settle_debt();
    t.made = emu_now();
    return t;
}

EXPORT void GOMP_task(void (*run)(void *), void *data, copy_fn *copy, long bytes, long align,
                      bool deferred, unsigned flags, void **depend, int priority, void *event)
{
    REAL(void, GOMP_task, void (*)(void *), void *, copy_fn *, long, long, bool, unsigned, void **,
         int, void *);
    struct task t;
    bool waits = !deferred && (flags & FLAG_DEPEND);

    if (!emu_live()) {
        f(run, data, copy, bytes, align, deferred, flags, depend, priority, event);
        return;
    }
    t = header(run, data, copy, &bytes, &align);
    t.event = (flags & FLAG_DETACH) && data;
    if (waits)
        emu_wait_begins(0);
    f(run_task, &t, copy_task, bytes, align, deferred, flags, depend, priority, event);
    if (waits)
        emu_wait_ends(atomic_load(&emu_my_team()->tasks));
}

#define TASKLOOP(name, type)                                                                       \
    EXPORT void name(void (*run)(void *), void *data, copy_fn *copy, long bytes, long align,       \
                     unsigned flags, unsigned long tasks, int priority, type from, type to,        \
                     type step)                                                                    \
    {                                                                                              \
        REAL(void, name, void (*)(void *), void *, copy_fn *, long, long, unsigned, unsigned long, \
             int, type, type, type);                                                               \
        struct task t;                                                                             \
        if (!emu_live()) {                                                                         \
            f(run, data, copy, bytes, align, flags, tasks, priority, from, to, step);              \
            return;                                                                                \
        }                                                                                          \
        t = header(run, data, copy, &bytes, &align);                                               \
        t.loop = true;                                                                             \
        if (flags & FLAG_REDUCTION)                                                                \
            memcpy(&t.word[2], (char *)data + 2 * sizeof(t.word[0]), sizeof(t.word[2]));           \
        if (!(flags & FLAG_NOGROUP))                                                               \
            emu_wait_begins(0);                                                                    \
        f(run_task, &t, copy_task, bytes, align, flags, tasks, priority, from, to, step);          \
        if (!(flags & FLAG_NOGROUP))                                                               \
            emu_wait_ends(atomic_load(&emu_my_team()->tasks));                                     \
    }

TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

#define WAIT(name, types, args)                                                                    \
    EXPORT void name types                                                                         \
    {                                                                                              \
        REAL(void, name, LIST types);                                                              \
        emu_wait_begins(0);                                                                        \
        f args;                                                                                    \
        emu_wait_ends(atomic_load(&emu_my_team()->tasks));                                         \
    }
#define LIST(...) __VA_ARGS__

WAIT(GOMP_taskwait, (void), ())
WAIT(GOMP_taskwait_depend, (void **depend), (depend))
WAIT(GOMP_taskgroup_end, (void), ())
