/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS=1. */
#include <inttypes.h>

#include "report/report_parts.h"
#include "sys/os.h"

#define TEXT_SITES 10u

static const char *human(uint64_t bytes, char buf[16])
{
    fields_bytes(bytes, buf, 16);
    return buf;
}

/* Only a profile or its plan gives sites a memory of their own. */
static bool any_tier(const site_id *ids, unsigned n)
{
    struct site_info s;
    for (unsigned i = 0; i < n; i++)
        if (sites_get(ids[i], &s) && s.has_tier)
            return true;
    return false;
}

static void text_site(struct textbuf *o, site_id id, bool tiers)
{
    struct site_info s;
    char total[16], live[16], frame[160];
    if (!sites_get(id, &s))
        return;
    textbuf_add(o, "    %12s %12s %10" PRIu64, human(s.bytes, total), human(s.live_bytes, live),
                s.count);
    if (tiers)
        textbuf_add(o, "  %-5s", s.has_tier ? hy_tier_name(s.tier) : "-");
    for (unsigned f = 0; f < s.n_frames && f < 3; f++) {
        sites_format_frame(&s.frames[f], frame, sizeof(frame));
        textbuf_add(o, "%s%s", f ? " < " : " ", frame);
        if (f == 0 && s.nth)
            textbuf_add(o, "#%u", s.nth); /* as in profiles */
    }
    textbuf_add(o, "\n");
}

static void text_sites(struct textbuf *o)
{
    site_id ids[TEXT_SITES];
    unsigned n = report_top_sites(ids, TEXT_SITES);
    bool tiers = any_tier(ids, n);

    textbuf_add(o, "  call sites: %u, the largest %u by bytes allocated\n    %12s %12s %10s%s %s\n",
                sites_count() - 1, n, "allocated", "live", "count", tiers ? "  tier " : "",
                "site < caller < caller");
    for (unsigned i = 0; i < n; i++)
        text_site(o, ids[i], tiers);
}

void report_text(const struct report *r, struct textbuf *o)
{
    char rss[16];

    textbuf_add(o, "hybrid[%d]: report of %s: ", os_pid(), r->exe);
    if (r->state != HY_STEERING) {
        textbuf_add(o, "%s; nothing was placed (%s); resident %s\n", r->state_name, r->why,
                    human(r->rss, rss));
        return;
    }
    textbuf_add(o, "policy %s, class %s, PM: %s\n", r->policy_name,
                hy_class_name(r->now.policy.cls), r->why);
    fields_tiers(o, r);
    report_lines(o, r);
    if (sites_ready() && sites_count() > 1)
        text_sites(o);
}
