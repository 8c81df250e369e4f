/* SPDX-License-Identifier: BSD-2-Clause
 * sys/log.h as a user sees it: what arrives at stderr. Every case runs in a
 * child, as the state is one per process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "child.h"
#include "sys/log.h"

static char dir[300];
static char said[1 << 21]; /* what a case wrote to stderr */
static size_t said_len;
static int child_pid;

/* fn in a child whose stderr is a file; its text in `said`. */
static void run(void (*fn)(void))
{
    char path[340];
    int status = -1;
    snprintf(path, sizeof(path), "%s/stderr", dir);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_APPEND, 0600);
        dup2(fd, 2);
        close(fd);
        alarm(600);
        fn();
        _exit(0);
    }
    child_pid = pid;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    said_len = fread(said, 1, sizeof(said) - 1, f);
    said[said_len] = '\0';
    fclose(f);
    if (status != 0)
        fprintf(stderr, "%s", said);
    assert_int_equal(status, 0);
}

static unsigned lines(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < said_len; i++)
        n += said[i] == '\n';
    return n;
}

static void say_one(void)
{
    log_init();
    errno = EXDEV;
    log_warn("no such node %d in %s", 7, "HYBRID_PM");
    child_check(errno == EXDEV);
}

static void test_form(void **state)
{
    char want[100];
    (void)state;
    run(say_one);
    snprintf(want, sizeof(want), "hybrid[%d]: no such node 7 in HYBRID_PM\n", child_pid);
    assert_string_equal(said, want);
}

static void say_early(void)
{
    log_warn("before the constructor");
}

static void test_before_init(void **state)
{
    (void)state;
    run(say_early);
    assert_non_null(strstr(said, "]: before the constructor\n"));
}

static void say_odd(void)
{
    static char big[5000];
    memset(big, 'y', sizeof(big) - 1);
    log_init();
    log_warn("two\nlines\r\033[31m");
    log_warn("%s", big);
    log_warn("%s", "");
}

static void test_one_message_is_one_line(void **state)
{
    (void)state;
    run(say_odd);
    assert_int_equal(lines(), 3);
    assert_non_null(strstr(said, "two?lines??[31m\n"));
    char *second = strchr(said, '\n') + 1;
    assert_int_equal(strchr(second, '\n') - second + 1, 512);
    assert_int_equal(said[said_len - 1], '\n');
}

static void say_much(void)
{
    log_init();
    log_set_verbose(1);
    for (int i = 0; i < 10000; i++)
        log_warn("warning %d", i);
    log_info("still heard");
}

static void test_warnings_are_capped(void **state)
{
    (void)state;
    run(say_much);
    assert_int_equal(lines(), HY_LOG_MAX_WARNINGS + 1);
    assert_non_null(strstr(said, "still heard"));
}

static void say_levels(void)
{
    log_init();
    for (int level = 0; level <= 1; level++) {
        log_set_verbose(level);
        log_warn("w%d", level);
        log_info("i%d", level);
    }
}

static void test_levels(void **state)
{
    (void)state;
    static const char *const want[] = {"w0", "w1", "i1"};
    (void)state;
    run(say_levels);
    assert_int_equal(lines(), 3);
    for (int i = 0; i < 3; i++)
        assert_non_null(strstr(said, want[i]));
}

static void say_once(void)
{
    static bool once;
    log_init();
    for (int i = 0; i < 5; i++)
        log_warn_once(&once, "only the first, %d", i);
}

static void test_once(void **state)
{
    (void)state;
    run(say_once);
    assert_int_equal(lines(), 1);
    assert_non_null(strstr(said, "first, 0"));
}

/* A daemon puts its data on descriptor 2: our words must not land in it. */
static void say_after_change(void)
{
    char data[400];
    struct stat st;
    snprintf(data, sizeof(data), "%s/data", dir);
    log_init();
    log_warn("heard");
    int old = dup(2);
    int fd = open(data, O_CREAT | O_RDWR | O_TRUNC, 0600);
    dup2(fd, 2);
    log_warn("lost");
    log_text("lost\n", 5);
    child_check(fstat(fd, &st) == 0 && st.st_size == 0);
    close(2);
    log_warn("lost too");
    dup2(old, 2); /* the same file again */
    log_warn("heard again");
}

