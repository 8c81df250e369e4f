/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/patience.h"

/* Who took so much of what it wants will take the rest before long. */
#define TAKES 64u
/* Between two looks we may have been stopped ourselves. */
#define LOOK_NS (PATIENCE_NS / 4)

uint64_t patience_keeps(struct patience *p, uint64_t held, uint64_t wants, bool free,
                        uint64_t now_ns)
{
    uint64_t took = held - HY_MIN(p->most, held), believed;

    if (p->seen_ns == 0)
        p->most = held;
    else if (wants > 0 && free && now_ns > p->seen_ns)
        p->waited_ns += HY_MIN(now_ns - p->seen_ns, LOOK_NS);
    p->seen_ns = now_ns;
    if (p->waited_ns >= PATIENCE_NS) {
        p->waited_ns = 0;
        p->doubted = UINT64_MAX - HY_MIN(took, UINT64_MAX / TAKES) * TAKES;
        p->most = HY_MAX(p->most, held);
    }
    believed = UINT64_MAX - p->doubted;
    return HY_MIN(wants, believed);
}

void patience_another(struct patience *p)
{
    p->most = 0;
}
