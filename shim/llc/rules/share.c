/* SPDX-License-Identifier: BSD-2-Clause */
#include "llc/rules/share.h"

/* The two numbers that the search compares. */
#define FEW 1u
#define ALL 2u

static bool half(double part, double whole)
{
    return whole > 0 && 2 * part >= whole;
}

bool llc_streams(const struct classification *c, const struct window *w, uint64_t thrashing,
                 uint64_t touched)
{
    if (c->weak || (c->cls != HY_CLASS_BANDWIDTH && c->cls != HY_CLASS_LATENCY))
        return false;
    if (window_has(w, WINDOW_foreseen) && window_has(w, WINDOW_reads))
        return half(window_get(w, WINDOW_foreseen), window_get(w, WINDOW_reads));
    return half((double)thrashing, (double)touched);
}

/* No way is better than another before it was tried. */
static double alike(void *unused, unsigned ways)
{
    (void)unused, (void)ways;
    return 1;
}

/* No thread moves: a way less shows in the first window. What it had in the others may serve it for
 * longer; that ends as others need the place, and is_behind looks for it. */
static void begin(struct llc_share *s)
{
    s->search.trial.at_once = true;
    pacing_search_begin(&s->search, ALL);
}

static void begin_or_end(struct llc_share *s, struct regret *purse)
{
    if (s->turn.paced)
        begin(s);
    else
        pacing_search_stop(&s->search, purse);
}

/* It was as fast, and is behind itself now by more than what windows differ by. */
static bool is_behind(const struct llc_share *s, double rate)
{
    const struct thread_trial *t = &s->search.trial;

    return llc_share_kept(s) && t->count == 0 &&
           rate < (1 - TRIAL_WRONG - 2 * t->spread) * t->level;
}

/* Given back: what that window lost was lost by trying, too. */
static void give_back(struct llc_share *s, struct regret *purse, double rate, double elapsed_ns)
{
    struct regret_trial t = {0};

    s->given_back++;
    regret_balance(purse, &t, (1 - rate / s->search.trial.level) * elapsed_ns);
    regret_end(purse, &t, t.lost_ns);
    begin(s);
}

void llc_share_window(struct llc_share *s, bool wanted, struct regret *purse, double run_ns,
                      double instructions, double elapsed_ns)
{
    struct thread_trial *t = &s->search.trial;
    double level, spread;
    bool kept;

    if (pacing_settle(&s->turn, wanted && instructions > 0))
        begin_or_end(s, purse);
    if (!s->turn.paced || !(elapsed_ns > 0))
        return;
    if (is_behind(s, instructions / elapsed_ns))
        give_back(s, purse, instructions / elapsed_ns, elapsed_ns);
    kept = llc_share_kept(s), level = t->level, spread = t->spread;
    (void)pacing_search_window(&s->search, purse, run_ns, instructions, elapsed_ns, LLC_GIVES,
                               alike, NULL);
    /* It is behind what it was with all ways, not only behind its own first windows with few. */
    if (!kept && llc_share_kept(s))
        t->level = level, t->spread = spread;
}

bool llc_share_few(const struct llc_share *s)
{
    return pacing_search_count(&s->search) == FEW;
}

bool llc_share_kept(const struct llc_share *s)
{
    return s->search.stage == PACING_KEPT && s->search.count == FEW;
}
