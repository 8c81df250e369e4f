/* SPDX-License-Identifier: BSD-2-Clause
 * The loops of hybrid-measure: they go where they should, and know when they did not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/measure/measure.h"

#define LINES 1000 /* no power of two: random order takes 512 of them */

static uint64_t *lines;

static int setup(void **state)
{
    (void)state;
    lines = aligned_alloc(LINE_BYTES, LINES * LINE_BYTES);
    if (!lines)
        return -1;
    memset(lines, 0, LINES * LINE_BYTES); /* stamps are read before all are written */
    return lines_link(lines, LINES, 1);
}

static int teardown(void **state)
{
    (void)state;
    free(lines);
    return 0;
}

static void test_chain_is_one_cycle(void **state)
{
    uint64_t *line = lines, order = 0;
    bool seen[LINES] = {false};

    (void)state;
    for (int i = 0; i < LINES; i++) {
        uint64_t *next = (uint64_t *)(uintptr_t)line[WORD_NEXT];
        assert_false(seen[(line - lines) / LINE_WORDS]);
        seen[(line - lines) / LINE_WORDS] = true;
        order += next == line + LINE_WORDS; /* the next line: by chance only */
        line = next;
    }
    assert_ptr_equal(line, lines);
    assert_true(order < LINES / 100);
}

static void test_random_order_visits_each_once(void **state)
{
    struct walk w;

    (void)state;
    for (uint64_t round = 1; round < 4; round++) {
        unsigned written = 0;
        walk_begin(&w, lines, LINES, 100 + round);
        walk_on(LOOP_RWRITE, &w, 512);
        for (int i = 0; i < LINES; i++)
            written += lines[i * LINE_WORDS + WORD_STAMP] == 100 + round;
        assert_int_equal(written, 512);
    }
}

/* Each kind is right, through several ends of the part, and for parts behind the first. */
static void test_loops_are_right(void **state)
{
    (void)state;
    for (int kind = 0; kind < LOOP_KINDS; kind++)
        for (uint64_t part = 0; part < (kind <= LOOP_UPDATE ? 1 : 3); part++) {
            uint64_t n = kind <= LOOP_UPDATE ? LINES : LINES / 3;
            struct walk w, before;
            walk_begin(&w, lines + part * n * LINE_WORDS, n, 7 + part);
            for (int i = 0; i < 50; i++) {
                before = w;
                walk_on(kind, &w, 77);
                assert_true(walk_is_right(kind, &w, &before, 77));
            }
        }
}

/* A loop that does less, or other, than it should, and memory that forgets. */
static void test_wrong_loops_are_noticed(void **state)
{
    struct walk w, before;

    (void)state;
    for (int kind = 0; kind < LOOP_KINDS; kind++) {
        walk_begin(&w, lines, LINES, 1000 + (uint64_t)kind);
        walk_on(kind, &w, 40);
        before = w;
        walk_on(kind, &w, 40);
        assert_true(walk_is_right(kind, &w, &before, 40));
        if (kind == LOOP_WRITE || kind == LOOP_RWRITE) {
            for (int i = 0; i < LINES; i++)
                lines[i * LINE_WORDS + WORD_STAMP] = 0;
        } else if (kind <= LOOP_UPDATE) {
            w.line = (uint64_t *)(uintptr_t)w.line[WORD_NEXT];
        } else {
            w.sum++;
        }
        assert_false(walk_is_right(kind, &w, &before, 40));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chain_is_one_cycle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_order_visits_each_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loops_are_right, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_loops_are_noticed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
