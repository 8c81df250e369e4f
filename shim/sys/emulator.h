/* SPDX-License-Identifier: BSD-2-Clause
 * The emulated machine that the process may run on (emu/pmemu.h): what this library calls
 * PM or DRAM is that there. Without one every call is a test of a pointer. Nothing here
 * allocates, and all but emulator_open may be called from malloc. */
#ifndef HYBRID_SYS_EMULATOR_H
#define HYBRID_SYS_EMULATOR_H

#include "base/types.h"

/* Look for it, once; later calls only tell. Not from malloc (the loader's lock). */
bool emulator_open(void);
/* Fresh memory is of a tier from now on. */
void emulator_set_tier(const void *base, size_t bytes, enum hy_tier t);
/* Pages were given back to the kernel; they are still of their tier. */
void emulator_discard(const void *base, size_t bytes);
/* Move pages in use, at the emulated cost. How many, or -errno; -ENODEV without a machine. */
int64_t emulator_move(const void *base, size_t bytes, enum hy_tier t);
/* Of each page that the range touches, the tier (a byte), or EMULATOR_UNUSED; 0 or -errno, -ENODEV
 * without a machine. Cheap, and no page is in use for it. */
int emulator_range_tiers(const void *base, size_t bytes, uint8_t *ret);
#define EMULATOR_UNUSED 0xff
/* DRAM that no program of the machine uses now; UINT64_MAX: no limit, or no machine. */
uint64_t emulator_dram_free(void);
/* Capacity; 0: no limit, or no machine. */
uint64_t emulator_bytes(enum hy_tier t);
/* This process shall fill so many ways of the last-level cache only; 0: only asks. How many there
 * are, or -errno; -ENODEV without a machine, or on one that knows no ways. */
int emulator_fill_ways(unsigned ways);
/* Its counts can be read through PAPI when that is opened after this. Not from malloc. */
void emulator_offer_events(void);
/* The machine's clock; 0 without one. */
uint64_t emulator_now_ns(void);
/* The program's time: that clock, or the real one without a machine. */
uint64_t emulator_clock_ns(void);
/* Sleep until the machine's clock has passed `ns`, at most `real_ns` of real time (it stands
 * still while the program waits); how much it has passed. Only with a machine. The program
 * gets no further than that until the next such call: what a thread of ours (one that is ignored)
 * does after it has slept takes place at that time, however busy the computer is. */
uint64_t emulator_sleep_ns(uint64_t ns, uint64_t real_ns);
/* The same, but not beyond the moment when the word is no longer `was` (os_wake_word). */
uint64_t emulator_sleep_word(uint64_t ns, uint64_t real_ns, const uint32_t *word, uint32_t was);
/* No further such call is to come for now. */
void emulator_let_go(void);
/* The object that holds this address is none of the program's: what it copies and clears is
 * not counted. */
void emulator_ignore_code_of(const void *address);
/* The calling thread is ours: it has no emulated time of its own. The program's stands still
 * until it first sleeps (emulator_sleep_ns) or lets go. */
void emulator_ignore_thread(void);

#endif
