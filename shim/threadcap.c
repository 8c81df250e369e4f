/* SPDX-License-Identifier: BSD-2-Clause
 * The exported thread and CPU calls. sched_getaffinity and its kin answer what the process is
 * confined to, or would be if it had more threads. get_nprocs_conf and _SC_NPROCESSORS_CONF stay as
 * they are: programs make arrays of that size and index them by sched_getcpu(). */
#include <pthread.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/pause.h"
#include "core/state.h"
#include "process/process.h"
#include "sys/cpu.h"
#include "sys/dl.h"
#include "threadcap.h"

/* A question may come before our constructor (OpenMP). */
static void prepare(void)
{
    if (HY_UNLIKELY(runtime_state() == HY_BOOT))
        runtime_prepare();
}

static void before_question(void)
{
    prepare();
    threadcap_before_question();
}

static void before_set(void)
{
    prepare();
    threadcap_before_set();
}

HY_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                             void *arg)
{
    runtime_before_thread();
    int r = next_pthread_create()(thread, attr, start, arg);
    if (r == 0) {
        runtime_thread_made();
        threadcap_created();
    }
    return r;
}

HY_EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    before_question();
    int r = next_cpu()->get(pid, size, set);
    if (r == 0)
        threadcap_answer(pid, set, size);
    return r;
}

HY_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
    before_question();
    int r = next_cpu()->thread_get(thread, size, set);
    if (r == 0 && threadcap_active())
        threadcap_answer(cpu_tid(thread), set, size);
    return r;
}

HY_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    before_set();
    int r = next_cpu()->set(pid, size, set);
    if (r == 0)
        threadcap_was_set(pid);
    return r;
}

HY_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
    before_set();
    int r = next_cpu()->thread_set(thread, size, set);
    if (r == 0)
        threadcap_was_set(cpu_tid(thread));
    return r;
}

HY_EXPORT long sysconf(int name)
{
    if (HY_LIKELY(name != _SC_NPROCESSORS_ONLN))
        return next_cpu()->sysconf(name);
    before_question();
    return threadcap_online(next_cpu()->sysconf(name));
}

HY_EXPORT int get_nprocs(void)
{
    before_question();
    return (int)threadcap_online(next_cpu()->nprocs());
}

/* As <omp.h>, which belongs to a compiler that may not be here. */
int omp_get_num_procs(void);
int omp_get_max_threads(void);

/* Programs test for OpenMP by these names: without a runtime behind us there is one
 * thread, as its own stubs say. */
static int ask_openmp(int (**fn)(void), const char *name)
{
    int (*f)(void) = __atomic_load_n(fn, __ATOMIC_RELAXED);
    before_question();
    if (!f) {
        f = (int (*)(void))dl_next(name); /* NULL: no OpenMP */
        __atomic_store_n(fn, f, __ATOMIC_RELAXED);
    }
    return f ? f() : 1;
}

HY_EXPORT int omp_get_num_procs(void)
{
    static int (*fn)(void);
    return (int)threadcap_online(ask_openmp(&fn, "omp_get_num_procs"));
}

HY_EXPORT int omp_get_max_threads(void)
{
    static int (*fn)(void);
    return ask_openmp(&fn, "omp_get_max_threads");
}
