/* SPDX-License-Identifier: BSD-2-Clause
 * What tasks tell: several threads write, one reads; nothing is mixed, what does not fit is
 * counted. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/events.h"
#include "tasks/objects.h"

#define THREADS 4
#define EACH    20000

static uint64_t seen_made, seen_needs, seen_began, seen_ended, last_made;
static unsigned needs_due;

static void count(void *ctx, const struct task_event *v)
{
    (void)ctx;
    seen_made += v->kind == TASK_MADE;
    seen_needs += v->kind == TASK_NEEDS;
    seen_began += v->kind == TASK_BEGAN;
    seen_ended += v->kind == TASK_ENDED;
    if (v->kind == TASK_MADE) {
        assert_int_equal(needs_due, 0); /* an entry is whole */
        needs_due = (unsigned)v->bytes;
        last_made = v->id;
    }
    if (v->kind == TASK_NEEDS) {
        assert_int_equal(v->id, last_made);
        assert_int_equal(v->value, 0x1000 + needs_due);
        needs_due--;
    }
}

static uint64_t stored;

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 0; i < EACH; i++) {
        struct task_need need[3] = {{0x1003, 0, true}, {0x1002, 8, false}, {0x1001, 0, false}};
        uint64_t id = tasks_made(1, need, 3);
        if (id) {
            __atomic_fetch_add(&stored, 4, __ATOMIC_RELAXED);
            tasks_began(id);
            tasks_ended(id);
        }
    }
    return NULL;
}

static void many_write_and_one_reads(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    assert_false(tasks_watched());
    tasks_open();
    assert_true(tasks_watched());
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, writer, NULL), 0);
    for (int i = 0; i < 2000; i++)
        (void)tasks_drain(count, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    (void)tasks_drain(count, NULL);
    assert_int_equal(seen_made + seen_needs, stored);
    assert_int_equal(seen_needs, 3 * seen_made);
    assert_true(seen_made > 0 && seen_began <= seen_made && seen_ended <= seen_made);
    /* Each event came, or was counted as dropped. */
    assert_int_equal(seen_made + seen_needs + seen_began + seen_ended + tasks_dropped(),
                     (uint64_t)4 * THREADS * EACH + 2 * seen_made);
    tasks_close();
    assert_false(tasks_watched());
}

static void functions_have_numbers_until_dropped(void **state)
{
    struct module m;
    uintptr_t offset;
    (void)state;
    const void *a = (const void *)(uintptr_t)count, *b = (const void *)(uintptr_t)writer;
    unsigned na = tasks_function(a), nb = tasks_function(b);
    assert_true(na != 0 && nb != 0 && na != nb);
    assert_int_equal(tasks_function(a), na);
    assert_int_equal(tasks_code(na, &m, &offset), 0);
    assert_int_equal(offset, (uintptr_t)a - m.bias);
    tasks_drop_function(na);
    assert_int_equal(tasks_function(a), 0);
    assert_int_equal(tasks_function(b), nb);
    for (uintptr_t i = 1; i < 1000; i++) /* too many: those are not watched */
        (void)tasks_function((const void *)(0x100000 + i * 64));
    assert_int_equal(tasks_function(b), nb);
}

static void objects_are_found_again(void **state)
{
    static struct objects o;
    (void)state;
    unsigned a = objects_at(&o, 0x5000, 0), b = objects_at(&o, 0x3000, 100);
    assert_int_equal(objects_at(&o, 0x5000, 0), a);
    assert_int_equal(objects_at(&o, 0x3000, 0), b);
    assert_true(a != b);
    o.object[b].measured = true;
    (void)objects_at(&o, 0x4000, 0); /* it ends the one below */
    assert_false(o.object[b].measured);
    objects_look(&o, a, 1, 1, NULL); /* no block of ours, so nobody is asked */
    assert_int_equal(o.object[a].pages, 0);
    for (uintptr_t i = 0; i < 2 * OBJECTS_MOST; i++)
        (void)objects_at(&o, 0x100000 + i * 16, 0);
    assert_int_equal(o.n, OBJECTS_MOST);
    assert_int_equal(objects_at(&o, 0xfffff000, 0), OBJECT_NONE);
    for (unsigned i = 1; i < o.n; i++)
        assert_true(o.object[o.order[i - 1]].address < o.object[o.order[i]].address);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_write_and_one_reads),
        cmocka_unit_test(functions_have_numbers_until_dropped),
        cmocka_unit_test(objects_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
