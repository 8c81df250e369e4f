/* SPDX-License-Identifier: BSD-2-Clause
 * Algorithm 1 over a snapshot (papers/004, section III-B; DIGEST 004). */
#include "place/rules/placement.h"

#include <string.h>

#include "core/rules/regret.h"
#include "place/rules/parts.h"

/* Moves shall pay in this part of the time that a program has run, as exchanges do. */
#define PAYS_IN 0.5

_Static_assert(PLACE_MAX_APPS <= PARTS_MAX, "there is a part for each");

/* Products of two byte counts do not fit 64 bits. */
__extension__ typedef unsigned __int128 wide;

static uint64_t add_sat(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t sub_sat(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static unsigned n_apps(const struct place_machine *m)
{
    return HY_MIN(m->n_apps, PLACE_MAX_APPS);
}

/* Who goes first when DRAM is short. Nothing is known of UNKNOWN, so it takes
 * what nobody waits for, as a CPU-bound program does, but it is never asked. */
static int rank_of(enum hy_class cls)
{
    switch (cls) {
    case HY_CLASS_BANDWIDTH:
        return 2;
    case HY_CLASS_LATENCY:
        return 1;
    default:
        return 0;
    }
}

/* Does `a` go before `b`, both of which wish? Less than one writer is not many. */
static bool before(const struct place_app *a, const struct place_app *b)
{
    int ra = rank_of(a->cls), rb = rank_of(b->cls);

    if (ra != rb)
        return ra > rb;
    return ra > 0 && a->writers >= 1000 && a->writers / 2 > b->writers;
}

uint64_t placement_ahead(const struct place_machine *m, unsigned self)
{
    static const struct place_app nobody = {.cls = HY_CLASS_UNKNOWN};
    const struct place_app *own = self < n_apps(m) ? &m->app[self] : &nobody;
    uint64_t sum = 0;

    for (unsigned i = 0; i < n_apps(m); i++)
        if (i != self && rank_of(m->app[i].cls) > 0 && before(&m->app[i], own))
            sum = add_sat(sum, m->app[i].wish_bytes);
    return sum;
}

/* What wishes of others leave app[self] nothing of: all but those that it goes before. */
static uint64_t wishes_not_behind(const struct place_machine *m, unsigned self)
{
    int rank = rank_of(m->app[self].cls);
    uint64_t sum = 0;

    for (unsigned i = 0; i < n_apps(m); i++)
        if (i != self && rank_of(m->app[i].cls) >= rank && !before(&m->app[self], &m->app[i]))
            sum = add_sat(sum, m->app[i].wish_bytes);
    return sum;
}

/* Nobody wishes for more than lies on PM, so who does has more there than it tells. */
static uint64_t data_of(const struct place_app *a)
{
    return add_sat(a->dram_bytes, HY_MAX(a->pm_bytes, a->wish_bytes));
}

/* The part of its time that a page on DRAM saves, on average. */
static double saved_by_page(const struct place_app *a)
{
    double pages = (double)data_of(a) / HY_PAGE;

    return pages > 0 ? (HY_MAX(a->slowdown, 1000u) / 1000.0 - 1) / pages : 0;
}

/* Does what `wisher` gains by a page of `holder` pay what both lose by it? One moves a page of its
 * own up; the other one down, and up again when it may. */
static bool pays(const struct place_app *wisher, const struct place_app *holder)
{
    double gains = saved_by_page(wisher) - saved_by_page(holder);
    double costs = (double)wisher->move_ns / 2 + (double)holder->move_ns;

    if (wisher->slowdown == 0 || holder->slowdown == 0 || wisher->run_ns == 0)
        return true; /* the classes are all that is known */
    return gains * PAYS_IN * (double)wisher->run_ns > costs;
}

static uint64_t wishes_that_pay(const struct place_machine *m, const struct place_app *holder)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n_apps(m); i++)
        if (rank_of(m->app[i].cls) > 0 && pays(&m->app[i], holder))
            sum = add_sat(sum, m->app[i].wish_bytes);
    return sum;
}

/* Of its equal part, what would cost it more than it may lose by what others tell. One of which
 * only the class is known keeps nothing. */
static uint64_t kept_by(const struct place_app *a, uint64_t part)
{
    double loses = a->slowdown / 1000.0 - 1, data = (double)data_of(a);

    if (loses <= 0 || data <= 0)
        return 0;
    double own = HY_MIN((double)part, data), time = 1 + loses * (1 - own / data);
    double may_go = REGRET_SHARE * time / loses * data;
    return (uint64_t)HY_MAX(own - may_go, 0.0);
}

