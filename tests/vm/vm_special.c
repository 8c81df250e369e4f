/* SPDX-License-Identifier: BSD-2-Clause
 * vm_special: pages that are not simply one's own. Each is told to move; what the migrator
 * says of it must be where it is, what was in it must still be there, and what it was
 * (locked, pinned, shared, forbidden) it must still be. Status 0: all of them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pages/mover.h"
#include "stress/lost_writes/ring.h"
#include "sys/pages/move.h"

enum { PAGES = 4, BYTES = PAGES * 4096, HUGE_BYTES = 2 << 20 };

static const char *const outcomes[] = {"moved", "there", "absent", "full", "refused"};
static const struct migrator numa = {MIGRATE_NUMA, {[HY_DRAM] = 1, [HY_PM] = 2}};
static int failed;

static void expect(bool good, const char *what)
{
    if (!good) {
        printf("WRONG: %s\n", what);
        failed = 1;
    }
}

static int node_of(void *page)
{
    int where = -EIO;
    return os_page_nodes(&page, 1, &where) ? -EIO : where;
}

/* To PM, and back if `back`. What is said of each page must be true; the outcome of the first
 * page to PM. */
static enum migrate_outcome move(const char *what, char *base, size_t bytes, bool back)
{
    struct migrate_result r;
    enum migrate_outcome first = MIGRATE_REFUSED;
    for (int to = HY_PM; to >= (back ? HY_DRAM : HY_PM); to--) {
        int e = migrate(&numa, base, bytes, (enum hy_tier)to, &r);
        if (e != 0) {
            printf("%s: migrate: %s\n", what, strerror(-e));
            failed = 1;
            return first;
        }
        for (size_t i = 0; i < bytes / HY_PAGE; i++) {
            int where = node_of(base + i * HY_PAGE);
            bool is_there = where == (to == HY_PM);
            bool told_there = r.page[i] == MIGRATE_MOVED || r.page[i] == MIGRATE_THERE;
            if (told_there != is_there || (r.page[i] == MIGRATE_ABSENT) != (where < 0)) {
                printf("WRONG: %s: page %zu said to be %s, is at %d\n", what, i,
                       outcomes[r.page[i]], where);
                failed = 1;
            }
        }
        if (to == HY_PM) {
            first = (enum migrate_outcome)r.page[0];
            printf("%s: %s\n", what, outcomes[first]);
        }
    }
    return first;
}

static char *map(int flags)
{
    char *m = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        exit(2);
    memset(m, 0x5a, BYTES);
    return m;
}

static bool is_all(const char *m, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; i++)
        if (m[i] != (char)value)
            return false;
    return true;
}

/* A line of /proc/self/status in KiB. */
static long status_kib(const char *name)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = atol(line + strlen(name));
    if (f)
        fclose(f);
    return kib;
}

static void locked(void)
{
    char *m = map(MAP_PRIVATE);
    expect(mlock(m, BYTES) == 0, "mlock");
    long before = status_kib("VmLck:");
    expect(move("mlock'ed", m, BYTES, true) == MIGRATE_MOVED, "mlock'ed pages may move");
    expect(status_kib("VmLck:") == before, "still locked");
    expect(is_all(m, BYTES, 0x5a), "content of locked pages");
}

static void pinned(void)
{
    char *m = map(MAP_PRIVATE), text[512];
    struct ring *r = ring_open();
    int p[2];
    if (!r || ring_register(r, m, BYTES) || pipe(p)) {
        printf("pinned: no io_uring here\n");
        return;
    }
    expect(move("pinned by a fixed buffer", m, BYTES, false) == MIGRATE_REFUSED, "must not move");
    memset(text, 7, sizeof(text));
    expect(write(p[1], text, sizeof(text)) == sizeof(text), "write");
    expect(ring_read(r, p[0], m + 512, sizeof(text), 0, 1) == sizeof(text), "read");
    expect(is_all(m + 512, sizeof(text), 7), "what the device wrote is seen");
    ring_close(r);
}

static void spliced(void)
{
    char *m = map(MAP_PRIVATE), text[BYTES];
    struct iovec v = {m, BYTES};
    int p[2];
    expect(pipe(p) == 0 && vmsplice(p[1], &v, 1, 0) == BYTES, "vmsplice");
    (void)move("held by a pipe", m, BYTES, false);
    expect(read(p[0], text, BYTES) == BYTES && is_all(text, BYTES, 0x5a), "the pipe's content");
    expect(is_all(m, BYTES, 0x5a), "content of spliced pages");
}

