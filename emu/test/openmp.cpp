// SPDX-License-Identifier: BSD-2-Clause
// All that OpenMP programs do with threads, with a known result each; then the virtual
// time of work that is spread in different ways, in ns: the ideal is a quarter of the first.
#include <cstdint>
#include <cstdio>
#include <omp.h>

#include "pmemu.h"

static const int n = 64;
static long cells[n];

// A piece of work of known size: no memory traffic. Doubles in size with `twice`.
static long work(long seed, bool twice = false)
{
    unsigned long x = 88172645463325252u + static_cast<unsigned long>(seed), sum = 0;
    for (int i = 0; i < (twice ? 40000 : 20000); i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += x & 1;
    }
    return sum > 0;
}

static long total()
{
    long sum = 0;
    for (long &c : cells) {
        sum += c;
        c = 0;
    }
    return sum;
}

template <class F> static void timed(const char *name, F f)
{
    int64_t t = pmemu_vtime_ns();
    f();
    printf("time %s %lld\n", name, static_cast<long long>(pmemu_vtime_ns() - t));
}

static void fib(int k, long *ret)
{
    long a = 0, b = 0;
    if (k < 2) {
        *ret = k;
        return;
    }
#pragma omp task shared(a)
    fib(k - 1, &a);
#pragma omp task shared(b) if (k > 6)
    fib(k - 2, &b);
#pragma omp taskwait
    *ret = a + b;
}

static void constructs()
{
    long sum = 0, order = 0, copied = 0, depends = 0;
#pragma omp parallel
    {
#pragma omp sections
        {
#pragma omp section
            cells[0] += work(0);
#pragma omp section
            cells[1] += work(1);
        }
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < n; i++) {
            cells[i] += work(i);
#pragma omp ordered
            order = order * 3 % 1000003 + i;
        }
        long mine = 0;
#pragma omp single copyprivate(mine)
        mine = 42;
#pragma omp critical(named)
        copied += mine;
#pragma omp critical
        sum += 1;
#pragma omp barrier
#pragma omp single nowait
        for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i) depend(inout : depends)
            depends = depends * 3 % 1000003 + i;
        }
    }
    printf("constructs %ld order %ld copied %ld critical %ld depends %ld\n", total(), order,
           copied / 42, sum, depends);
}

static void tasks()
{
    long f = 0, loop = 0, reduced = 0;
#pragma omp parallel
#pragma omp single
    {
        fib(14, &f);
#pragma omp taskloop grainsize(4)
        for (int i = 0; i < n; i++)
            cells[i] += i;
#pragma omp taskgroup task_reduction(+ : reduced)
        for (int i = 0; i < n; i++) {
#pragma omp task in_reduction(+ : reduced) firstprivate(i)
            reduced += i;
        }
#pragma omp taskloop reduction(+ : loop)
        for (unsigned long long i = 0; i < 1000; i++)
            loop += static_cast<long>(i);
        omp_event_handle_t event;
#pragma omp task detach(event)
        omp_fulfill_event(event);
#pragma omp taskwait
    }
    printf("tasks fib %ld taskloop %ld group %ld reduction %ld\n", f, total(), reduced, loop);
}

static void nested()
{
    long sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3) reduction(+ : sum)
    {
        long inner = 0;
#pragma omp parallel for num_threads(2) reduction(+ : inner) schedule(guided)
        for (int i = 0; i < n; i++)
            inner += work(i);
        sum += inner;
    }
    printf("nested %ld\n", sum);
}

static void locks()
{
    omp_lock_t l;
    omp_nest_lock_t nl;
    long sum = 0, nested = 0, counted = 0; // one for each way of excluding others
    omp_init_lock(&l);
    omp_init_nest_lock(&nl);
#pragma omp parallel for schedule(runtime)
    for (int i = 0; i < n; i++) {
        omp_set_lock(&l);
        sum += i;
        omp_unset_lock(&l);
        omp_set_nest_lock(&nl);
        omp_set_nest_lock(&nl);
        nested -= 1;
        omp_unset_nest_lock(&nl);
        omp_unset_nest_lock(&nl);
#pragma omp atomic
        counted += 1;
    }
    printf("locks %ld\n", sum + nested + counted);
}

static void loops()
{
    timed("serial", [] {
        for (int i = 0; i < n; i++)
            cells[i] += work(i);
    });
    timed("static", [] {
#pragma omp parallel for
        for (int i = 0; i < n; i++)
            cells[i] += work(i);
    });
    timed("dynamic", [] {
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < n; i++)
            cells[i] += work(i);
    });
    timed("uneven", [] { // 32 + 16 pieces: dynamic fills the gaps
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < n / 2; i++)
            cells[i] += work(i, i < n / 4);
    });
}

static void timed_tasks()
{
    timed("tasks", [] {
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i)
            cells[i] += work(i);
        }
    });
    timed("taskwait", [] {
#pragma omp parallel
#pragma omp single
        {
            for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i)
                cells[i] += work(i);
            }
#pragma omp taskwait
        }
    });
    timed("taskloop", [] {
#pragma omp parallel
#pragma omp single
#pragma omp taskloop num_tasks(n)
        for (int i = 0; i < n; i++)
            cells[i] += work(i);
    });
}

static void one_at_a_time()
{
    timed("critical", [] {
#pragma omp parallel for
        for (int i = 0; i < n; i++) {
#pragma omp critical
            cells[0] += work(i);
        }
    });
    timed("named", [] {
#pragma omp parallel for
        for (int i = 0; i < n; i++) {
#pragma omp critical(other)
            cells[0] += work(i);
        }
    });
    timed("ordered", [] {
#pragma omp parallel for ordered
        for (int i = 0; i < n; i++) {
#pragma omp ordered
            cells[0] += work(i);
        }
    });
}

int main()
{
    omp_set_num_threads(4);
    constructs();
    tasks();
    nested();
    locks();
#pragma omp parallel
    cells[omp_get_thread_num()] = 0;
    loops();
    timed_tasks();
    one_at_a_time();
    printf("all %ld\n", total());
    return 0;
}
