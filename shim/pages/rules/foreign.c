/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/foreign.h"

#include <string.h>

#define WAYS 4u /* of the table */

#define FIRST_REST   4u /* passes; doubles with each strike */
#define MOST_STRIKES 7u
#define FORGIVING    16u /* passes */

#define UNIT           8u /* what is moved counts an eighth less in each pass */
#define UNDONE_PERCENT 25u
#define UNDONE_LEAST   32u /* pages: fewer are no quarrel */
#define FIRST_PAUSE    4u
#define LONGEST_PAUSE  64u
#define CALM_PASSES    16u /* with moves and no quarrel: the next one is a first one again */

#define COST_SHARE  8u /* asking takes this part of what looking and moving may */
#define LEAST_ASKED 512u

void foreign_init(struct foreign *o)
{
    memset(o, 0, sizeof(*o));
    o->next_pause = FIRST_PAUSE;
}

void foreign_pass(struct foreign *o)
{
    o->pass++;
    o->forgiving -= o->forgiving > 0;
    o->pause -= o->pause > 0;
    o->moved -= (o->moved + UNIT - 1) / UNIT;
    o->undone -= (o->undone + UNIT - 1) / UNIT;
}

void foreign_forked(struct foreign *o)
{
    o->forgiving = FORGIVING;
}

/* --- spots ------------------------------------------------------------------------------ */

static struct foreign_spot *set_of(struct foreign *o, uint64_t number)
{
    uint64_t hash = number * 0x9e3779b97f4a7c15u;
    return &o->spot[(hash >> 32) % (OTHERS_SPOTS / WAYS) * WAYS];
}

static struct foreign_spot *find(struct foreign *o, uint64_t number)
{
    struct foreign_spot *s = set_of(o, number);
    for (unsigned i = 0; i < WAYS; i++)
        if (s[i].number == number)
            return &s[i];
    return NULL;
}

/* Who has been quarrelled over least is forgotten first, then who has been calm for longest. */
static bool worse(const struct foreign_spot *a, const struct foreign_spot *b)
{
    if (!a->number || !b->number)
        return !a->number && b->number;
    return a->strikes != b->strikes ? a->strikes < b->strikes : a->until < b->until;
}

static struct foreign_spot *spot_for(struct foreign *o, uint64_t number)
{
    struct foreign_spot *s = set_of(o, number), *least = s;
    for (unsigned i = 1; i < WAYS; i++)
        if (worse(&s[i], least))
            least = &s[i];
    *least = (struct foreign_spot){.number = number};
    return least;
}

static uint32_t rest_of(const struct foreign_spot *s)
{
    return FIRST_REST << s->strikes;
}

/* Was it we who moved this spot last? */
static bool note(struct foreign *o, uint64_t number, bool home)
{
    struct foreign_spot *s = find(o, number);
    if (s && s->seen == o->pass) /* other pages of it */
        return s->undone;
    bool undone = s ? s->ours : home;
    if (!s)
        s = spot_for(o, number);
    else if (o->pass > s->until && o->pass - s->until > rest_of(s))
        s->strikes = 0; /* calm for as long again as it has rested */
    s->strikes += undone && s->strikes < MOST_STRIKES;
    s->seen = o->pass;
    s->until = o->pass + rest_of(s) - 1;
    s->undone = undone;
    s->ours = false;
    return undone;
}

void foreign_ours(struct foreign *o, uint64_t first, uint64_t pages)
{
    o->moved += pages * UNIT;
    for (uint64_t n = first / FOREIGN_SPOT; pages > 0 && n <= (first + pages - 1) / FOREIGN_SPOT;
         n++) {
        struct foreign_spot *s = find(o, n);
        if (s)
            s->ours = true;
    }
}

uint64_t foreign_found(struct foreign *o, uint64_t first, uint64_t pages, bool home)
{
    uint64_t undone = 0;
    if (home && o->forgiving > 0)
        return 0;
    while (pages > 0) {
        uint64_t n = HY_MIN(pages, FOREIGN_SPOT - first % FOREIGN_SPOT);
        undone += note(o, first / FOREIGN_SPOT, home) ? n : 0;
        first += n;
        pages -= n;
    }
    o->undone += undone * UNIT;
    return undone;
}

bool foreign_resting(const struct foreign *o, unsigned *at, uint64_t *ret_first)
{
    for (; *at < OTHERS_SPOTS; ++*at) {
        const struct foreign_spot *s = &o->spot[*at];
        if (s->number == 0 || s->until < o->pass)
            continue;
        *ret_first = s->number * FOREIGN_SPOT;
        ++*at;
        return true;
    }
    return false;
}

unsigned foreign_pause(struct foreign *o)
{
    if (o->pause > 0) {
        o->moved = o->undone = 0; /* found late, a slice at a time: it is the same quarrel */
        return 0;
    }
    if (o->undone < UNDONE_LEAST * UNIT || o->undone * 100 < o->moved * UNDONE_PERCENT) {
        o->calm += o->moved > 0;
        if (o->calm >= CALM_PASSES)
            o->next_pause = FIRST_PAUSE;
        return 0;
    }
    o->pause = o->next_pause;
    o->next_pause = HY_MIN(o->next_pause * 2, LONGEST_PAUSE);
    o->moved = o->undone = 0;
    o->calm = 0;
    return o->pause;
}

/* --- asking ------------------------------------------------------------------------------ */

uint64_t others_budget(uint64_t interval_ns, unsigned core_permille, uint64_t page_ns)
{
    uint64_t n = interval_ns / 1000 * core_permille / COST_SHARE / HY_MAX(page_ns, (uint64_t)1);
    return HY_MIN(HY_MAX(n, (uint64_t)LEAST_ASKED), (uint64_t)OTHERS_MOST);
}

uint32_t foreign_step(uint64_t pages, uint64_t budget)
{
    uint32_t step = 1;
    while (step < FOREIGN_SPOT && pages / step > budget)
        step *= 2;
    return step;
}
