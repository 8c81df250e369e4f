/* SPDX-License-Identifier: BSD-2-Clause
 * Recordings of programs whose class is known: '# class' in each file, '# machine', and
 * '# slowdown' (measured: time on PM over time on DRAM) or '# below', which it is. argv: the
 * files; those below real/ are counts that others published of real processors, the rest is
 * from the emulated machine, by bench/classes/classes.py --recordings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "classify/rules/classes.h"
#include "classify/rules/recording.h"
#include "classify/rules/tally.h"
#include "settings/rules/options.h"

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

/* The word behind `key`, "" without it. */
static const char *fact(const char *text, const char *key)
{
    static char word[64];
    const char *at = strstr(text, key);

    word[0] = '\0';
    if (at)
        assert_int_equal(sscanf(at + strlen(key), " %63s", word), 1);
    return word;
}

/* *ret_slowdown: of all windows together. */
static struct classification classify(const char *path, const char *text, size_t len,
                                      double *ret_slowdown)
{
    struct tally tally = {0};
    struct class_rules rules = class_rules_default();
    struct machine_figures f;
    struct classifier c;
    struct recording r;
    struct window w;

    classifier_init(&c, &rules);
    assert_int_equal(figures_default(fact(text, "\n# machine "), &f), 0);
    assert_int_equal(recording_open(&r, text, len, hear, (void *)(uintptr_t)path), 0);
    for (int n = 0; n < FIRST_WINDOWS && recording_next(&r, &w, hear, (void *)(uintptr_t)path) == 1;
         n++) {
        classifier_feed(&c, &f, &w);
        tally_add(&tally, &f, &w);
    }
    *ret_slowdown = tally.pm_ns / tally.dram_ns;
    return c.now;
}

static void test_recordings(void **state)
{
    static char text[64 << 10];
    int near = 0, told = 0, real = 0;

    (void)state;
    for (int i = 0; i < n_files; i++) {
        const char *name = strrchr(files[i], '/') ? strrchr(files[i], '/') + 1 : files[i];
        size_t len = load(files[i], text, sizeof(text));
        double told_slowdown;
        struct classification c = classify(files[i], text, len, &told_slowdown);
        double slowdown = atof(fact(text, "\n# slowdown ")), below = atof(fact(text, "\n# below "));

        real += strstr(files[i], "/real/") != NULL;
        if (c.cls != wanted_class(text))
            fail_msg("%s: %s", name, hy_class_name(c.cls));
        if (below > 0 && told_slowdown >= below)
            fail_msg("%s: slowdown %.2f is not below %.2f", name, told_slowdown, below);
        if (slowdown > 0) {
            double off = told_slowdown / slowdown - 1;
            print_message("%-28s %-9s %5.2f predicted, %5.2f measured: %+5.1f %%\n", name,
                          hy_class_name(c.cls), told_slowdown, slowdown, 100 * off);
            if (fabs(off) > FAR)
                fail_msg("%s: slowdown %.2f for %.2f", name, told_slowdown, slowdown);
            told++;
            near += fabs(off) <= CLOSE;
        }
    }
    print_message("%d of %d within %.0f %%; %d recordings of real processors\n", near, told,
                  100 * CLOSE, real);
    assert_true(told >= 24 && real >= 7);
    assert_true(near * 4 >= told * 3); /* nine of twelve */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recordings)};

    files = argv + 1;
    n_files = argc - 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
