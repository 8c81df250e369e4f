/* SPDX-License-Identifier: BSD-2-Clause
 * Idle page tracking: which bits are set and looked at, over files that stand for the kernel's, and
 * the source of reads over real memory. Where the kernel has no such bitmap (Debian's have none) a
 * file stands for it, in which the test clears the bits of what is touched; frames and their flags
 * are the kernel's own then, for which one must be root. A file is not quite the same: zeros that
 * are written to it clear bits, so one block only is watched. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "fake_tree.h"
#include "pages/sampler.h"
#include "sys/pages/idle.h"
#include "sys/pages/track.h"

#define MIB     ((size_t)1 << 20)
#define BITMAP  "sys/kernel/mm/page_idle/bitmap"
#define PAGEMAP "proc/self/pagemap"
#define FLAGS   "proc/kpageflags"
#define PRESENT ((uint64_t)1 << 63)
#define LRU     ((uint64_t)1 << 5)
#define HEAD    ((uint64_t)1 << 15)
#define TAIL    ((uint64_t)1 << 16)
#define NOPAGE  ((uint64_t)1 << 20)
#define FRAMES  ((uint64_t)1 << 20)

static char dir[256];
static int bitmap = -1;
static struct os_idle idle;

/* --- the kernel's files ------------------------------------------------------------------------
 */

static void put_word(const char *name, uint64_t at, uint64_t word)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &word, 8, (off_t)at * 8), 8);
    close(fd);
}

static uint64_t bits_of(uint64_t word)
{
    uint64_t bits = 0;
    (void)!pread(bitmap, &bits, 8, (off_t)word * 8);
    return bits;
}

static bool bit(uint64_t frame)
{
    return bits_of(frame / 64) >> frame % 64 & 1;
}

static void touch_frame(uint64_t frame)
{
    uint64_t bits = bits_of(frame / 64) & ~((uint64_t)1 << frame % 64);
    assert_int_equal(pwrite(bitmap, &bits, 8, (off_t)(frame / 64 * 8)), 8);
}

static unsigned all_bits(void)
{
    unsigned n = 0;
    for (uint64_t w = 0; w < FRAMES / 64; w++)
        n += (unsigned)__builtin_popcountll(bits_of(w));
    return n;
}

static void make_tree(bool real_frames)
{
    char path[512];
    make_dir(dir, sizeof(dir));
    tree_put(dir, BITMAP, "");
    if (real_frames) {
        tree_put(dir, "proc/self/none", "");
        snprintf(path, sizeof(path), "%s/%s", dir, PAGEMAP);
        assert_int_equal(symlink("/proc/self/pagemap", path), 0);
        snprintf(path, sizeof(path), "%s/%s", dir, FLAGS);
        assert_int_equal(symlink("/proc/kpageflags", path), 0);
    } else {
        tree_put(dir, PAGEMAP, "");
        tree_put(dir, FLAGS, "");
    }
    snprintf(path, sizeof(path), "%s/%s", dir, BITMAP);
    bitmap = open(path, O_RDWR);
    assert_true(bitmap >= 0);
}

static int setup(void **state)
{
    (void)state;
    make_tree(false);
    return os_idle_open(dir, &idle);
}

static int teardown(void **state)
{
    (void)state;
    os_idle_close(&idle);
    close(bitmap);
    return tree_remove(dir);
}

#define BLOCK ((char *)0x10000000)

static void map_page(unsigned page, uint64_t frame, uint64_t flags)
{
    put_word(PAGEMAP, (uintptr_t)BLOCK / HY_PAGE + page, PRESENT | frame);
    put_word(FLAGS, frame, flags);
}

static struct os_idle_page pages[OS_IDLE_PAGES];

/* Pages [first, first + n) of the block, ready to be marked; how many. */
static unsigned found(unsigned first, unsigned n)
{
    int k = os_idle_pages(&idle, BLOCK, first, n, pages, 0);
    assert_true(k >= 0);
    k = os_idle_resolve(&idle, pages, (unsigned)k);
    assert_true(k >= 0);
    return (unsigned)k;
}

/* --- bits
 * ------------------------------------------------------------------------------------------ */

