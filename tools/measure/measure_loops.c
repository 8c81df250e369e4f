/* SPDX-License-Identifier: BSD-2-Clause
 * The loops; see measure.h. One access a line: what is measured is the traffic of lines, and
 * a loop that used all words would measure the core as well. Stores are ordinary ones, as
 * those of programs are, so each line is read before it is written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/measure/measure.h"

static const char *const names[LOOP_KINDS] = {"chase", "update", "read", "write",
                                              "rread", "rwrite", "cycle"};

const char *loop_name(enum loop_kind kind)
{
    return names[kind];
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

int lines_link(uint64_t *base, uint64_t lines, uint64_t seed)
{
    uint32_t *order = malloc(lines * sizeof(*order));
    uint64_t x = seed * 2 + 88172645463325252u;

    if (!order)
        return -ENOMEM;
    for (uint64_t i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    for (uint64_t i = lines - 1; i > 0; i--) {
        uint64_t j = next_random(&x) % (i + 1);
        uint32_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    /* In order first: each page is touched once, by its neighbours' thread. */
    for (uint64_t i = 0; i < lines; i++)
        base[i * LINE_WORDS + WORD_NUMBER] = i;
    for (uint64_t i = 0; i < lines; i++) {
        uint64_t *line = base + (uint64_t)order[i] * LINE_WORDS;
        line[WORD_NEXT] = (uintptr_t)(base + (uint64_t)order[(i + 1) % lines] * LINE_WORDS);
        line[WORD_PLACE] = i;
    }
    free(order);
    return 0;
}

void walk_begin(struct walk *w, uint64_t *base, uint64_t lines, uint64_t stamp)
{
    memset(w, 0, sizeof(*w));
    w->base = base;
    w->lines = lines;
    w->stamp = stamp;
    /* Elsewhere each time: what the last round left in a cache is of no use. */
    w->x = stamp * 0x9e3779b97f4a7c15u;
    w->at = (w->x >> 20) % lines;
    walk_chain_from(w, base);
}

void walk_chain_from(struct walk *w, uint64_t *line)
{
    w->line = line;
    w->place = line[WORD_PLACE];
    w->steps = 0;
}

/* A random order that visits each of n = 2^k lines once before it begins anew, so that what
 * a cache keeps is of no use: a generator of full period, its low bits mixed. */
static inline uint64_t next_line(uint64_t *x, uint64_t mask)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    uint64_t i = *x & mask;
    return i ^ (i >> (unsigned)__builtin_popcountll(mask) / 2);
}

static inline uint64_t mask_of(const struct walk *w)
{
    return ((uint64_t)1 << (63 - __builtin_clzll(w->lines))) - 1;
}

static void chase(struct walk *w, uint64_t count)
{
    uint64_t *line = w->line;
    for (uint64_t i = 0; i < count; i++)
        line = (uint64_t *)(uintptr_t)line[WORD_NEXT];
    w->line = line;
    w->steps += count;
}

static void update(struct walk *w, uint64_t count)
{
    uint64_t *line = w->line, stamp = w->stamp;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t *next = (uint64_t *)(uintptr_t)line[WORD_NEXT];
        line[WORD_STAMP] = stamp;
        line = next;
    }
    w->line = line;
    w->steps += count;
}

/* As many of `count` as there are before the end of the part. */
static uint64_t stretch(const struct walk *w, uint64_t count)
{
    return HY_MIN(count, w->lines - w->at);
}

static void read_in_order(struct walk *w, uint64_t count)
{
    while (count > 0) {
        uint64_t n = stretch(w, count), first = w->base[w->at * LINE_WORDS + WORD_NUMBER];
        const uint64_t *p = w->base + w->at * LINE_WORDS + WORD_NUMBER;
        uint64_t sum = 0;
        for (uint64_t i = 0; i < n; i++)
            sum += p[i * LINE_WORDS];
        w->sum += sum;
        w->want += n * first + n * (n - 1) / 2;
        w->at = (w->at + n) % w->lines;
        count -= n;
    }
}

static void write_in_order(struct walk *w, uint64_t count)
{
    while (count > 0) {
        uint64_t n = stretch(w, count), *p = w->base + w->at * LINE_WORDS + WORD_STAMP;
        for (uint64_t i = 0; i < n; i++)
            p[i * LINE_WORDS] = w->stamp;
        w->at = (w->at + n) % w->lines;
        count -= n;
    }
}

static void read_at_random(struct walk *w, uint64_t count)
{
    uint64_t mask = mask_of(w), x = w->x, sum = 0, want = 0;
    const uint64_t *p = w->base + WORD_NUMBER;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t line = next_line(&x, mask);
        sum += p[line * LINE_WORDS];
        want += line;
    }
    w->x = x;
    w->sum += sum;
    w->want += want + count * w->base[WORD_NUMBER];
}

static void write_at_random(struct walk *w, uint64_t count)
{
    uint64_t mask = mask_of(w), x = w->x, *p = w->base + WORD_STAMP;
    for (uint64_t i = 0; i < count; i++)
        p[next_line(&x, mask) * LINE_WORDS] = w->stamp;
    w->x = x;
}

/* The compiler must not know what comes of an addition. */
static void add(struct walk *w, uint64_t count)
{
    uint64_t x = w->sum, one = 1;
    __asm__ volatile("" : "+r"(one));
    for (uint64_t i = 0; i < count; i++) {
#define ADD                                                                                        \
    x += one;                                                                                      \
    __asm__ volatile("" : "+r"(x));
        ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
#undef ADD
    }
    w->sum = x;
    w->want += 16 * count;
}

void walk_on(enum loop_kind kind, struct walk *w, uint64_t count)
{
    static void (*const loops[LOOP_KINDS])(struct walk *, uint64_t) = {
        chase, update, read_in_order, write_in_order, read_at_random, write_at_random, add};
    loops[kind](w, count);
}

static bool was_written(enum loop_kind kind, const struct walk *before, uint64_t count)
{
    struct walk again = *before;
    uint64_t mask = mask_of(before);

    for (uint64_t i = 0; i < count; i++) {
        uint64_t line =
            kind == LOOP_RWRITE ? next_line(&again.x, mask) : (again.at + i) % again.lines;
        if (again.base[line * LINE_WORDS + WORD_STAMP] != again.stamp)
            return false;
    }
    return true;
}

bool walk_is_right(enum loop_kind kind, const struct walk *w, const struct walk *before,
                   uint64_t count)
{
    switch (kind) {
    case LOOP_UPDATE:
        if (count > 0 && before->line[WORD_STAMP] != w->stamp)
            return false;
        /* fall through */
    case LOOP_CHASE:
        return w->line[WORD_PLACE] == (w->place + w->steps) % w->lines;
    case LOOP_WRITE:
    case LOOP_RWRITE:
        return was_written(kind, before, count);
    default:
        return w->sum == w->want;
    }
}
