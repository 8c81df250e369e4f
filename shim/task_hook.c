/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP tasks, as GCC's programs ask libgomp for them, and clang's libomp. While nobody watches
 * (HYBRID_TASKS=off, no second memory) this is a test and a jump. Watched are tasks with
 * dependences that are put off: an undeferred one begins at once, so nothing could be staged for
 * it, and a detached one has libgomp write into its block of arguments. All others pass as they
 * came.
 *
 * libgomp copies a task's block of arguments; a watched one's begins with a head of ours. Loops of
 * tasks name no data: they are counted, and pass. Not hooked: clang's tasks without dependences. */
#include <string.h>

#include "base/guard.h"
#include "sys/dl.h"
#include "sys/os.h"
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
struct own {
    uintptr_t start, end;
    const void *handle;
    void *fn; /* last; NULL: free */
};

struct entry {
    char name[28]; /* no pointers, which the loader would have to write at each start */
    uint32_t owns;
    struct own own[OWN_MOST];
};

/* next: the program's; NULL: not known, or there is none. */
static HY_COLD void *runtime_of(struct entry *e, void **next, const void *caller)
{
    struct dl_object o = {0};
    void *fn;
    bool found = dl_find(caller, &o) == 0;
    for (unsigned i = 0; found && i < OWN_MOST; i++) {
        const struct own *w = &e->own[i];
        fn = __atomic_load_n(&w->fn, __ATOMIC_ACQUIRE);
        if (fn && w->handle == o.handle && w->start == o.start && w->end == o.end)
            return fn;
    }
    if ((fn = dl_next(e->name)) != NULL) {
        __atomic_store_n(next, fn, __ATOMIC_RELEASE);
        return fn;
    }
    fn = dl_next_of(e->name, caller);
    uint32_t i = fn && found ? __atomic_fetch_add(&e->owns, 1, __ATOMIC_RELAXED) : OWN_MOST;
    if (i < OWN_MOST) {
        e->own[i] = (struct own){.start = o.start, .end = o.end, .handle = o.handle};
        __atomic_store_n(&e->own[i].fn, fn, __ATOMIC_RELEASE);
    }
    return fn;
}

extern HY_HIDDEN void *hy_gomp_next, *hy_kmpc_next;
void *hy_gomp_next, *hy_kmpc_next;

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
    static struct entry entry = {.name = "GOMP_task"};
    gomp_task_fn *next = (gomp_task_fn *)__atomic_load_n(&hy_gomp_next, __ATOMIC_ACQUIRE);
    uint64_t id;
    if (!next)
        next = (gomp_task_fn *)runtime_of(&entry, &hy_gomp_next, __builtin_return_address(0));
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

/* --- libomp --------------------------------------------------------------------------------- */

/* The beginning of its kmp_task_t, and a dependence; both are what compilers write and read. */
typedef int kmp_run_fn(int, void *);
struct kmp_task {
    void *shareds;
    kmp_run_fn *run;
};
struct kmp_need {
    uintptr_t address;
    size_t bytes;
    uint8_t flags;
};
#define KMP_READS 1u
typedef int kmpc_fn(void *, int, struct kmp_task *, int, const struct kmp_need *, int, void *);

/* What a watched task is to run: there is no room for it in the task. A task that was cancelled
 * leaves its place taken until its address comes again. */
#define WATCHED_TASKS 4096u
#define PROBE         8u
#define BEING_MADE    ((struct kmp_task *)1)
static struct watched_task {
    struct kmp_task *task;
    kmp_run_fn *run;
    uint64_t id;
} * watched_tasks; /* mapped for the first */

static struct watched_task *watched_task_of(const struct kmp_task *task)
{
    unsigned at = (unsigned)(((uintptr_t)task >> 6) * 2654435761u >> 4);
    for (unsigned i = 0; i < PROBE; i++)
        if (__atomic_load_n(&watched_tasks[(at + i) % WATCHED_TASKS].task, __ATOMIC_ACQUIRE) ==
            task)
            return &watched_tasks[(at + i) % WATCHED_TASKS];
    return NULL;
}

