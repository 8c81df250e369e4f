/* SPDX-License-Identifier: BSD-2-Clause
 * Any file given as recording: no crash, printable messages, an end; every window that is
 * read can be written and read again; and whatever the windows say, the classifier gives
 * numbers that are numbers, within their bounds. */
#include "fuzz.h"

#include <errno.h>
#include <math.h>

#include "classify/rules/classes.h"
#include "classify/rules/recording.h"

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    check_message(message);
}

static void check_written(const struct window *w)
{
    char text[2 * RECORDING_LINE_CAP];
    struct recording r;
    struct window again;
    size_t n = recording_write_header("fuzz", text, RECORDING_LINE_CAP);

    n += recording_write_window(w, text + n, RECORDING_LINE_CAP);
    CHECK(recording_open(&r, text, n, hear, NULL) == 0);
    CHECK(recording_next(&r, &again, hear, NULL) == 1);
    CHECK(memcmp(w, &again, sizeof(again)) == 0);
}

static void check_result(const struct classification *c)
{
    CHECK((unsigned)c->cls < HY_CLASS_MAX);
    CHECK(c->confidence >= 0 && c->confidence <= 1);
    CHECK(c->write_share >= 0 && c->write_share <= 1);
    if (c->windows > 0 && !c->weak) {
        CHECK(c->slowdown > 0 && c->slowdown <= 1000);
        CHECK(c->latency_slowdown > 0 && c->latency_slowdown <= 1000);
        CHECK(c->bandwidth_slowdown > 0 && c->bandwidth_slowdown <= 1000);
    }
    for (int t = 0; t < HY_TIERS; t++)
        CHECK(isfinite(c->ebw[t]) && c->ebw[t] >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct class_rules rules = class_rules_default();
    struct machine_figures f[8];
    struct classifier c[8];
    struct recording r;
    struct window w;
    int e;

    CHECK(figures_count() <= 8);
    for (size_t i = 0; i < figures_count(); i++) {
        CHECK(figures_default(figures_name(i), &f[i]) == 0);
        classifier_init(&c[i], &rules);
    }
    if (recording_open(&r, (const char *)data, size, hear, NULL) != 0)
        return 0;
    while ((e = recording_next(&r, &w, hear, NULL)) != 0) {
        CHECK(e == 1 || e == -EINVAL);
        CHECK(memchr(r.source, '\0', sizeof(r.source)));
        if (e < 0)
            continue;
        CHECK(w.have != 0);
        check_written(&w);
        for (size_t i = 0; i < figures_count(); i++) {
            classifier_feed(&c[i], &f[i], &w);
            check_result(&c[i].now);
        }
    }
    return 0;
}
