/* SPDX-License-Identifier: BSD-2-Clause
 * churn OPERATIONS [SLOTS]: a program that runs long and whose needs come and go in 20 equal
 * seasons of four quarters: small blocks, middling, large, then nearly nothing. What
 * it holds at the end of a season is the same every time, so whatever grows from the
 * second season (10%) to the last is kept by the allocator. */
#include "proc.h"

#define MAX_SLOTS 4096
#define SEASONS   20

static struct {
    unsigned char *block;
    size_t size;
} slot[MAX_SLOTS];

static unsigned slots = MAX_SLOTS; /* blocks alive at most */

static unsigned long long state = 0x2545f4914f6cdd1dull;

static unsigned draw(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 33) % n);
}

static size_t draw_size(unsigned quarter)
{
    switch (quarter) {
    case 0:
        return 16 + draw(500);
    case 1:
        return 500 + draw(8000);
    default:
        /* Few enough large ones to matter and small enough that the sum of all is
         * about the same in every season. */
        return draw(16) == 0 ? 65536 + draw(196608) : 4000 + draw(30000);
    }
}

static void drop(unsigned i)
{
    if (!slot[i].block)
        return;
    if (slot[i].block[0] != (unsigned char)slot[i].size) {
        fputs("churn: a block was overwritten\n", stderr);
        exit(1);
    }
    free(slot[i].block);
    slot[i].block = NULL;
}

static void step(unsigned quarter)
{
    unsigned i = draw(slots);

    drop(i);
    if (quarter == 3)
        return;
    slot[i].size = draw_size(quarter);
    slot[i].block = malloc(slot[i].size);
    if (!slot[i].block) {
        fputs("churn: out of memory\n", stderr);
        exit(1);
    }
    for (size_t at = 0; at < slot[i].size; at += 4096)
        slot[i].block[at] = (unsigned char)slot[i].size;
}

int main(int argc, char **argv)
{
    long ops = argc > 1 ? strtol(argv[1], NULL, 10) : 0, quarter_ops = ops / SEASONS / 4;

    if (argc == 3)
        slots = (unsigned)strtoul(argv[2], NULL, 10);
    if (argc > 3 || slots == 0 || slots > MAX_SLOTS || quarter_ops < (long)slots) {
        fprintf(stderr, "usage: churn OPERATIONS [SLOTS] (at least 80 a slot; up to %d slots)\n",
                MAX_SLOTS);
        return 2;
    }
    for (unsigned season = 1; season <= SEASONS; season++) {
        for (unsigned quarter = 0; quarter < 4; quarter++) {
            for (long i = 0; i < quarter_ops; i++)
                step(quarter);
        }
        for (unsigned i = 0; i < slots; i++)
            drop(i);
        if (season % 2 == 0)
            proc_report(season * 100 / SEASONS);
    }
    return 0;
}
