/* SPDX-License-Identifier: BSD-2-Clause
 * Registry files as crashes, other versions, other users and enemies leave them. */
#include "registry_util.h"

#include <sched.h>

static void write_file(const void *data, size_t len)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

static void read_file(void *data, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, data, len), len);
    close(fd);
}

static struct reg_file image, after;

/* A file that the library made, in memory. */
static void make_image(void)
{
    unlink(path);
    registry_close(open_or_fail(BUDGET));
    read_file(&image, sizeof(image));
    unlink(path);
}

static void refused_and_untouched(int want)
{
    struct registry *r = NULL;

    write_file(&image, sizeof(image));
    assert_int_equal(registry_open(path, BUDGET, &r), want);
    assert_null(r);
    assert_int_equal(registry_open_readonly(path, &r), want);
    assert_null(r);
    read_file(&after, sizeof(after));
    assert_memory_equal(&after, &image, sizeof(image));
}

static void test_other_headers_are_refused(void **state)
{
    static const struct {
        size_t offset;
        uint32_t value;
    } changed[] = {
        {offsetof(struct reg_header, magic), 1},
        {offsetof(struct reg_header, version), REGISTRY_VERSION + 1},
        {offsetof(struct reg_header, version), 0},
        {offsetof(struct reg_header, header_bytes), 64},
        {offsetof(struct reg_header, slot_bytes), 128},
        {offsetof(struct reg_header, n_slots), UINT32_MAX},
        {offsetof(struct reg_header, total_bytes), 0},
    };

    (void)state;
    for (size_t i = 0; i < HY_ARRAY_SIZE(changed); i++) {
        make_image();
        memcpy((char *)&image + changed[i].offset, &changed[i].value, sizeof(uint32_t));
        refused_and_untouched(-EPROTO);
    }
    memset(&image, 0, sizeof(image)); /* zeros, but not all: somebody else's file */
    image.slot[REGISTRY_SLOTS - 1].reserved[0] = 1;
    refused_and_untouched(-EPROTO);
    memset(&image, 0, sizeof(image));
    image.head.budget = 1;
    refused_and_untouched(-EPROTO);
    memset(&image, 0xff, sizeof(image));
    refused_and_untouched(-EPROTO);
}

static void test_other_sizes_and_kinds_are_refused(void **state)
{
    static const size_t sizes[] = {0, 1, 64, HY_PAGE, REGISTRY_BYTES - 1, REGISTRY_BYTES + 1};
    static char big[REGISTRY_BYTES + 1];
    struct registry *r = NULL;
    struct stat st;

    (void)state;
    make_image();
    memcpy(big, &image, sizeof(image));
    for (size_t i = 0; i < HY_ARRAY_SIZE(sizes); i++) {
        write_file(big, sizes[i]);
        assert_int_equal(registry_open(path, BUDGET, &r), -EPROTO);
        assert_int_equal(registry_open_readonly(path, &r), -EPROTO);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, sizes[i]);
    }
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(registry_open(path, BUDGET, &r) < 0);
    rmdir(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(registry_open(path, BUDGET, &r), -EPROTO);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(registry_open(path, BUDGET, &r), -EPROTO);
    assert_null(r);
}

static void test_modes(void **state)
{
    struct registry *r = NULL;

    (void)state;
    registry_close(open_or_fail(BUDGET));
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(registry_open(path, BUDGET, &r), -EPERM);
    assert_null(r);
    assert_int_equal(chmod(path, 0660), 0); /* shared on purpose */
    r = open_and_join(BUDGET, HY_CLASS_CPU);
    registry_close(r);
}

