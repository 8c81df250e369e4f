/* SPDX-License-Identifier: BSD-2-Clause
 * cfrac: arithmetic with long numbers, each a block of its own of 16 to 48 bytes that lives until
 * the next step. The sequence is x * x + c modulo 2^96 - 17. */
#include "common.h"

#define WORDS_MAX 8
#define FOLD      17

const char bench_name[] = "cfrac";
const uint64_t bench_default_ops = 6000000;

struct number {
    uint32_t words;
    uint32_t word[];
};

static struct number *number_new(struct worker *w, uint32_t words)
{
    struct number *x = malloc(sizeof(*x) + words * sizeof(uint32_t));
    if (!x)
        bench_fail("malloc failed", NULL, 0);
    w->done++;
    x->words = words;
    memset(x->word, 0, words * sizeof(uint32_t));
    return x;
}

static struct number *times(struct worker *w, const struct number *a, const struct number *b)
{
    struct number *r = number_new(w, a->words + b->words);
    for (uint32_t i = 0; i < a->words; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < b->words; j++) {
            carry += (uint64_t)a->word[i] * b->word[j] + r->word[i + j];
            r->word[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        r->word[i + b->words] = (uint32_t)carry;
    }
    return r;
}

static struct number *plus(struct worker *w, const struct number *a, const struct number *b)
{
    uint32_t n = a->words > b->words ? a->words : b->words;
    struct number *r = number_new(w, n + 1);
    uint64_t carry = 0;
    for (uint32_t i = 0; i <= n; i++) {
        carry += (i < a->words ? a->word[i] : 0ull) + (i < b->words ? b->word[i] : 0ull);
        r->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return r;
}

static struct number *part(struct worker *w, const struct number *a, uint32_t from, uint32_t words)
{
    uint32_t left = a->words > from ? a->words - from : 0;
    struct number *r = number_new(w, words);
    memcpy(r->word, a->word + from, (left < words ? left : words) * sizeof(uint32_t));
    return r;
}

/* Below 2^96 in the end: high and low half, and the high one back FOLD times. Consumes a. */
static struct number *fold(struct worker *w, struct number *a, const struct number *by)
{
    for (int round = 0; round < 3; round++) {
        struct number *low = part(w, a, 0, 3), *high = part(w, a, 3, 3), *back = times(w, high, by);
        free(a);
        a = plus(w, low, back);
        free(low);
        free(high);
        free(back);
    }
    struct number *r = part(w, a, 0, 3);
    free(a);
    return r;
}

static void work(struct worker *w)
{
    struct number *by = number_new(w, 1), *c = number_new(w, 2), *x = number_new(w, 3);
    by->word[0] = FOLD;
    c->word[0] = (uint32_t)bench_random(w);
    x->word[0] = (uint32_t)bench_random(w);
    while (w->done < w->args->ops) {
        struct number *square = times(w, x, x), *sum = plus(w, square, c);
        free(square);
        free(x);
        x = fold(w, sum, by);
    }
    w->tags_out = w->tags_back = x->word[0];
    free(x);
    free(c);
    free(by);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