static bool map_watched_tasks(void)
{
    struct watched_task *none = NULL;
    void *m;
    if (HY_LIKELY(__atomic_load_n(&watched_tasks, __ATOMIC_ACQUIRE) != NULL))
        return true;
    if (os_map_anon(WATCHED_TASKS * sizeof(*watched_tasks), &m))
        return false;
    if (!__atomic_compare_exchange_n(&watched_tasks, &none, (struct watched_task *)m, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        os_unmap(m, WATCHED_TASKS * sizeof(*watched_tasks));
    return true;
}

/* A place for it, which nobody finds before release_task(); its own, if one is left from a task
 * that was cancelled. */
static struct watched_task *place_for(struct kmp_task *task)
{
    unsigned at = (unsigned)(((uintptr_t)task >> 6) * 2654435761u >> 4);
    if (!map_watched_tasks())
        return NULL;
    struct watched_task *p = watched_task_of(task);
    for (unsigned i = 0; i < PROBE && !p; i++) {
        struct kmp_task *nobody = NULL;
        struct watched_task *q = &watched_tasks[(at + i) % WATCHED_TASKS];
        if (__atomic_compare_exchange_n(&q->task, &nobody, BEING_MADE, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            p = q;
    }
    return p;
}

/* Who is going to run it finds all of it, whatever the runtime does to hand it over. NULL: none. */
static void release_task(struct watched_task *p, struct kmp_task *task)
{
    __atomic_store_n(&p->task, task, __ATOMIC_RELEASE);
}

/* An untied task runs in parts, and is put off in between with what it is to run: its own. */
static int run_kmp(int thread, void *block)
{
    struct kmp_task *task = block;
    struct watched_task *p = watched_task_of(task);
    struct watched_task was = *p;
    task->run = was.run;
    release_task(p, NULL);
    tasks_began(was.id);
    int r = was.run(thread, task);
    tasks_ended(was.id); /* `task` may be gone */
    return r;
}

static void watch_kmp(struct kmp_task *task, int n, const struct kmp_need *kmp)
{
    struct task_need need[TASK_NEEDS_MOST];
    unsigned all = 0, function;
    for (int i = 0; i < n; i++) {
        if (all == TASK_NEEDS_MOST)
            return;
        if (kmp[i].address != 0)
            need[all++] =
                (struct task_need){kmp[i].address, kmp[i].bytes, kmp[i].flags != KMP_READS};
    }
    if (hy_guarded() || (function = tasks_function((const void *)(uintptr_t)task->run)) == 0)
        return;
    struct watched_task *p = place_for(task);
    if (!p)
        return;
    p->run = task->run;
    p->id = tasks_made(function, need, all);
    if (p->id)
        task->run = run_kmp;
    release_task(p, p->id ? task : NULL);
}

/* libomp stands in for libgomp, too: then its GOMP_task calls this, with what is to run called in
 * another way, and is watched itself. */
static bool calls_itself(kmpc_fn *next, const void *caller)
{
    struct dl_object o;
    return dl_find((const void *)(uintptr_t)next, &o) == 0 && (uintptr_t)caller >= o.start &&
           (uintptr_t)caller < o.end;
}

KEPT_FOR_ASM kmpc_fn hy_kmpc_task;
int hy_kmpc_task(void *loc, int thread, struct kmp_task *task, int n, const struct kmp_need *need,
                 int more, void *noalias)
{
    static struct entry entry = {.name = "__kmpc_omp_task_with_deps"};
    kmpc_fn *next = (kmpc_fn *)__atomic_load_n(&hy_kmpc_next, __ATOMIC_ACQUIRE);
    if (!next)
        next = (kmpc_fn *)runtime_of(&entry, &hy_kmpc_next, __builtin_return_address(0));
    if (!next) /* who made the task, then? */
        return task->run(thread, task);
    if (tasks_watched() && !calls_itself(next, __builtin_return_address(0)))
        watch_kmp(task, n, need);
    return next(loc, thread, task, n, need, more, noalias);
}

/* --- loops of tasks --------------------------------------------------------------------------- */

#define LOOP_PARAMS                                                                                \
    run_fn *run, void *data, copy_fn *copy, long bytes, long align, unsigned flags,                \
        unsigned long tasks, int priority, long from, long to, long step
typedef void gomp_loop_fn(LOOP_PARAMS);

struct bounds {
    long from, to;
};

/* The whole loop as one piece: the first two words of a piece's block are its bounds. */
static void loop_alone(run_fn *run, void *data, copy_fn *copy, struct bounds b, long bytes,
                       long align)
{
    size_t unit = (size_t)HY_MAX(align, (long)_Alignof(struct bounds));
    char *block = __builtin_alloca((size_t)bytes + unit);
    char *at = (char *)hy_align_up((uintptr_t)block, unit);
    if (copy)
        copy(at, data);
    else
        memcpy(at, data, (size_t)bytes);
    memcpy(at, &b, sizeof(b));
    run(at);
}

static void *loop_runtime(struct entry *e, void **next, const void *caller)
{
    void *fn = __atomic_load_n(next, __ATOMIC_ACQUIRE);
    if (tasks_watched())
        tasks_loop();
    return fn ? fn : runtime_of(e, next, caller);
}

/* The bounds of GOMP_taskloop_ull are unsigned long long, which are passed and kept as long is. */
_Static_assert(sizeof(long) == sizeof(unsigned long long), "one way for both loops");
#define GOMP_LOOP(loop)                                                                            \
    gomp_loop_fn loop;                                                                             \
    HY_EXPORT void loop(LOOP_PARAMS)                                                               \
    {                                                                                              \
        static void *found;                                                                        \
        static struct entry entry = {.name = #loop};                                               \
        gomp_loop_fn *next =                                                                       \
            (gomp_loop_fn *)loop_runtime(&entry, &found, __builtin_return_address(0));             \
        if (next)                                                                                  \
            next(run, data, copy, bytes, align, flags, tasks, priority, from, to, step);           \
        else if (from != to)                                                                       \
            loop_alone(run, data, copy, (struct bounds){from, to}, bytes, align);                  \
    }
GOMP_LOOP(GOMP_taskloop)
GOMP_LOOP(GOMP_taskloop_ull)

#define KMP_LOOP_PARAMS                                                                            \
    void *loc, int thread, struct kmp_task *task, int now, uint64_t *from, uint64_t *to,           \
        int64_t step, int nogroup, int kind, uint64_t tasks
typedef void kmpc_loop_fn(KMP_LOOP_PARAMS, void *copy);
typedef void kmpc_loop5_fn(KMP_LOOP_PARAMS, int strict, void *copy);

kmpc_loop_fn __kmpc_taskloop;
HY_EXPORT void __kmpc_taskloop(KMP_LOOP_PARAMS, void *copy)
{
    static void *found;
    static struct entry entry = {.name = "__kmpc_taskloop"};
    kmpc_loop_fn *next = (kmpc_loop_fn *)loop_runtime(&entry, &found, __builtin_return_address(0));
    if (next)
        next(loc, thread, task, now, from, to, step, nogroup, kind, tasks, copy);
    else /* its bounds are the loop's */
        task->run(thread, task);
}

kmpc_loop5_fn __kmpc_taskloop_5;
HY_EXPORT void __kmpc_taskloop_5(KMP_LOOP_PARAMS, int strict, void *copy)
{
    static void *found;
    static struct entry entry = {.name = "__kmpc_taskloop_5"};
    kmpc_loop5_fn *next =
        (kmpc_loop5_fn *)loop_runtime(&entry, &found, __builtin_return_address(0));
    if (next)
        next(loc, thread, task, now, from, to, step, nogroup, kind, tasks, strict, copy);
    else
        task->run(thread, task);
}

/* --- the exported names ----------------------------------------------------------------------- */

/* A task that nobody watches, or that names no data: a test and a jump. Ten arguments would be
 * shuffled by a compiler. */
#if defined(__x86_64__)
#define ENTRY(name, names_data, watched, next)                                                     \
    __asm__(".text\n"                                                                              \
            ".globl " name "\n"                                                                    \
            ".type " name ", @function\n" name ":\n"                                               \
            ".cfi_startproc\n"                                                                     \
            "endbr64\n"                                                                            \
            "cmpl $0, hy_tasks_watched(%rip)\n"                                                    \
            "je 1f\n" names_data "jne " watched "\n"                                               \
            "1: mov " next "(%rip), %rax\n"                                                        \
            "test %rax, %rax\n"                                                                    \
            "je " watched "\n"                                                                     \
            "jmp *%rax\n"                                                                          \
            ".cfi_endproc\n"                                                                       \
            ".size " name ", . - " name "\n")
ENTRY("GOMP_task", "testb $8, 8(%rsp)\n" /* FLAG_DEPEND in `flags` */, "hy_gomp_task",
      "hy_gomp_next");
ENTRY("__kmpc_omp_task_with_deps", "", "hy_kmpc_task", "hy_kmpc_next");
#else
HY_EXPORT void GOMP_task(run_fn *run, void *data, copy_fn *copy, long bytes, long align,
                         bool deferred, unsigned flags, void **depend, int priority, void *event)
{
    hy_gomp_task(run, data, copy, bytes, align, deferred, flags, depend, priority, event);
}

kmpc_fn __kmpc_omp_task_with_deps;
HY_EXPORT int __kmpc_omp_task_with_deps(void *loc, int thread, struct kmp_task *task, int n,
                                        const struct kmp_need *need, int more, void *noalias)
{
    return hy_kmpc_task(loc, thread, task, n, need, more, noalias);
}
#endif
