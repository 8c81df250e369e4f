/* SPDX-License-Identifier: BSD-2-Clause
 * What the victims share: a check that ends the process with a line, a
 * repeatable random sequence, a pattern by which a block knows its content. */
#ifndef VICTIM_H
#define VICTIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* _exit: a broken heap must not get the chance to hang in exit handlers. */
#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            dprintf(1, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #cond, errno);        \
            _exit(99);                                                                             \
        }                                                                                          \
    } while (0)

/* Hides a value from the optimizer, which knows what malloc and free do. */
#define OPAQUE(x)                                                                                  \
    (__extension__({                                                                               \
        __typeof__((x) + 0) opaque_ = (x); /* + 0: without const */                                                               \
        __asm__ volatile("" : "+r"(opaque_)::"memory");                                            \
        opaque_;                                                                                   \
    }))

static inline uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* Words of (seed, index); the tail byte by byte. */
static inline void fill(void *p, size_t n, uint64_t seed)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = (seed + i) * UINT64_C(0x9E3779B97F4A7C15);
        memcpy((char *)p + i, &w, 8);
    }
    for (; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)(seed + i);
}

static inline int holds(const void *p, size_t n, uint64_t seed)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = (seed + i) * UINT64_C(0x9E3779B97F4A7C15), got;
        memcpy(&got, (const char *)p + i, 8);
        if (got != w)
            return 0;
    }
    /* The tail of a block that has been cut lies inside a word: the caller
     * compares at most what was filled, rounded down to a word. */
    for (; i < n; i++)
        if (((const unsigned char *)p)[i] != (unsigned char)(seed + i))
            return 0;
    return 1;
}

static inline int all_zero(const void *p, size_t n)
{
    const unsigned char *b = (const unsigned char *)p;
    for (size_t i = 0; i < n; i++)
        if (b[i])
            return 0;
    return 1;
}

/* Sizes as programs have them: mostly small, some pages, few large. */
static inline size_t random_size(uint64_t *s)
{
    uint64_t r = rnd(s);
    if (r % 100 < 80)
        return (r >> 8) % 512;
    if (r % 100 < 95)
        return (r >> 8) % 16384;
    if (r % 1000 < 998)
        return (r >> 8) % 200000;
    return (r >> 8) % 3000000;
}

/* Field 1 (size) or 2 (resident) of /proc/self/statm in bytes; no allocation. */
static inline size_t statm(int field)
{
    char buf[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
    if (fd >= 0)
        close(fd);
    CHECK(n > 0);
    buf[n] = 0;
    char *p = buf;
    size_t v = strtoul(p, &p, 10);
    if (field == 2)
        v = strtoul(p, &p, 10);
    return v * 4096;
}

static inline int is_mapped(const void *p, size_t len)
{
    unsigned char vec[1];
    (void)len;
    return mincore((void *)((uintptr_t)p & ~(uintptr_t)4095), 4096, vec) == 0;
}

/* Exit status of a child, or 1000 + signal. */
static inline int reap(pid_t pid)
{
    int st;
    pid_t got;
    while ((got = waitpid(pid, &st, 0)) < 0 && errno == EINTR)
        ;
    CHECK(got == pid);
    return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
}

static inline void nap_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

#endif