static void frames_anywhere(void **state)
{
    uint64_t frame[OS_IDLE_PAGES];
    (void)state;
    for (unsigned i = 0; i < OS_IDLE_PAGES; i++) {
        /* scattered, in runs, and two in one word */
        frame[i] = 64 + (i % 3 == 0 ? (i * 7919u) % 100000 * 8 + 1 : frame[i - 1] - 64 + 1);
        map_page(i, frame[i], LRU);
    }
    assert_int_equal(found(0, OS_IDLE_PAGES), OS_IDLE_PAGES);
    assert_int_equal(os_idle_mark(&idle, pages, OS_IDLE_PAGES), 0);
    for (unsigned i = 0; i < OS_IDLE_PAGES; i++)
        assert_true(bit(frame[i]));
    assert_int_equal(all_bits(), OS_IDLE_PAGES); /* nobody else's */
    for (unsigned i = 0; i < OS_IDLE_PAGES; i += 5)
        touch_frame(frame[i]);
    assert_int_equal(os_idle_look(&idle, pages, OS_IDLE_PAGES), 0);
    bool once[OS_IDLE_PAGES] = {false};
    for (unsigned k = 0; k < OS_IDLE_PAGES; k++) {
        assert_false(once[pages[k].page]);
        once[pages[k].page] = true;
        assert_int_equal(pages[k].idle, pages[k].page % 5 != 0);
    }
}

static void what_has_no_bit(void **state)
{
    (void)state;
    map_page(0, 1000, LRU);
    map_page(1, 1001, 0);                                       /* on no list */
    map_page(2, 1002, LRU | NOPAGE);                            /* no memory */
    put_word(PAGEMAP, (uintptr_t)BLOCK / HY_PAGE + 3, 1003);    /* swapped: not present */
    put_word(PAGEMAP, (uintptr_t)BLOCK / HY_PAGE + 4, PRESENT); /* no frame told */
    map_page(5, FRAMES - 1, LRU);
    map_page(9, 2000, TAIL); /* of nothing */
    assert_int_equal(found(0, OS_IDLE_PAGES), 2);
    assert_int_equal(pages[0].page, 0);
    assert_int_equal(pages[1].page, 5);
    assert_int_equal(found(3, 2), 0);
    assert_int_equal(found(100, 412), 0); /* beyond the file */
    assert_int_equal(os_idle_mark(&idle, pages, 0), 0);
    assert_int_equal(all_bits(), 0);
    assert_int_equal(os_idle_pages(&idle, BLOCK, 500, 13, pages, 0), -EINVAL);
    assert_int_equal(os_idle_pages(&idle, BLOCK, 0, 512, pages, 1), -EINVAL);
}

static void map_huge(unsigned page, uint64_t head, unsigned n, uint64_t flags)
{
    for (unsigned i = 0; i < n; i++)
        map_page(page + i, head + i, i ? TAIL : HEAD | flags);
}

static void huge_pages_have_one_bit(void **state)
{
    (void)state;
    map_huge(0, 512 * 20, 512, LRU);
    assert_int_equal(found(0, 512), 512);
    assert_int_equal(os_idle_mark(&idle, pages, 512), 0);
    assert_int_equal(all_bits(), 1);
    assert_true(bit(512 * 20));
    assert_int_equal(os_idle_look(&idle, pages, 512), 0);
    for (unsigned i = 0; i < 512; i++)
        assert_true(pages[i].idle);
    touch_frame(512 * 20);
    assert_int_equal(os_idle_look(&idle, pages, 512), 0);
    for (unsigned i = 0; i < 512; i++)
        assert_false(pages[i].idle);
    /* Groups are watched by few of their pages: the first one may not be among them. */
    const unsigned alone[] = {511, 448, 447, 65, 64, 63, 1, 0};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(alone); i++) {
        assert_int_equal(found(alone[i], 1), 1);
        assert_int_equal(pages[0].frame, 512 * 20);
        assert_int_equal(pages[0].page, alone[i]);
    }
    int n = os_idle_pages(&idle, BLOCK, 3, 1, pages, 0);
    n = os_idle_pages(&idle, BLOCK, 300, 2, pages, (unsigned)n);
    assert_int_equal(n, 3);
    assert_int_equal(os_idle_resolve(&idle, pages, 3), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pages[i].frame, 512 * 20);
}

