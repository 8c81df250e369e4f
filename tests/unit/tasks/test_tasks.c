/* SPDX-License-Identifier: BSD-2-Clause
 * The decisions about tasks: which start next, what a type gains on DRAM, how DRAM is shared, when
 * a stage is worth it, when it is given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/rules/shadow.h"
#include "tasks/rules/stage_plan.h"
#include "tasks/rules/task_fit.h"
#include "tasks/rules/task_known.h"
#include "tasks/rules/task_verdict.h"

/* --- which tasks start next -------------------------------------------------------------- */

static struct shadow s;

static int fresh(void **state)
{
    (void)state;
    memset(&s, 0, sizeof(s));
    return 0;
}

static void make(uint64_t id, unsigned object, bool writes)
{
    struct shadow_need need = {(uint16_t)object, writes};
    shadow_made(&s, id, 1, &need, 1);
}

static void ready_tasks_come_in_their_order(void **state)
{
    uint64_t ids[4];
    (void)state;
    for (uint64_t id = 1; id <= 6; id++)
        make(id, (unsigned)id, true);
    shadow_began(&s, 1, 100);
    assert_int_equal(shadow_next(&s, ids, 4), 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(ids[i], i + 2);
}

/* Tasks 1 to 3 write one object after the other; 4 is free of them. */
static void who_waits_comes_after_who_is_ready(void **state)
{
    uint64_t ids[8];
    (void)state;
    make(1, 7, true);
    make(2, 7, true);
    make(3, 7, true);
    make(4, 8, true);
    shadow_began(&s, 1, 100);
    assert_int_equal(shadow_next(&s, ids, 8), 3);
    assert_int_equal(ids[0], 4);
    assert_int_equal(ids[1], 2);
    assert_int_equal(ids[2], 3);
}

static void readers_do_not_wait_for_each_other(void **state)
{
    uint64_t ids[8];
    (void)state;
    make(1, 3, true);
    make(2, 3, false);
    make(3, 3, false);
    make(4, 3, true);
    assert_int_equal(shadow_next(&s, ids, 8), 4);
    assert_int_equal(s.look[1], 2);
    assert_int_equal(s.level[1], s.level[2]);
    assert_true(s.level[3] > s.level[2]);
    assert_true(s.level[1] > s.level[0]);
}

static void a_task_that_ended_is_known_by_what_it_was(void **state)
{
    struct shadow_task t;
    uint64_t ids[4];
    (void)state;
    make(1, 5, true);
    shadow_began(&s, 1, 1000);
    assert_int_equal(s.running, 1);
    assert_true(shadow_ended(&s, 1, &t));
    assert_int_equal(t.began, 1000);
    assert_int_equal(t.need[0].object, 5);
    assert_int_equal(s.running + s.waiting, 0);
    assert_int_equal(shadow_next(&s, ids, 4), 0);
}

/* Rings of several threads are read one after the other. */
static void news_may_come_in_any_order(void **state)
{
    struct shadow_task t;
    uint64_t ids[4];
    (void)state;
    shadow_began(&s, 1, 10);
    make(1, 5, true);
    assert_int_equal(s.running, 1);
    assert_true(shadow_ended(&s, 1, &t));
    shadow_began(&s, 2, 20);
    assert_false(shadow_ended(&s, 2, &t));
    make(2, 6, true); /* it is over already */
    assert_int_equal(s.running + s.waiting, 0);
    assert_int_equal(shadow_next(&s, ids, 4), 0);
}

/* An end that was dropped leaves a task that runs for ever: it makes way for a younger one. */
static void what_was_lost_is_forgotten(void **state)
{
    uint64_t ids[SHADOW_NEXT];
    (void)state;
    make(1, 1, true);
    shadow_began(&s, 1, 5);
    for (uint64_t id = 2; id <= SHADOW_TASKS + 1; id++)
        make(id, 2, true);
    assert_int_equal(s.running, 0);
    assert_null(shadow_find(&s, 1));
    make(1, 1, true); /* too old by now */
    assert_null(shadow_find(&s, 1));
    assert_int_equal(s.waiting, SHADOW_TASKS);
    assert_int_equal(shadow_next(&s, ids, SHADOW_NEXT), SHADOW_NEXT);
    assert_int_equal(ids[0], 2);
}

/* Of the tasks between nothing was told; the place of 1 is also that of a later one. */
static void gaps_hold_no_tasks(void **state)
{
    uint64_t ids[8];
    (void)state;
    make(1, 1, true);
    const uint64_t far = SHADOW_TASKS + 500;
    make(far, 2, true);
    shadow_began(&s, far - 1, 1);
    assert_int_equal(shadow_next(&s, ids, 8), 1);
    assert_int_equal(ids[0], far);
    assert_int_equal(s.running, 1);
    shadow_lost(&s);
    assert_int_equal(s.running, 0);
    assert_non_null(shadow_find(&s, far));
}

/* A program makes all of its tasks before the first one runs: the oldest come next, again and
 * again, and one whose end was lost does not hold up the rest. */
static void many_are_made_at_once(void **state)
{
    struct shadow_task t;
    uint64_t ids[4];
    (void)state;
    for (uint64_t id = 1; id <= SHADOW_TASKS; id++)
        make(id, (uint16_t)(id % 100), true);
    for (uint64_t id = 1; id + 4 <= SHADOW_TASKS; id++) {
        assert_int_equal(shadow_next(&s, ids, 4), 4);
        for (uint64_t i = 0; i < 4; i++)
            assert_int_equal(ids[i], id + i);
        shadow_began(&s, id, id);
        if (id != 7)
            assert_true(shadow_ended(&s, id, &t));
        else /* it will never end, but no later one may wait for it */
            shadow_lost(&s);
    }
}

/* Chains of four tasks on each object, made round by round, by two threads that each go on with the
 * object that they have begun with (`deep`), or with the oldest that is ready. */
static unsigned foreseen_of(bool deep)
{
    unsigned right = 0;
    memset(&s, 0, sizeof(s));
    for (uint64_t id = 0; id < 64; id++)
        make(1 + id, (unsigned)(id % 16), true);
    for (unsigned step = 0; step < 32; step++)
        for (unsigned thread = 0; thread < 2; thread++) {
            struct shadow_task t;
            uint64_t ids[4],
                turn = deep ? step % 4 * 16 + step / 4 * 2 + thread : step * 2 + thread;
            uint64_t last = deep ? (step - 1) % 4 * 16 + (step - 1) / 4 * 2 + thread : turn - 2;
            unsigned n = shadow_next(&s, ids, 4);
            for (unsigned i = 0; i < n; i++)
                right += ids[i] == turn + 1;
            if (step > 0)
                assert_true(shadow_ended(&s, last + 1, &t));
            shadow_began(&s, turn + 1, step + 1);
        }
    return right;
}

static void the_order_of_the_runtime_is_learnt(void **state)
{
    (void)state;
    assert_int_equal(foreseen_of(false), 64);
    /* But for the first few, and every fourth, which turns to an object that is new. */
    assert_true(foreseen_of(true) >= 40);
}

/* A thread goes on with what waited for the task that it has just ended, and nobody runs with those
 * data in between: they are still the next ones'. */
static void what_an_end_releases_comes_next(void **state)
{
    struct shadow_task t;
    uint64_t ids[4];
    (void)state;
    for (uint64_t id = 0; id < 64; id++)
        make(1 + id, (unsigned)(id % 16), true);
    shadow_began(&s, 1, 1);
    for (unsigned round = 1; round < 4; round++) { /* what is the runtime's order? */
        assert_true(shadow_next(&s, ids, 4) == 4);
        assert_true(shadow_ended(&s, 16 * (round - 1) + 1, &t));
        shadow_began(&s, 16 * round + 1, round);
    }
    shadow_began(&s, 2, 5);
    assert_true(shadow_ended(&s, 2, &t));
    assert_true(shadow_next(&s, ids, 4) == 4);
    assert_int_equal(ids[0], 18);
}

/* --- what a type gains ------------------------------------------------------------------- */

static void the_line_is_found(void **state)
{
    struct task_fit f = {0};
    (void)state;
    for (int i = 0; i < 40; i++) /* 1000 on PM, 400 on DRAM, and a little noise */
        fit_add(&f, i % 5 / 4.0, 1000 - 600 * (i % 5 / 4.0) + (i % 3 - 1) * 10);
    struct fit_line l = fit_line(&f);
    assert_true(l.known);
    assert_true(l.pm_ns > 980 && l.pm_ns < 1020);
    assert_true(l.saving > 580 && l.saving < 620);
    assert_true(l.doubt < 20);
    assert_true(fit_saving(&f, 0) < l.saving);
    assert_true(fit_saving(&f, 0) > l.saving - 3 * l.doubt);
}

static void noise_is_no_gain(void **state)
{
    struct task_fit f = {0};
    uint32_t random = 1;
    (void)state;
    for (int i = 0; i < 200; i++) {
        random = random * 1103515245u + 12345u;
        fit_add(&f, i & 1, 1000 + (random >> 16) % 500);
    }
    assert_true(fit_line(&f).known);
    assert_true(fit_saving(&f, 8) < 80); /* the model's word does not count any more */
}

static void before_it_is_measured_the_model_speaks(void **state)
{
    struct task_fit f = {0};
    (void)state;
    assert_true(fit_saving(&f, 4) == 0);
    for (int i = 0; i < 10; i++)
        fit_add(&f, 0, 1000);
    assert_false(fit_line(&f).known);
    assert_true(fit_saving(&f, 0) == 0); /* nobody knows anything */
    assert_true(fit_saving(&f, 1) == 0);
    double saving = fit_saving(&f, 4);
    assert_true(saving > 749 && saving < 751);
}

static void an_earlier_run_speaks_first(void **state)
{
    struct task_fit f = {0};
    double dram, pm;
    (void)state;
    fit_recall(&f, 400, 1000);
    assert_true(fit_line(&f).known);
    assert_true(fit_saving(&f, 0) > 599 && fit_saving(&f, 0) < 601);
    for (int i = 0; i < 100; i++) /* but here there is nothing to gain */
        fit_add(&f, i & 1, 400);
    assert_true(fit_line(&f).saving < 60);
    fit_tell(&f, &dram, &pm);
    assert_true(dram > 380 && dram < 420 && pm > 400 && pm < 460);
    f = (struct task_fit){0};
    fit_recall(&f, 400, 0); /* recorded on DRAM only: the first few here tell the rest */
    assert_false(fit_line(&f).known);
    assert_true(fit_saving(&f, 0) == 0);
    for (int i = 0; i < 3; i++)
        fit_add(&f, 0, 1000);
    assert_true(fit_saving(&f, 0) > 599 && fit_saving(&f, 0) < 601);
    f = (struct task_fit){0};
    fit_tell(&f, &dram, &pm);
    assert_true(dram == 0 && pm == 0);
    for (int i = 0; i < 9; i++)
        fit_add(&f, 1, 400);
    fit_tell(&f, &dram, &pm);
    assert_true(dram == 400 && pm == 0);
}

static void a_type_is_known_by_code_and_sizes(void **state)
{
    static struct profile p;
    struct hy_frame code = {.build_id = {1, 2}, .offset = 0x40}, other = code;
    uint32_t pages[2] = {63, 3};
    (void)state;
    p.n_tasks = 2;
    p.tasks[0] = (struct profile_task){.code = code, .needs = 1, .bytes = {64 * HY_PAGE}};
    p.tasks[1] =
        (struct profile_task){.code = code, .needs = 2, .bytes = {64 * HY_PAGE, 3 * HY_PAGE}};
    assert_true(task_as_large(4, 5) && task_as_large(5, 4) && task_as_large(0, 0));
    assert_true(!task_as_large(4, 6) && !task_as_large(6, 4));
    assert_true(!task_as_large(0, UINT32_MAX) && !task_as_large(UINT32_MAX, 0));
    assert_ptr_equal(task_known(&p, &code, pages, 2), &p.tasks[1]);
    assert_ptr_equal(task_known(&p, &code, pages, 1), &p.tasks[0]);
    pages[1] = 5;
    assert_null(task_known(&p, &code, pages, 2));
    other.offset++;
    assert_null(task_known(&p, &other, pages, 1));
    other = code;
    other.build_id[1]++;
    assert_null(task_known(&p, &other, pages, 1));
}

/* --- sharing, and whether it pays -------------------------------------------------------- */

static void one_type_shares_evenly(void **state)
{
    struct stage_task t[4];
    uint32_t pages[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        t[i] = (struct stage_task){.pm_ns = 100, .saving = 50, .pages = 100, .type = 3};
    stage_share(t, 4, 200, false, pages);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pages[i], 50);
    t[0].pages = 20; /* what one does not need is the others' */
    stage_share(t, 4, 200, false, pages);
    assert_int_equal(pages[0], 20);
    assert_int_equal(pages[3], 60);
    stage_share(t, 4, 1000, false, pages);
    assert_int_equal(pages[1], 100);
}

/* Each with four fifths: 8 / 33 tasks a ms. Six with all and two with less: 6 / 21 and more. */
static void many_that_wait_are_better_off_if_some_end_soon(void **state)
{
    struct stage_task t[8];
    uint32_t pages[8];
    (void)state;
    for (int i = 0; i < 8; i++)
        t[i] = (struct stage_task){.pm_ns = 78, .saving = 57, .pages = 64, .type = i % 2};
    stage_share(t, 8, 400, true, pages);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pages[i], 64);
    assert_int_equal(pages[6], 16);
    assert_int_equal(pages[7], 0);
}

