/* SPDX-License-Identifier: BSD-2-Clause
 * What the program does to pages of its blocks of malloc beside reading and writing: it protects
 * them, unmaps them, locks them, keeps them from its children, maps something else there. The heap
 * is told before; and what lies on a file becomes the ordinary memory that the program takes it
 * for, as at a fork we would put the file there again. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "base/guard.h"
#include "heap/heap.h"
#include "heap/supply.h"
#include "process/process.h"
#include "sys/lock.h"
#include "sys/thread.h"

#ifndef MADV_GUARD_INSTALL /* Linux 6.13 */
#define MADV_GUARD_INSTALL 102
#endif

/* `renewed`: when the block is freed. */
static void change_pages(const void *addr, size_t len, bool renewed)
{
    uintptr_t from = (uintptr_t)addr & ~(uintptr_t)(HY_PAGE - 1);
    if (len == 0 || len > PTRDIFF_MAX || !heap_overlaps(addr, len) || hy_guarded())
        return;
    int saved = errno;
    len = hy_align_up((uintptr_t)addr + len, HY_PAGE) - from;
    if (renewed)
        heap_note_altered((void *)from, len);
    if (supply_has_files() && !hy_locks_held())
        (void)heap_under_lock(HY_PM, (char *)from, len, true, supply_leave_file);
    errno = saved;
}

void alter_pages(const void *addr, size_t len)
{
    change_pages(addr, len, true);
}

/* Advice that stays with the page, and that its next owner would suffer from. */
bool alter_is_by(int advice)
{
    switch (advice) {
    case MADV_DONTFORK:
    case MADV_WIPEONFORK:
    case MADV_DONTDUMP:
    case MADV_HWPOISON:
    case MADV_GUARD_INSTALL:
        return true;
    default:
        return false;
    }
}

void runtime_protects(void *addr, size_t len, int prot)
{
    if (prot != (PROT_READ | PROT_WRITE)) /* what all pages are, or become again */
        alter_pages(addr, len);
}

/* Only with SHM_REMAP is a segment put where something else is. */
void runtime_attaches(int id, const void *addr, int flags)
{
    struct shmid_ds segment;
    int saved = errno;
    if (!(flags & SHM_REMAP) || !heap_owns(addr))
        return;
    if (shmctl(id, IPC_STAT, &segment) == 0)
        alter_pages(addr, segment.shm_segsz);
    errno = saved;
}

/* A mapping that grows where it is would grow into what is still to become ours. */
bool alter_by_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr,
                     void **ret)
{
    if (flags & MREMAP_FIXED)
        alter_pages(new_addr, new_len);
    if (HY_LIKELY(!heap_overlaps(old, old_len) || ((uintptr_t)old & (HY_PAGE - 1)) || hy_guarded()))
        return false;
    alter_pages(old, old_len);
    if (new_len <= hy_align_up(old_len, HY_PAGE) || (flags & ~MREMAP_MAYMOVE))
        return false;
    errno = ENOMEM;
    *ret = flags ? remap_elsewhere(old, old_len, new_len) : MAP_FAILED;
    return true;
}

/* Never by the functions of the next library, which may come back with the same number. So a
 * mapping that is placed is no longer known when it is moved so. */
bool alter_by_number(long nr, const long arg[5], void **ret)
{
    void *addr = (void *)arg[0];
    size_t len = (size_t)arg[1];
    int how = (int)arg[2];
    if (hy_raw_memory)
        return false;
    switch (nr) {
    case SYS_mmap:
        if ((arg[3] & MAP_FIXED) && !(arg[3] & MAP_FIXED_NOREPLACE))
            runtime_unmaps(addr, len);
        break;
    case SYS_munmap:
        runtime_unmaps(addr, len);
        break;
    case SYS_mremap:
        if (alter_by_mremap(addr, len, (size_t)arg[2], (int)arg[3], (void *)arg[4], ret))
            return true;
        if (arg[3] & MREMAP_FIXED)
            runtime_unmaps((void *)arg[4], (size_t)arg[2]);
        runtime_unmaps(addr, len);
        break;
    case SYS_pkey_mprotect:
        how = arg[3] == -1 ? how : PROT_NONE;
        __attribute__((fallthrough));
    case SYS_mprotect:
        runtime_protects(addr, len, how);
        break;
    case SYS_madvise:
        runtime_advised(addr, len, how);
        break;
    case SYS_shmat:
        runtime_attaches((int)arg[0], (void *)arg[1], how);
        break;
    case SYS_mseal: /* nothing can be mapped there any more, at a fork or after */
        change_pages(addr, len, false);
        break;
    default: /* mlock, mlock2 */
        alter_pages(addr, len);
    }
    return false;
}
