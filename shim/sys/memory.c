/* SPDX-License-Identifier: BSD-2-Clause
 * Memory and memory policy. */
#include "sys/os.h"

#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sys/raw.h"

__thread int hy_raw_memory __attribute__((tls_model("initial-exec")));

static int map(size_t bytes, int prot, int flags, int fd, uint64_t offset, void *at, void **ret)
{
    long r = raw6(SYS_mmap, at, bytes, prot, flags, fd, offset);
    if (r < 0 && r > -4096)
        return (int)r;
    *ret = (void *)r;
    return 0;
}

int os_unmap(const void *base, size_t bytes)
{
    return bytes ? (int)raw2(SYS_munmap, base, bytes) : 0;
}

int os_copy_to_anon(void *base, size_t bytes)
{
    void *copy;
    int r = os_map_anon(bytes, &copy);
    if (r != 0)
        return r;
    memcpy(copy, base, bytes);
    /* What other threads wrote meanwhile: a second look narrows the window. */
    for (size_t off = 0; off < bytes; off += HY_PAGE)
        if (memcmp((char *)copy + off, (char *)base + off, HY_MIN(HY_PAGE, bytes - off)) != 0)
            memcpy((char *)copy + off, (char *)base + off, HY_MIN(HY_PAGE, bytes - off));
    long m = raw5(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base);
    if (m < 0 && m > -4096) {
        os_unmap(copy, bytes);
        return (int)m;
    }
    return 0;
}

int os_map_anon(size_t bytes, void **ret_base)
{
    return map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, NULL, ret_base);
}

int os_map_table(size_t bytes, void **ret_base)
{
    void *table; /* what nobody can access is locked without its pages */
    if (!os_locks_future())
        return os_map_anon(bytes, ret_base);
    int r = map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, NULL, &table);
    if (r)
        return r;
    (void)os_unlock(table, bytes);
    r = (int)raw3(SYS_mprotect, table, bytes, PROT_READ | PROT_WRITE);
    if (r == 0)
        *ret_base = table;
    else
        os_unmap(table, bytes);
    return r;
}

int os_map_fd_fixed(void *base, size_t bytes, int fd, uint64_t offset, bool shared)
{
    void *at;
    int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE);
    return map(bytes, PROT_READ | PROT_WRITE, flags, fd, offset, base, &at);
}

int os_purge(void *base, size_t bytes)
{
    return (int)raw3(SYS_madvise, base, bytes, MADV_DONTNEED);
}

int os_purge_shared(void *base, size_t bytes)
{
    return (int)raw3(SYS_madvise, base, bytes, MADV_REMOVE);
}

int os_replace_by_anon(void *base, size_t bytes)
{
    void *at;
    return map(bytes, PROT_READ | PROT_WRITE,
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, base, &at);
}

int os_lock(void *base, size_t bytes)
{
    return (int)raw2(SYS_mlock, base, bytes);
}

int os_unlock(void *base, size_t bytes)
{
    return (int)raw2(SYS_munlock, base, bytes);
}

bool os_is_unreadable(void *base, size_t bytes)
{
    char here = 0;
    uintptr_t stack = (uintptr_t)&here & ~(HY_PAGE - 1);
    return raw3(SYS_madvise, base, bytes, MADV_POPULATE_READ) == -EINVAL &&
           raw3(SYS_madvise, stack, HY_PAGE, MADV_POPULATE_READ) == 0;
}

int os_no_access(void *base, size_t bytes)
{
    return (int)raw3(SYS_mprotect, base, bytes, PROT_NONE);
}

int os_resident_pages(const void *base, size_t bytes, size_t *ret_pages)
{
    unsigned char vec[1024]; /* small: signal stacks can be 8 KiB */
    size_t pages = hy_align_up(bytes, HY_PAGE) / HY_PAGE, sum = 0;
    for (size_t at = 0; at < pages;) {
        size_t n = HY_MIN(pages - at, sizeof(vec));
        long r = raw3(SYS_mincore, (const char *)base + at * HY_PAGE, n * HY_PAGE, vec);
        if (r == -EAGAIN)
            continue;
        if (r != 0)
            return (int)r;
        for (size_t i = 0; i < n; i++)
            sum += vec[i] & 1;
        at += n;
    }
    *ret_pages = sum;
    return 0;
}

int os_prefer_nodes(void *base, size_t bytes, uint64_t mask)
{
    unsigned long nodes = mask;
    if (mask == 0)
        return -EINVAL;
    /* The kernel reads maxnode - 1 bits. */
    if ((mask & (mask - 1)) != 0) {
        long r = raw6(SYS_mbind, base, bytes, MPOL_PREFERRED_MANY, &nodes, 65, 0);
        if (r != -EINVAL)
            return (int)r;
        /* Before Linux 5.15 only one node can be preferred; BIND would kill
         * the program when its nodes are full. */
        nodes = mask & (0 - mask);
    }
    return (int)raw6(SYS_mbind, base, bytes, MPOL_PREFERRED, &nodes, 65, 0);
}

int os_prefer_any_node(void *base, size_t bytes)
{
    return (int)raw6(SYS_mbind, base, bytes, MPOL_DEFAULT, NULL, 0, 0);
}

bool os_has_foreign_mempolicy(void)
{
    int mode = MPOL_DEFAULT;
    /* We never call set_mempolicy, so any policy is somebody else's. */
    return raw5(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0 && mode != MPOL_DEFAULT;
}

int os_memory_nodes(uint64_t *ret_mask)
{
    unsigned long nodes[16] = {0}; /* the kernel refuses fewer bits than it has nodes */
    long r = raw5(SYS_get_mempolicy, NULL, nodes, sizeof(nodes) * 8, NULL, MPOL_F_MEMS_ALLOWED);
    if (r == 0)
        *ret_mask = nodes[0];
    return (int)r;
}

bool os_locks_future(void)
{
    unsigned char here = 0;
    void *page;
    if (os_map_anon(HY_PAGE, &page))
        return false;
    long r = raw3(SYS_mincore, page, HY_PAGE, &here);
    os_unmap(page, HY_PAGE);
    return r == 0 && (here & 1);
}

/* The kernel reads the set before it finds that this is nothing to be done with a set. */
bool os_can_read(const void *word)
{
    return raw4(SYS_rt_sigprocmask, -1, word, NULL, sizeof(uint64_t)) == -EINVAL;
}

static uint64_t limit_of(int resource)
{
    struct rlimit l;
    if (raw4(SYS_prlimit64, 0, resource, NULL, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return l.rlim_cur;
}

uint64_t os_address_limit(void)
{
    return limit_of(RLIMIT_AS);
}

uint64_t os_data_limit(void)
{
    return limit_of(RLIMIT_DATA);
}

bool os_could_map(size_t bytes, bool written)
{
    int prot = written ? PROT_READ | PROT_WRITE : PROT_NONE;
    void *at;
    if (map(bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, NULL, &at))
        return false;
    os_unmap(at, bytes);
    return true;
}

bool os_is_limited(void)
{
    return os_address_limit() != UINT64_MAX || os_data_limit() != UINT64_MAX;
}

bool os_limits_leave(size_t addresses, size_t written)
{
    return (os_address_limit() == UINT64_MAX || os_could_map(addresses, false)) &&
           (os_data_limit() == UINT64_MAX || os_could_map(written, true));
}

bool os_overcommit_is_strict(void)
{
    char mode[8];
    size_t len;
    return os_read_file("/proc/sys/vm/overcommit_memory", mode, sizeof(mode), &len) == 0 &&
           mode[0] == '2';
}
