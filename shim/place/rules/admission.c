/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/admission.h"

static bool hinders(const struct admission_party *a, const struct admission_party *b)
{
    return a->writes && a->on_pm && b->cls == HY_CLASS_BANDWIDTH && !b->on_pm;
}

bool admission_conflict(const struct admission_party *a, const struct admission_party *b)
{
    return hinders(a, b) || hinders(b, a);
}

static bool before(const struct admission_party *a, const struct admission_party *b)
{
    return a->arrived_ns < b->arrived_ns || (a->arrived_ns == b->arrived_ns && a->pid < b->pid);
}

unsigned admission_waits_for(const struct admission_party *p, unsigned n, unsigned self)
{
    for (unsigned i = 0; i < n; i++) {
        const struct admission_party *o = &p[i];
        bool waits = o->arrived_ns != 0;
        if (i == self || o->pid == p[self].pid || !admission_conflict(o, &p[self]) ||
            (waits && (o->age_ns > ADMISSION_SILENT_NS || !before(o, &p[self]))))
            continue;
        return i;
    }
    return n;
}

bool admission_on_pm(uint64_t footprint, uint64_t dram)
{
    return footprint ? footprint / 2 > dram : dram == 0;
}
