/* SPDX-License-Identifier: BSD-2-Clause */
#include "parts.h"

#include <string.h>

#define FEW 16 /* sorted by insertion */

static uint64_t noted;

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t t = *a;

    *a = *b;
    *b = t;
}

static void insert(uint64_t *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t x = v[i];
        size_t k = i;

        for (; k > 0 && v[k - 1] > x; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

void parts_sort(uint64_t *v, size_t n)
{
    while (n > FEW) {
        uint64_t a = v[0], b = v[n / 2], c = v[n - 1];
        uint64_t low = a < b ? a : b, high = a < b ? b : a, pivot = c < low ? low : c;
        size_t i = 0, k = n - 1;

        pivot = pivot > high ? high : pivot; /* the median of three */
        for (;; i++, k--) {
            while (v[i] < pivot)
                i++;
            while (v[k] > pivot)
                k--;
            if (i >= k)
                break;
            swap(&v[i], &v[k]);
        }
        parts_sort(v, k + 1 - (i > k ? 0 : 1));
        v += i;
        n -= i;
    }
    insert(v, n);
}

bool parts_sorted(const struct wl *w, const uint64_t *key, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (i > 0 && key[i - 1] >= key[i])
            return false;
        sum += key[i] - parts_key(w, i);
    }
    return sum == 0;
}

void *parts_more(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);

    if (!p)
        wl_fail("out of memory");
    return p;
}

/* Four corners with chances 57, 19, 19 and 5 of 100, once for each bit. */
static void edge(const struct wl *w, unsigned bits, uint64_t e, uint32_t *from, uint32_t *to)
{
    uint64_t state = wl_hash(w->seed, e);

    *from = *to = 0;
    for (unsigned i = 0; i < bits; i++) {
        uint64_t r = wl_below(wl_next(&state), 100);

        *from = *from << 1 | (r >= 76);
        *to = *to << 1 | ((r >= 57 && r < 76) || r >= 95);
    }
}

void parts_graph(struct parts_graph *g, const struct wl *w, size_t extra)
{
    unsigned bits = 8;
    uint64_t edges, sum = 0;
    uint32_t a, b;

    while ((2 * PARTS_DEGREE * sizeof(*g->end) / 2 + sizeof(*g->start) + extra) << (bits + 1) <=
           w->bytes)
        bits++;
    g->n = 1u << bits;
    edges = (uint64_t)g->n * PARTS_DEGREE / 2;
    g->start = wl_new((size_t)g->n + 1, sizeof(*g->start));
    g->end = wl_new(2 * edges, sizeof(*g->end));
    memset(g->start, 0, ((size_t)g->n + 1) * sizeof(*g->start));
    for (uint64_t e = 0; e < edges; e++) {
        edge(w, bits, e, &a, &b);
        g->start[a]++;
        g->start[b]++;
    }
    for (size_t v = 0; v <= g->n; v++)
        g->start[v] = sum += g->start[v];
    for (uint64_t e = edges; e-- > 0;) { /* each start moves down to where its row begins */
        edge(w, bits, e, &a, &b);
        g->end[--g->start[a]] = b;
        g->end[--g->start[b]] = a;
    }
}

static uint64_t sum_of(const void *words, size_t lo, size_t hi)
{
    uint64_t sum = 0, word;

    for (size_t i = lo; i < hi; i++) {
        memcpy(&word, (const char *)words + i * sizeof(word), sizeof(word));
        sum += wl_hash(word, i);
    }
    return sum;
}

void parts_note(const struct wl *w, const void *words, size_t n, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    __atomic_fetch_add(&noted, sum_of(words, lo, hi), __ATOMIC_RELAXED);
}

bool parts_noted(const void *words, size_t n)
{
    return sum_of(words, 0, n) == noted;
}
