/* SPDX-License-Identifier: BSD-2-Clause
 * Recordings of programs whose class and slowdown on PM are known: '# class', '# slowdown'
 * (measured: time on PM over time on DRAM) in each file. argv: the files, made by
 * HYBRID_RECORD on the emulated machine from the middle of the programs' work. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decide/classifier.h"
#include "decide/options.h"
#include "decide/recording.h"

#define FIRST_WINDOWS 10 /* in which the class must be found */
#define CLOSE         0.10
#define FAR           0.30

static char **files;
static int n_files;

static void hear(void *ctx, const char *message)
{
    fail_msg("%s: %s", (const char *)ctx, message);
}

static size_t load(const char *path, char *text, size_t cap)
{
    FILE *f = fopen(path, "r");
    size_t n;

    if (!f)
        fail_msg("%s cannot be opened", path);
    n = fread(text, 1, cap - 1, f);
    fclose(f);
    text[n] = '\0';
    return n;
}

static enum hy_class wanted_class(const char *text)
{
    char word[16] = "";
    const char *at = strstr(text, "\n# class ");

    assert_non_null(at);
    assert_int_equal(sscanf(at, "\n# class %15s", word), 1);
    for (int c = 0; c < HY_CLASS_MAX; c++)
        if (strcmp(word, hy_class_name((enum hy_class)c)) == 0)
            return (enum hy_class)c;
    fail_msg("class %s", word);
    return HY_CLASS_UNKNOWN;
}

static double wanted_slowdown(const char *text)
{
    const char *at = strstr(text, "\n# slowdown ");

    assert_non_null(at);
    return atof(at + strlen("\n# slowdown "));
}

static void test_recordings(void **state)
{
    static char text[64 << 10];
    struct class_rules rules = class_rules_default();
    struct machine_figures f;
    int near = 0;

    (void)state;
    assert_true(n_files >= 24);
    assert_int_equal(figures_default("pram", &f), 0);
    for (int i = 0; i < n_files; i++) {
        const char *name = strrchr(files[i], '/') ? strrchr(files[i], '/') + 1 : files[i];
        size_t len = load(files[i], text, sizeof(text));
        double slowdown = wanted_slowdown(text), off;
        struct classifier c;
        struct recording r;
        struct window w;
        int n = 0;

        classifier_init(&c, &rules);
        assert_int_equal(recording_open(&r, text, len, hear, files[i]), 0);
        while (n < FIRST_WINDOWS && recording_next(&r, &w, hear, files[i]) == 1) {
            classifier_feed(&c, &f, &w);
            n++;
        }
        off = c.now.slowdown / slowdown - 1;
        print_message("%-18s %-9s %5.2f predicted, %5.2f measured: %+5.1f %%\n", name,
                      hy_class_name(c.now.cls), c.now.slowdown, slowdown, 100 * off);
        if (c.now.cls != wanted_class(text))
            fail_msg("%s: %s", name, hy_class_name(c.now.cls));
        if (fabs(off) > FAR)
            fail_msg("%s: slowdown %.2f for %.2f", name, c.now.slowdown, slowdown);
        near += fabs(off) <= CLOSE;
    }
    print_message("%d of %d within %.0f %%\n", near, n_files, 100 * CLOSE);
    assert_true(near * 4 >= n_files * 3); /* nine of twelve */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recordings)};

    files = argv + 1;
    n_files = argc - 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