static void forked(void)
{
    char *m = map(MAP_PRIVATE);
    int p[2];
    char c;
    expect(pipe(p) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        close(p[1]);
        (void)!read(p[0], &c, 1);
        _exit(!is_all(m, BYTES, 0x5a));
    }
    expect(move("a child has them, too", m, BYTES, false) == MIGRATE_REFUSED, "must stay");
    m[0] = 1; /* its own again */
    expect(move("one of them written", m, HY_PAGE, false) == MIGRATE_MOVED, "own again");
    int status = -1;
    close(p[1]);
    waitpid(child, &status, 0);
    expect(status == 0, "the child's content");
    expect(m[0] == 1 && is_all(m + 1, BYTES - 1, 0x5a), "content after the fork");
    expect(move("the child has ended", m + HY_PAGE, HY_PAGE, true) == MIGRATE_MOVED, "alone");
}

static void shared(void)
{
    char *m = map(MAP_SHARED);
    pid_t child = fork();
    if (child == 0) {
        m[1] = 3;
        pause();
    }
    while (((volatile char *)m)[1] != 3)
        usleep(1000);
    expect(move("shared with a process", m, BYTES, false) == MIGRATE_REFUSED, "must stay");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    expect(m[0] == 0x5a && m[1] == 3 && is_all(m + 2, BYTES - 2, 0x5a), "content of shared pages");
}

static void guarded(void)
{
    char *m = map(MAP_PRIVATE), text[8];
    struct iovec to = {text, sizeof(text)}, from = {m, sizeof(text)};
    mprotect(m, BYTES, PROT_NONE);
    (void)move("guard", m, BYTES, true);
    expect(process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT, "still guarded");
    mprotect(m, BYTES, PROT_READ);
    expect(is_all(m, BYTES, 0x5a), "content of guard pages");
}

static void stack(void)
{
    volatile char here[2 * HY_PAGE];
    memset((char *)here, 0x11, sizeof(here));
    char *page = (char *)(((uintptr_t)here + HY_PAGE - 1) / HY_PAGE * HY_PAGE);
    expect(move("the stack in use", page, HY_PAGE, true) == MIGRATE_MOVED, "the stack may move");
    expect(is_all((const char *)here, sizeof(here), 0x11), "content of the stack");
}

/* Ranges of the kernel's and of devices, by their names in /proc/self/maps. */
static void not_ours(const char *name)
{
    char line[512];
    unsigned long from, to;
    struct timespec ts;
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strstr(line, name) && sscanf(line, "%lx-%lx", &from, &to) == 2) {
            enum migrate_outcome o = move(name, (char *)from, HY_PAGE, false);
            expect(o == MIGRATE_ABSENT || o == MIGRATE_REFUSED, "left alone");
            found = true;
        }
    if (f)
        fclose(f);
    expect(found, name);
    expect(clock_gettime(CLOCK_MONOTONIC, &ts) == 0, "the clock goes on");
}

static void huge(void)
{
    char *m =
        mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *base = (char *)hy_align_up((uintptr_t)m, HUGE_BYTES);
    madvise(base, HUGE_BYTES, MADV_HUGEPAGE);
    memset(base, 0x77, HUGE_BYTES);
    expect(move("a huge page", base, HUGE_BYTES, true) == MIGRATE_MOVED, "huge pages move");
    expect(move("part of a huge page", base + 5 * HY_PAGE, HY_PAGE, false) == MIGRATE_MOVED,
           "a part moves");
    expect(is_all(base, HUGE_BYTES, 0x77), "content of a huge page");
}

static void never_written(void)
{
    char *m = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(move("never touched", m, BYTES, false) == MIGRATE_ABSENT, "nothing is there");
    expect(is_all(m, BYTES, 0), "zeros");
    (void)move("zeros that were only read", m, BYTES, false);
    munmap(m, BYTES);
    expect(move("unmapped", m, BYTES, false) == MIGRATE_ABSENT, "nothing is there");
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    locked();
    pinned();
    spliced();
    forked();
    shared();
    guarded();
    stack();
    struct ring *r = ring_open(); /* its queues are pages of the kernel */
    not_ours("[vvar]");
    not_ours("[vdso]");
    if (r)
        not_ours("io_uring");
    huge();
    never_written();
    return failed;
}
