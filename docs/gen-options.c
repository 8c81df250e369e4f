/* SPDX-License-Identifier: BSD-2-Clause
 * Writes libhybrid.7: the template with the table of options in the place of
 * its line @OPTIONS@, so that manual and library cannot disagree.
 * gen-options TEMPLATE VERSION > PAGE */
#include <stdio.h>
#include <string.h>

#include "decide/options.h"
#include "decide/text.h"

static void put_roff(const char *text)
{
    for (; *text; text++)
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
}

/* The alternatives, with '|' between them and what the user fills in slanted. */
static void put_allowed(const char *allowed)
{
    bool slanted = false;

    for (; *allowed; allowed++) {
        bool upper = *allowed >= 'A' && *allowed <= 'Z';

        if (upper != slanted)
            fputs(upper ? "\\fI" : "\\fR", stdout);
        slanted = upper;
        if (*allowed == '|')
            fputs("\\~|\\~", stdout);
        else
            put_roff((char[]){*allowed, '\0'});
    }
    fputs("\\fR\n", stdout);
}

static void put_option(const struct hy_opt_info *info)
{
    char lo[24], hi[24];

    printf(".TP\n\\fB%s\\fR=", info->env);
    put_allowed(info->allowed);
    put_roff(info->help);
    printf("\n.br\nDefault: \\fB");
    put_roff(info->dflt);
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

int main(int argc, char **argv)
{
    char line[1024];
    FILE *in = argc == 3 ? fopen(argv[1], "r") : NULL;
    int found = 0;

    if (!in) {
        fprintf(stderr, "usage: gen-options TEMPLATE VERSION\n");
        return 2;
    }
    while (fgets(line, sizeof(line), in)) {
        char *version = strstr(line, "@VERSION@");

        if (strcmp(line, "@OPTIONS@\n") == 0) {
            found++;
            for (unsigned i = 0; i < OPT_COUNT; i++)
                put_option(options_info((enum hy_opt_id)i));
        } else if (version) {
            printf("%.*s%s%s", (int)(version - line), line, argv[2], version + strlen("@VERSION@"));
        } else {
            fputs(line, stdout);
        }
    }
    fclose(in);
    if (found != 1 || fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gen-options: %s\n", found != 1 ? "no line @OPTIONS@" : "cannot write");
        return 1;
    }
    return 0;
}
