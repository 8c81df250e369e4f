/* SPDX-License-Identifier: BSD-2-Clause
 * Turns of a list of programs. See turn.h. Never instrumented, as gate.c. */
#include "turn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

#define SHARED ((uint64_t)1 << 63) /* pmemu.h: a key of all processes */
#define FRESH  0xd1b54a32d192ed03u

struct turn_file {
    _Atomic uint64_t came, ended, key;
    _Atomic int64_t latest_ns; /* of those that came */
    struct {
        _Atomic int64_t at_ns;
        _Atomic uint32_t open;  /* futex */
        _Atomic uint32_t after; /* number of the one that made room, plus 1; 0: nobody */
    } door[TURN_PROGRAMS];
};

static struct turn_file *turns;
static int fd = -1;
static unsigned mine, at_once, all;
static int64_t begun_ns;

/* Its owner holds it until the kernel has taken all from it. */
static struct flock lock_of(unsigned i)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i, .l_len = 1};
}

static const char *enter(const char *path)
{
    uint64_t none = 0, key = SHARED | (((uint64_t)getpid() * FRESH >> 1) & ~(uint64_t)255);
    struct flock lock = lock_of(mine);

    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*turns)) < 0)
        return strerror(errno);
    turns = mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (turns == MAP_FAILED) {
        turns = NULL;
        return strerror(errno);
    }
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
        return "somebody has this number already";
    atomic_compare_exchange_strong(&turns->key, &none, key);
    return NULL;
}

/* It is there from that moment on, even if it wakes up later. */
static void open_door(unsigned d, unsigned after, int64_t at_ns)
{
    atomic_store(&turns->door[d].after, after);
    atomic_store(&turns->door[d].at_ns, at_ns);
    machine_release(atomic_load(&turns->key) + d, at_ns);
    atomic_store(&turns->door[d].open, 1);
    syscall(SYS_futex, &turns->door[d].open, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The memory of a process is free when it has gone. Not by sleeping: who runs in the machine must
 * not block, or the others go on without it. */
static void wait_for_its_memory(unsigned owner)
{
    struct flock lock = lock_of(owner);

    while (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        lock = lock_of(owner);
}

const char *turn_take(const char *path, unsigned own, unsigned slots, unsigned count)
{
    const char *problem;
    int64_t now, old;

    if (count == 0 || count > TURN_PROGRAMS || own >= count || slots == 0)
        return "numbers that do not fit each other";
    mine = own;
    at_once = slots < count ? slots : count;
    all = count;
    if ((problem = enter(path)))
        return problem;
    now = machine_time_ns();
    old = atomic_load(&turns->latest_ns);
    while (old < now && !atomic_compare_exchange_weak(&turns->latest_ns, &old, now))
        ;
    machine_away(atomic_load(&turns->key) + own); /* first: who opens must find it so */
    if (atomic_fetch_add(&turns->came, 1) + 1 == count)
        for (unsigned d = 0; d < at_once; d++)
            open_door(d, 0, atomic_load(&turns->latest_ns));
    while (!atomic_load(&turns->door[own].open))
        syscall(SYS_futex, &turns->door[own].open, FUTEX_WAIT, 0, NULL, NULL, 0);
    begun_ns = atomic_load(&turns->door[own].at_ns);
    machine_back(begun_ns);
    if (atomic_load(&turns->door[own].after))
        wait_for_its_memory(atomic_load(&turns->door[own].after) - 1);
    return NULL;
}

int turn_over(int64_t *ret_begin_ns, int64_t *ret_end_ns)
{
    uint64_t next;

    if (!turns)
        return 0;
    *ret_begin_ns = begun_ns;
    *ret_end_ns = machine_time_ns();
    machine_ignore(); /* else its exit would wait for the next one to catch up, which waits for it
                       */
    next = atomic_fetch_add(&turns->ended, 1) + at_once;
    if (next < all)
        open_door((unsigned)next, mine + 1, *ret_end_ns);
    return 1;
}
