/* SPDX-License-Identifier: BSD-2-Clause
 * Turns on shared CPUs. See cpus.h. */
#include "machine/cpus.h"

#include <errno.h>
#include <stdlib.h>

#define BIT(i) ((uint64_t)1 << ((unsigned)(i) % 64))

static bool may_use(const struct emu_cpu_user *u, int cpu)
{
    return atomic_load_explicit(&u->allowed[cpu / 64], memory_order_relaxed) & BIT(cpu);
}

void emu_cpuset_fill(struct emu_cpuset *s, int cpus)
{
    *s = (struct emu_cpuset){0};
    for (int i = 0; i < cpus; i++)
        s->bits[i / 64] |= BIT(i);
}

int emu_cpuset_count(const struct emu_cpuset *s)
{
    int n = 0;
    for (int i = 0; i < EMU_CPUS_WORDS; i++)
        n += __builtin_popcountll(s->bits[i]);
    return n;
}

/* A number below 2^20; NULL: none here. */
static const char *number(const char *s, int *ret)
{
    int v = 0;
    if (*s < '0' || *s > '9')
        return NULL;
    for (; *s >= '0' && *s <= '9'; s++)
        if ((v = v * 10 + *s - '0') >= 1 << 20)
            return NULL;
    *ret = v;
    return s;
}

int emu_cpuset_parse(const char *text, int cpus, struct emu_cpuset *ret)
{
    struct emu_cpuset set = {0};
    const char *s = text;

    for (;;) {
        int from, to;
        s = number(s, &from);
        if (!s)
            return -EINVAL;
        to = from;
        if (*s == '-' && !(s = number(s + 1, &to)))
            return -EINVAL;
        if (to < from)
            return -EINVAL;
        for (int i = from; i <= to && i < cpus; i++)
            set.bits[i / 64] |= BIT(i);
        if (*s == '\0')
            break;
        if (*s++ != ',')
            return -EINVAL;
    }
    if (emu_cpuset_count(&set) == 0)
        return -EINVAL;
    *ret = set;
    return 0;
}

void emu_cpus_init(struct emu_cpus *c, int count)
{
    c->count = count;
    atomic_store(&c->newcomers, 0);
    for (int i = 0; i < EMU_CPUS_MAX; i++)
        atomic_store(&c->free_at[i], 0);
}

int emu_cpus_current(const struct emu_cpus *c, const struct emu_cpu_user *u)
{
    int last = atomic_load(&u->cpu);
    for (int i = 0; i < c->count; i++)
        if (may_use(u, (last + i) % c->count))
            return (last + i) % c->count;
    return last;
}

void emu_cpus_enter(struct emu_cpus *c, struct emu_cpu_user *u, const struct emu_cpuset *allowed)
{
    for (int i = 0; i < EMU_CPUS_WORDS; i++)
        atomic_store(&u->allowed[i], allowed->bits[i]);
    u->until = 0;
    atomic_store(&u->cpu, (int)(atomic_fetch_add(&c->newcomers, 1) % (unsigned)c->count));
    atomic_store(&u->cpu, emu_cpus_current(c, u));
}

int emu_cpus_allow(const struct emu_cpus *c, struct emu_cpu_user *u, const struct emu_cpuset *s)
{
    struct emu_cpuset all, set;

    emu_cpuset_fill(&all, c->count);
    for (int i = 0; i < EMU_CPUS_WORDS; i++)
        set.bits[i] = s->bits[i] & all.bits[i];
    if (emu_cpuset_count(&set) == 0)
        return -EINVAL;
    for (int i = 0; i < EMU_CPUS_WORDS; i++)
        atomic_store(&u->allowed[i], set.bits[i]);
    return 0;
}

void emu_cpus_allowed(const struct emu_cpu_user *u, struct emu_cpuset *ret)
{
    for (int i = 0; i < EMU_CPUS_WORDS; i++)
        ret->bits[i] = atomic_load(&u->allowed[i]);
}

/* Where a turn at `now` is best begun, and from when that CPU is free. */
static int choose(struct emu_cpus *c, const struct emu_cpu_user *u, int64_t now, int64_t *ret_free)
{
    int last = atomic_load_explicit(&u->cpu, memory_order_relaxed), best = last;
    int64_t least = INT64_MAX;

    for (int i = 0; i < c->count; i++) {
        int cpu = last + i < c->count ? last + i : last + i - c->count;
        int64_t at;
        if (!may_use(u, cpu))
            continue;
        at = atomic_load_explicit(&c->free_at[cpu], memory_order_relaxed);
        if (at < least) {
            least = at;
            best = cpu;
        }
        if (at <= now)
            break;
    }
    /* A mask being changed by another thread can be empty for a moment. */
    *ret_free = least < INT64_MAX ? least : atomic_load(&c->free_at[best]);
    return best;
}

int64_t emu_cpus_take(struct emu_cpus *c, struct emu_cpu_user *u, int64_t now, int64_t cost,
                      bool leaving)
{
    int64_t turn = leaving || cost > EMU_TURN_PS ? cost : EMU_TURN_PS, begin, at;
    int cpu = atomic_load_explicit(&u->cpu, memory_order_relaxed);

    if (u->until > now && may_use(u, cpu)) {
        if (now + cost > u->until)
            emu_cpus_extend(c, u, now + cost - u->until);
        return now;
    }
    emu_cpus_yield(c, u, now);
    do {
        cpu = choose(c, u, now, &at);
        begin = at > now ? at : now;
    } while (!atomic_compare_exchange_weak(&c->free_at[cpu], &at, begin + turn));
    atomic_store_explicit(&u->cpu, cpu, memory_order_relaxed);
    u->until = begin + turn;
    return begin;
}

void emu_cpus_extend(struct emu_cpus *c, struct emu_cpu_user *u, int64_t ps)
{
    atomic_fetch_add(&c->free_at[atomic_load(&u->cpu)], ps);
    u->until += ps;
}

void emu_cpus_yield(struct emu_cpus *c, struct emu_cpu_user *u, int64_t now)
{
    if (u->until <= now)
        return;
    atomic_fetch_sub(&c->free_at[atomic_load(&u->cpu)], u->until - now);
    u->until = now;
}
