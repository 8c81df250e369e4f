/* SPDX-License-Identifier: BSD-2-Clause
 * Templates of manual pages. See roff.h. */
#include "roff.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void roff_text(const char *text)
{
    for (; *text; text++)
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
}

void roff_allowed(const char *allowed)
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
            roff_text((char[]){*allowed, '\0'});
    }
    fputs("\\fR\n", stdout);
}

/* Which part's line this is; -1: none. */
static int part_of(const char *line, const struct roff_part *parts, int n)
{
    size_t len = strcspn(line, "\n");
    for (int i = 0; i < n; i++)
        if (strlen(parts[i].marker) == len && memcmp(parts[i].marker, line, len) == 0)
            return i;
    return -1;
}

int roff_fill(int argc, char **argv, const char *usage, const struct roff_part *parts, int n)
{
    char line[1024];
    FILE *in = argc == 3 ? fopen(argv[1], "r") : NULL;
    int found = 0;

    if (!in) {
        fprintf(stderr, "usage: %s TEMPLATE VERSION\n", usage);
        return 2;
    }
    while (fgets(line, sizeof(line), in)) {
        char *version = strstr(line, "@VERSION@");
        int part = part_of(line, parts, n);

        if (part >= 0) {
            found++;
            parts[part].put();
        } else if (version) {
            printf("%.*s%s%s", (int)(version - line), line, argv[2], version + strlen("@VERSION@"));
        } else {
            fputs(line, stdout);
        }
    }
    fclose(in);
    if (found != n || fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: %s\n", usage, found != n ? "markers are missing" : "cannot write");
        return 1;
    }
    return 0;
}
