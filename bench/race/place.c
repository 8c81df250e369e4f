/* SPDX-License-Identifier: BSD-2-Clause
 * bench-place.so: preloaded into an instrumented program, puts each of its large blocks on
 * the medium that it is told. So all static placements of a program can be tried.
 *
 *   HYBRID_PLACE=0110    media by number of the block, 0 DRAM, 1 PM; the last digit goes for
 *                        the rest. Blocks are numbered from 0 as they are allocated; realloc
 *                        keeps the number.
 *   HYBRID_PLACE_MIN     bytes from which a block counts, default 65536
 *   HYBRID_PLACE_LIST    file to which a line for each block is appended at the end: number,
 *                        bytes, tier, lines read, lines dirtied (both 0 without
 *                        HYBRID_EMU_PAGE_COUNTS=1), 1 if freed, caller, process, when it was
 *                        allocated and freed, counted in allocations and frees (0: never)
 *
 * Such a block is a mapping of its own at an address that is never used again, so the counts
 * of its pages stay its own. Smaller blocks come from the next malloc. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmemu.h"

#pragma weak pmemu_set_tier
#pragma weak pmemu_range_counts

#define EXPORT     __attribute__((visibility("default")))
#define PAGE       ((size_t)4096)
#define HEADER     ((size_t)16) /* before a block, as in glibc: the same place within a line */
#define BAND       ((uintptr_t)0x520000000000)
#define BAND_END   ((uintptr_t)0x540000000000)
#define BLOCKS_MAX 65536u
#define CALLER     __builtin_return_address(0)

struct block {
    char *map; /* NULL: freed */
    size_t map_bytes, bytes;
    char *last_map; /* of it while it lived */
    size_t last_bytes;
    const void *caller;
    uint64_t reads, writebacks; /* of earlier places, before realloc moved it */
    unsigned born, died;
};

static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    size_t (*usable)(void *);
} next;

static struct block *blocks;
static unsigned n_blocks, events;
static uintptr_t band_next = BAND;
static size_t min_bytes = SIZE_MAX;
static const char *places = "", *list;

static void __attribute__((noreturn)) refuse(const char *why)
{
    dprintf(STDERR_FILENO, "bench-place[%d]: %s\n", (int)getpid(), why);
    _exit(78);
}

/* dlsym allocates nothing for names that are there. */
static void find_next(void)
{
    next.malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next.free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    next.calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    next.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    next.memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
    next.usable = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    if (!next.malloc || !next.free || !next.calloc || !next.realloc || !next.memalign ||
        !next.usable)
        refuse("the next malloc lacks functions");
}

#define NEXT(f) (next.usable ? (void)0 : find_next(), next.f)

