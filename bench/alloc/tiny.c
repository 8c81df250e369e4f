/* SPDX-License-Identifier: BSD-2-Clause
 * tiny: sparse polynomials modulo a prime, one small block per term, as symbolic and
 * number-theoretic programs have them. Products are built from partial lists that die
 * at once; some results live on. A product is checked by its value at one point. */
#include "common.h"

#define PRIME  2147483647u
#define TERMS  8
#define DEGREE 256
#define KEPT   256

const char bench_name[] = "tiny";
const uint64_t bench_default_ops = 6000000; /* terms made */

struct term {
    struct term *next; /* falling exponent */
    uint32_t exponent, coefficient;
};

struct poly {
    uint64_t name; /* tells polynomials of one shape apart: their block differs in size */
    struct term *first;
    uint32_t n_terms;
    char label[]; /* 1 to 48 bytes */
};

static uint32_t power[2 * DEGREE]; /* of the point where values are compared */

static struct term *term_new(struct worker *w, uint32_t exponent, uint32_t coefficient,
                             struct term *next)
{
    struct term *t = malloc(sizeof(*t));

    if (!t)
        bench_fail("malloc failed", NULL, sizeof(*t));
    t->next = next;
    t->exponent = exponent;
    t->coefficient = coefficient;
    w->tags_out += coefficient;
    w->done++;
    return t;
}

static void list_free(struct worker *w, struct term *t)
{
    while (t) {
        struct term *next = t->next;

        w->tags_back += t->coefficient;
        free(t);
        t = next;
    }
}

static uint32_t list_value(const struct term *t)
{
    uint64_t sum = 0;

    for (; t; t = t->next)
        sum += (uint64_t)t->coefficient * power[t->exponent] % PRIME;
    return (uint32_t)(sum % PRIME);
}

/* Sum of two lists as a new list; both arguments are consumed. */
static struct term *list_add(struct worker *w, struct term *a, struct term *b)
{
    struct term *head = NULL, **tail = &head, *old_a = a, *old_b = b;

    while (a || b) {
        uint32_t exponent = !b || (a && a->exponent >= b->exponent) ? a->exponent : b->exponent;
        uint64_t sum = 0;

        if (a && a->exponent == exponent) {
            sum += a->coefficient;
            a = a->next;
        }
        if (b && b->exponent == exponent) {
            sum += b->coefficient;
            b = b->next;
        }
        *tail = term_new(w, exponent, (uint32_t)(sum % PRIME), NULL);
        tail = &(*tail)->next;
    }
    list_free(w, old_a);
    list_free(w, old_b);
    return head;
}

static struct term *list_scale(struct worker *w, const struct term *a, const struct term *by)
{
    struct term *head = NULL, **tail = &head;

    for (; a; a = a->next) {
        uint64_t c = (uint64_t)a->coefficient * by->coefficient % PRIME;

        *tail = term_new(w, a->exponent + by->exponent, (uint32_t)c, NULL);
        tail = &(*tail)->next;
    }
    return head;
}

static struct term *list_draw(struct worker *w)
{
    struct term *list = NULL;
    uint32_t exponent = 0;

    for (unsigned i = 0; i < TERMS; i++) {
        uint64_t r = bench_random(w);

        list = term_new(w, exponent, (uint32_t)(r % PRIME), list);
        exponent += 1 + (uint32_t)(r >> 40) % (DEGREE / TERMS - 1);
    }
    return list;
}

static void poly_free(struct worker *w, struct poly *p)
{
    if (!p)
        return;
    list_free(w, p->first);
    w->tags_back += p->name;
    free(p);
}

static struct poly *product(struct worker *w)
{
    struct term *a = list_draw(w), *b = list_draw(w), *sum = NULL;
    uint32_t expected = (uint32_t)((uint64_t)list_value(a) * list_value(b) % PRIME);
    uint64_t r = bench_random(w);
    size_t size = sizeof(struct poly) + 1 + r % 48;
    struct poly *p = malloc(size);

    if (!p)
        bench_fail("malloc failed", NULL, size);
    memset(p, 0, size);
    for (const struct term *t = b; t; t = t->next)
        sum = list_add(w, sum, list_scale(w, a, t));
    if (list_value(sum) != expected)
        bench_fail("a product is wrong", sum, sizeof(*sum));
    list_free(w, a);
    list_free(w, b);
    p->name = r;
    p->first = sum;
    w->tags_out += r;
    return p;
}

static void work(struct worker *w)
{
    struct poly *kept[KEPT] = {NULL};

    while (w->done < w->args->ops) {
        struct poly *p = product(w);
        unsigned at = p->name % KEPT;

        poly_free(w, kept[at]);
        kept[at] = p;
    }
    for (unsigned i = 0; i < KEPT; i++)
        poly_free(w, kept[i]);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    power[0] = 1;
    for (unsigned i = 1; i < 2 * DEGREE; i++)
        power[i] = (uint32_t)((uint64_t)power[i - 1] * 16807 % PRIME);
    bench_spread(workers, args->threads, work);
}
