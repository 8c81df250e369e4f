/* SPDX-License-Identifier: BSD-2-Clause
 * Groups of resctrl: their files' text, and a delegated group in a fake tree, where `kernel` below
 * does what the kernel does with what is written (Documentation/arch/x86/resctrl.rst). */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_tree.h"
#include "llc/group.h"
#include "llc/rules/resctrl.h"
#include "sys/os.h"

/* --- text ------------------------------------------------------------------------------- */

static void masks(void **state)
{
    uint64_t v = 1;

    (void)state;
    assert_int_equal(resctrl_mask("fff\n", &v), 0);
    assert_int_equal(v, 0xfff);
    assert_int_equal(resctrl_mask("7FFFFFFFFFFFFFFF", &v), 0);
    assert_int_equal(resctrl_mask("ffffffffffffffff\n", &v), 0);
    const char *const wrong[] = {"",  "\n", "0\n", "0xff\n", "ff ff\n", "g", "1ffffffffffffffff\n",
                                 "-1"};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(wrong); i++)
        assert_int_equal(resctrl_mask(wrong[i], &v), -EINVAL);
    assert_true(v == UINT64_MAX);
}

static void ways_of_a_group(void **state)
{
    unsigned n = 0;

    (void)state;
    assert_int_equal(resctrl_ways("L3:0=fff;1=3\n", &n), 0);
    assert_int_equal(n, 12);
    assert_int_equal(resctrl_ways("    MB:0=100;1=100\n    L3:0=1;1=3\n", &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(resctrl_ways("L3CODE:0=ff\nL3DATA:0=f\n", &n), 0);
    assert_int_equal(n, 4);
    assert_int_equal(resctrl_ways("L2:0=ff\nMB:0=10\n", &n), -ENODATA);
    assert_int_equal(resctrl_ways("", &n), -ENODATA);
    const char *const wrong[] = {"L3:", "L3:0", "L3:0=\n", "L3:=f\n", "L3:0=f,1=f\n", "L3:0=f;\n"};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(wrong); i++)
        assert_int_equal(resctrl_ways(wrong[i], &n), -EINVAL);
    assert_int_equal(n, 4);
}

static void few_are_a_sixteenth(void **state)
{
    (void)state;
    assert_int_equal(resctrl_few(0xfff, 1), 1);
    assert_int_equal(resctrl_few(0xffff, 1), 1);
    assert_int_equal(resctrl_few(0xfffff, 1), 2);
    assert_int_equal(resctrl_few(0xfff, 2), 2);
    assert_int_equal(resctrl_few(0xfff, 0), 1);
    assert_int_equal(resctrl_few(1, 4), 1);
}

static void narrowed_schemata(void **state)
{
    char buf[64];

    (void)state;
    assert_true(resctrl_narrow("MB:0=100\n  L3:0=fff;1=fff\n", 2, buf, sizeof(buf)) > 0);
    assert_string_equal(buf, "L3:0=3;1=3\n");
    assert_true(resctrl_narrow("L3DATA:0=f;8=f", 1, buf, sizeof(buf)) > 0);
    assert_string_equal(buf, "L3DATA:0=1;8=1\n");
    assert_int_equal(resctrl_narrow("MB:0=100\n", 1, buf, sizeof(buf)), -ENODATA);
    assert_int_equal(resctrl_narrow("L3:0=fff;1=fff\n", 2, buf, 8), -ENOSPC);
    assert_int_equal(resctrl_narrow("L3:0=fff;1\n", 2, buf, sizeof(buf)), -EINVAL);
}

static void group_of_a_process(void **state)
{
    char buf[16];

    (void)state;
    assert_int_equal(resctrl_group_name("res:/\nmon:/\n", buf, sizeof(buf)), 0);
    assert_string_equal(buf, "");
    assert_int_equal(resctrl_group_name("res:/p0\nmon:/m1\n", buf, sizeof(buf)), 0);
    assert_string_equal(buf, "p0");
    assert_int_equal(resctrl_group_name("mon:/\nres:\n", buf, sizeof(buf)), 0);
    assert_string_equal(buf, "");
    assert_int_equal(resctrl_group_name("mon:/\n", buf, sizeof(buf)), -ENODATA);
}

/* --- who plays the kernel ---------------------------------------------------------------- */

static char root[64], group[80], own[80];
static int moves[2]; /* into the group, into the default one */
static int refuses;  /* -errno for tasks */
static bool narrowed;

static void last_status(const char *text)
{
    tree_put(root, "info/last_cmd_status", text);
}

static bool consecutive(uint64_t m)
{
    uint64_t low = m & -m;
    return m && (m & (m + low)) == 0;
}

/* One mask for both caches: what resctrl_narrow writes. */
static int kernel_schemata(const char *text)
{
    unsigned long long a, b;
    char tail;

    if (sscanf(text, "L3:0=%llx;1=%llx%c", &a, &b, &tail) != 3 || tail != '\n') {
        last_status("unknown resource or missing ':'\n");
        return -EINVAL;
    }
    if (!consecutive(a) || !consecutive(b) || __builtin_popcountll(a) < 2) {
        last_status("need at least 2 bits in the mask\n");
        return -EINVAL;
    }
    tree_put(group, "schemata", text);
    narrowed = true;
    return 0;
}

static int kernel_tasks(bool into, const char *text)
{
    char path[64], *end;
    long tid = strtol(text, &end, 10);

    snprintf(path, sizeof(path), "/proc/self/task/%ld", tid);
    assert_true(end != text && *end == '\0');
    if (access(path, F_OK) != 0)
        return -ESRCH;
    if (refuses) {
        last_status("No permission to move task\n");
        return refuses;
    }
    moves[!into]++;
    return 0;
}

static int kernel(const char *path, const char *text)
{
    last_status("ok\n");
    if (strncmp(path, group, strlen(group)) != 0) {
        assert_string_equal(path + strlen(root), "/tasks");
        return kernel_tasks(false, text);
    }
    if (strcmp(path + strlen(group), "/schemata") == 0)
        return kernel_schemata(text);
    assert_string_equal(path + strlen(group), "/tasks");
    return kernel_tasks(true, text);
}

static int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/hybrid-resctrl-%d", (int)getpid());
    snprintf(group, sizeof(group), "%s/libhybrid", root);
    snprintf(own, sizeof(own), "%s/own", root);
    tree_put(root, "info/L3/cbm_mask", "fff\n");
    tree_put(root, "info/L3/min_cbm_bits", "2\n");
    tree_put(root, "info/L3/num_closids", "16\n");
    tree_put(root, "tasks", "1\n");
    tree_put(group, "tasks", "");
    tree_put(group, "schemata", "    MB:0=100;1=100\n    L3:0=fff;1=fff\n");
    tree_put(root, "own", "res:/\nmon:/\n");
    moves[0] = moves[1] = refuses = 0;
    narrowed = false;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return tree_remove(root);
}

