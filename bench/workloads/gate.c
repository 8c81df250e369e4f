/* SPDX-License-Identifier: BSD-2-Clause
 * A gate for a group of programs. See gate.h. Never instrumented: what is done here while
 * waiting must not cost virtual time. */
#include "gate.h"

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

/* How often the others' locks are looked at. */
#define LOOK_MS 50
#define SHARED  ((uint64_t)1 << 63) /* pmemu.h: a key of all processes */
#define FRESH   0xd1b54a32d192ed03u

static struct gate_file *gate;
static int fd = -1;
static unsigned slot;

/* Byte `i` of the file as a lock: taken or, to look, whether somebody has it. Such a lock
 * belongs to the open file, not to the process: no other close() can drop it. */
static struct flock lock_of(unsigned i)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i, .l_len = 1};
}

const char *gate_open(const char *path, unsigned count)
{
    uint64_t none = 0, key;
    struct flock lock;
    uint64_t mine;

    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    /* Of the same size every time: nobody's words are lost. */
    if (fd < 0 || ftruncate(fd, sizeof(*gate)) < 0)
        return strerror(errno);
    gate = mmap(NULL, sizeof(*gate), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (gate == MAP_FAILED) {
        gate = NULL;
        return strerror(errno);
    }
    atomic_compare_exchange_strong(&gate->wanted, &none, count);
    key = SHARED | ((uint64_t)getpid() * FRESH >> 1);
    none = 0;
    atomic_compare_exchange_strong(&gate->key, &none, key & ~(uint64_t)1);
    mine = atomic_fetch_add(&gate->came, 1);
    if (mine >= atomic_load(&gate->wanted) || mine >= GATE_PROGRAMS)
        return "all programs of the group have come already; remove the file";
    slot = (unsigned)mine;
    lock = lock_of(slot);
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
        return strerror(errno);
    atomic_store(&gate->state[slot], GATE_CAME);
    return NULL;
}

/* How many are as far as `state`, the dead among them. */
static uint64_t at_least(uint64_t state)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < GATE_PROGRAMS; i++)
        n += atomic_load(&gate->state[i]) >= state;
    return n;
}

static void find_dead(void)
{
    for (unsigned i = 0; i < GATE_PROGRAMS; i++) {
        uint64_t seen = atomic_load(&gate->state[i]);
        struct flock lock = lock_of(i);

        if (i != slot && seen >= GATE_CAME && seen < GATE_AT_END &&
            fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK)
            atomic_compare_exchange_strong(&gate->state[i], &seen, GATE_DEAD);
    }
}

/* A number that changes with everything that happens at the gate. */
static uint64_t progress(void)
{
    uint64_t sum = atomic_load(&gate->wanted);

    for (unsigned i = 0; i < GATE_PROGRAMS; i++)
        sum += atomic_load(&gate->state[i]);
    return sum;
}

/* Whoever finds all there opens for all: the others go on at that time even if they wake
 * up later. */
static void open_door(unsigned d)
{
    int64_t latest = atomic_load(&gate->door[d].latest_ns);

    machine_back(latest);
    machine_release(atomic_load(&gate->key) + d, latest);
    atomic_store(&gate->door[d].open, 1);
    syscall(SYS_futex, &gate->door[d].open, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool wait_at(unsigned d, uint64_t state)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
    unsigned quiet = 0;
    uint64_t last = 0;

    while (!atomic_load(&gate->door[d].open)) {
        if (at_least(state) >= atomic_load(&gate->wanted)) {
            open_door(d);
            return true;
        }
        if (syscall(SYS_futex, &gate->door[d].open, FUTEX_WAIT, 0, &look, NULL, 0) == 0 ||
            errno != ETIMEDOUT)
            continue;
        find_dead();
        quiet = progress() == last ? quiet + 1 : 0;
        last = progress();
        /* At the end gate the others may work for as long as they live. */
        if (d == 0 && quiet > GATE_PATIENCE_S * 1000 / LOOK_MS)
            return false;
    }
    machine_back(atomic_load(&gate->door[d].latest_ns));
    return true;
}

static const char *pass(unsigned d, uint64_t state, _Atomic uint64_t *count)
{
    _Atomic int64_t *latest = &gate->door[d].latest_ns;
    int64_t now = machine_time_ns(), old = atomic_load(latest);

    while (old < now && !atomic_compare_exchange_weak(latest, &old, now))
        ;
    /* Away first: who opens must find this thread so, or would not set its time. */
    machine_away(atomic_load(&gate->key) + d);
    atomic_store(&gate->state[slot], state);
    atomic_fetch_add(count, 1);
    return wait_at(d, state) ? NULL : "the other programs of the group do not come";
}

const char *gate_start(void)
{
    return gate ? pass(0, GATE_AT_START, &gate->arrived) : NULL;
}

const char *gate_end(void)
{
    return gate ? pass(1, GATE_AT_END, &gate->finished) : NULL;
}
