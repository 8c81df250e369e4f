/* SPDX-License-Identifier: BSD-2-Clause
 * Who gets how much DRAM: limits, the budget that programs share, the tier in favour. */
#ifndef HYBRID_PLACE_POLICY_H
#define HYBRID_PLACE_POLICY_H

#include "base/cpuset.h"
#include "core/state.h"
#include "place/registry.h"
#include "settings/rules/options.h"

struct policy_view {
    enum hy_policy policy;
    enum hy_class cls;
    enum hy_tier favour;
    uint64_t used[HY_TIERS], limit[HY_TIERS], peak[HY_TIERS];
    uint64_t refused[HY_TIERS]; /* requests turned away for lack of room */
    uint64_t forced_bytes;      /* DRAM beyond its limit, as PM was full too */
    uint64_t wish, asked, claimed;
    uint64_t dram_shared;
    bool in_registry;
    char registry[HY_PATH_MAX], registry_error[96];
};
/* Until placement begins: DRAM without limit, and nobody to be asked. Before the first charge. */
void policy_alone(void);
void policy_init(const struct hy_settings *s, const struct runtime_machine *m);
/* With the floor (floor.h) DRAM refuses only what others have asked for. */
bool policy_charge(enum hy_tier t, size_t bytes, bool force);
void policy_discharge(enum hy_tier t, size_t bytes);
/* Count a refusal; policy_charge does, but for those that control_await may turn into a yes. */
void policy_turned_away(enum hy_tier t);
void policy_account(enum hy_tier t, int64_t delta);
/* DRAM use found by measurement replaces what was charged (steer_next.c);
 * false: over the limit. */
bool policy_set_dram_used(uint64_t bytes);
uint64_t policy_used(void); /* charged to both tiers */
uint64_t policy_dram_used(void);
uint64_t policy_grown(void); /* of it, what is not from the process that forked us */
/* The registry costs system calls. Threads of ours ask it; those of the program only live on what
 * is claimed: one whose charge was refused for want of a claim is short of this much, once. */
void policy_thread_is_ours(void);
uint64_t policy_short_of(void);
enum claim_answer { CLAIM_OPEN, CLAIM_MADE, CLAIM_DENIED };
enum claim_answer policy_claim_answer(uint64_t need);
/* By the control thread, or in the constructor: take part in the registry. */
void policy_join(void);
/* Is there one to join? */
bool policy_has_registry(void);
/* By the control thread: claim what is needed, give back what is not. false: nothing was. */
bool policy_refresh(void);
/* What the limit leaves; the others' claims are not asked. */
uint64_t policy_room(enum hy_tier t);
/* The same, without what others would have to be asked for. */
uint64_t policy_room_now(enum hy_tier t);
/* Nobody is given the last so many bytes of the DRAM limit: they are kept for what comes. */
void policy_keep_dram(uint64_t bytes);
/* DRAM that this process may have in all, as things are: its limit, and what the others leave.
 * Takes locks: not from malloc. */
uint64_t policy_dram_share(void);
/* May this process wish for others' DRAM (Algorithm 1)? Then what becomes less (from any value) as
 * others give theirs up for good, by moving it or as they end. What those
 * wish for who go before it, whether it may or not. The same. */
bool policy_may_ask(uint64_t *ret_held, uint64_t *ret_ahead);
/* This process would have so many bytes more on DRAM if others left them: its wish, until the
 * next call. Programs that nobody hears (Algorithm 1) wish in vain. */
void policy_want(uint64_t bytes);
void policy_tick(void);
/* What the counters say; the user's word and the profile's come before it. */
void policy_set_class(enum hy_class cls);
/* What the next tick tells the others: cap, confidence, slowdowns, moves, written pages.
 * Class, bytes and threads are the policy's own. */
void policy_publish(const struct registry_published *published);
/* What all tell, as it was read some ms ago at most; nothing is called while this process does not
 * take part. `look` is brief: a lock is held. */
void policy_look(void (*look)(void *ctx, const struct registry_view *v), void *ctx);
/* Tell the others which CPUs this process is confined to (none: not confined), and learn theirs. */
void policy_exchange_cpus(const struct hy_cpus *mine, struct cpus_of_others *ret);
/* Theirs, before this process takes part. false: there are no others. */
bool policy_peek_cpus(struct cpus_of_others *ret);
void policy_get(struct policy_view *ret);
void policy_leave(void);
void policy_prefork(void);
void policy_postfork(void);
/* Before policy_postfork, in a forked child; `placed`: its parent had begun to place. */
void policy_child(bool placed);

#endif
