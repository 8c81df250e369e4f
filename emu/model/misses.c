/* SPDX-License-Identifier: BSD-2-Clause
 * See misses.h. */
#include "model/misses.h"

#include <stdbool.h>

#include "model/cache.h"

/* A load from within this distance above a pointer follows the pointer. */
#define FIELD_BYTES 128
/* The largest element that an index is taken to count. */
#define MAX_SCALE 4096
#define MATCHES   3

static bool follows_stream(struct emu_history *h, uint64_t line)
{
    for (unsigned i = 0; i < EMU_STREAMS; i++) {
        /* From 2 lines back to 4 ahead. */
        if (line - h->stream[i] + 2 <= 6 && line != h->stream[i]) {
            h->stream[i] = line;
            return true;
        }
    }
    h->stream[h->next_stream++ % EMU_STREAMS] = line;
    return false;
}

static bool follows_pointer(const struct emu_history *h, uint64_t address)
{
    for (unsigned i = 0; i < 16; i++)
        if (address - h->word[i / 8][i % 8] < FIELD_BYTES)
            return true;
    return false;
}

/* Steps all alike are a prefetcher's, whatever is found there: they prove nothing. */
static bool follows_index(struct emu_history *h, uint64_t address)
{
    uint64_t step = address - h->at;
    bool strides = step == h->step, follows = false;

    for (int i = 0; i < 2; i++) {
        int64_t way = (int64_t)step, values = h->index[i].found - h->index[i].before, scale = 0;
        if (values != 0 && values != -1 && way % values == 0)
            scale = way / values;
        else if (values == -1)
            scale = -way;
        if (scale < 1 || scale > MAX_SCALE || scale != h->index[i].scale)
            h->index[i].matches = 0;
        h->index[i].scale = scale;
        if (!strides && ++h->index[i].matches > MATCHES)
            follows = true;
    }
    h->at = address;
    h->step = step;
    return follows;
}

static void remember(struct emu_history *h, uint64_t address, const void *contents)
{
    uint64_t *word = h->word[h->next_word++ % 2];
    unsigned at = address & ((1u << EMU_LINE_SHIFT) - 1);
    uint32_t small = 0;
    int64_t large = 0;

    __builtin_memcpy(word, contents, 1u << EMU_LINE_SHIFT);
    if (at <= 60)
        __builtin_memcpy(&small, (const char *)word + at, sizeof(small));
    if (at <= 56)
        __builtin_memcpy(&large, (const char *)word + at, sizeof(large));
    for (int i = 0; i < 2; i++)
        h->index[i].before = h->index[i].found;
    h->index[0].found = small;
    /* Differences must not overflow; such indices there are none. */
    h->index[1].found = large >> 62 == 0 ? large : 0;
}

enum emu_miss emu_miss_kind(struct emu_history *h, uint64_t address, unsigned write,
                            const void *contents)
{
    bool pointer, index;

    if (follows_stream(h, address >> EMU_LINE_SHIFT))
        return EMU_MISS_STREAM;
    if (write)
        return EMU_MISS_STORE;
    pointer = follows_pointer(h, address);
    index = follows_index(h, address);
    /* Now: the line may be unmapped before the next miss. The program is about to
     * read it, so it is there. */
    remember(h, address, contents);
    return pointer || index ? EMU_MISS_DEPENDENT : EMU_MISS_RANDOM;
}
