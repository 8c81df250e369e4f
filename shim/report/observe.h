/* SPDX-License-Identifier: BSD-2-Clause
 * What this process knows of itself at a moment, from all parts of the runtime: for the
 * registry, the trace and the report. */
#ifndef HYBRID_REPORT_OBSERVE_H
#define HYBRID_REPORT_OBSERVE_H

#include "classifier.h"
#include "llc/share.h"
#include "migrator.h"
#include "place/policy.h"
#include "tasks/staging.h"
#include "threadcap.h"
#include "threads/pacing.h"

struct observed {
    struct policy_view policy;
    struct classify_view classify;
    struct threadcap_view threads;
    struct migrate_view migrate;
    struct pacing_view pacing;
    struct llc_view cache;
    struct staging_view tasks;
};

/* Takes locks of the parts, one after the other: not from malloc. */
void observe(struct observed *ret);
/* Tell the other participants of the registry, with the next tick of the policy. */
void observe_publish(void);

#endif
