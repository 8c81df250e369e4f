/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rules/access_scale.h"

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 1;
}

void access_scale_make(const struct access_sums *s, struct access_scale *ret)
{
    double each[ACCESS_KINDS];
    for (int k = 0; k < ACCESS_KINDS; k++)
        each[k] = (1 + s->lost) * (s->seen[k] > 0 ? 1 / s->seen[k] : 1);
    *ret = (struct access_scale){.read = each[ACCESS_READ], .written = each[ACCESS_WRITTEN]};
    if (!s->instructions)
        return;
    double loads = s->lines[ACCESS_READ] * ret->read;
    double stores = s->lines[ACCESS_WRITTEN] * ret->written;
    double reads = s->counted[ACCESS_READ], writes = s->counted[ACCESS_WRITTEN];
    if (writes > 0)
        ret->written *= ratio(writes, stores);
    ret->fetched = ret->written;
    ret->counted = reads > 0 && loads > 0;
    if (!ret->counted)
        return;
    /* What was read for stores is in the sum, too, whether or not stores are sampled. Where both do
     * not fit into it, loads keep their share. */
    double fetched = writes > 0 ? writes : stores;
    ret->read *= HY_MAX(reads - fetched, reads * ratio(loads, loads + fetched)) / loads;
}