/* Against all ways to share in steps of a 64th. */
static void other_types_share_by_the_longest_time(void **state)
{
    (void)state;
    srand(1);
    for (int run = 0; run < 50; run++) {
        struct stage_task t[3];
        uint32_t pages[3], room = 64, sum = 0;
        double got = 0, best = 1e18;
        for (unsigned i = 0; i < 3; i++) {
            t[i] = (struct stage_task){.pm_ns = 100 + rand() % 1000,
                                       .pages = 30 + (unsigned)rand() % 40};
            t[i].saving = t[i].pm_ns * (rand() % 100) / 100;
            t[i].type = i;
        }
        stage_share(t, 3, room, false, pages);
#define TIME(i, n)                                                                                 \
    (t[i].pm_ns - t[i].saving * (HY_MIN((uint32_t)(n), t[i].pages) / (double)t[i].pages))
        for (int i = 0; i < 3; i++) {
            sum += pages[i];
            got = HY_MAX(got, TIME(i, pages[i]));
        }
        for (unsigned a = 0; a <= room; a++)
            for (unsigned b = 0; a + b <= room; b++) {
                double longest = HY_MAX(HY_MAX(TIME(0, a), TIME(1, b)), TIME(2, room - a - b));
                best = HY_MIN(best, longest);
            }
        assert_true(sum <= room);
        assert_true(got <= best + 1e-9);
    }
}