/* Smaller ones side by side, a plain page between, one that is on no list, and one whose memory
 * was moved to another place of the address space. */
static void mixed_sizes(void **state)
{
    (void)state;
    map_huge(0, 1024, 16, LRU);
    map_huge(16, 1040, 16, LRU);
    map_page(32, 1056, LRU);
    map_huge(33, 1060, 4, 0);
    map_huge(37, 1064, 4, LRU);
    map_page(41, 2048 + 37, TAIL);
    for (unsigned i = 0; i < 64; i++)
        put_word(FLAGS, 2048 + i, i ? TAIL : HEAD | LRU);
    unsigned n = found(0, 64);
    assert_int_equal(n, 16 + 16 + 1 + 4 + 1);
    for (unsigned i = 0; i < n; i++) {
        unsigned page = pages[i].page;
        assert_int_equal(pages[i].frame, page < 16   ? 1024
                                         : page < 32 ? 1040
                                         : page < 33 ? 1056
                                         : page < 41 ? 1064
                                                     : 2048);
        assert_true(i == 0 || pages[i - 1].frame <= pages[i].frame);
        assert_false(page >= 33 && page < 37);
    }
    assert_int_equal(os_idle_mark(&idle, pages, n), 0);
    assert_int_equal(all_bits(), 5);
}

/* Of /proc/self/io; false: this kernel does not count. */
static bool calls_made(unsigned long *ret)
{
    unsigned long r, w;
    FILE *f = fopen("/proc/self/io", "r");
    bool ok = f && fscanf(f, "rchar: %*u wchar: %*u syscr: %lu syscw: %lu", &r, &w) == 2;
    if (f)
        fclose(f);
    *ret = r + w;
    return ok;
}

static void one_call_for_many(void **state)
{
    unsigned long before, after;
    (void)state;
    for (unsigned i = 0; i < 512; i++)
        map_page(i, 100000 + i, LRU);
    if (under_valgrind() || !calls_made(&before)) /* which makes calls of its own */
        skip();
    assert_int_equal(found(0, 512), 512);
    assert_int_equal(os_idle_mark(&idle, pages, 512), 0);
    assert_int_equal(os_idle_look(&idle, pages, 512), 0);
    assert_true(calls_made(&after));
    assert_true(after - before <= 4 + 4); /* pagemap, flags, bitmap twice; /proc/self/io */
}

static void closed_part(void *arg)
{
    (void)arg;
    child_check(os_idle_pages(&idle, BLOCK, 0, 1, pages, 0) == -ESRCH);
    child_check(os_idle_mark(&idle, pages, 1) == -ESRCH);
    child_check(!os_idle_alive(&idle));
    struct os_idle own;
    child_check(os_idle_open(dir, &own) == 0);
    child_check(os_idle_alive(&own));
    /* The program closes what it does not know, and has a file of its own there. */
    int fd = open("/dev/null", O_RDWR);
    char path[] = "/tmp/idle-XXXXXX";
    int mine = mkstemp(path);
    unlink(path);
    child_check(fd >= 0 && mine >= 0 && dup2(mine, own.fd[2]) == own.fd[2]);
    child_check(!os_idle_alive(&own));
    pages[0] = (struct os_idle_page){77, 0, false};
    child_check(os_idle_mark(&own, pages, 1) == -EBADF);
    child_check(os_idle_look(&own, pages, 1) == -EBADF);
    child_check(lseek(mine, 0, SEEK_END) == 0);
    int theirs = own.fd[2];
    os_idle_close(&own);
    child_check(fcntl(theirs, F_GETFD) >= 0);
}

static void children_and_closed_files(void **state)
{
    struct os_idle other;
    (void)state;
    assert_true(os_idle_alive(&idle));
    assert_int_equal(in_child(closed_part, NULL), 0);
    assert_true(os_idle_alive(&idle));
    assert_int_equal(os_idle_open("/nowhere", &other), -ENOENT);
}

/* --- the source ----------------------------------------------------------------------------------
 */

static int fine(void)
{
    return 0;
}

static void nothing(void)
{
}

static const struct sampler_source writes = {
    .name = "none", .writes = true, .open = fine, .close = nothing};
