/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/rules/stage_plan.h"

#include <string.h>

static void share_evenly(const struct stage_task *task, unsigned n, uint32_t room,
                         uint32_t *ret_pages)
{
    for (unsigned i = 0; i < n; i++) { /* what one does not need is the others' */
        ret_pages[i] = HY_MIN(task[i].pages, room / (n - i));
        room -= ret_pages[i];
    }
}

static void fill(const struct stage_task *task, unsigned n, uint32_t room, uint32_t *ret_pages)
{
    for (unsigned i = 0; i < n; i++) {
        ret_pages[i] = HY_MIN(task[i].pages, room);
        room -= ret_pages[i];
    }
}

static double time_of(const struct stage_task *t, uint32_t pages)
{
    double share = t->pages ? HY_MIN((double)pages / t->pages, 1.0) : 1;
    return t->pm_ns - t->saving * share;
}

/* longest[s]: the shortest longest time of the tasks so far with s steps of the room. */
static void share_by_times(const struct stage_task *task, unsigned n, uint32_t room,
                           uint32_t *ret_pages)
{
    double longest[STAGE_STEPS + 1] = {0}, next[STAGE_STEPS + 1];
    uint8_t took[STAGE_TASKS][STAGE_STEPS + 1];
    for (unsigned i = 0; i < n; i++) {
        for (unsigned s = 0; s <= STAGE_STEPS; s++) {
            next[s] = -1;
            for (unsigned k = 0; k <= s; k++) {
                uint32_t pages = (uint32_t)((uint64_t)room * k / STAGE_STEPS);
                double t = HY_MAX(longest[s - k], time_of(&task[i], pages));
                if (next[s] < 0 || t < next[s]) {
                    next[s] = t;
                    took[i][s] = (uint8_t)k;
                }
            }
        }
        memcpy(longest, next, sizeof(longest));
    }
    unsigned left = STAGE_STEPS;
    for (unsigned i = n; i-- > 0;) {
        unsigned k = took[i][left];
        ret_pages[i] = HY_MIN(task[i].pages, (uint32_t)((uint64_t)room * k / STAGE_STEPS));
        left -= k;
    }
}

void stage_share(const struct stage_task *task, unsigned n, uint32_t room, bool many,
                 uint32_t *ret_pages)
{
    bool alike = true;
    uint64_t all = 0;
    n = HY_MIN(n, STAGE_TASKS);
    for (unsigned i = 0; i < n; i++) {
        alike &= task[i].type == task[0].type;
        all += task[i].pages;
    }
    if (many)
        fill(task, n, room, ret_pages);
    else if (alike || all <= room)
        share_evenly(task, n, (uint32_t)HY_MAX((uint64_t)room, all <= room ? all : 0), ret_pages);
    else
        share_by_times(task, n, room, ret_pages);
}

double stage_ns(uint32_t pages, const struct stage_cost *c)
{
    return pages * c->move_ns * (c->evicts ? 2 : 1);
}

bool stage_pays(const struct stage_task *t, uint32_t pages, uint32_t of, double uses,
                const struct stage_cost *c)
{
    if (pages == 0 || of == 0)
        return false;
    return t->saving * pages / of * uses > stage_ns(pages, c);
}

double stage_left(double late_ns, double whole_ns)
{
    if (late_ns <= 0)
        return 1;
    return late_ns < whole_ns ? 1 - late_ns / whole_ns : 0;
}

double stage_starts_ns(unsigned i, unsigned workers, double mean_ns)
{
    return (i + 1) * mean_ns / HY_MAX(workers, 1u);
}
