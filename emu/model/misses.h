/* SPDX-License-Identifier: BSD-2-Clause
 * What kind of miss: how much of its latency a core hides. Pure over one thread's history
 * and the contents of the missed line.
 *
 * Streams are followed in both directions. A load depends on an earlier miss if its
 * address lies a little above a word of one of the last two missed lines (a pointer), or if
 * three times in a row the way from miss to miss was what the way between the values found
 * there says, times one constant (an index: i = next[i]). What is loaded by a stream
 * is known in time: indices of a CSR matrix make nothing dependent. */
#ifndef EMU_MISSES_H
#define EMU_MISSES_H

#include <stdint.h>

enum emu_miss {
    EMU_MISS_RANDOM, /* independent of earlier ones: overlapped */
    EMU_MISS_STREAM, /* a prefetcher's work */
    EMU_MISS_STORE,
    EMU_MISS_DEPENDENT, /* its address came from an earlier miss: full latency */
    EMU_MISS_KINDS,
};

#define EMU_STREAMS 16

/* All zero at a thread's start. */
struct emu_history {
    uint64_t stream[EMU_STREAMS]; /* latest line of each */
    uint64_t word[2][8];          /* the last two lines missed by loads */
    unsigned next_stream, next_word;
    /* Indices: of 32 and of 64 bits. */
    uint64_t at, step; /* last miss, and how far it was from the one before */
    struct {
        int64_t found, before; /* at the last miss, at the one before that */
        int64_t scale;
        unsigned matches;
    } index[2];
};

/* `contents`: of the line that `address` is on; looked at for loads only. */
enum emu_miss emu_miss_kind(struct emu_history *h, uint64_t address, unsigned write,
                            const void *contents);

#endif
