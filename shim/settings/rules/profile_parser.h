/* SPDX-License-Identifier: BSD-2-Clause
 * Between profile.c, which takes a file apart, and profile_keys.c, which takes the values. */
#ifndef HYBRID_SETTINGS_RULES_PROFILE_PARSER_H
#define HYBRID_SETTINGS_RULES_PROFILE_PARSER_H

#include "settings/rules/profile.h"

#define PROFILE_BUCKETS (2 * PROFILE_MAX_SITES) /* power of two, never more than half full */

enum section {
    SEC_NONE,
    SEC_SKIP,
    SEC_APP,
    SEC_OPTIONS,
    SEC_SITE,
    SEC_THREADS,
    SEC_MACHINE,
    SEC_RECORDED,
    SEC_PHASES,
    SEC_MODULES,
    SEC_TASKS,
    SEC_BEHAVIOURS,
};

struct parser {
    struct profile *p;
    const char *name;
    hy_diag_fn diag;
    void *ctx;
    const char *at, *end;
    unsigned line;
    bool key_pending; /* a line went to inih that must come back as a key */
    unsigned problems;
    bool known_section; /* seen; until then nothing has been written to *p */
    enum section section;
    uint64_t seen; /* keys of this section, by their index */
    struct profile_site *site;
    unsigned sites_refused;
    uint16_t bucket[PROFILE_BUCKETS]; /* site index + 1 by hash of its name */
};

/* Enough has been told: only count. Asked before a message is put together, as
 * a hostile file has a million of them. */
bool profile_hushed(struct parser *ps);
void profile_tell(struct parser *ps, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void profile_tell_value(struct parser *ps, const char *key, const char *value,
                        const char *expected);
/* `near`: the word that was probably meant, or empty. */
void profile_tell_unknown(struct parser *ps, const char *what, const char *name, size_t len,
                          const char *near, size_t near_len);
void profile_tell_not_in_list(struct parser *ps, const char *what, const char *name, size_t len,
                              const char *list);

/* False: it is none, and nothing is taken. */
bool profile_set_frame(struct hy_frame *frame, const char *value); /* a build-id and an offset */
bool profile_set_class(enum hy_class *field, const char *value);
bool profile_set_slowdown(double *field, const char *value);
/* A key of [phases], [behaviours] or [tasks]. */
void profile_numbered_key(struct parser *ps, const char *name, const char *value);
/* A list of at most `most` whole numbers, as of a site's lines in each behaviour; how many, 0: it
 * is no such list. */
unsigned profile_counts(const char *value, uint64_t *ret, unsigned most);
/* What a site tells of the parts of its blocks; false: it is no such list. */
bool profile_heat(const char *value, struct profile_site *ret);
/* When all is read: lists that are not of as many as there are behaviours go. */
void profile_check_behaviours(struct parser *ps);
/* A key of the present section. */
void profile_key(struct parser *ps, const char *name, const char *value);

#endif
