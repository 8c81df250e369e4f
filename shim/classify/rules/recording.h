/* SPDX-License-Identifier: BSD-2-Clause
 * Recordings of counters: text, one window a line, made by HYBRID_RECORD and read by
 * HYBRID_COUNTERS=replay:FILE. Pure.
 *
 *     hybrid-recording 1
 *     source sde:::pmemu                where the counts came from, up to 63 bytes
 *     # a comment
 *     w elapsed-ns=100000000 busy-ns=800000000 reads=1250000 reads-pm=0
 *
 * The names are those of WINDOW_FIELDS; a field that was not counted is left out. */
#ifndef HYBRID_CLASSIFY_RULES_RECORDING_H
#define HYBRID_CLASSIFY_RULES_RECORDING_H

#include "classify/rules/window.h"
#include "settings/rules/options.h"

#define RECORDING_VERSION    1
#define RECORDING_MAX_BYTES  ((size_t)64 << 20)
#define RECORDING_SOURCE_CAP 64
#define RECORDING_LINE_CAP   1024 /* holds any window, and header or source lines */

/* A cursor over the text, which has to stay where it is. */
struct recording {
    const char *at, *end;
    unsigned line;
    char source[RECORDING_SOURCE_CAP]; /* of the lines read so far */
};

/* -EINVAL and a message: not a recording, or of another version. */
int recording_open(struct recording *r, const char *text, size_t len, hy_diag_fn diag, void *ctx);
/* 1: *ret is the next window; 0: there is none. -EINVAL and a message: a line is wrong; it
 * is passed over, and the next call goes on behind it. */
int recording_next(struct recording *r, struct window *ret, hy_diag_fn diag, void *ctx);

/* Lines with their newline; the length. RECORDING_LINE_CAP bytes are enough. */
size_t recording_write_header(const char *source, char *buf, size_t cap);
size_t recording_write_window(const struct window *w, char *buf, size_t cap);

#endif
