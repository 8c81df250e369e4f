/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap/rules/sizeclass.h"

#define OCTAVE(b)                                                                                  \
    (b) + (b) / 8, (b) + (b) / 8 * 2, (b) + (b) / 8 * 3, (b) + (b) / 8 * 4, (b) + (b) / 8 * 5,     \
        (b) + (b) / 8 * 6, (b) + (b) / 8 * 7, (b)*2

const uint16_t sizeclass_bytes[SIZECLASS_COUNT] = {
    16,          32,          48,          64,           80,           96,           112,  128,
    OCTAVE(128), OCTAVE(256), OCTAVE(512), OCTAVE(1024), OCTAVE(2048), OCTAVE(4096), 9216, 10240,
};

#define TWICE(c) (c), (c)
#define FOUR(c)  TWICE(c), TWICE(c)

const uint8_t sizeclass_small[SIZECLASS_STEPS] = {
    0,         0,         1,         2,         3,         4,         5,
    6,         7,         8,         9,         10,        11,        12,
    13,        14,        15,        TWICE(16), TWICE(17), TWICE(18), TWICE(19),
    TWICE(20), TWICE(21), TWICE(22), TWICE(23), FOUR(24),  FOUR(25),  FOUR(26),
    FOUR(27),  FOUR(28),  FOUR(29),  FOUR(30),  FOUR(31),
};

unsigned sizeclass_aligned(size_t n, size_t align)
{
    size_t want = hy_align_up(n ? n : 1, align);
    if (want > SIZECLASS_MAX)
        return SIZECLASS_COUNT;
    unsigned c = sizeclass_of(want);
    while (c < SIZECLASS_COUNT && sizeclass_bytes[c] % align != 0)
        c++;
    return c;
}

unsigned sizeclass_cache_blocks(unsigned cls)
{
    unsigned n = 32768u / sizeclass_bytes[cls];
    return HY_MIN(HY_MAX(n, 4u), 512u);
}
