/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/shares.h"

#include <string.h>

#include "place/rules/division.h"
#include "place/rules/pacing.h"
#include "settings/settings.h"
#include "sys/os.h"

/* So much slower than with all on DRAM (thousandths), a program gains by more of it. */
#define GAINS 1050u

static struct {
    struct division_party party[DIVISION_MAX];
    struct division found;
    struct pacing_turn turn; /* a moment is not followed, as in pacing */
    uint64_t asked, others;
    bool wanted; /* atomic */
    uint64_t left;
    /* By slot, as last read, up to the last that anybody had. */
    unsigned slots;
    struct {
        int32_t pid; /* 0: nobody */
        uint64_t dram;
    } was[REGISTRY_SLOTS];
} sh;
static uint64_t share_most = UINT64_MAX; /* atomic */

_Static_assert(DIVISION_POINTS == REGISTRY_CURVE, "what is told is what is divided by");
_Static_assert(DIVISION_MAX >= REGISTRY_SLOTS, "there is a party for each slot");

static struct division_party party_of(const struct registry_entry *e, uint64_t now)
{
    const struct registry_published *t = &e->published;
    struct division_party p = {.id = e->slot,
                               .cls = t->cls,
                               .held = e->dram_bytes,
                               .bytes = t->curve_bytes,
                               .takes = t->curve_takes,
                               .now = t->curve_now,
                               .weight = t->weight,
                               .run_ns = t->run_ns,
                               .move_ns = (uint32_t)t->move_ns};

    if (registry_is_stopped(e, now))
        return p;
    memcpy(p.time, t->time_at, sizeof(p.time));
    if (p.time[0] > 0) /* by its pages: what was charged need not have been touched */
        p.held = t->curve_dram;
    return p;
}

static bool takes_part(void)
{
    return hy_config.set.policy == HY_POLICY_AUTO && hy_config.set.weight > 0;
}

/* Who is no longer there has left its DRAM for good. */
static void note_left(const struct registry_view *v)
{
    bool here[REGISTRY_SLOTS] = {false};

    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_entry *e = &v->entry[i];
        here[e->slot] = sh.was[e->slot].pid == e->pid;
    }
    for (unsigned k = 0; k < sh.slots; k++)
        if (sh.was[k].pid != 0 && !here[k]) {
            sh.left += sh.was[k].dram;
            sh.was[k].pid = 0;
        }
    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_entry *e = &v->entry[i];
        bool cpu = e->published.cls == HY_CLASS_CPU;
        sh.slots = HY_MAX(sh.slots, (unsigned)e->slot + 1);
        sh.was[e->slot].pid = e->pid;
        sh.was[e->slot].dram = cpu || e->is_self ? 0 : e->dram_bytes;
    }
}

uint64_t shares_left(void)
{
    return sh.left;
}

unsigned shares_machine(const struct registry_view *v, struct place_machine *ret)
{
    uint64_t now = os_now_ns();
    note_left(v);
    unsigned self = ret->n_apps = HY_MIN(v->n, (unsigned)PLACE_MAX_APPS);

    ret->dram_budget = v->dram_budget - HY_MIN(sh.others, v->dram_budget);
    for (unsigned i = 0; i < ret->n_apps; i++) {
        const struct registry_entry *e = &v->entry[i];
        ret->app[i] = (struct place_app){.cls = e->published.cls,
                                         .dram_bytes = e->dram_bytes,
                                         .pm_bytes = e->published.pm_bytes,
                                         .wish_bytes = e->published.wish_bytes,
                                         .writers = e->published.writers};
        if (registry_is_stopped(
                e, now)) /* it takes nothing and gives nothing; what it holds it holds */
            ret->app[i].cls = HY_CLASS_UNKNOWN;
        if (e->is_self)
            self = i;
    }
    return self;
}

void shares_divide(const struct registry_view *v, unsigned self)
{
    uint64_t now = os_now_ns(), most = UINT64_MAX;
    bool wanted = false;

    sh.asked = sh.others = 0;
    if (takes_part() && v->n > 1 && self < v->n) {
        for (unsigned i = 0; i < v->n; i++) {
            sh.party[i] = party_of(&v->entry[i], now);
            wanted |= i != self && sh.party[i].time[0] > 0 && sh.party[i].now > GAINS;
        }
        division_make(v->dram_budget, sh.party, v->n, &sh.found);
        (void)pacing_settle(&sh.turn, sh.found.lacking > 0);
        if (sh.turn.paced) {
            sh.asked = sh.found.ask[self];
            sh.others = sh.found.lacking - sh.found.lack[self];
            most = division_most(&sh.found, sh.party, self);
        }
    }
    __atomic_store_n(&share_most, most, __ATOMIC_RELAXED);
    __atomic_store_n(&sh.wanted, wanted, __ATOMIC_RELAXED);
}

uint64_t shares_asked(void)
{
    return sh.asked;
}

uint64_t shares_most(void)
{
    return __atomic_load_n(&share_most, __ATOMIC_RELAXED);
}

bool shares_wanted(void)
{
    return __atomic_load_n(&sh.wanted, __ATOMIC_RELAXED);
}

/* The tables are large, and each page that is written costs the child a fault: what was found is
 * found anew before it is read. */
void shares_child(void)
{
    memset(sh.was, 0, sh.slots * sizeof(sh.was[0]));
    sh.slots = 0;
    sh.turn = (struct pacing_turn){0};
    sh.asked = sh.others = sh.left = 0;
    sh.wanted = false;
    share_most = UINT64_MAX;
}