/* Killed between any two stores of the creation: some constants are there. */
static void test_half_made_files_are_completed(void **state)
{
    struct registry *r;

    (void)state;
    make_image();
    struct reg_header full = image.head;
    for (int stores = 0; stores <= 5; stores++) {
        memset(&image, 0, sizeof(image));
        image.head.version = stores > 0 ? full.version : 0;
        image.head.header_bytes = stores > 1 ? full.header_bytes : 0;
        image.head.slot_bytes = stores > 2 ? full.slot_bytes : 0;
        image.head.n_slots = stores > 3 ? full.n_slots : 0;
        image.head.total_bytes = stores > 4 ? full.total_bytes : 0;
        write_file(&image, sizeof(image));
        assert_int_equal(registry_open_readonly(path, &r), 0); /* nobody is there yet */
        registry_read(r, &view);
        assert_int_equal(view.n, 0);
        registry_close(r);
        r = open_and_join(BUDGET, HY_CLASS_CPU);
        assert_int_equal(registry_claim_dram(r, BUDGET), 0);
        registry_close(r);
        read_file(&after, sizeof(after));
        assert_int_equal(after.head.magic, full.magic);
        assert_int_equal(after.head.total_bytes, full.total_bytes);
    }
}

/* A living process wrote nonsense into its slot. */
static void test_absurd_values_of_a_living_one(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    struct reg_file *f = map_to_write();
    pid_t pid = sleeper();
    struct reg_slot *s = &f->slot[REGISTRY_SLOTS - 1];

    (void)state;
    memset(s, 0xff, sizeof(*s));
    s->cls = HY_CLASS_MAX;
    memcpy(s->name, "\x1b[2J\n\xc3\xa4\"name-long!", 16);
    s->word = word_of(pid, REG_LIVE);
    s->pidns = 0; /* as ours: its number tells that it lives */
    registry_read(r, &view);
    assert_int_equal(view.n, 2);
    const struct registry_entry *e = entry_of(pid);
    assert_non_null(e);
    assert_int_equal(e->dram_bytes, 0);
    assert_memory_equal(&e->published, &(struct registry_published){.cls = HY_CLASS_UNKNOWN},
                        sizeof(e->published));
    assert_true(e->heartbeat_ns <= os_now_ns());
    assert_string_equal(e->name, "?[2J???\"name-lo");
    assert_int_equal(registry_claim_dram(r, BUDGET), 0); /* nor does it block anybody */
    end_sleeper(pid);
    unmap_raw(f);
    registry_close(r);
}

static void test_words_that_nobody_writes_are_freed(void **state)
{
    struct registry *r = open_or_fail(BUDGET);
    struct reg_file *f = map_to_write();
    pid_t gone = sleeper();
    struct os_proc_id reused, execed;
    assert_int_equal(os_proc_self(&reused), 0);
    execed = reused;
    reused.start_time--;
    execed.stack_start += 16;
    const uint64_t claiming_of_dead = word_of(gone, REG_CLAIMING);
    const uint64_t live_of_dead = word_of(gone, REG_LIVE);
    const uint64_t words[] = {
        claiming_of_dead,
        live_of_dead,
        REG_CLAIMING,
        REG_LIVE,
        3,
        UINT64_MAX,
        UINT64_MAX - 1,
        reg_identity(&reused) | REG_LIVE,
        reg_identity(&execed) | REG_LIVE,
        (uint64_t)1 << 50, /* free, with rubbish */
    };

    (void)state;
    end_sleeper(gone);
    for (int i = 0; i < REGISTRY_SLOTS; i++) {
        f->slot[i].word = words[(size_t)i % HY_ARRAY_SIZE(words)];
        f->slot[i].dram = BUDGET;
    }
    registry_read(r, &view);
    assert_int_equal(view.n, 0);
    for (int i = 0; i < REGISTRY_SLOTS; i++)
        assert_int_equal(reg_state(f->slot[i].word), REG_FREE);
    assert_int_equal(registry_join(r, HY_CLASS_CPU), 0);
    assert_int_equal(registry_claim_dram(r, BUDGET), 0);
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    unmap_raw(f);
    registry_close(r);
}

