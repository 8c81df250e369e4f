/* SPDX-License-Identifier: BSD-2-Clause
 * See mapped.h. */
#include "program/mapped.h"

#include <sys/mman.h>

#include "core/core.h"
#include "pages/pages.h"
#include "pages/pmdir.h"

void emu_mapped(uint64_t address, size_t bytes, int fd)
{
    if (!emu_core_running())
        return;
    emu_pages_clear(address, bytes); /* with MAP_FIXED something was there */
    if (fd >= 0 && emu_pmdir_has(fd))
        (void)emu_pages_set(address, bytes, EMU_PM, NULL);
}

void emu_unmapped(uint64_t address, size_t bytes)
{
    emu_pages_clear(address, bytes);
}

void emu_remapped(uint64_t from, size_t old_bytes, uint64_t to, size_t bytes)
{
    emu_pages_move(from, old_bytes, to, bytes);
}

void emu_advised(uint64_t address, size_t bytes, int advice)
{
    if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE)
        emu_pages_discard(address, (bytes + EMU_PAGE_BYTES - 1) & ~(EMU_PAGE_BYTES - 1));
}
