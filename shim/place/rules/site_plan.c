/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/site_plan_search.h"

#include <string.h>

uint64_t site_plan_charge(uint64_t block)
{
    return hy_align_up(HY_MAX(block, (uint64_t)1), HY_PAGE);
}

/* A set that is better by less than the prediction errs is not known to be better. */
#define PREDICTION_ERROR 0.02

/* --- what a line is worth --------------------------------------------------------- */

/* In each behaviour. */
struct worths {
    struct line_worth in[PROFILE_BEHAVIOURS];
};

static double reads_in(const struct plan_work *k, const struct plan_site *s, unsigned b)
{
    return k->n > 1 ? s->reads * (double)s->reads_in[b] : s->reads;
}

static double writes_in(const struct plan_work *k, const struct plan_site *s, unsigned b)
{
    return k->n > 1 ? s->writes * (double)s->writes_in[b] : s->writes;
}

static double worth_of(const struct plan_work *k, const struct plan_site *s, const struct worths *w)
{
    double worth = 0;

    for (unsigned b = 0; k && b < k->n; b++)
        worth += reads_in(k, s, b) * w->in[b].read_ns + writes_in(k, s, b) * w->in[b].write_ns;
    return worth;
}

/* --- what is chosen from -------------------------------------------------------- */

unsigned site_plan_blocks(const struct plan_site *s, uint64_t *ret_block)
{
    uint64_t block = s->block != 0 && s->block < s->bytes ? s->block : HY_MAX(s->bytes, 1u);
    if (s->parts)
        block = HY_MIN(block, HY_MAX(PLAN_SPLIT, s->bytes / UINT16_MAX + 1));
    uint64_t count = HY_MIN(HY_MAX((s->bytes + block / 2) / block, 1u), UINT16_MAX);
    uint64_t each = HY_MAX(s->bytes / count, 1u);

    /* Small blocks share pages: together they take what they are. */
    *ret_block = block < HY_PAGE ? each : site_plan_charge(each);
    return (unsigned)count;
}

static struct plan_item item_of(const struct plan_work *k, const struct plan_site *s,
                                unsigned index, const struct worths *w)
{
    struct plan_item it = {
        .index = (uint16_t)index, .held = s->held ? s->held : PLAN_ALWAYS, .key = s->key};

    it.count = site_plan_blocks(s, &it.block);
    it.worth = worth_of(k, s, w) / (double)it.count;
    it.density = it.worth / (double)it.block;
    return it;
}

/* A level of it is as a site of its own, of so many bytes. */
static struct plan_item item_of_level(const struct plan_work *k, const struct plan_site *s,
                                      unsigned index, const struct worths *w, unsigned level)
{
    struct plan_site part = *s;
    double bytes, lines;

    site_heat_level(s->heat, s->level, level, &bytes, &lines);
    part.bytes = (uint64_t)((double)s->bytes * bytes);
    struct plan_item it = item_of(k, &part, index, w);
    it.worth *= lines;
    it.density *= lines;
    it.level = (uint8_t)level;
    return it;
}

static unsigned items_of(const struct plan_work *k, const struct plan_site *s, unsigned index,
                         const struct worths *w, unsigned room, struct plan_item *ret)
{
    unsigned n = 0;

    if (!s->heat || !s->parts || room <= HEAT_LEVELS) {
        *ret = item_of(k, s, index, w);
        return 1;
    }
    for (unsigned level = 0; level <= HEAT_LEVELS; level++)
        if (memchr(s->level, (int)level, sizeof(s->level)))
            ret[n++] = item_of_level(k, s, index, w, level);
    return n;
}

/* --- the plan -------------------------------------------------------------------------- */

static double part_on_dram(const struct plan_site *s, const struct plan_tier *p)
{
    if (p->dram_bytes == 0)
        return 0;
    double part =
        p->why == PLAN_PART && s->bytes > 0 ? (double)p->dram_bytes / (double)s->bytes : 1;
    if (s->heat && s->parts)
        return site_heat_met(s->heat, s->level, part);
    return HY_MIN(part, 1.0);
}

/* Lines on PM in a behaviour. */
static void left_on_pm(const struct plan_work *k, const struct plan_site *site,
                       const struct site_plan *plan, unsigned b, double *ret_reads,
                       double *ret_writes)
{
    double reads = k->in[b].reads, writes = k->in[b].writes;

    for (unsigned i = 0; i < plan->n; i++) {
        double part = part_on_dram(&site[i], &plan->place[i]);

        reads -= part * reads_in(k, &site[i], b);
        writes -= part * writes_in(k, &site[i], b);
    }
    *ret_reads = HY_MAX(reads, 0.0);
    *ret_writes = HY_MAX(writes, 0.0);
}