static const struct sampler_source *const list[] = {&writes, &sampler_idle, NULL};

/* Pages come to the kernel's lists some time after they were touched first; this does it now. */
static void settle(char *at)
{
    void *page = at;
    int node = 0, status = 0;
    (void)syscall(SYS_move_pages, 0, 1ul, &page, &node, &status, 0);
}

/* The processor looks all pages up again: more than a few unmapped at once empty its cache. */
static void forget_translations(void)
{
    char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    memset(at, 1, MIB);
    munmap(at, MIB);
}

static uint64_t frame_at(const char *at)
{
    uint64_t word = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY);
    assert_int_equal(pread(fd, &word, 8, (off_t)((uintptr_t)at / HY_PAGE * 8)), 8);
    close(fd);
    return word & (((uint64_t)1 << 55) - 1);
}

static void touch(const char *at, size_t n, bool for_real)
{
    static volatile char sum;
    forget_translations();
    for (size_t i = 0; i < n; i++) {
        sum = (char)(sum + at[i * HY_PAGE]);
        if (!for_real)
            touch_frame(frame_at(at + i * HY_PAGE));
    }
}

static unsigned hot_reads(const char *at, size_t touched, bool for_real, unsigned passes)
{
    struct pass_stats stats;
    uint64_t totals[HY_TIERS][BANDS], on[HY_TIERS];
    for (unsigned n = 0; n < passes; n++) {
        assert_true(sampler_begin(UINT64_MAX) > 0);
        for (unsigned r = 0; r < HISTORY_ROUNDS; r++) {
            touch(at, touched, for_real);
            sampler_round(r);
        }
        sampler_end(&stats);
    }
    sampler_totals(totals, on);
    return (unsigned)totals[HY_PM][BAND_HOT_RD];
}

static void source_child(void *arg)
{
    (void)arg;
    sampler_postfork();
    child_check(!sampler_idle.alive());
    child_check(sampler_reopen() == 0 && sampler_idle.alive());
    child_check(strcmp(sampler_source_name(false), "page-idle") == 0);
}

static void the_source(bool for_real)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    const size_t some = 100;
    sampler_idle_use(for_real ? NULL : dir);
    assert_int_equal(sampler_open(list, &p, 1), 0);
    assert_string_equal(sampler_source_name(false), "page-idle");
    char *map = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = (char *)hy_align_up((uintptr_t)map, 2 * MIB);
    os_no_huge_pages(map, 4 * MIB);
    memset(map, 1, 4 * MIB);
    settle(at);
    assert_int_equal(sampler_add(at, 2 * MIB, HY_PM, false), 0);
    /* The kernel may move a page, or take it off its lists for a moment. */
    assert_in_range(hot_reads(at + MIB / 4, some, for_real, 12), some * 9 / 10, some * 11 / 10);
    assert_in_range(hot_reads(at + MIB, 2 * some, for_real, 12), 2 * some * 9 / 10,
                    2 * some * 11 / 10); /* others */
    sampler_prefork();
    int status = in_child(source_child, NULL);
    sampler_postfork();
    assert_int_equal(status, 0);
    sampler_discard(at, 2 * MIB);
    madvise(at, 2 * MIB, MADV_DONTNEED);
    assert_int_equal(hot_reads(at, 0, for_real, 12), 0);
    sampler_close();
    sampler_idle_use(NULL);
    munmap(map, 4 * MIB);
}

static void the_source_over_a_file(void **state)
{
    (void)state;
    if (frame_at((char *)(uintptr_t)state) == 0) {
        print_message("only root is told of frames\n");
        skip();
    }
    make_tree(true);
    the_source(false);
    close(bitmap);
    tree_remove(dir);
}

static void the_source_by_the_kernel(void **state)
{
    (void)state;
    int r = sampler_idle.open();
    if (r != 0) {
        print_message("not on this kernel, or not permitted: %s\n", strerror(-r));
        skip();
    }
    sampler_idle.close();
    the_source(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(huge_pages_have_one_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(mixed_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(one_call_for_many, setup, teardown),
        cmocka_unit_test_setup_teardown(children_and_closed_files, setup, teardown),
        cmocka_unit_test(the_source_over_a_file),
        cmocka_unit_test(the_source_by_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