/* A slot in the middle of joining counts nothing and is not told, but is kept. */
static void test_somebody_joining_is_left_alone(void **state)
{
    struct registry *r = open_or_fail(BUDGET);
    struct reg_file *f = map_to_write();
    pid_t pid = sleeper();

    (void)state;
    f->slot[0].word = word_of(pid, REG_CLAIMING);
    f->slot[0].dram = BUDGET;
    assert_int_equal(registry_join(r, HY_CLASS_CPU), 0);
    assert_int_equal(registry_claim_dram(r, BUDGET), 0);
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    assert_true(view.entry[0].is_self);
    assert_int_equal(f->slot[0].word, word_of(pid, REG_CLAIMING));
    end_sleeper(pid);
    unmap_raw(f);
    registry_close(r);
}

/* Somebody in another PID namespace took us for dead and gave our slot away. */
static void test_losing_the_slot_harms_neither(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    struct reg_file *f = map_raw();
    pid_t pid = sleeper();

    (void)state;
    assert_int_equal(registry_claim_dram(r, 10 * MB), 0);
    f->slot[0].word = word_of(pid, REG_LIVE);
    f->slot[0].dram = reg_next16(f->slot[0].dram) + 32 * MB;
    uint64_t theirs = f->slot[0].dram;
    assert_false(registry_joined(r));
    assert_int_equal(registry_claim_dram(r, MB), -ENOTCONN);
    registry_return_dram(r, 10 * MB);
    registry_publish(r, &(struct registry_published){.cls = HY_CLASS_LATENCY, .pm_bytes = 1});
    registry_leave(r);
    assert_int_equal(f->slot[0].dram, theirs);
    assert_int_equal(f->slot[0].word, word_of(pid, REG_LIVE));
    assert_int_equal(registry_join(r, HY_CLASS_CPU), 0);
    assert_int_equal(registry_claim_dram(r, BUDGET), -ENOSPC);
    registry_read(r, &view);
    assert_int_equal(view.n, 2);
    end_sleeper(pid);
    unmap_raw(f);
    registry_close(r);
}

/* A budget that is rubbish is one that nobody trusts once all have gone. */
static void test_a_wild_budget_lasts_no_longer_than_its_users(void **state)
{
    struct registry *r = open_or_fail(BUDGET);
    struct reg_file *f = map_raw();

    (void)state;
    f->head.budget = UINT64_MAX;
    assert_int_equal(registry_join(r, HY_CLASS_CPU), 0);
    registry_read(r, &view);
    assert_int_equal(view.dram_budget, BUDGET);
    unmap_raw(f);
    registry_close(r);
}

static void test_more_registries_than_there_is_room_for(void **state)
{
    struct registry *r[8], *one_more = NULL;

    (void)state;
    for (int i = 0; i < 8; i++)
        r[i] = open_and_join(BUDGET, HY_CLASS_CPU);
    assert_int_equal(registry_open(path, BUDGET, &one_more), -EMFILE);
    assert_null(one_more);
    registry_read(r[3], &view);
    assert_int_equal(view.n, 8);
    for (int i = 0; i < 8; i++)
        registry_close(r[i]);
    registry_close(open_or_fail(BUDGET));
}

/* --- files that change under us ---------------------------------------------------- */

/* Another process cuts the file short and makes it long again, without end. */
static _Noreturn void cut_for_ever(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i++) {
        (void)!truncate(path, (off_t)(i * 4099 % REGISTRY_BYTES));
        (void)!truncate(path, REGISTRY_BYTES);
        if (i % 8 == 0)
            usleep(100);
    }
}

