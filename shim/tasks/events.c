/* SPDX-License-Identifier: BSD-2-Clause
 * See events.h. A thread takes a ring for the few stores of one entry and gives it back: so threads
 * that come and go leave nothing behind, and a handler of a signal that makes tasks in the middle
 * of it finds another ring. Who finds all of the tried ones taken drops the event. */
#include "tasks/events.h"

#include <errno.h>
#include <string.h>

#include "sys/emulator.h"
#include "sys/os.h"

#define RINGS 64u
#define SLOTS 4096u /* a power of two */
#define TRIES 4u
#define PROBE 8u

struct ring {
    uint32_t taken;
    uint32_t head; /* written by who has taken it */
    uint8_t unused1[56];
    uint32_t tail; /* the reader's */
    uint8_t unused2[60];
    struct task_event slot[SLOTS];
};

struct function {
    uintptr_t fn;
    uint32_t off;
    uint32_t known; /* `code` is complete */
    struct module code;
};

uint32_t hy_tasks_watched;
static struct ring *rings;
static struct function functions[TASK_FUNCTIONS];
static uint64_t last_id, dropped, loops;
static uint32_t next_home;
static __thread uint32_t home __attribute__((tls_model("initial-exec")));

/* By the first who has something to tell: most programs have no tasks. */
static struct ring *map_rings(void)
{
    struct ring *none = NULL;
    void *base;
    if (os_map_anon(RINGS * sizeof(*rings), &base) != 0)
        return NULL;
    if (__atomic_compare_exchange_n(&rings, &none, (struct ring *)base, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return base;
    os_unmap(base, RINGS * sizeof(*rings));
    return none;
}

static struct ring *take_ring(void)
{
    struct ring *all = __atomic_load_n(&rings, __ATOMIC_ACQUIRE);
    if (HY_UNLIKELY(!all) && !(all = map_rings()))
        return NULL;
    if (home == 0)
        home = 1 + __atomic_fetch_add(&next_home, 1, __ATOMIC_RELAXED) % RINGS;
    for (unsigned i = 0; i < TRIES; i++) {
        struct ring *r = &all[(home - 1 + i) % RINGS];
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(&r->taken, &free, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return r;
    }
    return NULL;
}

/* All of them or none. */
static bool push(const struct task_event *e, unsigned n)
{
    struct ring *r = take_ring();
    bool fits = false;
    if (r) {
        uint32_t head = r->head;
        fits = head + n - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) <= SLOTS;
        for (unsigned i = 0; fits && i < n; i++)
            r->slot[(head + i) % SLOTS] = e[i];
        if (fits)
            __atomic_store_n(&r->head, head + n, __ATOMIC_RELEASE);
        __atomic_store_n(&r->taken, 0, __ATOMIC_RELEASE);
    }
    if (!fits)
        __atomic_fetch_add(&dropped, n, __ATOMIC_RELAXED);
    return fits;
}

unsigned tasks_function(const void *fn)
{
    uintptr_t p = (uintptr_t)fn;
    unsigned at = (unsigned)((p >> 4) * 2654435761u >> 8);
    for (unsigned i = 0; i < PROBE; i++) {
        struct function *f = &functions[(at + i) % TASK_FUNCTIONS];
        uintptr_t there = __atomic_load_n(&f->fn, __ATOMIC_ACQUIRE);
        if (there == 0 && __atomic_compare_exchange_n(&f->fn, &there, p, false, __ATOMIC_ACQ_REL,
                                                      __ATOMIC_ACQUIRE)) {
            /* Here the code cannot be gone: its task is being made. */
            if (module_find(p, &f->code) == 0)
                __atomic_store_n(&f->known, 1, __ATOMIC_RELEASE);
            there = p;
        }
        if (there == p)
            return __atomic_load_n(&f->off, __ATOMIC_RELAXED) ? 0 : (at + i) % TASK_FUNCTIONS + 1;
    }
    return 0;
}

uint64_t tasks_made(unsigned function, const struct task_need *need, unsigned n)
{
    struct task_event e[1 + TASK_NEEDS_MOST];
    if (n == 0 || n > TASK_NEEDS_MOST)
        return 0;
    uint64_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    e[0] = (struct task_event){
        .id = id, .bytes = n, .function = (uint16_t)function, .kind = TASK_MADE};
    for (unsigned i = 0; i < n; i++)
        e[i + 1] = (struct task_event){.id = id,
                                       .value = need[i].address,
                                       .bytes = need[i].bytes,
                                       .kind = TASK_NEEDS,
                                       .writes = need[i].writes};
    return push(e, n + 1) ? id : 0;
}

static void push_time(uint64_t id, enum task_event_kind kind)
{
    if (!tasks_watched())
        return;
    struct task_event e = {.id = id, .value = emulator_clock_ns(), .kind = (uint8_t)kind};
    (void)push(&e, 1);
}

void tasks_began(uint64_t id)
{
    push_time(id, TASK_BEGAN);
}

void tasks_ended(uint64_t id)
{
    push_time(id, TASK_ENDED);
}

void tasks_open(void)
{
    struct ring *all = __atomic_load_n(&rings, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; all && i < RINGS; i++) /* what was told before is of unseen tasks */
        __atomic_store_n(&all[i].tail, __atomic_load_n(&all[i].head, __ATOMIC_ACQUIRE),
                         __ATOMIC_RELEASE);
    __atomic_store_n(&hy_tasks_watched, 1, __ATOMIC_RELEASE);
}

void tasks_close(void)
{
    __atomic_store_n(&hy_tasks_watched, 0, __ATOMIC_RELEASE);
}

/* It may have rings that a thread which it does not have has taken. */
void tasks_child(void)
{
    tasks_close();
    for (unsigned i = 0; rings && i < RINGS; i++)
        __atomic_store_n(&rings[i].taken, 0, __ATOMIC_RELEASE);
}

/* What is handed over ends where the rings ended at the beginning, those of makers of tasks
 * first or last: a task may be told to have begun before it was made. */
unsigned tasks_drain(void (*fn)(void *ctx, const struct task_event *e), void *ctx)
{
    struct ring *all = __atomic_load_n(&rings, __ATOMIC_ACQUIRE);
    unsigned n = 0;
    for (unsigned i = 0; all && i < RINGS; i++) {
        struct ring *r = &all[i];
        uint32_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), tail = r->tail;
        for (; tail != head; tail++, n++)
            fn(ctx, &r->slot[tail % SLOTS]);
        __atomic_store_n(&r->tail, tail, __ATOMIC_RELEASE);
    }
    return n;
}

void tasks_drop_function(unsigned function)
{
    if (function >= 1 && function <= TASK_FUNCTIONS)
        __atomic_store_n(&functions[function - 1].off, 1, __ATOMIC_RELAXED);
}

bool tasks_told(void)
{
    return __atomic_load_n(&rings, __ATOMIC_ACQUIRE) != NULL;
}

uint64_t tasks_dropped(void)
{
    return __atomic_load_n(&dropped, __ATOMIC_RELAXED);
}

void tasks_loop(void)
{
    __atomic_fetch_add(&loops, 1, __ATOMIC_RELAXED);
}

uint64_t tasks_loops(void)
{
    return __atomic_load_n(&loops, __ATOMIC_RELAXED);
}

int tasks_code(unsigned function, struct module *ret, uintptr_t *ret_offset)
{
    if (function < 1 || function > TASK_FUNCTIONS)
        return -ENOENT;
    const struct function *f = &functions[function - 1];
    if (!__atomic_load_n(&f->known, __ATOMIC_ACQUIRE))
        return -ENOENT;
    *ret = f->code;
    *ret_offset = __atomic_load_n(&f->fn, __ATOMIC_RELAXED) - f->code.bias;
    return 0;
}
