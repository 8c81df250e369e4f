/* SPDX-License-Identifier: BSD-2-Clause
 * Writes libhybrid.7 from its template and the table of options.
 * gen-options TEMPLATE VERSION > PAGE */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "roff.h"
#include "tools/ctl/rules/options_words.h"

/* Limits are bytes, nanoseconds or plain numbers, by the option's type. */
static void put_limits(const struct hy_opt_info *info, const char *type)
{
    bool time = strcmp(type, "time") == 0;
    bool number = strcmp(type, "number") == 0 || strcmp(type, "threads") == 0;
    char lo[32], hi[32];

    if (number) {
        (void)snprintf(lo, sizeof(lo), "%llu", (unsigned long long)info->min);
        (void)snprintf(hi, sizeof(hi), "%llu", (unsigned long long)info->max);
    } else {
        (time ? text_format_time : text_format_size)(info->min, lo, sizeof(lo));
        (time ? text_format_time : text_format_size)(info->max, hi, sizeof(hi));
    }
    printf(" %s from %s to %s.", time ? "Times" : number ? "Numbers" : "Sizes", lo, hi);
}

static void put_option(enum hy_opt_id id)
{
    const struct hy_opt_info *info = options_info(id);
    const struct hy_opt_words *words = options_words(id);

    printf(".TP\n\\fB%s\\fR=", info->env);
    roff_allowed(info->allowed);
    roff_text(words->help);
    printf("\n.br\nDefault: \\fB");
    roff_text(info->dflt);
    printf("\\fR.");
    if (info->max > 0)
        put_limits(info, words->type);
    if (info->env_only)
        printf(" Not in profiles.\n");
    else
        printf(" In profiles: \\fB%s\\fR.\n", info->key);
}

static void put_options(void)
{
    for (unsigned i = 0; i < OPT_COUNT; i++)
        put_option((enum hy_opt_id)i);
}

int main(int argc, char **argv)
{
    static const struct roff_part parts[] = {{"@OPTIONS@", put_options}};
    return roff_fill(argc, argv, "gen-options", parts, 1);
}
