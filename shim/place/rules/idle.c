/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/idle.h"

/* A step of a program has parts with and without temporaries, and a look sees one of them. */
#define LOOKS 16u
#define LINES (HY_PAGE / 64)

bool idle_is_cheap(struct idle_prices *p, const struct machine_figures *f, const struct work *k,
                   double window_ns, const struct idle_look *look)
{
    if (look->retaken <= 0 && p->back <= 0)
        return false; /* most programs: not worth the model's time */
    struct line_worth worth = work_line_worth(f, k, k->pm_reads, k->pm_writes);
    double premium = (k->reads * worth.read_ns + k->writes * worth.write_ns) / window_ns;
    /* What lay there instead would be as busy as any other page. */
    double kept = look->idle / HY_MAX(look->used, look->idle + 1) * premium;
    double back = look->retaken * (double)LINES * work_dram_line(f, k);

    p->looks = HY_MIN(p->looks + 1, LOOKS);
    p->kept += (kept - p->kept) / p->looks;
    p->back += (back - p->back) / p->looks;
    return p->back > p->kept;
}
