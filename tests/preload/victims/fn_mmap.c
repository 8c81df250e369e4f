/* SPDX-License-Identifier: BSD-2-Clause
 * mmap, mmap64, munmap: zero pages, files, sharing, holes, errors, madvise. */
#include "victim.h"

#define MIB ((size_t)1 << 20)

static void anonymous(size_t n)
{
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && (uintptr_t)p % 4096 == 0);
    for (size_t i = 0; i < n; i += 4096)
        CHECK(p[i] == 0);
    fill(p, n, n);
    CHECK(holds(p, n, n));
    CHECK(madvise(p, n / 2, MADV_DONTNEED) == 0);
    CHECK(all_zero(p, n / 2 & ~(size_t)4095)); /* what garbage collectors rely on */
    fill(p, n, n + 1);
    /* Two holes, then the middle, then all: munmap of what is not there is no error. */
    CHECK(munmap(p, 4096) == 0 && munmap(p + n - 4096, 4096) == 0);
    CHECK(!is_mapped(p, 1) && is_mapped(p + 4096, 1));
    CHECK(munmap(p + n / 4, n / 4) == 0 && !is_mapped(p + n / 4, 1));
    CHECK(munmap(p, n) == 0 && !is_mapped(p + 4096, 1) && !is_mapped(p + n / 2 + 8192, 1));
}

static void files(void)
{
    char name[] = "mmap-victim-XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)(4 * MIB)) == 0);
    unlink(name);
    char *a = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *b = mmap64(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *c = mmap64(NULL, MIB, PROT_READ, MAP_SHARED, fd, (off64_t)(3 * MIB));
    CHECK(a != MAP_FAILED && b != MAP_FAILED && c != MAP_FAILED);
    fill(a, 4 * MIB, 9);
    CHECK(holds(b, 4 * MIB, 9));
    memset(b, 1, 4 * MIB);
    CHECK(holds(a, 4 * MIB, 9) && memcmp(a + 3 * MIB, c, MIB) == 0);
    char *s = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(s != MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0) {
        memset(s, 6, 2 * MIB);
        memset(a, 5, MIB);
        _exit(0);
    }
    CHECK(reap(pid) == 0 && s[2 * MIB - 1] == 6 && a[0] == 5); /* shared stays shared */
    CHECK(munmap(a, 4 * MIB) == 0 && munmap(b, 4 * MIB) == 0 && munmap(c, MIB) == 0 && munmap(s, 2 * MIB) == 0);
    close(fd);
}

static void errors(void)
{
    errno = 0;
    CHECK(mmap(NULL, OPAQUE((size_t)0), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
    errno = 0;
    CHECK(mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 77) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mmap(NULL, (size_t)1 << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    errno = 0;
    CHECK(mmap(NULL, 4 * MIB, PROT_READ, MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(munmap((void *)1, 4096) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(munmap((void *)4096, OPAQUE((size_t)0)) == -1 && errno == EINVAL);
    errno = 4711;
    char *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(errno == 4711 && munmap(p, 4 * MIB) == 0 && errno == 4711);
}

int main(void)
{
    const size_t n[] = {64 * 1024, MIB, 3 * MIB, 20 * MIB, 64 * MIB};
    for (int i = 0; i < 5; i++)
        anonymous(n[i]);
    files();
    errors();
    /* One munmap over two neighbours of which one is ours to steer, one is too small. */
    char *p = mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    char *q = mmap(p, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    char *r = mmap(p + 8 * MIB, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(q == p && r == p + 8 * MIB);
    memset(q, 1, 8 * MIB + 8192);
    CHECK(munmap(p + 4 * MIB, 12 * MIB) == 0 && p[0] == 1 && !is_mapped(r, 1));
    CHECK(munmap(p, 16 * MIB) == 0);
    puts("ok");
    return 0;
}
