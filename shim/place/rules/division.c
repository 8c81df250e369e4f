/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/division.h"

#include <string.h>

#include "core/rules/regret.h"
#include "place/rules/parts.h"

#define MOST_TIME 1000000u /* thousandths: nothing is a thousand times slower */
#define WHOLE     1000.0

/* Of an equal part, this part is everybody's, however little it gains by it. */
#define FLOOR_PART 8u
/* Of an equal part, nobody gives up what would cost it more of its time. */
#define LOSES REGRET_SHARE
/* What is held is worth so many times as much as what is not. */
#define HOLDS 1.25
/* Less than this part of the budget is not worth a change. */
#define STEP 64u
/* Moves shall pay in this part of the time that a program has run, as exchanges do. */
#define PAYS_IN 0.5

_Static_assert(DIVISION_MAX <= PARTS_MAX, "there is a part for each");

/* One party while DRAM is given out. */
struct filling {
    double hull[DIVISION_POINTS + 1];
    uint64_t held, bytes, given, most; /* most: of `given` */
    uint64_t right;                    /* what nobody can take from it */
    double cost;                       /* of bringing a byte, in the unit of the slopes */
    double weight;
    int rank;
    bool counted;
};

void division_hull(const uint32_t time[DIVISION_POINTS], uint32_t most,
                   double ret[DIVISION_POINTS + 1])
{
    ret[0] = HY_MAX(HY_MIN(time[0], most), WHOLE);
    for (unsigned k = 1; k < DIVISION_POINTS; k++)
        ret[k] = HY_MAX(HY_MIN((double)time[k], ret[k - 1]), WHOLE);
    ret[DIVISION_POINTS] = WHOLE;
    /* The lower hull: from each corner to that point to which it falls most steeply. */
    for (unsigned at = 0, next; at < DIVISION_POINTS; at = next) {
        double steepest = -1;
        next = at + 1;
        for (unsigned k = at + 1; k <= DIVISION_POINTS; k++) {
            double slope = (ret[at] - ret[k]) / (k - at);
            if (slope >= steepest) {
                steepest = slope;
                next = k;
            }
        }
        for (unsigned k = at + 1; k < next; k++)
            ret[k] = ret[at] - steepest * (k - at);
    }
}

void division_curve(uint32_t slowdown, const uint32_t cold[DIVISION_POINTS],
                    uint32_t ret_time[DIVISION_POINTS])
{
    double more = HY_MIN(slowdown, MOST_TIME) - WHOLE;

    for (unsigned k = 0; k < DIVISION_POINTS; k++)
        ret_time[k] =
            more > 0 ? (uint32_t)(WHOLE + more * HY_MIN(cold[k], (uint32_t)WHOLE) / WHOLE) : 0;
}

static struct filling filling_of(const struct division_party *p, uint64_t budget)
{
    double horizon = PAYS_IN * (double)p->run_ns, now = HY_MAX((double)p->now, WHOLE);
    struct filling f = {.held = HY_MIN(p->held, budget),
                        .rank = p->cls != HY_CLASS_CPU,
                        .weight = p->weight ? HY_MIN(p->weight, 10000u) / 100.0 : 1.0};

    f.bytes = HY_MIN(p->bytes, (uint64_t)1 << 48);
    f.counted = p->time[0] > WHOLE && f.bytes >= DIVISION_POINTS;
    /* DRAM that it would leave empty serves nobody. */
    f.most = f.counted ? HY_MIN(f.bytes, f.held + HY_MIN(p->takes, f.bytes)) : f.held;
    /* A byte that comes gains for as long as the program runs on; one that never ran waits. */
    f.cost = horizon > 0 ? (double)p->move_ns / HY_PAGE * now / horizon : (double)MOST_TIME;
    if (f.counted)
        division_hull(p->time, MOST_TIME, f.hull);
    return f;
}

/* What the next byte is worth, and how many are worth as much. 0: no more are wanted. */
static double next_worth(const struct filling *f, uint64_t *ret_bytes)
{
    uint64_t eighth = f->bytes / DIVISION_POINTS, k, end;
    double slope;

    *ret_bytes = 0;
    if (f->given >= f->most || f->bytes == 0)
        return 0;
    k = HY_MIN(eighth ? f->given / eighth : 0, (uint64_t)DIVISION_POINTS - 1);
    end = k == DIVISION_POINTS - 1 ? f->bytes : (k + 1) * eighth;
    slope = (f->hull[k] - f->hull[k + 1]) / (double)HY_MAX(eighth, (uint64_t)1);
    if (f->given < f->held)
        end = HY_MIN(end, f->held);
    *ret_bytes = HY_MIN(end, f->most) - f->given;
    return f->weight * (f->given < f->held ? HOLDS * slope : slope - f->cost);
}

/* Does `a` with its worth go before `b`? */
static bool goes_before(const struct filling *a, double worth_a, uint32_t id_a,
                        const struct filling *b, double worth_b, uint32_t id_b)
{
    if (a->rank != b->rank)
        return a->rank > b->rank;
    return worth_a > worth_b || (worth_a >= worth_b && id_a < id_b);
}

