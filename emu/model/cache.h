/* SPDX-License-Identifier: BSD-2-Clause
 * The caches of the emulated machine: a private L1 filter for each thread and one
 * LLC shared by all threads and processes. Pure over their structs.
 *
 * L1: 256 sets of 4 ways, LRU (64 KiB of 64-byte lines). LLC: 8 ways, LRU. The sets of
 * both are chosen by a hash, the L1's in place of the 8 or 12 ways of real ones: arrays a
 * power of two apart would else fight for a set. Both allocate on a write. A line that turns dirty
 * in the LLC counts as one future write-back at that moment, so the thread that dirtied it pays and
 * no process pays for another's evictions.
 *
 * The LLC takes no lock: a race between threads can lose or double a line, which
 * costs a miss and nothing else. */
#ifndef EMU_CACHE_H
#define EMU_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum emu_tier { EMU_DRAM, EMU_PM, EMU_TIERS };

#define EMU_LINE_SHIFT 6
#define EMU_L1_SETS    256u
#define EMU_L1_WAYS    4u
#define EMU_LLC_WAYS   8u
#define EMU_LLC_MAX_KB (32u * 1024u)

/* Entries are line << 1 | dirty; line 0 is never accessed, so 0 is 'empty'. */
struct emu_l1 {
    uint64_t recent[EMU_L1_SETS];
    uint64_t older[EMU_L1_SETS][EMU_L1_WAYS - 1]; /* latest first */
};

enum emu_l1_result {
    EMU_L1_HIT,
    EMU_L1_DIRTIED, /* hit, and the first write since the fill: the LLC must know */
    EMU_L1_MISS,
};

static inline unsigned emu_l1_set(uint64_t line)
{
    return (unsigned)(line ^ line >> 8) & (EMU_L1_SETS - 1);
}

/* The inline test of the hot path: most recent way, and nothing to be done. */
static inline bool emu_l1_quick(const struct emu_l1 *c, uint64_t line, unsigned write)
{
    uint64_t e = c->recent[emu_l1_set(line)];
    return write ? e == (line << 1 | 1) : e >> 1 == line;
}

/* Makes `line` the most recent of its set. In the header as most calls end here. */
static inline enum emu_l1_result emu_l1_access(struct emu_l1 *c, uint64_t line, unsigned write)
{
    unsigned set = emu_l1_set(line);
    uint64_t entry = c->recent[set], *older = c->older[set];

    if (entry >> 1 != line) {
        uint64_t moving = entry;
        for (unsigned i = 0; i < EMU_L1_WAYS - 1; i++) {
            entry = older[i];
            older[i] = moving;
            if (entry >> 1 == line)
                break;
            moving = entry;
        }
        if (entry >> 1 != line) {
            c->recent[set] = line << 1 | write;
            return EMU_L1_MISS;
        }
        c->recent[set] = entry;
    }
    if (!write || (entry & 1))
        return EMU_L1_HIT;
    c->recent[set] = entry | 1;
    return EMU_L1_DIRTIED;
}

/* The `n` lines from `first` on are not what memory holds any more. */
void emu_l1_drop(struct emu_l1 *c, uint64_t first, unsigned n);

/* Slots hold key << 3 | tier << 1 | dirty; key = line + salt, never 0. A set is ordered by use. Who
 * may fill `ways` of them only (cache allocation, resctrl) fills and renews the last ones of that
 * order, and hits everywhere; the others may push what is there out, as they have all ways. */
struct emu_llc {
    uint32_t set_mask;
    _Atomic uint32_t first_way; /* EMU_LLC_WAYS less those that this process may fill */
    _Atomic uint64_t *slot;     /* (set_mask + 1) * EMU_LLC_WAYS */
};

struct emu_llc_result {
    bool hit, write_back;
    enum emu_tier tier; /* where the line lives: of the fill, if it was a hit */
};

/* Sets for a cache of `kb` KiB: a power of two, rounded down; 0: too small or large. */
uint32_t emu_llc_sets(uint32_t kb);
/* `tier_of` is asked only on a miss. The salt (a multiple of 1 << 42, below 1 << 58)
 * keeps the lines of different processes apart. */
struct emu_llc_result emu_llc_access(struct emu_llc *c, uint64_t line, uint64_t salt,
                                     unsigned write, enum emu_tier (*tier_of)(uint64_t line));
void emu_llc_drop(struct emu_llc *c, uint64_t first, unsigned n, uint64_t salt);

#endif
