/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP tasks of every shape (tests/preload/pl_tasks.c) with the hook, the rings and the engine
 * linked to the program, for the sanitizers: a thread reads and stages, as the pages' thread does,
 * on tiers that are books only. The program's own part and the runtime are not instrumented, so
 * what the thread sanitizer sees is libhybrid's.
 *   tasks_direct [shape ...] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RANGE         ((size_t)1 << 30) /* of each tier */
#define TIERS_PAGES   (2 * RANGE / HY_PAGE)
#define TIERS_DRAM    256u
#define TIERS_MOVE_NS 1

#include "heap/heap.h"
#include "sys/os.h"
#include "tests/unit/tasks/stage_tiers.h"

int shapes_main(int argc, char **argv);
int direct_memalign(void **ret, size_t align, size_t bytes);
const char *__tsan_default_suppressions(void);
const char *__tsan_default_options(void);

/* A task's block is handed over by the runtime, and used again, and its locks are not seen. */
const char *__tsan_default_suppressions(void)
{
    return "race_top:copy_watched\nrace_top:run_watched\nrace_top:watch_kmp\n";
}

const char *__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1";
}

/* --- memory: pages that are on a tier by the books -------------------------------------------- */

static size_t taken[HY_TIERS];

static void *take(enum hy_tier t, size_t bytes)
{
    if (taken[t] + bytes > RANGE)
        return NULL;
    char *p = (char *)tiers_base + (t == HY_PM ? RANGE : 0) + taken[t];
    taken[t] += bytes;
    return os_commit(p, bytes) ? NULL : p;
}

static int purge(enum hy_tier t, void *p, size_t bytes)
{
    (void)t;
    return os_purge(p, bytes);
}

static bool charge(enum hy_tier t, size_t bytes, bool force)
{
    (void)t, (void)bytes, (void)force;
    return true;
}

static void discharge(enum hy_tier t, size_t bytes)
{
    (void)t, (void)bytes;
}

int direct_memalign(void **ret, size_t align, size_t bytes)
{
    struct heap_want w = {.tier = HY_PM, .weight = 1};
    return (*ret = heap_alloc_aligned(align, bytes, &w)) ? 0 : 1;
}

/* --- the thread that reads -------------------------------------------------------------------- */

static bool done;

static void pinned(void *at, size_t bytes)
{
    (void)at, (void)bytes;
}

static void *reader(void *unused)
{
    static const struct staging_host host = {
        .now_ns = os_now_ns, .spent_ns = os_now_ns, .move = tiers_move, TIERS_HOST};
    for (int i = 0; !__atomic_load_n(&done, __ATOMIC_ACQUIRE); i++) {
        if (i % 512 == 0) { /* tasks under way are lost, and new ones come */
            staging_close();
            staging_open(&host);
            staging_record();
        }
        (void)staging_serve();
        staging_each(pinned);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    staging_close();
    return unused;
}

int main(int argc, char **argv)
{
    static const struct heap_host host = {take, purge, charge, discharge};
    static struct profile_task known[PROFILE_MAX_TASKS];
    const size_t bytes[HY_TIERS] = {RANGE, RANGE};
    struct staging_view v = {0};
    pthread_t thread;
    void *p;
    int status = 0;

    memset(tier_of, HY_PM, sizeof(tier_of));
    if (os_reserve(2 * RANGE, HEAP_GRANULE, &p) ||
        (tiers_base = (uintptr_t)p, heap_init(p, bytes, &host)) ||
        pthread_create(&thread, NULL, reader, NULL) != 0)
        return 2;
    for (int i = 1; i < argc && status == 0; i++) {
        char *args[] = {argv[0], argv[i], NULL};
        status = shapes_main(2, args);
        staging_get(&v);
    }
    __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    staging_get(&v);
    printf("tasks %lu dropped %lu loops %lu stages %lu hits %lu known %u\n", (unsigned long)v.tasks,
           (unsigned long)v.dropped, (unsigned long)v.loops, (unsigned long)v.stages,
           (unsigned long)v.hits, staging_known(known));
    return status || v.tasks + v.dropped == 0;
}