static void test_cut_at_any_moment(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    unsigned joined = 0, lost = 0;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0)
        cut_for_ever();
    for (unsigned i = 0; i < 3000 || joined < 10 || lost < 10; i++) {
        int err = registry_join(r, HY_CLASS_CPU);
        assert_true(err == 0 || err == -EPROTO || err == -ENOSPC);
        joined += err == 0;
        err = registry_claim_dram(r, MB);
        assert_true(err == 0 || err == -ENOSPC || err == -ENOTCONN);
        lost += err == -ENOTCONN;
        registry_publish(r, &(struct registry_published){.pm_bytes = i});
        registry_read(r, &view);
        assert_true(view.n <= 1);
        registry_return_dram(r, MB);
        if (i % 16 == 0)
            registry_leave(r);
    }
    end_sleeper(pid);
    /* One of zeros is a new one. */
    assert_int_equal(truncate(path, 0), 0);
    assert_false(registry_joined(r));
    assert_int_equal(registry_join(r, HY_CLASS_CPU), -EPROTO);
    assert_int_equal(truncate(path, REGISTRY_BYTES), 0);
    assert_int_equal(registry_join(r, HY_CLASS_CPU), 0);
    assert_int_equal(registry_claim_dram(r, BUDGET), 0);
    registry_close(r);
}

/* Daemons close all that they find. The slot and its bytes stay, whoever comes. */
static void close_all_and_go_on(void)
{
    struct registry *r, *other;

    if (registry_open(path, BUDGET, &r) != 0 || registry_join(r, HY_CLASS_CPU) != 0 ||
        registry_claim_dram(r, 60 * MB) != 0)
        _exit(1);
    for (int fd = 3; fd < 1000; fd++)
        close(fd);
    int foreign = open("/dev/zero", O_RDWR | O_CLOEXEC);
    for (int fd = 100; fd < 400; fd++) /* ours among them: not to be read, written or closed */
        if (dup2(foreign, fd) != fd)
            _exit(2);
    if (registry_open(path, BUDGET, &other) != 0 || registry_join(other, HY_CLASS_CPU) != 0)
        _exit(3);
    if (registry_claim_dram(other, 41 * MB) != -ENOSPC || !registry_joined(r))
        _exit(4);
    if (registry_claim_dram(r, 40 * MB) != 0 || registry_claim_dram(r, MB) != -ENOSPC)
        _exit(5);
    registry_read(r, &view);
    if (view.n != 2 || view.entry[0].dram_bytes != BUDGET)
        _exit(6);
    registry_close(r);
    registry_close(other);
    for (int fd = 100; fd < 400; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            _exit(7);
    _exit(0);
}

static void test_all_descriptors_closed(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0)
        close_all_and_go_on();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Who decides about the budget has all slots for a moment, and is stopped in it. */
static void test_a_stopped_one_delays_for_a_bounded_time(void **state)
{
    struct registry *r = open_or_fail(BUDGET);
    static struct reg_access a;

    (void)state;
    assert_int_equal(reg_open(&a, path, false), 0);
    assert_int_equal(reg_lock_slots(&a, 0, REGISTRY_SLOTS), 0);
    uint64_t begin = os_now_ns();
    assert_int_equal(registry_join(r, HY_CLASS_CPU), -EBUSY);
    assert_true(os_now_ns() - begin < 60000000000u);
    registry_read(r, &view); /* looking needs no lock */
    assert_int_equal(view.dram_budget, BUDGET);
    reg_close(&a);
    assert_int_equal(registry_join(r, HY_CLASS_CPU), 0);
    registry_close(r);
}

int main(void)
{
#define REG_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        REG_TEST(test_other_headers_are_refused),
        REG_TEST(test_other_sizes_and_kinds_are_refused),
        REG_TEST(test_modes),
        REG_TEST(test_half_made_files_are_completed),
        REG_TEST(test_absurd_values_of_a_living_one),
        REG_TEST(test_words_that_nobody_writes_are_freed),
        REG_TEST(test_somebody_joining_is_left_alone),
        REG_TEST(test_losing_the_slot_harms_neither),
        REG_TEST(test_a_wild_budget_lasts_no_longer_than_its_users),
        REG_TEST(test_more_registries_than_there_is_room_for),
        REG_TEST(test_cut_at_any_moment),
        REG_TEST(test_all_descriptors_closed),
        REG_TEST(test_a_stopped_one_delays_for_a_bounded_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