static void test_stderr_replaced(void **state)
{
    (void)state;
    run(say_after_change);
    assert_int_equal(lines(), 2);
    assert_non_null(strstr(said, "heard again"));
    assert_null(strstr(said, "lost"));
}

static void say_without_stderr(void)
{
    int old = dup(2);
    close(2);
    log_init();
    dup2(old, 2); /* the program opens something of its own: not for us */
    log_warn("lost");
}

static void test_stderr_closed_at_start(void **state)
{
    (void)state;
    run(say_without_stderr);
    assert_int_equal(said_len, 0);
}

/* A report at exit outlives the program's close(2), not its daemon's fork. */
static void say_after_close(void)
{
    log_init();
    log_keep_stderr();
    close(2);
    log_warn("from the kept one");
    int fd = open(dir, O_RDONLY); /* takes number 2 */
    child_check(fd == 2);
    log_warn("still from the kept one");
    log_drop_stderr();
    log_warn("lost");
}

static void test_kept_stderr(void **state)
{
    (void)state;
    run(say_after_close);
    assert_int_equal(lines(), 2);
    assert_non_null(strstr(said, "still from the kept one"));
}

/* In packet mode one read returns what one write wrote. */
static void say_in_packets(void)
{
    int p[2];
    char buf[4096];
    child_check(pipe2(p, O_DIRECT) == 0);
    int old = dup(2);
    dup2(p[1], 2);
    log_init();
    log_warn("first %s", "message");
    log_warn("second");
    dup2(old, 2);
    ssize_t n = read(p[0], buf, sizeof(buf));
    child_check(n > 0 && buf[n - 1] == '\n' && memchr(buf, '\n', (size_t)n) == buf + n - 1);
}

static void test_one_write_each(void **state)
{
    (void)state;
    run(say_in_packets);
}

static void say_into_closed_pipe(void)
{
    int p[2];
    int old = dup(2);
    signal(SIGPIPE, SIG_DFL);
    child_check(pipe(p) == 0);
    dup2(p[1], 2);
    log_init();
    close(p[0]);
    close(p[1]);
    log_warn("nobody hears this"); /* and it must not kill us */
    dup2(old, 2);
}

static void test_reader_gone(void **state)
{
    (void)state;
    run(say_into_closed_pipe);
}

static void say_report(void)
{
    static char text[1 << 20];
    memset(text, 'r', sizeof(text));
    log_init();
    log_text(text, sizeof(text));
}

static void test_text_is_whole(void **state)
{
    (void)state;
    run(say_report);
    assert_int_equal(said_len, 1 << 20);
}

static void say_what_is_kept(void)
{
    char name[] = "odd\033[2J\nname";

    log_init();
    log_info("no warning");
    log_warn("first %s", name);
    for (int i = 0; i < 100; i++)
        log_warn("%0300d", i);
    child_check(strcmp(log_warning(0), "first odd?[2J?name") == 0);
    child_check(strlen(log_warning(1)) == HY_LOG_KEPT_BYTES - 1);
    child_check(log_warning(HY_LOG_MAX_WARNINGS - 1) != NULL);
    child_check(log_warning(HY_LOG_MAX_WARNINGS) == NULL);
    child_check(log_warning(UINT32_MAX) == NULL);
}

static void test_warnings_are_kept(void **state)
{
    (void)state;
    assert_null(log_warning(0));
    run(say_what_is_kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_before_init),
        cmocka_unit_test(test_one_message_is_one_line),
        cmocka_unit_test(test_warnings_are_capped),
        cmocka_unit_test(test_warnings_are_kept),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_stderr_replaced),
        cmocka_unit_test(test_stderr_closed_at_start),
        cmocka_unit_test(test_kept_stderr),
        cmocka_unit_test(test_one_write_each),
        cmocka_unit_test(test_reader_gone),
        cmocka_unit_test(test_text_is_whole),
    };
    make_dir(dir, sizeof(dir));
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    remove_dir(dir);
    return r;
}
