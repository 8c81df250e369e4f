/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/sample_ring.h"

#include <string.h>

/* include/uapi/linux/perf_event.h */
enum { RECORD_LOST = 2, RECORD_THROTTLE = 5, RECORD_SAMPLE = 9, RECORD_LOST_SAMPLES = 13 };

struct header {
    uint32_t type;
    uint16_t misc, size;
};

#define PERIOD_MAX ((uint64_t)1 << 31)

/* Up to two words of a record, which may go on at the ring's start. Records are whole words. */
static void words(const struct sample_ring *r, uint64_t at, uint64_t ret[2])
{
    for (unsigned i = 0; i < 2; i++)
        memcpy(&ret[i], r->data + ((at + i * sizeof(*ret)) & (r->size - 1)), sizeof(*ret));
}

uint64_t sample_ring_read(const struct sample_ring *r,
                          void (*fn)(void *ctx, uint64_t address, uint64_t source), void *ctx,
                          struct sample_counts *counts)
{
    uint64_t at = r->tail;
    if (r->head - at > r->size || at % sizeof(uint64_t) != 0) {
        counts->broken++;
        return r->head;
    }
    while (r->head - at >= sizeof(struct header)) {
        struct header h;
        uint64_t word[2] = {0};
        memcpy(&h, r->data + (at & (r->size - 1)), sizeof(h));
        if (h.size < sizeof(h) || h.size % sizeof(uint64_t) != 0 || h.size > r->head - at) {
            counts->broken++;
            return r->head;
        }
        if (h.size >= sizeof(h) + sizeof(word))
            words(r, at + sizeof(h), word);
        else if (h.size > sizeof(h))
            memcpy(word, r->data + ((at + sizeof(h)) & (r->size - 1)), sizeof(word[0]));
        if (h.type == RECORD_SAMPLE && h.size >= sizeof(h) + sizeof(word)) {
            counts->samples++;
            fn(ctx, word[0], word[1]);
        } else if (h.type == RECORD_LOST) { /* id, number */
            counts->lost += word[1];
        } else if (h.type == RECORD_LOST_SAMPLES) {
            counts->lost += word[0];
        } else if (h.type == RECORD_THROTTLE) {
            counts->throttled++;
        }
        at += h.size;
    }
    return at;
}

/* Fields of union perf_mem_data_src. */
#define OP_STORE     ((uint64_t)4)
#define LEVEL(s)     ((s) >> 5 & 0x3fff)
#define LEVEL_MEMORY 0x380u /* LOC_RAM, REM_RAM1, REM_RAM2 */
#define NUMBER(s)    ((s) >> 33 & 15)
#define NUMBER_CXL   9u
#define NUMBER_RAM   13u
#define NUMBER_PMEM  14u
#define LEVEL_NA     1u
#define LEVEL_HIT    2u
#define LEVEL_MISS   4u /* not a hit there: on the way to it */
#define KERNEL_HALF  ((uint64_t)1 << 63)

static bool from_memory(uint64_t source)
{
    uint64_t level = LEVEL(source), number = NUMBER(source);
    return (level & LEVEL_MEMORY && !(level & LEVEL_MISS)) || number == NUMBER_CXL ||
           number == NUMBER_RAM || number == NUMBER_PMEM;
}

static bool is_missed_store(uint64_t source)
{
    uint64_t level = LEVEL(source);
    return source & OP_STORE &&
           (from_memory(source) || (level & (LEVEL_MISS | LEVEL_NA) && !(level & LEVEL_HIT)));
}

enum sample_kind sample_kind_of(uint64_t address, uint64_t source, enum sample_filter f)
{
    if (address == 0 || address & KERNEL_HALF ||
        (f == SAMPLE_FROM_MEMORY && !from_memory(source)) ||
        (f == SAMPLE_MISSED_STORES && !is_missed_store(source)))
        return SAMPLE_NONE;
    return source & OP_STORE ? SAMPLE_STORE : SAMPLE_READ;
}

static uint64_t in_units(uint64_t period, uint32_t unit)
{
    return unit > 1 ? HY_MAX(period / unit * unit, (uint64_t)unit) : period | 1;
}

uint64_t sample_period(uint64_t period, uint64_t samples, uint64_t elapsed_ns, uint32_t unit,
                       uint64_t least)
{
    if (elapsed_ns == 0 || unit == 0)
        return period;
    double rate = (double)samples * 1e9 / (double)elapsed_ns;
    if (rate < SAMPLE_RATE / 4.0)
        period = HY_MAX(period / 2, HY_MIN(least, period));
    for (; rate > 2 * SAMPLE_RATE && period < PERIOD_MAX; rate /= 2)
        period *= 2;
    return in_units(period, unit);
}

uint64_t sample_other_period(uint64_t period, uint64_t random, uint32_t unit)
{
    return unit ? in_units(period + random % (period / 8 + 1), unit) : period;
}
