/* SPDX-License-Identifier: BSD-2-Clause
 * How often the prediction comes true, on generated histories, by length of the window;
 * paper 002 has 96% at 8 on its programs' histories (figure 3). Prints the table. A stable
 * prediction is one that is the majority of the ten passes that follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

#include <cmocka.h>

#include "pages/rules/coverage.h"
#include "pages/rules/predictor.h"

#define PAGES  2000u
#define PASSES 200u
#define AHEAD  10u

/* Chances in 1024 that a page which is written / not written stays so, and lengths of
 * phases after which the pages' roles change (0: never). */
struct kind {
    const char *name;
    unsigned stays_wd, stays_un, phase;
    double least; /* of the next pass, at window 8 */
};

static const struct kind kinds[] = {
    {"stable", 1023, 1023, 0, 0.99},
    {"bursts of 50 passes", 1004, 1004, 0, 0.90},
    {"phases of 40 passes", 1013, 1023, 40, 0.90},
    {"phases of 20 passes", 1013, 1023, 20, 0.80},
    {"bursts of 10 passes", 922, 1004, 0, 0.75},
    {"random", 512, 512, 0, 0.45},
};

struct result {
    double next, ahead;
};

static struct result measure(const struct kind *k, unsigned window)
{
    struct predictor p = predictor_of(window);
    uint64_t random = 17, right = 0, stable = 0, all = 0;
    for (unsigned page = 0; page < PAGES; page++) {
        static bool wd[PASSES + AHEAD];
        bool now = random_next(&random) % 2;
        for (unsigned i = 0; i < PASSES + AHEAD; i++) {
            if (k->phase && i % k->phase == 0)
                now = random_next(&random) % 2;
            unsigned stays = now ? k->stays_wd : k->stays_un;
            bool odd = random_next(&random) % 1024 >= stays;
            wd[i] = now != odd;
            if (!k->phase)
                now = wd[i]; /* a burst lasts; in a phase a pass may only be an exception */
        }
        uint32_t passes = 0;
        for (unsigned i = 0; i < PASSES; i++) {
            unsigned n = 0;
            if (i >= PREDICT_WINDOW_MAX) {
                bool said = predict(&p, passes) != UN_WD;
                for (unsigned a = 0; a < AHEAD; a++)
                    n += wd[i + a] == said;
                right += wd[i] == said;
                stable += 2 * n > AHEAD;
                all++;
            }
            passes = passes << 1 | wd[i];
        }
    }
    return (struct result){(double)right / (double)all, (double)stable / (double)all};
}

static void accuracy_by_window(void **state)
{
    static const unsigned windows[] = {4, 6, 7, 8, 9, 10, 16};
    (void)state;
    printf("%-22s", "next pass / next ten");
    for (size_t w = 0; w < HY_ARRAY_SIZE(windows); w++)
        printf("%13u", windows[w]);
    printf("\n");
    for (size_t i = 0; i < HY_ARRAY_SIZE(kinds); i++) {
        printf("%-22s", kinds[i].name);
        for (size_t w = 0; w < HY_ARRAY_SIZE(windows); w++) {
            struct result r = measure(&kinds[i], windows[w]);
            printf("  %4.1f / %4.1f", 100 * r.next, 100 * r.ahead);
            if (windows[w] == PREDICT_WINDOW && r.next < kinds[i].least)
                fail_msg("%s: %.3f", kinds[i].name, r.next);
        }
        printf("\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(accuracy_by_window)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