static void a_stage_must_pay_for_copy_and_eviction(void **state)
{
    struct stage_task t = {.pm_ns = 600e3, .saving = 300e3, .pages = 64};
    struct stage_cost fill = {.move_ns = 3000, .evicts = false},
                      swap = {.move_ns = 3000, .evicts = true};
    (void)state;
    assert_true(stage_pays(&t, 64, 64, 1, &fill));  /* 192 us */
    assert_false(stage_pays(&t, 64, 64, 1, &swap)); /* 384 us */
    assert_true(stage_pays(&t, 64, 64, 2, &swap));
    assert_false(stage_pays(&t, 0, 64, 9, &fill));
    t.saving = 0;
    assert_false(stage_pays(&t, 64, 64, 9, &fill));
    assert_true(stage_left(-5, 1000) == 1 && stage_left(0, 1000) == 1);
    assert_true(stage_left(250, 1000) == 0.75);
    assert_true(stage_left(1000, 1000) == 0 && stage_left(5, 0) == 0);
    assert_true(stage_starts_ns(3, 4, 1000) == 1000);
    assert_true(stage_starts_ns(0, 0, 1000) == 1000);
}

/* --- verdicts ---------------------------------------------------------------------------- */

static void three_bad_verdicts_end_it(void **state)
{
    struct task_verdict v = {0};
    unsigned stages = 0;
    (void)state;
    for (; !v.off && stages < 1000; stages++) {
        verdict_staged(&v, 100);
        verdict_ran(&v, 90);
    }
    assert_int_equal(stages, VERDICT_BAD * VERDICT_STAGES + 1);
    v = (struct task_verdict){0};
    for (stages = 0; stages < VERDICT_STAGES; stages++) {
        assert_true(verdict_staged(&v, 100) == 0);
        verdict_ran(&v, 90);
    }
    assert_true(verdict_staged(&v, 100) == 10 * VERDICT_STAGES);
    v = (struct task_verdict){0};
    for (stages = 0; stages < 1000; stages++) { /* every third group pays: it goes on */
        verdict_staged(&v, 100);
        verdict_ran(&v, stages / VERDICT_STAGES % 3 == 2 ? 200 : 90);
    }
    assert_false(v.off);
}