static int open_group(struct llc_group *g, char *why, size_t cap)
{
    int e = llc_group_open(group, own, g, why, cap);
    g->write = kernel;
    return e;
}

/* --- a delegated group ------------------------------------------------------------------- */

static void *sleeps(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

static unsigned threads_here(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void all_threads_go_in_and_back(void **state)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct llc_group g;
    pthread_t other;
    char why[160] = "";

    (void)state;
    pthread_mutex_lock(&lock);
    assert_int_equal(pthread_create(&other, NULL, sleeps, &lock), 0);
    assert_int_equal(open_group(&g, why, sizeof(why)), 0);
    assert_int_equal(g.of, 12);
    assert_int_equal(g.few, 2); /* the kernel takes no fewer */
    assert_false(narrowed);     /* it only looked */
    assert_int_equal(llc_group_move(&g, true, why, sizeof(why)), 0);
    assert_true(narrowed);
    unsigned threads = threads_here(); /* a sanitizer has one of its own */
    assert_true(threads >= 2);
    assert_int_equal(moves[0], 2 * threads); /* listed twice */
    assert_int_equal(moves[1], 0);
    assert_int_equal(llc_group_move(&g, false, why, sizeof(why)), 0);
    assert_int_equal(moves[1], 2 * threads);
    llc_group_move_caller(&g, false);
    assert_int_equal(moves[1], 2 * threads + 1);
    pthread_mutex_unlock(&lock);
    pthread_join(other, NULL);
}

static void the_ways_of_an_administrator_hold(void **state)
{
    struct llc_group g;
    char why[160] = "";

    (void)state;
    tree_put(group, "schemata", "L3:0=f00;1=f00\n");
    assert_int_equal(open_group(&g, why, sizeof(why)), 0);
    assert_int_equal(g.few, 4);
    assert_int_equal(llc_group_move(&g, true, why, sizeof(why)), 0);
    assert_false(narrowed);
}

static void what_the_kernel_refuses_is_told(void **state)
{
    struct llc_group g;
    char why[160] = "";

    (void)state;
    assert_int_equal(open_group(&g, why, sizeof(why)), 0);
    refuses = -EPERM;
    assert_int_equal(llc_group_move(&g, true, why, sizeof(why)), -EPERM);
    assert_non_null(strstr(why, "EPERM: No permission to move task"));
    refuses = -ESRCH; /* threads that have ended meanwhile */
    assert_int_equal(llc_group_move(&g, true, why, sizeof(why)), 0);
    g.few = 1;
    g.narrow = true;
    assert_int_equal(llc_group_move(&g, true, why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "need at least 2 bits"));
}

static void what_is_missing_is_told(void **state)
{
    struct llc_group g;
    char why[160] = "", path[96];

    (void)state;
    tree_put(root, "own", "res:/theirs\nmon:/\n");
    assert_int_equal(open_group(&g, why, sizeof(why)), -EBUSY);
    assert_non_null(strstr(why, "theirs"));
    tree_put(root, "own", "res:/libhybrid\nmon:/\n"); /* inherited from who started it */
    assert_int_equal(open_group(&g, why, sizeof(why)), 0);
    snprintf(path, sizeof(path), "%s/tasks", root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(open_group(&g, why, sizeof(why)), -EACCES);
    assert_non_null(strstr(why, "no way back"));
    snprintf(path, sizeof(path), "%s/tasks", group);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(open_group(&g, why, sizeof(why)), -EACCES);
    snprintf(path, sizeof(path), "%s/schemata", group);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(open_group(&g, why, sizeof(why)), -ENOENT);
    assert_int_equal(llc_group_open("libhybrid", own, &g, why, sizeof(why)), -ENODEV);
    tree_put(root, "info/L3/cbm_mask", "nonsense\n");
    assert_int_equal(open_group(&g, why, sizeof(why)), -ENODEV);
}

/* Without one who plays the kernel: what reaches the file. */
static void writes_are_commands(void **state)
{
    char path[96], text[32];
    size_t len;

    (void)state;
    snprintf(path, sizeof(path), "%s/tasks", group);
    assert_true(os_may_write_to(path));
    assert_int_equal(os_write_to(path, "4711"), 0);
    assert_int_equal(os_read_file(path, text, sizeof(text), &len), 0);
    assert_string_equal(text, "4711");
    snprintf(path, sizeof(path), "%s/none", group);
    assert_int_equal(os_write_to(path, "1"), -ENOENT);
    assert_false(os_may_write_to(path));
    assert_int_equal(access(path, F_OK), -1); /* never made */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks),
        cmocka_unit_test(ways_of_a_group),
        cmocka_unit_test(few_are_a_sixteenth),
        cmocka_unit_test(narrowed_schemata),
        cmocka_unit_test(group_of_a_process),
        cmocka_unit_test_setup_teardown(all_threads_go_in_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_ways_of_an_administrator_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_kernel_refuses_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_are_commands, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
