/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/pages/move.h"

#include <linux/mempolicy.h>

#include "base/types.h"
#include "sys/raw.h"

#define BATCH 512u

static int call(void *const *pages, unsigned n, const int *nodes, int *where)
{
    /* Only pages that no other process has: others are not ours to move. */
    long r = raw6(SYS_move_pages, 0, n, pages, nodes, where, MPOL_MF_MOVE);
    /* Above 0: so many were not moved. */
    return (int)HY_MIN(r, 0L);
}

int os_move_pages(void *const *pages, unsigned n, int node, int *ret_where, int untouched)
{
    int nodes[BATCH];
    for (unsigned i = 0; i < BATCH; i++)
        nodes[i] = node;
    for (unsigned i = 0; i < n; i++)
        ret_where[i] = untouched;
    for (unsigned at = 0; at < n; at += BATCH) {
        int r = call(pages + at, HY_MIN(n - at, BATCH), nodes, ret_where + at);
        if (r != 0)
            return r;
    }
    return 0;
}

int os_page_nodes(void *const *pages, unsigned n, int *ret_where)
{
    return call(pages, n, NULL, ret_where);
}
