/* SPDX-License-Identifier: BSD-2-Clause */
#include "decide/site_turns.h"

void site_turn_begin(struct site_turn *t, uint64_t now)
{
    t->period = t->since > 0 && now > t->since ? now - t->since : 0;
    t->since = now;
}

void site_turn_end(struct site_turn *t, uint64_t now)
{
    /* Nothing else was asked for meanwhile: it has ended all the same. */
    t->length = now > t->since ? now - t->since : 1;
}

bool site_turns_meet(const struct site_turn *t, const struct site_turn *other, uint64_t now)
{
    if (t->period == 0 || other->length == 0)
        return true;
    return t->since + t->period <= now + other->length;
}

bool site_turn_pays(uint64_t n, uint64_t left, uint64_t kept, double saves, double kept_saves)
{
    uint64_t takes = HY_MIN(n, left), free = left > kept ? left - kept : 0;
    uint64_t taken_away = takes > free ? takes - free : 0;
    return takes > 0 && saves * (double)takes > kept_saves * (double)taken_away;
}
