/* SPDX-License-Identifier: BSD-2-Clause
 * See recent.h. */
#include "model/recent.h"

#include <stdbool.h>

#define NS_PS 1000
/* Steps: queueing near saturation answers up to 6 times as much as it is asked. */
#define DAMPING 4

static int64_t overlap(int64_t a_from, int64_t a_to, int64_t from, int64_t to)
{
    int64_t first = a_from > from ? a_from : from, last = a_to < to ? a_to : to;
    return last > first ? last - first : 0;
}

/* A batch shorter than a window joins the one before it: who settles often would
 * else push its own traces out of the list before they are out of the windows. */
static void remember(struct emu_past *past, int64_t from, int64_t to,
                     const double share[EMU_DOINGS])
{
    int64_t old = past->batch[past->latest].to - past->batch[past->latest].from;
    bool joins = old < EMU_WINDOW_PS && past->batch[past->latest].to == from;

    if (!joins) {
        past->latest = (past->latest + 1) % EMU_PAST;
        past->batch[past->latest].from = from;
        old = 0;
    }
    for (int d = 0; d < EMU_DOINGS; d++) {
        double *s = &past->batch[past->latest].share[d], before = joins ? *s * (double)old : 0;
        *s = (before + share[d] * (double)(to - from)) / (double)(old + to - from);
    }
    past->batch[past->latest].to = to;
}

void emu_recent_add(struct emu_recent *r, struct emu_past *past, int64_t from, int64_t to,
                    const double share[EMU_DOINGS])
{
    int64_t first = from / EMU_WINDOW_PS;

    if (to <= from)
        return;
    remember(past, from, to, share);
    for (int d = 0; d < EMU_DOINGS; d++) {
        if (share[d] <= 0)
            continue;
        for (int64_t k = first; k * EMU_WINDOW_PS < to && k - first < EMU_WINDOWS; k++) {
            _Atomic uint64_t *w = &r->window[d][k % EMU_WINDOWS];
            uint64_t old = atomic_load_explicit(w, memory_order_relaxed), new;
            double ps =
                share[d] * (double)overlap(from, to, k * EMU_WINDOW_PS, (k + 1) * EMU_WINDOW_PS);
            do {
                uint64_t sum = old >> 32 == (uint32_t)k ? (uint32_t)old : 0;
                new = (uint64_t)(uint32_t)k << 32 | (uint32_t)(sum + (uint64_t)(ps / NS_PS));
            } while (!atomic_compare_exchange_weak(w, &old, new));
        }
    }
}

void emu_recent_others(struct emu_recent *r, const struct emu_past *past, int64_t now,
                       double ret[EMU_DOINGS])
{
    int64_t last = now / EMU_WINDOW_PS, first = last > EMU_RECENT ? last - EMU_RECENT : 0;

    for (int d = 0; d < EMU_DOINGS; d++) {
        double ps = 0;
        for (int64_t k = first; k < last; k++) {
            uint64_t w = atomic_load_explicit(&r->window[d][k % EMU_WINDOWS], memory_order_relaxed);
            if (w >> 32 == (uint32_t)k)
                ps += (double)(uint32_t)w * NS_PS;
        }
        for (int i = 0; i < EMU_PAST; i++)
            ps -= past->batch[i].share[d] * (double)overlap(past->batch[i].from, past->batch[i].to,
                                                            first * EMU_WINDOW_PS,
                                                            last * EMU_WINDOW_PS);
        ps /= (double)(EMU_RECENT * EMU_WINDOW_PS);
        ret[d] = ps > 0 ? ps : 0;
    }
}

double emu_recent_damped(struct emu_past *past, enum emu_doing d, double others)
{
    past->load[d] += (others - past->load[d]) / DAMPING;
    return past->load[d];
}
