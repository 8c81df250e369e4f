/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/share.h"

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

bool share_is_growing_into(struct share *s, uint64_t pages)
{
    bool more = pages > s->most;
    s->most = HY_MAX(s->most, pages);
    return more;
}

uint64_t share_room(uint64_t on, uint64_t spare, uint64_t up, uint64_t down, uint64_t asked)
{
    uint64_t left = up > down ? spare - HY_MIN(spare, up - down) : HY_MAX(spare, down - up);
    uint64_t room = on + left;
    return asked > 0 ? HY_MIN(room - HY_MIN(asked, room), on) : room;
}
