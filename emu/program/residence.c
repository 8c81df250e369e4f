/* SPDX-License-Identifier: BSD-2-Clause
 * Room for pages. See residence.h. */
#include "program/residence.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/core.h"
#include "machine/room.h"

#define PRESENT (3ull << 62) /* bits of a pagemap entry: in memory, or swapped out */
#define AT_ONCE 512u

static bool look_for_unmapped;
static _Atomic int64_t refusals, look_again_at;
static atomic_flag looking = ATOMIC_FLAG_INIT;

/* Pages of [address, address + bytes) that count as DRAM and are not there any more. */
static bool drop_unmapped(uint64_t address, size_t bytes, void *fd)
{
    uint64_t entry[AT_ONCE], page = address >> EMU_PAGE_SHIFT, left = bytes >> EMU_PAGE_SHIFT;

    while (left) {
        size_t n = left < AT_ONCE ? left : AT_ONCE;
        ssize_t got = pread(*(int *)fd, entry, n * sizeof(entry[0]), (off_t)(page * 8));
        if (got < (ssize_t)sizeof(entry[0]))
            return false;
        n = (size_t)got / sizeof(entry[0]);
        for (size_t i = 0; i < n; i++)
            if (!(entry[i] & PRESENT) &&
                emu_pages_look((page + i) << EMU_PAGE_SHIFT, NULL) == EMU_DRAM)
                emu_pages_discard((page + i) << EMU_PAGE_SHIFT, EMU_PAGE_BYTES);
        page += n;
        left -= n;
    }
    return true;
}

static void find_unmapped(void)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    emu_pages_each_used(drop_unmapped, &fd);
    close(fd);
}

/* DRAM is full: pages that died processes held, and ours that are gone. A look costs real
 * time, so the next one comes after a while. */
static void make_room(struct emu_machine *m, struct emu_process *p)
{
    int64_t n = atomic_fetch_add(&refusals, 1);
    int e = errno;

    if (n < atomic_load(&look_again_at) || atomic_flag_test_and_set(&looking))
        return;
    emu_machine_reclaim(m, p, emu_core_machine_path());
    if (look_for_unmapped)
        find_unmapped();
    atomic_store(&look_again_at,
                 n + 64 + (atomic_load(&p->pages[EMU_DRAM]) + atomic_load(&p->pages[EMU_PM])) / 16);
    atomic_flag_clear(&looking);
    errno = e;
}

static bool take(enum emu_tier t)
{
    struct emu_machine *m = emu_core_machine();
    struct emu_process *p = emu_core_process();

    if (!m || !p || emu_room_take(m, p, t))
        return true;
    make_room(m, p);
    return emu_room_take(m, p, t);
}

int64_t emu_residence_dram_free(void)
{
    struct emu_machine *m = emu_core_machine();
    struct emu_process *p = emu_core_process();
    int64_t n;

    if (!m || !p)
        return INT64_MAX;
    n = emu_room_free(m);
    if (n == 0) {
        make_room(m, p);
        n = emu_room_free(m);
    }
    return n;
}

static void give(enum emu_tier t)
{
    struct emu_process *p = emu_core_process();
    if (p)
        emu_room_give(p, t);
}

void emu_residence_start(struct emu_place place, bool see_unmapped)
{
    static const struct emu_pages_host host = {take, give, emu_drop_page};
    look_for_unmapped = see_unmapped;
    emu_pages_start(place, &host);
}
