/* SPDX-License-Identifier: BSD-2-Clause
 * Exchanges of pages that turned out wrong are taken back: what they have earned and lost, when
 * that is a reason to turn back, and which pages. First touch's order is where they go back to.
 * Pure; times in ns. */
#ifndef HYBRID_PAGES_RULES_TAKEBACK_H
#define HYBRID_PAGES_RULES_TAKEBACK_H

#include "pages/rules/history.h"
#include "pages/rules/movelist.h"

/* Zero bytes: nothing yet. */
struct exchange_account {
    double balance_ns; /* what all exchanges have brought less what they cost; below 0: a loss */
    double losing_ns;  /* lost since they last gained, or were taken back */
    double income_ns;  /* gained by a pass, of late; below 0: lost */
    double gained_ns;  /* by all passes; below 0: lost */
};

/* What the moved pages' counts of one pass tell; below 0: they were better off before. */
void exchange_gained(struct exchange_account *a, double gain_ns);
/* What moving pages has cost: a price, and no sign that they were wrong. */
void exchange_paid(struct exchange_account *a, double cost_ns);
/* What more exchanges may cost: the balance, and what those that were made bring in `passes` to
 * come, if they go on as of late. Never more is borrowed than half of what they have gained. */
double exchange_may_spend(const struct exchange_account *a, double passes);
/* Is more lost than going back costs? Then who turns back never pays more than twice what somebody
 * would who knew it beforehand. */
bool exchange_loses(const struct exchange_account *a, double back_ns);

/* Pairs of pages that moves of ours have put where they lie and that go back: one that was moved to
 * DRAM and one that was moved to PM and ranks higher. Those to PM come first in the list. At most
 * `cap` moves; what is left comes with the next call, when these have been carried out.
 * *ret_pairs (may be NULL): how many pairs there are in all. */
unsigned takeback_list(struct history *h, unsigned ranges, struct move *list, unsigned cap,
                       uint64_t *ret_pairs);

#endif
