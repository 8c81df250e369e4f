/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/shares.h"

#include <string.h>

#include "classify/figures.h"
#include "classify/rules/slowdown.h"
#include "place/rules/division.h"
#include "place/rules/pacing.h"
#include "place/rules/patience.h"
#include "settings/settings.h"
#include "sys/os.h"

/* So much slower than with all on DRAM (thousandths), a program gains by more of it. */
#define GAINS 1050u
/* Less than this part of the budget being free, it may be a rest that nobody can claim. */
#define FREE_PART 64u

/* Of what a child of a fork begins anew, all but the tables lies together (start.ld). */
static struct {
    struct pacing_turn turn; /* a moment is not followed, as in pacing */
    uint64_t asked, others, given;
    uint64_t right; /* atomic, as is the next */
    bool wanted;
    unsigned slots; /* of `was` that anybody had */
} sh;
static struct division_party party[DIVISION_MAX];
static struct division found;
/* By slot, as last read. */
static struct was {
    int32_t pid; /* 0: nobody */
    bool cpu;
    uint64_t dram;
    uint64_t lack;  /* by the last division */
    uint64_t keeps; /* of what it wants */
    struct patience patience;
} was[REGISTRY_SLOTS];
static uint64_t share_most = UINT64_MAX; /* atomic */

_Static_assert(DIVISION_POINTS == REGISTRY_CURVE, "what is told is what is divided by");
_Static_assert(DIVISION_MAX >= REGISTRY_SLOTS, "there is a party for each slot");

/* Nothing is more times slower on this machine's PM than so, in thousandths. */
static uint32_t most_slowdown(void)
{
    static uint32_t most;

    if (most == 0)
        most = (uint32_t)(1000 * work_most_slowdown(figures_here()));
    return most;
}

/* The kernel's word: nobody can tell himself into somebody's group. */
static int32_t group_of(const struct registry_entry *e)
{
    return e->here ? os_process_group(e->pid) : 0;
}

/* What others tell is held against what this machine can do, and what they did. */
static struct division_party party_of(const struct registry_entry *e, uint64_t now)
{
    const struct registry_published *t = &e->published;
    struct division_party p = {.id = e->slot,
                               .cls = t->cls,
                               .held = e->dram_bytes,
                               .bytes = t->curve_bytes,
                               .takes = HY_MIN(t->curve_takes, was[e->slot].keeps),
                               .now = t->curve_now,
                               .weight = t->weight,
                               .run_ns = t->run_ns,
                               .move_ns = (uint32_t)t->move_ns,
                               .group = group_of(e)};

    if (registry_is_stopped(e, now))
        return p;
    for (unsigned k = 0; k < DIVISION_POINTS; k++)
        p.time[k] = HY_MIN(t->time_at[k], most_slowdown());
    if (p.time[0] > 0) /* by its pages: what was charged need not have been touched */
        p.held = t->curve_dram;
    return p;
}

static bool takes_part(void)
{
    return hy_config.set.policy == HY_POLICY_AUTO && hy_config.set.weight > 0;
}

/* Who is no longer there has left its DRAM for good, and who is CPU-bound and was so before gives
 * some up for good or takes it back. One whose class changes has given up nothing. */
static void note_given(const struct registry_view *v)
{
    bool here[REGISTRY_SLOTS] = {false};

    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_entry *e = &v->entry[i];
        here[e->slot] = was[e->slot].pid == e->pid;
    }
    for (unsigned k = 0; k < sh.slots; k++)
        if (was[k].pid != 0 && !here[k]) {
            sh.given += was[k].dram;
            was[k].pid = 0;
        }
    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_entry *e = &v->entry[i];
        bool cpu = e->published.cls == HY_CLASS_CPU && !e->is_self;
        uint64_t dram = e->is_self ? 0 : e->dram_bytes;
        sh.slots = HY_MAX(sh.slots, (unsigned)e->slot + 1);
        if (here[e->slot] && cpu && was[e->slot].cpu)
            sh.given += was[e->slot].dram - dram;
        if (was[e->slot].pid != e->pid)
            patience_another(&was[e->slot].patience);
        was[e->slot].pid = e->pid;
        was[e->slot].cpu = cpu;
        was[e->slot].dram = dram;
    }
}

