/* SPDX-License-Identifier: BSD-2-Clause
 * bench-accuracy: how often the predictor is right on page histories that bench-oracle.so
 * recorded (paper 002, figure 3: 96% at a window of 8).
 *
 *   bench-accuracy FILE...     for each: pages, ticks, and for windows of 4, 8 and 16 percent of
 *                              predictions that held in the next tick, and in most of the next
 *                              ten; of all pages, then of those whose domain ever changes */
#include <stdio.h>
#include <stdlib.h>

#include "history.h"
#include "pages/rules/predictor.h"

#define AHEAD 10u

static const unsigned windows[] = {4, 8, 16};

struct recording {
    uint8_t *wd; /* ticks of page 0, of page 1, ...: 1 is write domain */
    uint32_t pages, ticks;
};

struct score {
    uint64_t right, stable, all;
};

static void fail(const char *what, const char *file)
{
    fprintf(stderr, "bench-accuracy: %s: %s\n", file, what);
    exit(1);
}

static struct recording load(const char *file)
{
    struct recording r = {0};
    struct seen s;
    FILE *f = fopen(file, "rb");

    if (!f)
        fail("cannot be read", file);
    while (fread(&s, sizeof(s), 1, f) == 1) {
        r.pages = HY_MAX(r.pages, s.page + 1);
        r.ticks = HY_MAX(r.ticks, s.tick + 1);
    }
    if (r.ticks <= PREDICT_WINDOW_MAX + AHEAD || r.pages > 1u << 20)
        fail("has too few ticks for a judgement, or is no history", file);
    r.wd = calloc(r.pages, r.ticks);
    if (!r.wd)
        fail("no memory", file);
    rewind(f);
    while (fread(&s, sizeof(s), 1, f) == 1)
        r.wd[(size_t)s.page * r.ticks + s.tick] = write_domain(s.reads, s.writes);
    fclose(f);
    return r;
}

static void follow(const struct predictor *p, const uint8_t *wd, uint32_t ticks,
                   struct score *score)
{
    uint32_t passes = 0;

    for (uint32_t i = 0; i + AHEAD < ticks; i++) {
        bool said = predict(p, passes) != UN_WD;
        unsigned held = 0;
        for (unsigned a = 0; a < AHEAD; a++)
            held += wd[i + a] == said;
        if (i >= PREDICT_WINDOW_MAX) {
            score->right += wd[i] == said;
            score->stable += 2 * held > AHEAD;
            score->all++;
        }
        passes = passes << 1 | wd[i];
    }
}

static bool changes(const uint8_t *wd, uint32_t ticks)
{
    for (uint32_t i = 1; i < ticks; i++)
        if (wd[i] != wd[0])
            return true;
    return false;
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100.0 * (double)part / (double)all : 100;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct recording r = load(argv[i]);
        printf("%s pages=%u ticks=%u", argv[i], r.pages, r.ticks);
        for (size_t w = 0; w < HY_ARRAY_SIZE(windows); w++) {
            struct predictor p = predictor_of(windows[w]);
            struct score all = {0}, some = {0};
            for (uint32_t page = 0; page < r.pages; page++) {
                const uint8_t *wd = r.wd + (size_t)page * r.ticks;
                follow(&p, wd, r.ticks, &all);
                if (changes(wd, r.ticks))
                    follow(&p, wd, r.ticks, &some);
            }
            printf(" w%u=%.1f/%.1f/%.1f/%.1f", windows[w], percent(all.right, all.all),
                   percent(all.stable, all.all), percent(some.right, some.all),
                   percent(some.stable, some.all));
        }
        printf("\n");
        free(r.wd);
    }
    return argc > 1 ? 0 : 2;
}
