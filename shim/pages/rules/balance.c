/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/balance.h"

#define SATURATED 0.90
#define RELAXED   0.75
#define DROP      0.02 /* of the peak: it begins to drop */
#define WINDOWS   2    /* one window proves nothing */
#define STEP      32   /* the first step is a 32nd of the hot pages; each further one doubles */
#define LARGEST   4    /* up to a quarter */

void balance_window(struct balance *b, double use, uint64_t hot_pages)
{
    uint64_t last = b->step;
    b->step = 0;
    if (!(use >= 0)) {
        *b = (struct balance){.total = b->total};
        return;
    }
    b->above = use >= SATURATED ? b->above + 1 : 0;
    switch (b->state) {
    case BALANCE_OFF:
        if (b->above < WINDOWS)
            return;
        b->state = BALANCE_SHED;
        b->peak = use;
        break;
    case BALANCE_SHED:
        if (use < b->peak * (1 - DROP)) {
            b->state = BALANCE_HOLD;
            b->above = 0;
            return;
        }
        b->peak = HY_MAX(b->peak, use);
        break;
    case BALANCE_HOLD:
        if (use < RELAXED) {
            *b = (struct balance){.total = b->total};
            return;
        }
        /* The program wants still more than when it was enough. */
        if (b->above < WINDOWS)
            return;
        b->state = BALANCE_SHED;
        b->peak = use;
        break;
    }
    b->step = HY_MIN(last > 0 ? last * 2 : hot_pages / STEP + (hot_pages > 0), hot_pages / LARGEST);
    b->total += b->step;
}
