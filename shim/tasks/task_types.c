/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/task_types.h"

#include <string.h>

unsigned types_of(struct task_types *t, unsigned function, const uint32_t *pages, unsigned needs)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->type[i].function == function && t->type[i].needs == needs &&
            memcmp(t->type[i].pages, pages, needs * sizeof(*pages)) == 0)
            return i;
    if (t->n == TYPES_MOST)
        return TYPE_NONE;
    struct task_type *new = &t->type[t->n];
    *new = (struct task_type){.function = (uint16_t)function, .needs = (uint8_t)needs};
    for (unsigned i = 0; i < needs; i++) {
        new->pages[i] = pages[i];
        new->all_pages += pages[i];
    }
    return t->n++;
}

bool types_hopeless(const struct task_types *t, unsigned function, double slowdown, double move_ns)
{
    bool any = false;
    for (unsigned i = 0; i < t->n; i++) {
        const struct task_type *x = &t->type[i];
        if (x->function != function)
            continue;
        any = true;
        if (!verdict_hopeless(&x->verdict, &x->fit, x->all_pages, x->uses, slowdown, move_ns))
            return false;
    }
    return any;
}
