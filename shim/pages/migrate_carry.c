/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/migrate_carry.h"

#include "pages/migrate_books.h"
#include "place/policy.h"
#include "sys/emulator.h"

/* Runs of pages with one outcome go into the histories. */
static void note_outcomes(struct beside *b, char *base, size_t pages, enum hy_tier to,
                          const struct migrate_result *r)
{
    for (size_t i = 0; i < pages;) {
        size_t from = i;
        enum migrate_outcome o = (enum migrate_outcome)r->page[i];
        while (i < pages && r->page[i] == o)
            i++;
        beside_moved(b, base + from * HY_PAGE, i - from, o);
        if (o == MIGRATE_ABSENT)
            sampler_discard(base + from * HY_PAGE, (i - from) * HY_PAGE);
        else
            sampler_moved(base + from * HY_PAGE, (i - from) * HY_PAGE, to,
                          o == MIGRATE_MOVED || o == MIGRATE_THERE);
    }
}

/* What became of the pages, and the time that it took; false: it cannot be done. */
static bool make(struct carrier *c, const struct page_move *move, struct migrate_pass *pass,
                 struct migrate_result *ret, uint64_t *ret_spent)
{
    uint64_t start = emulator_clock_ns();
    /* Before: what others were given meanwhile is not ours any more. */
    if (!policy_charge(move->to, move->bytes, false))
        return false;
    int r = migrate(&c->how, move->base, move->bytes, move->to, ret);
    if (r == 0)
        note_outcomes(c->beside, move->base, move->bytes / HY_PAGE, move->to, ret);
    if (move->to == HY_DRAM) {
        books_settle(move->bytes);
    } else {
        policy_discharge(HY_PM, move->bytes); /* it was only a question */
        books_settle(0);
    }
    if (r != 0)
        return false;
    *ret_spent = emulator_clock_ns() - start;
    pass->refused_pages += ret->count[MIGRATE_REFUSED] + ret->count[MIGRATE_FULL];
    *(move->to == HY_DRAM ? &pass->up_pages : &pass->down_pages) += ret->count[MIGRATE_MOVED];
    return true;
}

bool carry_out(struct carrier *c, const struct page_move *move, struct migrate_pass *pass,
               bool fills)
{
    struct migrate_result result;
    uint64_t spent;
    if (!make(c, move, pass, &result, &spent))
        return false;
    uint64_t tried = move->bytes / HY_PAGE - result.count[MIGRATE_ABSENT];
    if (fills) {
        pace_filled(c->pace, tried);
        return result.count[MIGRATE_FULL] == 0;
    }
    pace_moved(c->pace, tried, spent);
    pace_elapsed(c->pace, spent, 0); /* time goes by meanwhile */
    if (c->moves < CARRY_KEPT)
        c->kept[c->moves++] = *move;
    else if (sampler_period() > 0)
        return result.count[MIGRATE_FULL] == 0; /* the verdict on those goes for these as well */
    c->judge->moved_pages += result.count[MIGRATE_MOVED];
    c->judge->moved_ns += spent;
    return result.count[MIGRATE_FULL] == 0;
}

bool carry_now(struct carrier *c, const struct page_move *move, struct migrate_pass *pass)
{
    struct migrate_result result;
    uint64_t spent;
    if (!make(c, move, pass, &result, &spent))
        return false;
    pace_moved(c->pace, move->bytes / HY_PAGE - result.count[MIGRATE_ABSENT], spent);
    pace_elapsed(c->pace, spent, 0);
    return result.count[MIGRATE_MOVED] > 0;
}

void carry_begin(struct carrier *c)
{
    c->moves = 0;
    c->whole = true;
}

void carry_end(struct carrier *c, bool whole)
{
    c->whole &= whole && c->moves < CARRY_KEPT;
}

void carry_count(struct carrier *c, uint64_t look_ns)
{
    struct migrate_judge *j = c->judge;
    uint64_t accesses[HY_TIERS] = {0};
    bool all = judge_waits(j) && c->moves > 0 && sampler_period() > 0;
    for (unsigned i = 0; all && i < c->moves; i++)
        all = sampler_accesses(c->kept[i].base, c->kept[i].bytes, &accesses[c->kept[i].to]);
    if (!all)
        return;
    j->accesses[HY_DRAM] += accesses[HY_DRAM];
    j->accesses[HY_PM] += accesses[HY_PM];
    j->accesses_ns += look_ns;
}

void carry_back(struct carrier *c, struct migrate_pass *pass)
{
    struct migrate_result result;
    uint64_t spent;
    /* What came to DRAM first: it makes the room for the others. */
    for (enum hy_tier was = HY_DRAM; was < HY_TIERS; was++)
        for (unsigned i = 0; c->whole && i < c->moves; i++) {
            struct page_move back = c->kept[i];
            back.to = was == HY_DRAM ? HY_PM : HY_DRAM;
            if (c->kept[i].to == was && sampler_all_on(back.base, back.bytes, was) &&
                make(c, &back, pass, &result, &spent))
                pace_moved(c->pace, back.bytes / HY_PAGE, spent);
        }
    c->moves = 0;
}