/* What each may have to give up: others get none but of the CPU-bound. */
struct givers {
    uint64_t bytes[PLACE_MAX_APPS];
};

static void givers_find(const struct place_machine *m, struct givers *ret)
{
    struct part_party party[PLACE_MAX_APPS] = {{0}};
    uint64_t part[PLACE_MAX_APPS];
    unsigned n = n_apps(m);

    memset(ret->bytes, 0, n * sizeof(ret->bytes[0]));
    for (unsigned i = 0; i < n; i++)
        party[i] = (struct part_party){m->app[i].group, data_of(&m->app[i])};
    parts_find(m->dram_budget, party, n, part);
    for (unsigned i = 0; i < n; i++)
        if (m->app[i].cls == HY_CLASS_CPU)
            ret->bytes[i] = sub_sat(m->app[i].dram_bytes, kept_by(&m->app[i], part[i]));
}

static uint64_t held_by_cpu_bound(const struct place_machine *m, const struct place_app *wisher)
{
    struct givers g;
    uint64_t sum = 0;

    givers_find(m, &g);
    for (unsigned i = 0; i < n_apps(m); i++)
        if (g.bytes[i] > 0 && pays(wisher, &m->app[i]))
            sum = add_sat(sum, g.bytes[i]);
    return sum;
}

static uint64_t free_dram(const struct place_machine *m)
{
    uint64_t used = 0;

    for (unsigned i = 0; i < n_apps(m); i++)
        used = add_sat(used, m->app[i].dram_bytes);
    return sub_sat(m->dram_budget, used);
}

uint64_t placement_free(const struct place_machine *m, unsigned self)
{
    return sub_sat(free_dram(m), placement_ahead(m, self));
}

uint64_t placement_share(const struct place_machine *m, unsigned self, uint64_t asked)
{
    uint64_t held = self < n_apps(m) ? m->app[self].dram_bytes : 0;

    return add_sat(sub_sat(held, asked), placement_free(m, self));
}

struct place_decision placement_decide(const struct place_machine *m, unsigned self, uint64_t bytes)
{
    struct place_decision d = {.tier = HY_PM, .wish_bytes = 0};
    int rank = self < n_apps(m) ? rank_of(m->app[self].cls) : 0;

    /* What a more sensitive program waits for is not free: otherwise the next
     * malloc of the program that gave it up would take it back. */
    if (bytes <= placement_free(m, self)) {
        d.tier = HY_DRAM;
        return d;
    }
    /* Wishes already made, ours included, have their share of what can be given
     * up; without this a stream of small requests would wish without limit. */
    if (rank > 0 && bytes <= sub_sat(held_by_cpu_bound(m, &m->app[self]),
                                     add_sat(wishes_not_behind(m, self), m->app[self].wish_bytes)))
        d.wish_bytes = bytes;
    return d;
}

uint64_t placement_wish(const struct place_machine *m, unsigned self, uint64_t bytes)
{
    int rank = self < n_apps(m) ? rank_of(m->app[self].cls) : 0;

    if (rank == 0)
        return 0;
    return HY_MIN(bytes, sub_sat(held_by_cpu_bound(m, &m->app[self]), wishes_not_behind(m, self)));
}

bool placement_may_ask(const struct place_machine *m, unsigned self)
{
    return self < n_apps(m) && rank_of(m->app[self].cls) > 0;
}

uint64_t placement_asked_of(const struct place_machine *m, unsigned self, uint64_t free)
{
    uint64_t held = 0, asked, before = 0;
    struct givers g;

    if (self >= n_apps(m) || m->app[self].cls != HY_CLASS_CPU)
        return 0;
    givers_find(m, &g);
    for (unsigned i = 0; i < n_apps(m); i++)
        held = add_sat(held, g.bytes[i]);
    if (held == 0)
        return 0;
    free = HY_MIN(free, free_dram(m));
    asked = HY_MIN(sub_sat(wishes_that_pay(m, &m->app[self]), free), held);
    for (unsigned i = 0; i < self; i++)
        before = add_sat(before, g.bytes[i]);
    /* Differences of rounded running sums: the shares add up to `asked` exactly
     * and none exceeds what its holder has. */
    return (uint64_t)((wide)asked * add_sat(before, g.bytes[self]) / held -
                      (wide)asked * before / held);
}