static double share(double part, double all)
{
    return all > 0 ? part / all : 0;
}

struct work site_plan_lines(const struct plan_work *k, const struct plan_site *site,
                            const struct site_plan *plan)
{
    struct work sum = {0};

    for (unsigned b = 0; b < k->n; b++) {
        double r, w;

        left_on_pm(k, site, plan, b, &r, &w);
        sum.reads += k->in[b].reads;
        sum.writes += k->in[b].writes;
        sum.pm_reads += r;
        sum.pm_writes += w;
    }
    sum.pm_reads = share(sum.pm_reads, sum.reads);
    sum.pm_writes = share(sum.pm_writes, sum.writes);
    return sum;
}

double site_plan_time(const struct machine_figures *f, const struct plan_work *k,
                      const struct plan_site *site, const struct site_plan *plan)
{
    double time = 0;

    for (unsigned b = 0; b < k->n; b++) {
        const struct work *in = &k->in[b];
        double r, w;

        left_on_pm(k, site, plan, b, &r, &w);
        time += work_time(f, in, share(r, in->reads), share(w, in->writes), in->threads).total_ns;
    }
    return time;
}

/* With its behaviours one after the other, or as if they were mixed. */
static double time_of(const struct machine_figures *f, const struct plan_work *k,
                      const struct plan_site *site, const struct site_plan *plan, bool each)
{
    if (each)
        return site_plan_time(f, k, site, plan);
    struct work at = site_plan_lines(k, site, plan);
    return work_time(f, &k->all, at.pm_reads, at.pm_writes, k->all.threads).total_ns;
}

double site_plan_time_at(const struct machine_figures *f, const struct plan_work *k, double pm)
{
    double time = 0;

    for (unsigned b = 0; b < k->n; b++)
        time += work_time(f, &k->in[b], pm, pm, k->in[b].threads).total_ns;
    return time;
}

/* A line's worth in each behaviour, or on average of the run in all of them, as the plan leaves
 * them; NULL: with all on PM. */
static void find_worths(const struct machine_figures *f, const struct plan_work *k,
                        const struct plan_site *site, const struct site_plan *plan, bool each,
                        struct worths *ret)
{
    struct work at = k->all;

    at.pm_reads = at.pm_writes = 1;
    if (plan && !each)
        at = site_plan_lines(k, site, plan);
    if (!each)
        ret->in[0] = work_line_worth(f, &k->all, at.pm_reads, at.pm_writes);
    for (unsigned b = 0; b < k->n; b++) {
        const struct work *in = &k->in[b];
        double r = in->reads, w = in->writes;

        if (plan && each)
            left_on_pm(k, site, plan, b, &r, &w);
        ret->in[b] =
            each ? work_line_worth(f, in, share(r, in->reads), share(w, in->writes)) : ret->in[0];
    }
}

/* `part` of the way from the one to the other. */
static struct worths between(const struct worths *from, const struct worths *to, double part)
{
    struct worths w = *from;

    for (unsigned b = 0; b < PROFILE_BEHAVIOURS; b++) {
        w.in[b].read_ns += part * (to->in[b].read_ns - w.in[b].read_ns);
        w.in[b].write_ns += part * (to->in[b].write_ns - w.in[b].write_ns);
    }
    return w;
}

static struct line_worth mean_worth(const struct plan_work *k, const struct worths *w)
{
    double reads = 0, writes = 0;
    struct line_worth sum = {0, 0};

    for (unsigned b = 0; k && b < k->n; b++) {
        reads += k->in[b].reads;
        writes += k->in[b].writes;
        sum.read_ns += k->in[b].reads * w->in[b].read_ns;
        sum.write_ns += k->in[b].writes * w->in[b].write_ns;
    }
    return (struct line_worth){share(sum.read_ns, reads), share(sum.write_ns, writes)};
}

/* One more item of a site. */
static void place_item(const struct plan_item *it, const struct plan_site *s, uint64_t share,
                       struct plan_tier *p, bool first)
{
    bool all = (first || p->why == PLAN_CHOSEN) && it->best == it->count;

    p->dram_bytes += (uint64_t)it->best * it->block;
    p->tier = p->dram_bytes > 0 ? HY_DRAM : HY_PM;
    p->saves_ns += it->worth * it->count;
    if (s->fixed) {
        p->why = PLAN_NAMED;
        p->tier = s->tier;
        p->dram_bytes = s->tier == HY_DRAM ? it->count * it->block : 0;
    } else if (all) {
        p->why = PLAN_CHOSEN;
    } else if (p->dram_bytes > 0) {
        p->why = PLAN_PART;
    } else if (p->saves_ns <= 0) {
        p->why = PLAN_IDLE;
    } else {
        p->why = it->block > share ? PLAN_TOO_LARGE : PLAN_NO_ROOM;
    }
}

