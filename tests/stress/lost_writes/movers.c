/* SPDX-License-Identifier: BSD-2-Clause */
#include "movers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kinds.h"
#include "sys/emulator.h"
#include "sys/pages/move.h"
#include "watch.h"

enum { BATCH = 64 };

static char *map_anonymous(void)
{
    char *m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        return NULL;
    memset(m, 0, PAGES * PAGE);
    return m;
}

/* --- the migrator ------------------------------------------------------------------- */

static int by_migrator(enum migrate_way way, char *memory, enum hy_tier to,
                       uint64_t count[MIGRATE_REFUSED + 1])
{
    const struct migrator m = {way, {[HY_DRAM] = 1, [HY_PM] = 2}};
    struct migrate_result r;
    for (unsigned at = 0; at < PAGES; at += BATCH) {
        int e = migrate(&m, memory + at * PAGE, BATCH * PAGE, to, &r);
        if (e != 0)
            return e;
        for (unsigned i = 0; i <= MIGRATE_REFUSED; i++)
            count[i] += r.count[i];
        watch_round();
    }
    return 0;
}

static int round_numa(char *memory, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    return by_migrator(MIGRATE_NUMA, memory, to, count);
}

static int round_emulated(char *memory, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    return by_migrator(MIGRATE_EMULATED, memory, to, count);
}

/* On the emulated machine, which is asked afterwards. */
static char *map_machine(void)
{
    if (emulator_open())
        return map_anonymous();
    errno = ENODEV;
    return NULL;
}

/* Of a page in use; or -errno. */
static int tier_of(const void *page)
{
    uint8_t tier;
    int e = emulator_range_tiers(page, 1, &tier);
    return e < 0 ? e : tier;
}

static int round_machine(char *memory, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    uint64_t moved = count[MIGRATE_MOVED];
    int e = by_migrator(MIGRATE_EMULATED, memory, to, count);
    for (unsigned p = 0; e == 0 && count[MIGRATE_MOVED] - moved == PAGES && p < PAGES; p++)
        if (tier_of(memory + p * PAGE) != (int)to)
            e = -EXDEV;
    return e;
}

/* --- libhybrid in front of this program moves ---------------------------------------- */

/* Has the DRAM until all else has been allocated. It is free then, and pages move there. */
static char *ballast;

static char *map_heap(void)
{
    ballast = aligned_alloc(PAGE, PAGES * PAGE);
    if (ballast)
        memset(ballast, 1, PAGES * PAGE);
    char *m = aligned_alloc(PAGE, PAGES * PAGE);
    if (m)
        memset(m, 0, PAGES * PAGE);
    return m;
}

static void drop_ballast(void)
{
    free(ballast);
    ballast = NULL;
}

static int where_are(void *const *page, int *ret)
{
    if (!emulator_open())
        return os_page_nodes(page, PAGES, ret);
    for (unsigned p = 0; p < PAGES; p++)
        ret[p] = tier_of(page[p]);
    return 0;
}

/* Only looks what has moved since it looked last. */
static int round_preload(char *memory, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    static int before[PAGES];
    static bool looked;
    const struct timespec while_it_works = {0, 2000000};
    void *page[PAGES];
    int now[PAGES];
    (void)to;
    nanosleep(&while_it_works, NULL);
    for (unsigned p = 0; p < PAGES; p++)
        page[p] = memory + p * PAGE;
    if (where_are(page, now) != 0)
        return 0; /* no NUMA in this kernel */
    for (unsigned p = 0; p < PAGES; p++) {
        bool moved = looked && now[p] != before[p];
        count[now[p] < 0 ? MIGRATE_ABSENT : moved ? MIGRATE_MOVED : MIGRATE_THERE]++;
        before[p] = now[p];
    }
    looked = true;
    drop_ballast();
    return 0;
}

/* Under a filter that kills for asking where pages are. */
static int round_blind(char *memory, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    const struct timespec while_it_works = {0, 2000000};
    (void)memory, (void)to, (void)count;
    drop_ballast();
    nanosleep(&while_it_works, NULL);
    return 0;
}

/* --- pages of a file, by what an unprivileged process can do ------------------------- */

static int file;

static char *map_file(void)
{
    file = memfd_create("lost_writes", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, PAGES * PAGE))
        return NULL;
    char *m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return m == MAP_FAILED ? NULL : m;
}

static bool peace_down(enum hy_tier to)
{
    return to == HY_PM;
}

static bool peace_up(enum hy_tier to)
{
    return to == HY_DRAM;
}

/* Up: the page becomes a private view of the same page, in one step for other threads, and a
 * locked store of nothing makes the kernel copy it. Down: copied to the file, looked at
 * once more, and replaced by a shared view of it. */
static int round_file(char *memory, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1])
{
    for (unsigned p = 0; p < PAGES; p++) {
        char *at = memory + p * PAGE;
        char copy[PAGE];
        if (to == HY_PM) {
            memcpy(copy, at, PAGE);
            if (pwrite(file, copy, PAGE, p * PAGE) != PAGE)
                return -errno;
            if (memcmp(copy, at, PAGE) != 0) {
                count[MIGRATE_REFUSED]++;
                continue;
            }
        }
        if (mmap(at, PAGE, PROT_READ | PROT_WRITE,
                 MAP_FIXED | (to == HY_PM ? MAP_SHARED : MAP_PRIVATE), file, p * PAGE) != at)
            return -errno;
        if (to == HY_DRAM)
            __atomic_fetch_or(at, 0, __ATOMIC_SEQ_CST);
        count[MIGRATE_MOVED]++;
    }
    return 0;
}

const struct mover *mover_named(const char *name)
{
    static const struct mover movers[] = {
        {"numa", false, NULL, map_anonymous, round_numa},
        {"emulated", false, NULL, map_anonymous, round_emulated},
        {"machine", false, NULL, map_machine, round_machine},
        {"preload", true, NULL, map_heap, round_preload},
        {"preload-blind", true, NULL, map_heap, round_blind},
        {"file-up", false, peace_down, map_file, round_file},
        {"file-down", false, peace_up, map_file, round_file},
    };
    for (size_t i = 0; i < sizeof(movers) / sizeof(movers[0]); i++)
        if (strcmp(name, movers[i].name) == 0)
            return &movers[i];
    return NULL;
}
