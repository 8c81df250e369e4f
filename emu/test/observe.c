/* SPDX-License-Identifier: BSD-2-Clause
 * A thread without virtual time that looks at another one at times of the machine's clock
 * (pmemu_hold). See test_connect.py; prints "NAME VALUE". */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pmemu.h"

#define EVERY_NS 100000
#define MOVED    10 /* pages, at each look */

static char *page;
static atomic_int ready, finished;
static _Atomic int64_t reached; /* by the program */
static int looks, late;
static int64_t furthest, in_moves;

static void nap(long ns)
{
    const struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

static void *observer(void *arg)
{
    int most = *(int *)arg, tier = 0;
    int64_t due = pmemu_vtime_ns() + EVERY_NS;

    for (; looks < most; looks++, due += EVERY_NS) {
        int64_t seen;
        if (pmemu_hold(due) != 0)
            break;
        atomic_store(&ready, 1);
        while (pmemu_vtime_ns() < due)
            nap(100000);
        seen = atomic_load(&reached) - due;
        late += pmemu_vtime_ns() != due;
        if (seen > furthest)
            furthest = seen;
        if (looks % 4 == 0) { /* takes of its own time, and the program's next look is later */
            int64_t from = pmemu_vtime_ns();
            pmemu_move(page, MOVED * PMEMU_PAGE, tier ^= 1);
            in_moves += pmemu_vtime_ns() - from;
        }
    }
    (void)pmemu_hold(-1);
    atomic_store(&finished, 1);
    return NULL;
}

/* One that holds, and then waits for what the program does later only. */
static void *waiter(void *fd)
{
    int64_t due;
    char c;

    pmemu_ignore_thread();
    due = pmemu_vtime_ns() + EVERY_NS;
    (void)pmemu_hold(due);
    atomic_store(&ready, 1);
    (void)!read(*(int *)fd, &c, 1);
    printf("behind %d\n", pmemu_vtime_ns() > due);
    (void)pmemu_hold(-1);
    return NULL;
}

/* Until the observer has done its looks, or the program has come further than it waits. */
static void work(int64_t most_ns, size_t bytes)
{
    int64_t until = pmemu_vtime_ns() + most_ns;

    for (size_t i = 0; !atomic_load(&finished); i = (i + 4160) % bytes) {
        page[i]++;
        if (i % 64 == 0)
            atomic_store(&reached, pmemu_vtime_ns());
        if (atomic_load(&reached) >= until)
            break;
    }
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)8 << 20;
    int most = argc > 2 ? atoi(argv[2]) : 0, end[2];
    bool waits = argc > 1 && strcmp(argv[1], "wait") == 0;
    pthread_t t;

    page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || pipe(end) != 0)
        return 1;
    memset(page, 1, bytes);
    atomic_store(&reached, 0);
    pthread_create(&t, NULL, waits ? waiter : observer, waits ? end : &most);
    while (!atomic_load(&ready))
        nap(100000);
    work(waits ? 10 * EVERY_NS : INT64_MAX / 2, bytes);
    (void)!write(end[1], "", 1);
    pthread_join(t, NULL);
    printf("looks %d\nlate %d\nfurthest %lld\nin_moves %lld\n", looks, late, (long long)furthest,
           (long long)in_moves);
    return 0;
}