/* Sites on DRAM first, each part by density, of levels that of the best one. */
static void rank(struct site_plan *plan, const struct plan_item *it, unsigned n)
{
    unsigned at = 0;

    for (unsigned i = 0; i < plan->n; i++)
        plan->place[i].rank = UINT16_MAX;
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned k = 0; k < n; k++) {
            struct plan_tier *p = &plan->place[it[k].index];

            if ((p->tier == HY_DRAM) != (pass == 0) || p->rank != UINT16_MAX)
                continue;
            plan->order[at] = it[k].index;
            p->rank = (uint16_t)at++;
        }
    }
}

/* Of each site one item or its levels, best first; how many. */
static unsigned make_items(const struct plan_work *work, const struct worths *w,
                           const struct plan_site *site, unsigned n, struct plan_item *it)
{
    unsigned n_items = 0;

    for (unsigned i = 0; i < n; i++)
        n_items += items_of(work, &site[i], i, w, PLAN_ITEMS - n_items - (n - i - 1), it + n_items);
    plan_sort(it, n_items);
    return n_items;
}

/* The best set if a line is worth `w`. `it` has room for all sites. */
static void plan_with(const struct plan_work *work, const struct worths *w,
                      const struct plan_site *site, unsigned n, uint64_t share,
                      struct plan_item *it, struct site_plan *ret)
{
    struct line_worth mean = mean_worth(work, w);
    static const struct plan_item none;
    uint64_t named = 0, free;
    unsigned wanted = 0, n_items = make_items(work, w, site, n, it);
    uint32_t placed[(PLAN_MAX + 31) / 32] = {0};

    for (unsigned k = 0; k < n_items; k++)
        if (site[it[k].index].fixed && site[it[k].index].tier == HY_DRAM)
            named += it[k].count * it[k].block;
    free = share > named ? share - named : 0;
    /* The candidates to the front, in their order, and back after the search. */
    struct plan_item *candidate = it + n_items;
    for (unsigned k = 0; k < n_items; k++)
        if (!site[it[k].index].fixed && it[k].worth > 0 && it[k].block <= free)
            candidate[wanted++] = it[k];
    memset(ret, 0, sizeof(*ret));
    ret->n = n;
    ret->share = share;
    ret->read_ns = mean.read_ns;
    ret->write_ns = mean.write_ns;
    ret->exact = plan_search(candidate, wanted, free);
    for (unsigned k = 0, c = 0; k < n_items; k++) {
        const struct plan_item *found = c < wanted ? &candidate[c] : &none;
        unsigned i = it[k].index;
        bool first = (placed[i / 32] >> i % 32 & 1) == 0;

        if (c < wanted && found->index == i && found->level == it[k].level) {
            it[k].best = found->best;
            c++;
        }
        placed[i / 32] |= 1u << i % 32;
        place_item(&it[k], &site[i], share, &ret->place[i], first);
    }
    for (unsigned i = 0; i < n; i++)
        ret->dram_bytes += ret->place[i].dram_bytes;
    rank(ret, it, n_items);
}

void site_plan_make(const struct machine_figures *f, const struct plan_work *work,
                    const struct plan_site *site, unsigned n, uint64_t share,
                    struct plan_scratch *scratch, struct site_plan *ret)
{
    /* The worth of a line changes with what is on DRAM already: again from there, where that is
     * surely better. The prediction is for a run that does the same all the time; a program
     * writes in bursts that fill PM while they last, and then a line is worth what it is worth
     * with all on PM, from where the first set comes. Then what is known of the bursts is asked:
     * one that is shorter than a window is still not seen, so again it must be surely better. */
    static const double rest[] = {1, 0, 0.25, 0.5, 0.75};
    struct plan_item *it = scratch->item;
    struct site_plan *other = &scratch->other;
    struct worths all = {0}, here = {0}, w;

    n = HY_MIN(n, (unsigned)PLAN_MAX);
    if (work != NULL)
        find_worths(f, work, site, NULL, false, &all);
    plan_with(work, &all, site, n, share, it, ret);
    for (int each = 0; work != NULL && each < (work->n > 1 ? 2 : 1); each++) {
        double t, time = time_of(f, work, site, ret, each);

        if (each)
            find_worths(f, work, site, NULL, true, &all);
        find_worths(f, work, site, ret, each, &here);
        for (unsigned i = each ? 0 : 1; i < HY_ARRAY_SIZE(rest); i++) {
            w = between(&here, &all, rest[i]);
            plan_with(work, &w, site, n, share, it, other);
            t = time_of(f, work, site, other, each);
            if (t >= time * (1 - PREDICTION_ERROR))
                continue;
            time = t;
            *ret = *other;
            find_worths(f, work, site, ret, each, &here);
        }
    }
}
