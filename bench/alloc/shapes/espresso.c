/* SPDX-License-Identifier: BSD-2-Clause
 * espresso: covers of cubes are split by a variable, again and again, and put together again:
 * arrays from some words to some KiB that live as long as a level of the recursion, and grow by
 * realloc. */
#include "common.h"

#define CUBES 48
#define DEPTH 9

const char bench_name[] = "espresso";
const uint64_t bench_default_ops = 4000000;

struct cover {
    size_t n, room;
    uint64_t **cube; /* each of two words: what may be 0, what may be 1 */
};

static void *get(struct worker *w, size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        bench_fail("malloc failed", NULL, bytes);
    w->done++;
    return p;
}

static struct cover *cover_new(struct worker *w)
{
    struct cover *c = get(w, sizeof(*c));
    *c = (struct cover){0, 4, get(w, 4 * sizeof(uint64_t *))};
    return c;
}

static void cover_add(struct worker *w, struct cover *c, uint64_t zero, uint64_t one)
{
    if (c->n == c->room) {
        c->room *= 2;
        c->cube = realloc(c->cube, c->room * sizeof(uint64_t *));
        if (!c->cube)
            bench_fail("realloc failed", NULL, 0);
    }
    uint64_t *cube = get(w, 2 * sizeof(uint64_t));
    cube[0] = zero;
    cube[1] = one;
    c->cube[c->n++] = cube;
}

static void cover_free(struct cover *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->cube[i]);
    free(c->cube);
    free(c);
}

/* What of the cover can be true with the variable as told, which then no longer counts. */
static struct cover *cofactor(struct worker *w, const struct cover *c, int variable, int value)
{
    struct cover *r = cover_new(w);
    uint64_t bit = 1ull << variable;
    for (size_t i = 0; i < c->n; i++)
        if (c->cube[i][value] & bit)
            cover_add(w, r, c->cube[i][0] | bit, c->cube[i][1] | bit);
    return r;
}

/* Cubes that are in no other. */
static struct cover *simplify(struct worker *w, const struct cover *c, int variable)
{
    if (c->n <= 2 || variable == DEPTH)
        return cofactor(w, c, 63, 1);
    struct cover *r = cover_new(w);
    for (int value = 0; value < 2; value++) {
        struct cover *half = cofactor(w, c, variable, value),
                     *small = simplify(w, half, variable + 1);
        for (size_t i = 0; i < small->n && r->n < CUBES; i++) {
            uint64_t own = 1ull << variable, other = ~own;
            cover_add(w, r, small->cube[i][0] & (value ? other : ~0ull),
                      small->cube[i][1] & (value ? ~0ull : other));
        }
        cover_free(small);
        cover_free(half);
    }
    return r;
}

static void work(struct worker *w)
{
    while (w->done < w->args->ops) {
        struct cover *c = cover_new(w);
        for (int i = 0; i < CUBES; i++) {
            uint64_t r = bench_random(w), free_in = r | bench_random(w);
            cover_add(w, c, ~r | free_in | 1ull << 63, r | free_in | 1ull << 63);
        }
        struct cover *small = simplify(w, c, 0);
        w->tags_out += small->n;
        cover_free(small);
        cover_free(c);
    }
    w->tags_back = w->tags_out;
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