uint64_t shares_given(void)
{
    return sh.given;
}

/* What is kept for each, who may only say that he wants it. */
static void be_patient(const struct registry_view *v, uint64_t now)
{
    uint64_t held = 0;

    for (unsigned i = 0; i < v->n; i++)
        held += HY_MIN(v->entry[i].dram_bytes, v->dram_budget);
    bool free = held <= v->dram_budget - v->dram_budget / FREE_PART;
    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_entry *e = &v->entry[i];
        struct was *w = &was[e->slot];
        uint64_t wants = HY_MAX(e->published.wish_bytes, w->lack);
        uint64_t keeps = patience_keeps(&w->patience, e->dram_bytes, wants, free, now);
        w->keeps = e->is_self || keeps == wants ? UINT64_MAX : keeps;
    }
}

unsigned shares_machine(const struct registry_view *v, struct place_machine *ret)
{
    uint64_t now = os_now_ns();
    note_given(v);
    be_patient(v, now);
    unsigned self = ret->n_apps = HY_MIN(v->n, (unsigned)PLACE_MAX_APPS);

    ret->dram_budget = v->dram_budget - HY_MIN(sh.others, v->dram_budget);
    for (unsigned i = 0; i < ret->n_apps; i++) {
        const struct registry_entry *e = &v->entry[i];
        ret->app[i] =
            (struct place_app){.cls = e->published.cls,
                               .dram_bytes = e->dram_bytes,
                               .pm_bytes = e->published.pm_bytes,
                               .wish_bytes = HY_MIN(e->published.wish_bytes, was[e->slot].keeps),
                               .writers = e->published.writers,
                               .slowdown = HY_MIN(e->published.slowdown, most_slowdown()),
                               .run_ns = e->published.run_ns,
                               .move_ns = e->published.move_ns,
                               .group = group_of(e)};
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
    uint64_t now = os_now_ns(), most = UINT64_MAX, right = 0;
    bool wanted = false;

    sh.asked = sh.others = 0;
    for (unsigned i = 0; i < v->n; i++)
        was[v->entry[i].slot].lack = 0;
    if (takes_part() && v->n > 1 && self < v->n) {
        for (unsigned i = 0; i < v->n; i++) {
            party[i] = party_of(&v->entry[i], now);
            wanted |= i != self && party[i].time[0] > 0 && party[i].now > GAINS;
        }
        division_make(v->dram_budget, party, v->n, &found);
        for (unsigned i = 0; i < v->n; i++)
            was[v->entry[i].slot].lack = found.lack[i];
        (void)pacing_settle(&sh.turn, found.lacking > 0);
        if (sh.turn.paced) {
            sh.asked = found.ask[self];
            sh.others = HY_MIN(found.lacking - found.lack[self],
                               v->dram_budget - HY_MIN(found.right[self], v->dram_budget));
            most = division_most(&found, party, self);
            right = found.right[self];
        }
    }
    __atomic_store_n(&share_most, most, __ATOMIC_RELAXED);
    __atomic_store_n(&sh.right, right, __ATOMIC_RELAXED);
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

uint64_t shares_right(void)
{
    return __atomic_load_n(&sh.right, __ATOMIC_RELAXED);
}

bool shares_wanted(void)
{
    return __atomic_load_n(&sh.wanted, __ATOMIC_RELAXED);
}

/* The tables are large, and each page that is written costs the child a fault: what was found is
 * found anew before it is read. */
void shares_child(void)
{
    sh.turn = (struct pacing_turn){0}; /* a page that is read before it is written costs two faults */
    if (sh.slots > 0)
        memset(was, 0, sh.slots * sizeof(was[0]));
    sh.slots = 0;
    sh.asked = sh.others = sh.given = sh.right = 0;
    sh.wanted = false;
    if (share_most != UINT64_MAX)
        share_most = UINT64_MAX;
}
