/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl top: what a screen of it says. ctl_top.c has the terminal and the loop. */
#ifndef HYBRID_TOOLS_CTL_TOP_H
#define HYBRID_TOOLS_CTL_TOP_H

#include "tools/ctl/registry.h"

enum top_key {
    TOP_DRAM,
    TOP_PM,
    TOP_MOVES,
    TOP_WRITTEN,
    TOP_THREADS,
    TOP_SLOWDOWN,
    TOP_PID,
    TOP_NAME,
    TOP_KEYS
};

/* Names of the keys ("dram|pm|..."), and the letter of each. */
extern const char top_keys[];
extern const char top_letters[];

/* A participant and what it moved a second between its last two heartbeats. */
struct top_row {
    struct registry_entry entry;
    uint64_t up_rate, down_rate;
};

struct top_screen {
    const char *path;
    bool exists;
    struct registry_view view;
    struct top_row row[REGISTRY_SLOTS]; /* view.n of them */
    enum top_key key;
    bool reverse;
};

/* A new look; rates come from the rows of the one before. An error as ctl_registry_look. */
int top_look(struct top_screen *s);
void top_sort(struct top_screen *s);
/* Lines of at most `width` columns, at most `height` of them, each with its end. `colour`
 * and `live` (a hint of the keys at the bottom, ends that clear the rest of a line). */
void top_print(const struct top_screen *s, FILE *to, unsigned width, unsigned height, bool colour,
               bool live);
void top_json(const struct top_screen *s, FILE *to);

#endif
