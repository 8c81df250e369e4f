/* SPDX-License-Identifier: BSD-2-Clause
 * Writes libhybrid.7 from its template and the table of options.
 * gen-options TEMPLATE VERSION > PAGE */
#include <stdio.h>

#include "decide/options.h"
#include "decide/text.h"
#include "roff.h"

static void put_option(const struct hy_opt_info *info)
{
    char lo[24], hi[24];

    printf(".TP\n\\fB%s\\fR=", info->env);
    roff_allowed(info->allowed);
    roff_text(info->help);
    printf("\n.br\nDefault: \\fB");
    roff_text(info->dflt);
    printf("\\fR.");
    if (info->max > 0) {
        text_format_size(info->min, lo, sizeof(lo));
        text_format_size(info->max, hi, sizeof(hi));
        printf(" Sizes from %s to %s.", lo, hi);
    }
    if (info->env_only)
        printf(" Not in profiles.\n");
    else
        printf(" In profiles: \\fB%s\\fR.\n", info->key);
}

static void put_options(void)
{
    for (unsigned i = 0; i < OPT_COUNT; i++)
        put_option(options_info((enum hy_opt_id)i));
}

int main(int argc, char **argv)
{
    static const struct roff_part parts[] = {{"@OPTIONS@", put_options}};
    return roff_fill(argc, argv, "gen-options", parts, 1);
}