/* The rest of the budget, byte after byte to who gains most by the next. */
static void pour(uint64_t left, const struct division_party *p, struct filling *f, unsigned n)
{
    while (left > 0) {
        unsigned best = n;
        double best_worth = 0;
        uint64_t bytes = 0, some;
        for (unsigned i = 0; i < n; i++) {
            double worth = f[i].counted ? next_worth(&f[i], &some) : 0;
            if (worth <= 0 ||
                (best < n && !goes_before(&f[i], worth, p[i].id, &f[best], best_worth, p[best].id)))
                continue;
            best = i;
            best_worth = worth;
            bytes = some;
        }
        if (best == n || bytes == 0)
            return;
        bytes = HY_MIN(bytes, left);
        f[best].given += bytes;
        left -= bytes;
    }
}

/* The least DRAM with which it takes no longer than `time`. */
static double bytes_for(const struct filling *f, double time)
{
    unsigned k = 0;

    while (k < DIVISION_POINTS && f->hull[k + 1] > time)
        k++;
    if (k == DIVISION_POINTS || f->hull[k] <= time)
        return k * (f->bytes / (double)DIVISION_POINTS);
    return (k + (f->hull[k] - time) / (f->hull[k] - f->hull[k + 1])) *
           (f->bytes / (double)DIVISION_POINTS);
}

static double time_with(const struct filling *f, double bytes)
{
    double at = HY_MIN(bytes * DIVISION_POINTS / (double)f->bytes, (double)DIVISION_POINTS);
    unsigned k = HY_MIN((unsigned)at, DIVISION_POINTS - 1);

    return f->hull[k] - (at - k) * (f->hull[k] - f->hull[k + 1]);
}

/* What nobody can take from it by what he tells of himself. It depends on its own word alone, and
 * a weight can only make it less. */
static uint64_t entitled_to(const struct filling *f, uint64_t part)
{
    uint64_t floor = part / FLOOR_PART;
    double own = HY_MIN(f->weight, 1.0) * (double)part;

    /* Not of what it holds now: it would lose as much again in each round. */
    if (f->rank > 0)
        floor = HY_MAX(floor, (uint64_t)HY_MIN(own, bytes_for(f, time_with(f, own) * (1 + LOSES))));
    return floor;
}

/* What everybody has before anything is weighed. Who counts nothing keeps what it holds; of the
 * CPU-bound, Algorithm 1 asks for it (placement.h). */
static uint64_t give_floors(uint64_t budget, const struct division_party *p, struct filling *f,
                            unsigned n)
{
    struct part_party party[DIVISION_MAX] = {{0}};
    uint64_t left = budget, part[DIVISION_MAX];

    for (unsigned i = 0; i < n; i++)
        party[i] = (struct part_party){p[i].group, f[i].counted ? f[i].bytes : f[i].held};
    parts_find(budget, party, n, part);
    for (int counted = 1; counted >= 0; counted--)
        for (unsigned i = 0; i < n; i++) {
            if (f[i].counted != (counted != 0))
                continue;
            f[i].right = counted ? entitled_to(&f[i], part[i]) : 0;
            f[i].given = HY_MIN(counted ? HY_MIN(f[i].right, f[i].held) : f[i].held, left);
            left -= f[i].given;
        }
    return left;
}

/* Others have it, or it is free: then nobody need be asked. */
static void settle(uint64_t budget, const struct filling *f, unsigned n, struct division *ret)
{
    uint64_t held = 0, spare = 0, lacking = 0;

    for (unsigned i = 0; i < n; i++) {
        ret->share[i] = f[i].given;
        ret->right[i] = f[i].right;
        ret->lack[i] = f[i].given - HY_MIN(f[i].held, f[i].given);
        ret->ask[i] = f[i].counted ? f[i].held - HY_MIN(f[i].held, f[i].given) : 0;
        held += f[i].held;
        spare += ret->ask[i];
        lacking += ret->lack[i];
    }
    uint64_t free = budget - HY_MIN(held, budget);
    uint64_t wanted = lacking - HY_MIN(free, lacking);
    bool little = lacking < budget / STEP;
    for (unsigned i = 0; i < n; i++) {
        double part = spare ? (double)HY_MIN(wanted, spare) / (double)spare : 0;
        ret->ask[i] = little ? 0 : HY_MIN((uint64_t)((double)ret->ask[i] * part), ret->ask[i]);
        ret->lack[i] = little ? 0 : ret->lack[i];
    }
    ret->lacking = little ? 0 : lacking;
}

void division_make(uint64_t budget, const struct division_party *p, unsigned n,
                   struct division *ret)
{
    struct filling f[DIVISION_MAX];

    memset(ret, 0, sizeof(*ret));
    n = HY_MIN(n, DIVISION_MAX);
    budget = HY_MIN(budget, (uint64_t)1 << 48);
    if (n < 2) {
        ret->share[0] = n ? budget : 0;
        return;
    }
    for (unsigned i = 0; i < n; i++)
        f[i] = filling_of(&p[i], budget);
    pour(give_floors(budget, p, f, n), p, f, n);
    settle(budget, f, n, ret);
}

uint64_t division_most(const struct division *d, const struct division_party *p, unsigned i)
{
    if (d->lacking <= d->lack[i] || p[i].time[0] <= WHOLE)
        return UINT64_MAX;
    return HY_MAX(HY_MAX(d->share[i], d->right[i]), p[i].held - HY_MIN(d->ask[i], p[i].held));
}
