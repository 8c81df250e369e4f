/* SPDX-License-Identifier: BSD-2-Clause
 * What policy.c (a process and its limits) and company.c (its part of what all share) both know. */
#ifndef HYBRID_PLACE_COMPANY_H
#define HYBRID_PLACE_COMPANY_H

#include "place/registry.h"
#include "place/rules/placement.h"
#include "settings/rules/options.h"

#define ALONE (UINT64_MAX / 2) /* claimed: without a registry, nobody need be asked */

struct policy_state {
    enum hy_policy policy;
    uint8_t cls;
    uint64_t limit[HY_TIERS];
    uint64_t used[HY_TIERS], peak[HY_TIERS], refused[HY_TIERS];
    uint64_t kept; /* of the DRAM limit, for what a plan expects */
    uint64_t forced_bytes;
    uint64_t inherited; /* DRAM shared with the process that forked us, */
    int parent;         /* this one */
    uint64_t born_with; /* on both tiers */
    uint64_t claimed;   /* of the shared budget, >= used - inherited; threads of ours change it */
    uint64_t needed;    /* so much shall be claimed: asked for by threads of the program */
    uint64_t denied;    /* so much was not to be had, */
    uint64_t denied_ns; /* then */
    uint64_t lease;     /* claims are made in steps of this */
    uint64_t shared;    /* the budget of all */
    uint64_t wish, asked;
    bool stale; /* somebody waits for a claim, or much of one is not needed any more */
    struct registry_published published; /* under lock; what is not ours comes by policy_publish */
    uint64_t wanted;                     /* pages on PM that would come up, in bytes */
    uint64_t unmet;        /* turned away for lack of shared DRAM, not yet wished for */
    uint64_t wish_ns;      /* of the last addition to the wish */
    bool closed[HY_TIERS]; /* turned somebody away since it last had room */
    enum { REG_NOT_YET, REG_JOINED, REG_NONE } reg_state; /* written under lock */
    struct registry *reg;
    char reg_path[HY_PATH_MAX], reg_error[96];
    struct registry_view view;    /* under lock */
    struct place_machine machine; /* what was last read of all, and when */
    unsigned self;
    uint64_t machine_ns, read_cost_ns;
};
extern struct policy_state hy_pol;

static inline uint64_t load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void store(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Is `total` bytes of DRAM covered by the claim? From malloc: a thread of the program only says
 * what it needs, and control_await waits for it where no lock is held. */
bool share_cover(uint64_t total);
/* The program has given back much of what is claimed. */
void share_spare(void);
/* Is this thread short of a claim that it may wait for? */
bool share_short(void);
void share_tick(void);
/* By a thread that may ask the registry: tells what is to be told, lets `see` look at all as they
 * are now, and tells again. false: there is no registry, or no slot. */
typedef void (*share_see_fn)(const struct registry_view *v, const struct place_machine *m,
                             unsigned self);
bool share_look(share_see_fn see);
void share_path(char *buf, size_t cap);

#endif
