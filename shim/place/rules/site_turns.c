/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/site_turns.h"

static uint64_t load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void store(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

void site_turn_begin(struct site_turn *t, uint64_t now)
{
    uint64_t since = load(&t->since);

    store(&t->period, since > 0 && now > since ? now - since : 0);
    store(&t->since, now);
}

void site_turn_end(struct site_turn *t, uint64_t now)
{
    uint64_t since = load(&t->since);

    /* Nothing else was asked for meanwhile: it has ended all the same. */
    store(&t->length, now > since ? now - since : 1);
}

bool site_turns_meet(const struct site_turn *t, const struct site_turn *other, uint64_t now)
{
    uint64_t period = load(&t->period), length = load(&other->length);

    return period == 0 || length == 0 || load(&t->since) + period <= now + length;
}

bool site_turn_comes_again(const struct site_turn *t)
{
    return load(&t->period) > 0;
}

bool site_turn_pays(uint64_t n, uint64_t left, uint64_t kept, double saves, double kept_saves)
{
    uint64_t takes = HY_MIN(n, left), free = left > kept ? left - kept : 0;
    uint64_t taken_away = takes > free ? takes - free : 0;
    return takes > 0 && saves * (double)takes > kept_saves * (double)taken_away;
}

uint64_t site_turn_part(uint64_t n, uint64_t left, uint64_t kept, double saves, double kept_saves)
{
    if (saves <= 0)
        return 0;
    if (site_turn_pays(n, left, kept, saves, kept_saves))
        return n;
    return HY_MIN(n, left > kept ? left - kept : 0);
}

uint64_t site_turn_split(uint64_t n, uint64_t left, uint64_t kept, double saves, double kept_saves)
{
    uint64_t free = left > kept ? left - kept : 0;

    if (saves <= 0)
        return 0;
    return HY_MIN(n, saves > kept_saves ? left : free);
}
