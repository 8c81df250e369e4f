/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/share.h"

#include <string.h>

#define STEP 64u /* a part of it: less comes and goes with every allocation */

bool share_grows(struct share *s, uint64_t bytes)
{
    bool grows = bytes > s->bytes + s->bytes / STEP;
    if (grows)
        s->filled = false;
    if (bytes < s->bytes || !s->filled)
        s->bytes = bytes;
    return grows;
}

bool share_is_asked(struct share *s, uint64_t asked, uint64_t held)
{
    bool more = asked > s->asked + held / STEP;
    if (more || asked < s->asked)
        s->asked = asked;
    return more;
}

uint64_t share_growth(struct share *s, uint64_t pages)
{
    uint64_t more = pages - HY_MIN(s->most, pages);
    s->most = HY_MAX(s->most, pages);
    return more;
}

uint64_t share_swaps(uint64_t swaps, uint64_t growth)
{
    return swaps > growth && swaps - growth > growth ? swaps : 0;
}

uint64_t share_room(uint64_t on, uint64_t spare, uint64_t up, uint64_t down, uint64_t asked)
{
    uint64_t left = up > down ? spare - HY_MIN(spare, up - down) : HY_MAX(spare, down - up);
    uint64_t room = on + left;
    return asked > 0 ? HY_MIN(room - HY_MIN(asked, room), on) : room;
}

static unsigned last_pass(const struct spare *s)
{
    return (s->at + SPARE_PASSES - 1) % SPARE_PASSES;
}

void spare_note(struct spare *s, uint64_t free, const uint64_t *held)
{
    if (!held)
        memset(s->held, 0, sizeof(s->held));
    s->free[s->at] = free;
    s->held[s->at] = held ? *held : 0;
    s->at = (s->at + 1) % SPARE_PASSES;
}

uint64_t spare_bytes(const struct spare *s)
{
    unsigned last = last_pass(s);
    uint64_t least = s->free[last], most = s->held[last];
    for (unsigned i = 0; i < SPARE_PASSES; i++) {
        least = HY_MIN(least, s->free[i]);
        most = HY_MAX(most, s->held[i]);
    }
    return least + HY_MIN(most - s->held[last] + s->given, s->free[last] - least);
}

void spare_moved(struct spare *s, int64_t up, bool asked)
{
    uint64_t now = s->held[last_pass(s)], bytes = up > 0 ? (uint64_t)up : 0;
    s->given -= HY_MIN(bytes, s->given);
    if (s->asked && up < 0)
        s->given += (uint64_t)-up;
    s->asked = asked;
    for (unsigned i = 0; i < SPARE_PASSES; i++)
        if (s->held[i] > now)
            s->held[i] -= HY_MIN(bytes, s->held[i] - now);
}
