/* SPDX-License-Identifier: BSD-2-Clause
 * Which medium a page of this process is on. A two-level table of bytes over 48 bits of
 * address: what the page was named for (by an allocator, by a file under the PM
 * directory), and where it lies since it was first used. A page that nobody named goes
 * where the process' placement says. Lookup takes no lock; changes are compare-and-swaps
 * of bytes, a racing reader sees the old or the new one. */
#ifndef EMU_PAGES_H
#define EMU_PAGES_H

#include <stddef.h>

#include "model/cache.h"

#define EMU_PAGE_SHIFT  12
#define EMU_PAGE_BYTES  ((uint64_t)1 << EMU_PAGE_SHIFT)
#define EMU_PAGE_UNUSED 0xff

/* Of `dram` + `pm` pages in a row of addresses the first are on DRAM. {1, 0}: DRAM as long as
 * there is some, which with a limited DRAM is Linux' default, then PM. */
struct emu_place {
    uint32_t dram, pm;
};
/* "dram", "pm", "first-touch", "interleave", "interleave:3:1"; -EINVAL. */
int emu_place_parse(const char *text, struct emu_place *ret);

/* What the table asks of the machine. All may be NULL. */
struct emu_pages_host {
    /* One more page on a medium; false: it is full. */
    bool (*take)(enum emu_tier t);
    void (*give)(enum emu_tier t);
    /* The page's lines are no longer what the caches hold; `moved`: another frame has
     * its contents. */
    void (*leave)(uint64_t page_address, bool moved);
};

/* Before the first lookup. `host` must stay. */
void emu_pages_start(struct emu_place place, const struct emu_pages_host *host);
/* For an access: a page that is not in use yet is from now on. */
enum emu_tier emu_tier_of(uint64_t address);
/* Where it is or would be, without using it. */
enum emu_tier emu_pages_look(uint64_t address, bool *ret_used);
/* Name pages touched by the range, wholly, and put those in use there. *ret_moved (or
 * NULL): how many changed their medium. 0, -EINVAL for a range outside 48 bits,
 * -ENOMEM. */
int emu_pages_set(uint64_t address, size_t bytes, enum emu_tier t, uint64_t *ret_moved);
/* Without a name again; those in use stay where they are. 0, -EINVAL, -ENOMEM. */
int emu_pages_unname(uint64_t address, size_t bytes);
/* A byte for each page that the range touches: its tier, EMU_PAGE_UNUSED if not in use. None is
 * for being looked at. 0 or -EINVAL. */
int emu_pages_tiers(uint64_t address, size_t bytes, uint8_t *ret);
/* Unmapped: unused and without a name. */
void emu_pages_clear(uint64_t address, size_t bytes);
/* Given back, still mapped: unused, the name stays. Only pages wholly inside. */
void emu_pages_discard(uint64_t address, size_t bytes);
/* mremap: pages take their name and medium along; what is new has the name of the first. */
void emu_pages_move(uint64_t from, size_t old_bytes, uint64_t to, size_t bytes);
/* In the child of a fork: what is in use is the parent's, and not given back by us. */
void emu_pages_forked(void);
/* Calls `fn` for runs of pages in use; stops when it returns false. */
void emu_pages_each_used(bool (*fn)(uint64_t address, size_t bytes, void *ctx), void *ctx);

#endif
