/* SPDX-License-Identifier: BSD-2-Clause
 * What single options cannot tell: contradictions between them. */
#include <string.h>

#include "base/text.h"
#include "settings/rules/options.h"

/* Each of these is told when it is set and the setting `because` makes it idle. */
static int check_idle(const struct hy_settings *s, enum hy_opt_id id, enum hy_opt_id because,
                      hy_diag_fn diag, void *ctx)
{
    char value[TEXT_QUOTE_CAP];

    if (s->source[id] == HY_FROM_DEFAULT || s->source[id] < s->source[because])
        return 0; /* nobody asked for it, or who decided `because` overrides a profile */
    options_format(s, because, value, sizeof(value));
    return options_tell(diag, ctx, "%s has no effect with %s=%s", options_info(id)->env,
                        options_info(because)->env, value);
}

static bool no_dram(struct hy_amount a)
{
    return a.value == 0;
}

/* Settings that another one leaves without effect. */
static int check_all_idle(const struct hy_settings *s, hy_diag_fn diag, void *ctx)
{
    int problems = 0;

    if (s->policy == HY_POLICY_OFF) {
        if (s->cls != HY_CLASS_UNKNOWN)
            problems += check_idle(s, OPT_CLASS, OPT_POLICY, diag, ctx);
        if (s->sites == HY_ON)
            problems += check_idle(s, OPT_SITES, OPT_POLICY, diag, ctx);
    }
    if (s->migrate == HY_MIGRATE_LAZY || s->migrate == HY_MIGRATE_EAGER) {
        if (s->policy == HY_POLICY_OFF || s->policy == HY_POLICY_PM)
            problems += check_idle(s, OPT_MIGRATE, OPT_POLICY, diag, ctx);
        else if (s->dram_allocator == HY_DRAM_NEXT)
            problems += check_idle(s, OPT_MIGRATE, OPT_DRAM_ALLOCATOR, diag, ctx);
        else if (s->pm.kind == HY_PM_FILE)
            problems += check_idle(s, OPT_MIGRATE, OPT_PM, diag, ctx);
    }
    if (s->migrate == HY_MIGRATE_OFF) {
        problems += check_idle(s, OPT_MIGRATE_INTERVAL, OPT_MIGRATE, diag, ctx);
        problems += check_idle(s, OPT_MIGRATE_RATE, OPT_MIGRATE, diag, ctx);
        problems += check_idle(s, OPT_MIGRATE_CORE, OPT_MIGRATE, diag, ctx);
    }
    if (text_is(s->registry, "none"))
        problems += check_idle(s, OPT_DRAM_SHARED, OPT_REGISTRY, diag, ctx);
    if (s->sites == HY_OFF) {
        problems += check_idle(s, OPT_SITE_MIN, OPT_SITES, diag, ctx);
        problems += check_idle(s, OPT_SITE_SAMPLE, OPT_SITES, diag, ctx);
    }
    return problems;
}

int options_check(const struct hy_settings *s, hy_diag_fn diag, void *ctx)
{
    int problems = 0;

    if (s->policy == HY_POLICY_PM && s->pm.kind == HY_PM_NONE)
        problems += options_tell(
            diag, ctx, "HYBRID_POLICY=pm contradicts HYBRID_PM=none; all memory will be DRAM");
    if (s->policy == HY_POLICY_DRAM && (no_dram(s->dram) || no_dram(s->dram_shared)))
        problems += options_tell(
            diag, ctx,
            "HYBRID_POLICY=dram contradicts %s=0; new memory will come from PM while there is room",
            no_dram(s->dram) ? "HYBRID_DRAM" : "HYBRID_DRAM_SHARED");
    if (s->policy != HY_POLICY_DRAM && s->policy != HY_POLICY_OFF && s->pm.kind == HY_PM_NONE &&
        no_dram(s->dram))
        problems += options_tell(
            diag, ctx,
            "HYBRID_PM=none with HYBRID_DRAM=0 leaves no memory; the DRAM limit is not kept");
    if (s->source[OPT_DRAM] != HY_FROM_DEFAULT && s->source[OPT_DRAM_SHARED] != HY_FROM_DEFAULT &&
        strcmp(s->registry, "none") != 0 && s->dram.is_percent == s->dram_shared.is_percent &&
        s->dram.value > s->dram_shared.value)
        problems += options_tell(diag, ctx,
                                 "HYBRID_DRAM is above HYBRID_DRAM_SHARED; the smaller one counts");
    problems += check_all_idle(s, diag, ctx);
    /* A hint, not an error: STRICT with the default START is what most people write. */
    if (s->strict && s->start > 0 && s->source[OPT_START] == HY_FROM_ENV)
        (void)options_tell(
            diag, ctx,
            "HYBRID_STRICT=1 says nothing of what only shows when placing starts (a missing "
            "libmemkind, say); with HYBRID_START=0 that is before main");
    return problems;
}

uint64_t hy_amount_bytes(struct hy_amount a, uint64_t node_bytes)
{
    if (!a.is_percent)
        return a.value;
    /* In two parts, as node_bytes * 100 can overflow. */
    return node_bytes / 100 * a.value + node_bytes % 100 * a.value / 100;
}
