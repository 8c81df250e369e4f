/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP tasks, as GCC's programs ask libgomp for them. While nobody watches (HYBRID_TASKS=off, no
 * second memory) this is a test and a jump. Watched are tasks with dependences that are put
 * off: an undeferred one begins at once, so nothing could be staged for it, and a detached one has
 * libgomp write into its block of arguments. All others pass as they came.
 *
 * libgomp copies a task's block of arguments; a watched one's begins with a head of ours. Not
 * hooked: taskloops, which name no data. */
#include <string.h>

#include "base/guard.h"
#include "sys/dl.h"
#include "tasks/events.h"

typedef void run_fn(void *);
typedef void copy_fn(void *, void *);
typedef void gomp_task_fn(run_fn *, void *, copy_fn *, long, long, bool, unsigned, void **, int,
                          void *);

#define FLAG_DEPEND 8u
#define FLAG_DETACH (1u << 13)

gomp_task_fn GOMP_task;

/* --- the runtime ------------------------------------------------------------------------ */

#define OWN_MOST 8u

/* Objects that were opened with a runtime of their own (Python's wheels): which one is theirs. */
static struct own {
    uintptr_t start, end;
    const void *handle;
    gomp_task_fn *fn; /* last; NULL: free */
} own[OWN_MOST];

/* The program's; NULL: not known, or there is none. */
extern HY_HIDDEN gomp_task_fn *hy_gomp_next;
gomp_task_fn *hy_gomp_next;

static HY_COLD gomp_task_fn *runtime_of(const void *caller)
{
    static uint32_t owns;
    struct dl_object o = {0};
    gomp_task_fn *fn;
    bool found = dl_find(caller, &o) == 0;
    for (unsigned i = 0; found && i < OWN_MOST; i++) {
        fn = __atomic_load_n(&own[i].fn, __ATOMIC_ACQUIRE);
        if (fn && own[i].handle == o.handle && own[i].start == o.start && own[i].end == o.end)
            return fn;
    }
    if ((fn = (gomp_task_fn *)dl_next("GOMP_task")) != NULL) {
        __atomic_store_n(&hy_gomp_next, fn, __ATOMIC_RELEASE);
        return fn;
    }
    fn = (gomp_task_fn *)dl_next_of("GOMP_task", caller);
    uint32_t i = fn && found ? __atomic_fetch_add(&owns, 1, __ATOMIC_RELAXED) : OWN_MOST;
    if (i < OWN_MOST) {
        own[i] = (struct own){.start = o.start, .end = o.end, .handle = o.handle};
        __atomic_store_n(&own[i].fn, fn, __ATOMIC_RELEASE);
    }
    return fn;
}

/* Without a runtime there is one thread, as the stubs of <omp.h> say. */
static void run_alone(run_fn *run, void *data, copy_fn *copy, long bytes, long align)
{
    if (!copy) {
        run(data);
        return;
    }
    size_t unit = (size_t)HY_MAX(align, 1L);
    char *block = __builtin_alloca((size_t)bytes + unit);
    char *at = (char *)hy_align_up((uintptr_t)block, unit);
    copy(at, data);
    run(at);
}

/* --- watched tasks -------------------------------------------------------------------------- */

struct head {
    run_fn *run;
    copy_fn *copy;
    void *data; /* of the program */
    size_t bytes, offset;
    uint64_t id;
};

static void copy_watched(void *to, void *from)
{
    struct head *h = from;
    char *data = (char *)to + h->offset;
    *(struct head *)to = *h;
    if (h->copy)
        h->copy(data, h->data);
    else if (h->bytes)
        memcpy(data, h->data, h->bytes);
}

static void run_watched(void *block)
{
    struct head *h = block;
    uint64_t id = h->id; /* the program may write over all of its block */
    tasks_began(id);
    h->run((char *)block + h->offset);
    tasks_ended(id);
}

/* libgomp's array: {n, written, addresses}, or {0, n, written, mutexinoutset, read, addresses},
 * in the order written, mutexinoutset, read, and last pointers to objects of omp_depend_t, which
 * are left out. */
static unsigned needs_of(void **depend, struct task_need *ret)
{
    uintptr_t all = (uintptr_t)depend[0], written = (uintptr_t)depend[1];
    void **address = depend + 2;
    if (all == 0) {
        written = (uintptr_t)depend[2] + (uintptr_t)depend[3];
        all = written + (uintptr_t)depend[4];
        address = depend + 5;
    }
    if (all > TASK_NEEDS_MOST)
        return 0;
    for (uintptr_t i = 0; i < all; i++)
        ret[i] = (struct task_need){.address = (uintptr_t)address[i], .writes = i < written};
    return (unsigned)all;
}

/* Its id; 0: it is not watched. */
static uint64_t watch(run_fn *run, void **depend)
{
    struct task_need need[TASK_NEEDS_MOST];
    unsigned function = hy_guarded() ? 0 : tasks_function((const void *)(uintptr_t)run);
    return function ? tasks_made(function, need, needs_of(depend, need)) : 0;
}

/* All that is not the short way below. */
#define KEPT_FOR_ASM __attribute__((used, visibility("hidden")))
KEPT_FOR_ASM gomp_task_fn hy_gomp_task;
void hy_gomp_task(run_fn *run, void *data, copy_fn *copy, long bytes, long align, bool deferred,
                  unsigned flags, void **depend, int priority, void *event)
{
    gomp_task_fn *next = __atomic_load_n(&hy_gomp_next, __ATOMIC_ACQUIRE);
    uint64_t id;
    if (!next)
        next = runtime_of(__builtin_return_address(0));
    if (HY_UNLIKELY(!next)) {
        run_alone(run, data, copy, bytes, align);
        return;
    }
    if (!tasks_watched() || !deferred || (flags & (FLAG_DEPEND | FLAG_DETACH)) != FLAG_DEPEND ||
        (id = watch(run, depend)) == 0) {
        next(run, data, copy, bytes, align, deferred, flags, depend, priority, event);
        return;
    }
    struct head h = {.run = run, .copy = copy, .data = data, .bytes = (size_t)bytes, .id = id};
    align = HY_MAX(align, (long)_Alignof(struct head));
    h.offset = hy_align_up(sizeof(h), (size_t)align);
    next(run_watched, &h, copy_watched, (long)h.offset + bytes, align, deferred, flags, depend,
         priority, event);
}

/* A task that nobody watches: a test and a jump. Ten arguments would be shuffled by a compiler. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl GOMP_task\n"
        ".type GOMP_task, @function\n"
        "GOMP_task:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "cmpl $0, hy_tasks_watched(%rip)\n"
        "jne hy_gomp_task\n"
        "mov hy_gomp_next(%rip), %rax\n"
        "test %rax, %rax\n"
        "je hy_gomp_task\n"
        "jmp *%rax\n"
        ".cfi_endproc\n"
        ".size GOMP_task, . - GOMP_task\n");
#else
HY_EXPORT void GOMP_task(run_fn *run, void *data, copy_fn *copy, long bytes, long align,
                         bool deferred, unsigned flags, void **depend, int priority, void *event)
{
    hy_gomp_task(run, data, copy, bytes, align, deferred, flags, depend, priority, event);
}
#endif
