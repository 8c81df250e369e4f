/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/rules/shadow.h"

#include <string.h>

#define FORGET 64 /* tasks */

static void leave(struct shadow *s, struct shadow_task *t)
{
    s->running -= t->state == SHADOW_RUNS;
    s->waiting -= t->state == SHADOW_WAITS;
    t->state = SHADOW_NONE;
}

static void set_state(struct shadow *s, struct shadow_task *t, enum shadow_state state)
{
    leave(s, t);
    t->state = (uint8_t)state;
    s->running += state == SHADOW_RUNS;
    s->waiting += state == SHADOW_WAITS;
}

struct shadow_task *shadow_find(struct shadow *s, uint64_t id)
{
    struct shadow_task *t = &s->task[id % SHADOW_TASKS];
    return t->state != SHADOW_NONE && t->id == id ? t : NULL;
}

/* The place of this task; an older one in it is one whose end was not told. NULL: it is too old. */
static struct shadow_task *slot_for(struct shadow *s, uint64_t id)
{
    struct shadow_task *t = &s->task[id % SHADOW_TASKS];
    if (t->state != SHADOW_NONE && t->id == id)
        return t;
    if (id + SHADOW_TASKS <= s->newest || (t->state != SHADOW_NONE && t->id > id))
        return NULL;
    leave(s, t);
    *t = (struct shadow_task){.id = id};
    s->first = HY_MIN(s->first, id);
    s->newest = HY_MAX(s->newest, id);
    return t;
}

static void release(struct shadow *s, const struct shadow_task *t, bool released)
{
    for (unsigned i = 0; i < t->needs; i++)
        s->released[t->need[i].object] = released;
}

void shadow_made(struct shadow *s, uint64_t id, unsigned function, const struct shadow_need *need,
                 unsigned n)
{
    struct shadow_task *t = slot_for(s, id);
    if (!t || t->created)
        return;
    if (t->state == SHADOW_DONE) { /* it has ended already */
        leave(s, t);
        return;
    }
    t->created = true;
    t->function = (uint16_t)function;
    t->needs = (uint8_t)HY_MIN(n, SHADOW_NEEDS);
    memcpy(t->need, need, t->needs * sizeof(*need));
    if (t->state == SHADOW_NONE)
        set_state(s, t, SHADOW_WAITS);
    else
        release(s, t, false);
}

/* Which orders have foreseen it? */
static void compare(struct shadow *s, uint64_t id)
{
    for (unsigned o = 0; o < SHADOW_ORDERS; o++) {
        s->right[o] *= 1 - 1.0 / FORGET;
        for (unsigned i = 0; i < s->n_foreseen[o]; i++)
            s->right[o] += s->foreseen[o][i] == id;
    }
}

void shadow_began(struct shadow *s, uint64_t id, uint64_t ns)
{
    struct shadow_task *t = slot_for(s, id);
    if (!t || t->state == SHADOW_DONE)
        return;
    if (t->state == SHADOW_WAITS)
        compare(s, id);
    t->began = ns;
    release(s, t, false);
    set_state(s, t, SHADOW_RUNS);
}

bool shadow_ended(struct shadow *s, uint64_t id, struct shadow_task *ret)
{
    struct shadow_task *t = slot_for(s, id);
    if (!t)
        return false;
    *ret = *t;
    if (!t->created) {
        set_state(s, t, SHADOW_DONE);
        return false;
    }
    leave(s, t);
    release(s, t, true);
    return ret->state == SHADOW_RUNS;
}

void shadow_lost(struct shadow *s)
{
    for (unsigned i = 0; i < SHADOW_TASKS; i++)
        if (s->task[i].state == SHADOW_RUNS)
            leave(s, &s->task[i]);
}

/* One more than the latest of those that it waits for: who reads waits for who writes, who writes
 * waits for all. */
static uint8_t level_of(struct shadow *s, const struct shadow_task *t)
{
    uint8_t level = 1;
    for (unsigned i = 0; i < t->needs && t->state == SHADOW_WAITS; i++) {
        unsigned o = t->need[i].object;
        unsigned before = t->need[i].writes ? HY_MAX(s->wrote[o], s->used[o]) : s->wrote[o];
        level = (uint8_t)HY_MAX(level, HY_MIN(before + 1, SHADOW_LEVELS));
    }
    for (unsigned i = 0; i < t->needs; i++) {
        uint8_t *last = t->need[i].writes ? s->wrote : s->used;
        last += t->need[i].object;
        *last = HY_MAX(*last, level);
    }
    return level;
}

static bool there(const struct shadow *s, uint64_t id)
{
    const struct shadow_task *t = &s->task[id % SHADOW_TASKS];
    return t->id == id && (t->state == SHADOW_WAITS || t->state == SHADOW_RUNS);
}

/* The oldest that are there, with their levels. */
static void look(struct shadow *s)
{
    unsigned n = 0;
    uint64_t oldest = s->newest >= SHADOW_TASKS ? s->newest - SHADOW_TASKS + 1 : 1;
    s->first = HY_MAX(s->first, oldest);
    while (s->first < s->newest && !there(s, s->first))
        s->first++;
    memset(s->wrote, 0, sizeof(s->wrote));
    memset(s->used, 0, sizeof(s->used));
    memset(s->runs, 0, sizeof(s->runs));
    for (uint64_t id = s->first; id <= s->newest && n < SHADOW_LOOK; id++)
        if (there(s, id)) {
            s->level[n] = level_of(s, &s->task[id % SHADOW_TASKS]);
            s->look[n++] = id;
        }
    s->looked = n;
    for (unsigned i = 0; i < n; i++) {
        const struct shadow_task *t = &s->task[s->look[i] % SHADOW_TASKS];
        for (unsigned k = 0; k < t->needs && t->state == SHADOW_RUNS; k++)
            s->runs[t->need[k].object] = 1;
    }
}

/* Is one that runs or has just ended among those that it waits for, or these wait for? */
static bool follows(const struct shadow *s, const struct shadow_task *t)
{
    bool any = false;
    for (unsigned k = 0; k < t->needs; k++)
        any |= s->runs[t->need[k].object] || s->released[t->need[k].object];
    return any;
}

static void foresee(struct shadow *s, enum shadow_order o, unsigned k)
{
    unsigned n = 0, first = o == SHADOW_FOLLOWS ? 0 : SHADOW_LEVELS;
    for (unsigned step = first; step < 2 * SHADOW_LEVELS && n < k; step++)
        for (unsigned i = 0; i < s->looked && n < k; i++) {
            const struct shadow_task *t = &s->task[s->look[i] % SHADOW_TASKS];
            bool late = o == SHADOW_OLDEST || !follows(s, t);
            if (t->state == SHADOW_WAITS && step == s->level[i] - 1u + (late ? SHADOW_LEVELS : 0))
                s->foreseen[o][n++] = t->id;
        }
    s->n_foreseen[o] = n;
}

unsigned shadow_next(struct shadow *s, uint64_t *ret_ids, unsigned k)
{
    enum shadow_order o = s->right[SHADOW_FOLLOWS] > s->right[SHADOW_OLDEST];
    if (s->waiting + s->running > 0)
        look(s);
    k = HY_MIN(HY_MIN(k, SHADOW_NEXT), s->waiting);
    for (unsigned i = 0; i < SHADOW_ORDERS; i++)
        foresee(s, (enum shadow_order)i, k);
    memcpy(ret_ids, s->foreseen[o], s->n_foreseen[o] * sizeof(*ret_ids));
    return s->n_foreseen[o];
}