static void __attribute__((constructor)) start(void)
{
    const char *min = getenv("HYBRID_PLACE_MIN");
    char *end = NULL;
    unsigned long long n = min && *min ? strtoull(min, &end, 10) : 65536;

    places = getenv("HYBRID_PLACE");
    list = getenv("HYBRID_PLACE_LIST");
    if (!places || !*places || strspn(places, "01") != strlen(places))
        refuse("HYBRID_PLACE: a string of 0 (DRAM) and 1 (PM) must say where blocks go");
    if ((end && *end) || n < PAGE)
        refuse("HYBRID_PLACE_MIN: bytes, at least 4096");
    if (!pmemu_set_tier)
        refuse("the program is not linked with libpmemu: no media here");
    blocks = mmap(NULL, BLOCKS_MAX * sizeof(*blocks), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (blocks == MAP_FAILED)
        refuse("no memory for the list of blocks");
    min_bytes = (size_t)n;
}

static bool placed(const void *p)
{
    return (uintptr_t)p >= BAND && (uintptr_t)p < BAND_END;
}

static unsigned *number_of(const void *p)
{
    return (unsigned *)((uintptr_t)p - HEADER);
}

static int tier_of(unsigned number)
{
    size_t n = strlen(places);
    return places[number < n ? number : n - 1] - '0';
}

/* Addresses for a mapping, followed by an unused page. */
static void *claim(size_t bytes)
{
    uintptr_t at = __atomic_fetch_add(&band_next, bytes + PAGE, __ATOMIC_RELAXED);
    if (at + bytes > BAND_END)
        refuse("addresses used up");
    return (void *)at;
}

static size_t up(size_t n, size_t to)
{
    return (n + to - 1) & ~(to - 1);
}

static unsigned now(void)
{
    return __atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
}

static void *place(size_t align, size_t n, const void *caller)
{
    unsigned i = __atomic_fetch_add(&n_blocks, 1, __ATOMIC_RELAXED);
    size_t extra = align > HEADER ? align : HEADER, bytes;
    char *map, *p;

    if (i >= BLOCKS_MAX)
        refuse("more than 65536 blocks: a larger HYBRID_PLACE_MIN is needed");
    if (n > BAND_END - BAND || extra > BAND_END - BAND) {
        errno = ENOMEM;
        return NULL;
    }
    bytes = up(n + extra, PAGE);
    map = mmap(claim(bytes), bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    pmemu_set_tier(map, bytes, tier_of(i));
    p = (char *)up((uintptr_t)map + HEADER, align);
    *number_of(p) = i;
    blocks[i] = (struct block){map, bytes, n, map, bytes, caller, 0, 0, now(), 0};
    return p;
}

/* The counts of where a block lies now go to its earlier ones. */
static void keep_counts(struct block *b)
{
    struct pmemu_range_counts c;
    if (pmemu_range_counts && pmemu_range_counts(b->last_map, b->last_bytes, &c) == 0) {
        b->reads += c.reads;
        b->writebacks += c.writebacks;
    }
}

EXPORT void *malloc(size_t n)
{
    return n >= min_bytes ? place(HEADER, n, CALLER) : NEXT(malloc)(n);
}

EXPORT void free(void *p)
{
    struct block *b;
    int e = errno;

    if (!placed(p)) {
        NEXT(free)(p);
        return;
    }
    b = &blocks[*number_of(p)];
    munmap(b->map, b->map_bytes);
    b->map = NULL;
    b->died = now();
    errno = e;
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) {
        errno = ENOMEM;
        return NULL;
    }
    return n >= min_bytes ? place(HEADER, n, CALLER) : NEXT(calloc)(count, size);
}

static void *resize(void *p, size_t n)
{
    struct block *b = &blocks[*number_of(p)];
    size_t offset = (size_t)((char *)p - b->map), bytes;
    char *map;

    if (n > BAND_END - BAND) {
        errno = ENOMEM;
        return NULL;
    }
    bytes = up(n + offset, PAGE);
    if (bytes != b->map_bytes) {
        map = mremap(b->map, b->map_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, claim(bytes));
        if (map == MAP_FAILED)
            return NULL;
        keep_counts(b);
        b->map = b->last_map = map;
        b->map_bytes = b->last_bytes = bytes;
    }
    b->bytes = n;
    return b->map + offset;
}

/* From one allocator to the other. */
static void *move(void *p, size_t old, void *to, size_t n)
{
    if (to) {
        memcpy(to, p, old < n ? old : n);
        free(p);
    }
    return to;
}

EXPORT void *realloc(void *p, size_t n)
{
    if (!p)
        return n >= min_bytes ? place(HEADER, n, CALLER) : NEXT(malloc)(n);
    if (!placed(p)) {
        if (n < min_bytes)
            return NEXT(realloc)(p, n);
        return move(p, NEXT(usable)(p), place(HEADER, n, CALLER), n);
    }
    if (n == 0) {
        free(p);
        return NULL;
    }
    if (n >= min_bytes)
        return resize(p, n);
    return move(p, blocks[*number_of(p)].bytes, NEXT(malloc)(n), n);
}

EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, n);
}

EXPORT void *memalign(size_t align, size_t n)
{
    return n >= min_bytes ? place(align, n, CALLER) : NEXT(memalign)(align, n);
}

EXPORT void *aligned_alloc(size_t align, size_t n)
{
    return n >= min_bytes ? place(align, n, CALLER) : NEXT(memalign)(align, n);
}

EXPORT int posix_memalign(void **ret, size_t align, size_t n)
{
    int e = errno;
    void *p;

    if (align < sizeof(void *) || (align & (align - 1)))
        return EINVAL;
    p = n >= min_bytes ? place(align, n, CALLER) : NEXT(memalign)(align, n);
    errno = e;
    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}

EXPORT void *valloc(size_t n)
{
    return n >= min_bytes ? place(PAGE, n, CALLER) : NEXT(memalign)(PAGE, n);
}

EXPORT void *pvalloc(size_t n)
{
    n = up(n, PAGE);
    return n >= min_bytes ? place(PAGE, n, CALLER) : NEXT(memalign)(PAGE, n);
}

EXPORT size_t malloc_usable_size(void *p)
{
    const struct block *b;
    if (!placed(p))
        return p ? NEXT(usable)(p) : 0;
    b = &blocks[*number_of(p)];
    return b->map_bytes - (size_t)((char *)p - b->map);
}

static void tell(int fd, unsigned i, struct block *b)
{
    char line[512];
    const char *file = "?";
    Dl_info in = {0};
    int n;

    keep_counts(b);
    if (dladdr(b->caller, &in) && in.dli_fname)
        file = strrchr(in.dli_fname, '/') ? strrchr(in.dli_fname, '/') + 1 : in.dli_fname;
    n = snprintf(line, sizeof(line), "%u %zu %d %" PRIu64 " %" PRIu64 " %d %.200s+0x%zx %d %u %u\n",
                 i, b->bytes, tier_of(i), b->reads, b->writebacks, b->map == NULL, file,
                 (size_t)((uintptr_t)b->caller - (uintptr_t)in.dli_fbase), (int)getpid(), b->born,
                 b->died);
    if (n > 0 && write(fd, line, (size_t)n) != n)
        refuse("HYBRID_PLACE_LIST: cannot write");
}

static void __attribute__((destructor)) finish(void)
{
    int fd;

    if (!list || !*list)
        return;
    fd = open(list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        refuse("HYBRID_PLACE_LIST: cannot open the file");
    dprintf(fd, "# number bytes tier reads writebacks freed caller pid born died\n");
    for (unsigned i = 0; i < n_blocks; i++)
        tell(fd, i, &blocks[i]);
    close(fd);
}