/* Many are staged while the first ones run. */
static void a_verdict_waits_for_the_tasks(void **state)
{
    struct task_verdict v = {0};
    unsigned stages;
    (void)state;
    for (stages = 1; stages <= 1000; stages++) { /* in groups of 32, told of when all are staged */
        assert_true(verdict_staged(&v, 100) == 0);
        for (int i = 0; stages % 32 == 0 && i < 32; i++)
            verdict_ran(&v, 200);
    }
    assert_true(!v.off && v.bad == 0);
    v = (struct task_verdict){0};
    for (stages = 0; !v.off && stages < 1000; stages++) /* nobody uses it in time */
        verdict_staged(&v, 100);
    assert_int_equal(stages, VERDICT_BAD * VERDICT_MOST + 1);
}

static struct task_fit instances(unsigned n, double ns)
{
    struct task_fit f = {0};
    for (unsigned i = 0; i < n; i++)
        fit_add(&f, 0, ns);
    return f;
}

static void hopeless_is_said_when_it_is_known(void **state)
{
    struct task_verdict v = {0};
    struct task_fit f = instances(VERDICT_TASKS - 1, 1000);
    (void)state;
    assert_false(verdict_hopeless(&v, &f, 64, 1, 4, 3000));
    f = instances(VERDICT_TASKS, 1000); /* tiny */
    assert_true(verdict_hopeless(&v, &f, 1, 100000, 4, 1));
    f = instances(VERDICT_TASKS, 1e7);
    assert_false(verdict_hopeless(&v, &f, 64, 1, 4, 3000));
    assert_true(verdict_hopeless(&v, &f, 0, 1, 4, 3000));      /* it names no data */
    assert_true(verdict_hopeless(&v, &f, 64, 1, 1, 3000));     /* bound by computing */
    assert_true(verdict_hopeless(&v, &f, 100000, 1, 4, 3000)); /* more to move than to gain */
    v.off = true;
    assert_true(verdict_hopeless(&v, &f, 64, 1, 4, 3000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ready_tasks_come_in_their_order, fresh),
        cmocka_unit_test_setup(who_waits_comes_after_who_is_ready, fresh),
        cmocka_unit_test_setup(readers_do_not_wait_for_each_other, fresh),
        cmocka_unit_test_setup(a_task_that_ended_is_known_by_what_it_was, fresh),
        cmocka_unit_test_setup(news_may_come_in_any_order, fresh),
        cmocka_unit_test_setup(what_was_lost_is_forgotten, fresh),
        cmocka_unit_test_setup(many_are_made_at_once, fresh),
        cmocka_unit_test_setup(gaps_hold_no_tasks, fresh),
        cmocka_unit_test(the_order_of_the_runtime_is_learnt),
        cmocka_unit_test_setup(what_an_end_releases_comes_next, fresh),
        cmocka_unit_test(the_line_is_found),
        cmocka_unit_test(noise_is_no_gain),
        cmocka_unit_test(before_it_is_measured_the_model_speaks),
        cmocka_unit_test(an_earlier_run_speaks_first),
        cmocka_unit_test(a_type_is_known_by_code_and_sizes),
        cmocka_unit_test(one_type_shares_evenly),
        cmocka_unit_test(many_that_wait_are_better_off_if_some_end_soon),
        cmocka_unit_test(other_types_share_by_the_longest_time),
        cmocka_unit_test(a_stage_must_pay_for_copy_and_eviction),
        cmocka_unit_test(three_bad_verdicts_end_it),
        cmocka_unit_test(a_verdict_waits_for_the_tasks),
        cmocka_unit_test(hopeless_is_said_when_it_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
