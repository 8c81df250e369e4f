/* SPDX-License-Identifier: BSD-2-Clause
 * How run-times with collectors use mmap: MAP_FIXED over a reservation, pieces
 * made accessible by mprotect and given back, 64 GiB that nobody fills. */
#include "victim.h"

#define MIB ((size_t)1 << 20)

static void fixed(void)
{
    char *base = mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED);
    for (size_t i = 0; i < 16; i++) { /* commit in another order than the addresses */
        char *at = base + (i * 7 % 16) * 4 * MIB;
        char *p = mmap(at, 3 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(p == at && p[0] == 0);
        fill(p, 3 * MIB, i);
    }
    for (size_t i = 0; i < 16; i++)
        CHECK(holds(base + (i * 7 % 16) * 4 * MIB, 3 * MIB, i));
    char *over = mmap(base + 2 * MIB, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(over == base + 2 * MIB && all_zero(over, 8 * MIB) && holds(base, 2 * MIB, 0));
    errno = 0;
    CHECK(mmap(base, 4 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    char *none = mmap(base + 32 * MIB, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    CHECK(none == base + 32 * MIB);
    int fd[2];
    CHECK(pipe(fd) == 0 && write(fd[1], none, 1) == -1 && errno == EFAULT); /* as without us */
    CHECK(write(fd[1], over, 100) == 100 && read(fd[0], over + MIB, 100) == 100);
    close(fd[0]);
    close(fd[1]);
    CHECK(munmap(base, 64 * MIB) == 0);
}

static void committed_by_mprotect(void)
{
    size_t n = 256 * MIB;
    char *base = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED);
    for (int round = 0; round < 3; round++)
        for (size_t at = 0; at < 24 * MIB; at += 2 * MIB) {
            CHECK(mprotect(base + at, 2 * MIB, PROT_READ | PROT_WRITE) == 0 && all_zero(base + at, 2 * MIB));
            fill(base + at, 2 * MIB, at);
            CHECK(holds(base + at, 2 * MIB, at));
            CHECK(madvise(base + at, 2 * MIB, MADV_DONTNEED) == 0 && all_zero(base + at, 2 * MIB));
            CHECK(mprotect(base + at, 2 * MIB, PROT_NONE) == 0);
        }
    CHECK(munmap(base + 100 * MIB, 50 * MIB) == 0 && munmap(base, n) == 0);
}

static void vast(void)
{
    size_t n = (size_t)64 << 30;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        puts("64 GiB cannot be reserved");
        return;
    }
    for (size_t i = 0; i < 64; i++)
        p[i << 30] = (char)i;
    for (size_t i = 0; i < 64; i++)
        CHECK(p[i << 30] == (char)i && p[(i << 30) + 4096] == 0);
    pid_t pid = fork();
    if (pid == 0) {
        p[0] = 77;
        _exit(p[5ul << 30] == 5 ? 3 : 4);
    }
    CHECK(reap(pid) == 3 && p[0] == 0 && munmap(p, n) == 0);
    p = mmap(NULL, n, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(p != MAP_FAILED && munmap(p, n) == 0);
}

static void flags(void)
{
    char *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    CHECK(p != MAP_FAILED);
    unsigned char vec[1024];
    CHECK(mincore(p, 4 * MIB, vec) == 0 && (vec[0] & 1) && (vec[1023] & 1));
    CHECK(munmap(p, 4 * MIB) == 0);
#ifdef MAP_32BIT /* of x86-64 */
    p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(p == MAP_FAILED || (uintptr_t)p < ((uintptr_t)2 << 30));
    if (p != MAP_FAILED)
        CHECK(munmap(p, 4 * MIB) == 0);
#endif
    p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK, -1, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 1, 4 * MIB);
    CHECK(munmap(p, 4 * MIB) == 0);
    p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 1, 4 * MIB);
    CHECK(madvise(p, MIB, MADV_WIPEONFORK) == 0 && madvise(p + MIB, MIB, MADV_DONTFORK) == 0);
    madvise(p + 2 * MIB, MIB, MADV_HUGEPAGE);
    CHECK(mlock(p + 3 * MIB, 4096) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(p[0] == 0 && !is_mapped(p + MIB, 1) && p[2 * MIB] == 1 ? 3 : 4);
    CHECK(reap(pid) == 3);
}

int main(void)
{
    fixed();
    committed_by_mprotect();
    vast();
    flags();
    puts("ok");
    return 0;
}
