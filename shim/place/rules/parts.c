/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/parts.h"

#include <stdbool.h>
#include <string.h>

struct pool {
    unsigned n;
    uint64_t need[PARTS_MAX], part[PARTS_MAX];
};

/* Who needs no more than an equal part of what is left has it, until nobody does. The others get
 * such a part, and so does everybody if all are served: what is left over is lost to nobody. */
static void fill(uint64_t budget, struct pool *f)
{
    bool served[PARTS_MAX] = {false};
    unsigned open = f->n;
    bool again = true;

    while (open > 0 && again) {
        uint64_t part = budget / open;
        again = false;
        for (unsigned i = 0; i < f->n; i++) {
            if (served[i] || f->need[i] > part)
                continue;
            served[i] = again = true;
            f->part[i] = f->need[i];
            budget -= f->need[i];
            open--;
        }
    }
    for (unsigned i = 0; i < f->n; i++)
        f->part[i] = served[i] ? f->part[i] : budget / open;
}

static uint64_t add_sat(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void parts_find(uint64_t budget, const struct part_party *p, unsigned n, uint64_t *ret)
{
    static const unsigned none = PARTS_MAX;
    unsigned first[PARTS_MAX], group[PARTS_MAX];
    struct pool all = {.n = 0};

    n = HY_MIN(n, PARTS_MAX);
    for (unsigned i = 0; i < n; i++) {
        group[i] = none;
        for (unsigned g = 0; p[i].group != 0 && g < all.n && group[i] == none; g++)
            if (p[first[g]].group == p[i].group)
                group[i] = g;
        if (group[i] == none) {
            group[i] = all.n++;
            first[group[i]] = i;
            all.need[group[i]] = 0;
        }
        all.need[group[i]] = add_sat(all.need[group[i]], p[i].bytes);
    }
    fill(budget, &all);
    for (unsigned g = 0; g < all.n; g++) {
        struct pool own = {.n = 0};
        for (unsigned i = first[g]; i < n; i++)
            if (group[i] == g)
                own.need[own.n++] = p[i].bytes;
        fill(all.part[g], &own);
        for (unsigned i = first[g], k = 0; i < n; i++)
            if (group[i] == g)
                ret[i] = own.part[k++];
    }
}
