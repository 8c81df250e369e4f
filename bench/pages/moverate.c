/* SPDX-License-Identifier: BSD-2-Clause
 * moverate WAY [MIB [TIMES [FOLDER]]]: how fast pages move, by batches of 1 to 512, beside a copy
 * of as many bytes by this thread. WAY: numa (nodes 0 and 1), emulated (built for the emulated
 * machine, in its time), file (memory that was freed goes back to its file system and
 * comes again, as pages in use do not move). A line of JSON for each batch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pages/mover.h"
#include "sys/emulator.h"
#include "sys/os.h"
#include "sys/pages/track.h"

static enum migrate_way way;
static uint64_t pages;
static char *memory, *other;
static int file = -1;

static uint64_t now_ns(void)
{
    return way == MIGRATE_EMULATED ? emulator_now_ns() : os_now_ns();
}

/* By words: calls of memcpy are not seen where this is built for the emulated machine. */
__attribute__((noinline)) static void copy(void *to, const void *from, size_t bytes)
{
    volatile uint64_t *t = to;
    const uint64_t *f = from;
    if (way != MIGRATE_EMULATED) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes / 8; i++)
        t[i] = f[i];
}

/* Nanoseconds for all pages; 0: they did not all move. */
static uint64_t move_all(enum hy_tier to, unsigned batch)
{
    const struct migrator m = {way, {[HY_DRAM] = 1, [HY_PM] = 2}};
    struct migrate_result r;
    uint64_t start = now_ns(), moved = 0;
    for (uint64_t at = 0; at < pages; at += batch) {
        size_t n = HY_MIN((uint64_t)batch, pages - at);
        int e = migrate(&m, memory + at * HY_PAGE, n * HY_PAGE, to, &r);
        if (e != 0) {
            fprintf(stderr, "moverate: %s\n", e == -ENODEV ? "no two NUMA nodes" : strerror(-e));
            exit(e == -ENODEV || e == -ENOSYS || e == -EPERM ? 77 : 1);
        }
        moved += r.count[MIGRATE_MOVED];
    }
    if (moved < pages) {
        fprintf(stderr, "moverate: %lu of %lu pages moved\n", (unsigned long)moved,
                (unsigned long)pages);
        exit(moved == 0 ? 77 : 1);
    }
    return now_ns() - start;
}

/* What supply.c does with memory on a file when it is free, and before it is used again. */
static uint64_t give_back_all(bool back, unsigned batch)
{
    uint64_t start = now_ns();
    for (uint64_t at = 0; at < pages; at += batch) {
        size_t bytes = HY_MIN((uint64_t)batch, pages - at) * HY_PAGE;
        int e = back ? os_purge_shared(memory + at * HY_PAGE, bytes)
                     : os_file_allocate(file, at * HY_PAGE, bytes);
        if (e != 0) {
            fprintf(stderr, "moverate: %s\n", strerror(-e));
            exit(e == -EOPNOTSUPP ? 77 : 1);
        }
    }
    if (!back) /* the first stores are a part of it */
        for (uint64_t p = 0; p < pages; p++)
            memory[p * HY_PAGE] = 1;
    return now_ns() - start;
}

static int prepare(const char *folder)
{
    size_t bytes = pages * HY_PAGE;
    if (way == MIGRATE_EMULATED && !emulator_open())
        return -ENODEV;
    other = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || other == MAP_FAILED)
        return -ENOMEM;
    (void)os_no_huge_pages(memory, bytes);
    (void)os_no_huge_pages(other, bytes);
    if (way == MIGRATE_FILE) {
        int e = os_temp_file(folder, bytes, &file);
        if (e == 0)
            e = os_file_allocate(file, 0, bytes);
        if (e == 0)
            e = os_map_fd_fixed(memory, bytes, file, 0, true);
        if (e != 0)
            return e;
    }
    emulator_set_tier(memory, bytes, HY_DRAM);
    emulator_set_tier(other, bytes, HY_PM);
    for (size_t i = 0; i < bytes; i += 64)
        memory[i] = other[i] = 1;
    return 0;
}

static void least(uint64_t *best, uint64_t ns)
{
    if (*best == 0 || ns < *best)
        *best = ns;
}

/* The best of some times, which other work on the computer disturbs least. */
static void measure(unsigned batch, int times)
{
    uint64_t down = 0, up = 0, copied_down = 0, copied_up = 0, start;
    size_t bytes = pages * HY_PAGE;
    for (int i = 0; i < times; i++) {
        least(&down, way == MIGRATE_FILE ? give_back_all(true, batch) : move_all(HY_PM, batch));
        least(&up, way == MIGRATE_FILE ? give_back_all(false, batch) : move_all(HY_DRAM, batch));
        start = now_ns();
        copy(other, memory, bytes);
        least(&copied_down, now_ns() - start);
        start = now_ns();
        copy(memory, other, bytes);
        least(&copied_up, now_ns() - start);
    }
    printf("{\"batch\": %u, \"pages\": %lu, \"down_ns\": %lu, \"up_ns\": %lu, "
           "\"copy_down_ns\": %lu, \"copy_up_ns\": %lu}\n",
           batch, (unsigned long)pages, (unsigned long)down, (unsigned long)up,
           (unsigned long)copied_down, (unsigned long)copied_up);
}

int main(int argc, char **argv)
{
    static const unsigned batches[] = {1, 8, 64, 512};
    const char *name = argc > 1 ? argv[1] : "";
    way = strcmp(name, "numa") == 0       ? MIGRATE_NUMA
          : strcmp(name, "emulated") == 0 ? MIGRATE_EMULATED
          : strcmp(name, "file") == 0     ? MIGRATE_FILE
                                          : MIGRATE_NONE;
    pages = (argc > 2 ? strtoull(argv[2], NULL, 10) : 16) * HY_MIB / HY_PAGE;
    int times = argc > 3 ? atoi(argv[3]) : 3;
    if (way == MIGRATE_NONE || pages == 0 || times < 1) {
        fprintf(stderr, "usage: moverate numa | emulated | file [MIB [TIMES [FOLDER]]]\n");
        return 2;
    }
    int e = prepare(argc > 4 ? argv[4] : "/dev/shm");
    if (e != 0) {
        fprintf(stderr, "moverate: %s\n", strerror(-e));
        return 77;
    }
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
        measure(batches[i], times);
    return 0;
}
