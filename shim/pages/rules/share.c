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
