/* SPDX-License-Identifier: BSD-2-Clause
 * Manual pages from a template and tables of the sources, so that they cannot disagree. */
#ifndef DOCS_ROFF_H
#define DOCS_ROFF_H

void roff_text(const char *text);
/* Alternatives with '|' between them, what the user fills in (upper case) slanted. */
void roff_allowed(const char *allowed);

struct roff_part {
    const char *marker; /* a line of the template: "@OPTIONS@" */
    void (*put)(void);
};

/* The template on stdout, @VERSION@ replaced and each part, once, at its marker. The exit
 * status of the program, which `usage` names. */
int roff_fill(int argc, char **argv, const char *usage, const struct roff_part *parts, int n);

#endif
