/* SPDX-License-Identifier: BSD-2-Clause
 * Shared mappings of this process. See shared.h. Few programs have more than a handful; what
 * does not fit has keys of its own in each process, as if it were not shared. */
#include "qemu/shared.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/clock.h"

#define MAPPINGS 256

static struct mapping {
    _Atomic uint64_t from, to; /* to 0: free */
    _Atomic uint64_t id;       /* of its first byte */
} mappings[MAPPINGS];
static _Atomic int used; /* entries below this one have been in use */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0x9E3779B97F4A7C15u;
    return x ^ x >> 29;
}

/* The same for all that map the object; the distance of two bytes is that in the object. */
static uint64_t id_of(int fd, uint64_t offset)
{
    static _Atomic uint32_t anonymous;
    struct stat st;
    int e = errno;
    bool file = fd >= 0 && fstat(fd, &st) == 0;

    errno = e;
    if (file)
        return (mix(mix((uint64_t)st.st_dev) + (uint64_t)st.st_ino) << 20) + offset;
    return mix((uint64_t)getpid() << 32 | atomic_fetch_add(&anonymous, 1)) << 20;
}

void shared_mapped(uint64_t address, size_t bytes, int fd, uint64_t offset)
{
    shared_unmapped(address, bytes);
    for (int i = 0; i < MAPPINGS; i++) {
        struct mapping *m = &mappings[i];
        uint64_t none = 0;
        int old = atomic_load(&used);
        if (!atomic_compare_exchange_strong(&m->to, &none, 1))
            continue;
        atomic_store(&m->from, address);
        atomic_store(&m->id, id_of(fd, offset));
        atomic_store(&m->to, address + bytes);
        while (old <= i && !atomic_compare_exchange_weak(&used, &old, i + 1))
            ;
        return;
    }
}

/* A mapping that is cut keeps the larger end: enough for what holds futexes. */
void shared_unmapped(uint64_t address, size_t bytes)
{
    uint64_t end = address + bytes;

    for (int i = 0, n = atomic_load(&used); i < n; i++) {
        struct mapping *m = &mappings[i];
        uint64_t from = atomic_load(&m->from), to = atomic_load(&m->to);
        if (to <= 1 || address >= to || end <= from)
            continue;
        if (address <= from && end >= to) {
            atomic_store(&m->to, 0);
        } else if (to - end > address - from && end < to) {
            atomic_store(&m->id, atomic_load(&m->id) + (end - from));
            atomic_store(&m->from, end);
        } else {
            atomic_store(&m->to, address);
        }
    }
}

uint64_t shared_key(uint64_t address)
{
    for (int i = 0, n = atomic_load(&used); i < n; i++) {
        const struct mapping *m = &mappings[i];
        uint64_t from = atomic_load(&m->from);
        if (address >= from && address < atomic_load(&m->to))
            return (atomic_load(&m->id) + (address - from)) | EMU_SHARED_KEY;
    }
    return address;
}
