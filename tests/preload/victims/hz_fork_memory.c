/* SPDX-License-Identifier: BSD-2-Clause
 * After fork the memories are independent: both sides write every block, small,
 * large and mapped, and see only their own; children of children; a child that
 * outlives its parent; a snapshot written by a child while the parent writes on. */
#include "victim.h"

enum { SMALL = 3000, LARGE = 24, MAPS = 4 };

static char *block[SMALL + LARGE + MAPS];
static size_t size[SMALL + LARGE + MAPS];
static const int count = SMALL + LARGE + MAPS;

static void make(void)
{
    uint64_t s = 3;
    for (int i = 0; i < SMALL; i++)
        block[i] = malloc(size[i] = rnd(&s) % 3000 + 16);
    for (int i = SMALL; i < SMALL + LARGE; i++)
        block[i] = malloc(size[i] = (rnd(&s) % 20 + 1) * 60000);
    for (int i = SMALL + LARGE; i < count; i++) {
        size[i] = (size_t)(i - SMALL - LARGE + 1) << 20;
        block[i] = mmap(NULL, size[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(block[i] != MAP_FAILED);
    }
}

static void write_all(uint64_t who)
{
    for (int i = 0; i < count; i++)
        fill(block[i], size[i], who * 1000003 + (uint64_t)i);
}

static int wrong(uint64_t who)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        n += !holds(block[i], size[i], who * 1000003 + (uint64_t)i);
    return n;
}

static void sync_point(int out, int in)
{
    char c = 1;
    CHECK(write(out, &c, 1) == 1);
    CHECK(read(in, &c, 1) == 1);
}

static void both_write(void)
{
    int a[2], b[2];
    CHECK(pipe(a) == 0 && pipe(b) == 0);
    write_all(1);
    pid_t pid = fork();
    if (pid == 0) {
        int bad = wrong(1) != 0;
        sync_point(a[1], b[0]); /* the parent has written now */
        bad += wrong(1) != 0;
        write_all(2);
        sync_point(a[1], b[0]); /* and checked that it does not see it */
        bad += wrong(2) != 0;
        free(block[0]);
        free(block[SMALL]);
        _exit(bad);
    }
    char c = 1;
    CHECK(read(a[0], &c, 1) == 1);
    write_all(3);
    CHECK(write(b[1], &c, 1) == 1 && read(a[0], &c, 1) == 1);
    int parent_sees = wrong(3);
    CHECK(write(b[1], &c, 1) == 1);
    int child_bad = reap(pid);
    printf("parent sees %d, child sees %d\n", parent_sees, child_bad);
    close(a[0]), close(a[1]), close(b[0]), close(b[1]);
}

static void nested(void)
{
    int done[2];
    CHECK(pipe(done) == 0);
    write_all(4);
    pid_t pid = fork();
    if (pid == 0) {
        write_all(5);
        pid_t parent = getpid(), inner = fork();
        if (inner == 0) {
            close(done[0]);
            int bad = wrong(5);
            write_all(6);
            for (int i = 0; i < 500 && getppid() == parent; i++)
                nap_us(2000); /* outlive the parent */
            CHECK(bad == 0);
            char c = (char)(wrong(6) == 0 ? 'y' : 'n');
            CHECK(write(done[1], &c, 1) == 1);
            _exit(0);
        }
        nap_us(20000);
        _exit(wrong(5) != 0);
    }
    close(done[1]);
    int first = reap(pid);
    write_all(7);
    char c = 0;
    CHECK(read(done[0], &c, 1) == 1);
    printf("child %d, grandchild %c, parent %d\n", first, c, wrong(7));
    close(done[0]);
}

/* Round r writes r into all words of all blocks in order: a snapshot of one instant has one step. */
static void snapshot(void)
{
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k + 8 <= size[i]; k += 8)
            memcpy(block[i] + k, &(uint64_t){0}, 8);
    int bad = 0;
    for (uint64_t r = 1; r <= 6; r++) {
        pid_t pid = 0;
        int cut = (int)(r * 7919 % (uint64_t)count);
        for (int i = 0; i < count; i++) {
            if (i == cut) {
                pid = fork();
                if (pid == 0) {
                    int steps = 0;
                    uint64_t last = r, v;
                    for (int j = 0; j < count; j++) {
                        if (j % 500 == 0)
                            nap_us(300);
                        for (size_t k = 0; k + 8 <= size[j]; k += 8) {
                            memcpy(&v, block[j] + k, 8);
                            steps += v != last;
                            last = v;
                        }
                    }
                    _exit(steps > 1 || (cut && steps == 0) || last != r - 1);
                }
            }
            for (size_t k = 0; k + 8 <= size[i]; k += 8)
                memcpy(block[i] + k, &r, 8);
        }
        bad += reap(pid) != 0;
    }
    printf("snapshots that are none: %d\n", bad);
}

int main(void)
{
    make();
    both_write();
    nested();
    snapshot();
    fflush(stdout);
    pid_t pid = fork(); /* a child frees and allocates with what it inherited */
    if (pid == 0) {
        for (int i = 0; i < SMALL + LARGE; i++) {
            block[i] = realloc(block[i], size[i] * 2);
            CHECK(block[i]);
            fill(block[i], size[i] * 2, 9);
        }
        for (int i = 0; i < SMALL + LARGE; i++)
            free(block[i]);
        for (int i = SMALL + LARGE; i < count; i++)
            CHECK(munmap(block[i], size[i]) == 0);
        exit(0);
    }
    CHECK(reap(pid) == 0);
    write_all(8);
    CHECK(wrong(8) == 0);
    puts("ok");
    return 0;
}
