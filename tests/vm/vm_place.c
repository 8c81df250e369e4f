/* SPDX-License-Identifier: BSD-2-Clause
 * vm_place EXPECT: allocates small blocks, big blocks and mappings, touches
 * them and asks the kernel on which node each page is. EXPECT is a node number,
 * "both" (each node has a third or more) or "none" (pages of no node: fsdax).
 * Status 0 when all three kinds are where expected.
 * vm_place split MIB: one block of three times as much has its first MIB on node 0, all else on
 * node 1, also when it is freed and taken again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, SMALL = 40000, BIG = 24, BIG_BYTES = 1 << 20, MAP_BYTES = 32 << 20 };
enum { ON_NODE_0, ON_NODE_1, ON_NONE, ELSEWHERE, PLACES };

struct tally {
    unsigned long n[PLACES];
};

static void ask(struct tally *t, char *base, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE) {
        void *page = (void *)((unsigned long)(base + at) & ~(PAGE - 1UL));
        int status = -1;
        if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) < 0)
            status = -errno;
        /* the kernel knows no node for a DAX page, which is touched here */
        t->n[status == 0 || status == 1 ? status : status == -ENOENT ? ON_NONE : ELSEWHERE]++;
    }
}

static int judge(const char *what, const struct tally *t, const char *expect)
{
    unsigned long all = 0;
    for (int i = 0; i < PLACES; i++)
        all += t->n[i];
    int good;
    if (strcmp(expect, "both") == 0)
        good = t->n[ON_NODE_0] * 3 >= all && t->n[ON_NODE_1] * 3 >= all;
    else /* what was allocated before placing began may lie elsewhere: 2% */
        good = t->n[strcmp(expect, "none") == 0 ? ON_NONE : atoi(expect)] * 100 >= all * 98;
    printf("%-5s %s: node 0 %lu, node 1 %lu, no node %lu, other %lu pages\n", what,
           good ? "as expected" : "WRONG", t->n[ON_NODE_0], t->n[ON_NODE_1], t->n[ON_NONE],
           t->n[ELSEWHERE]);
    return good;
}

static int split(size_t bytes)
{
    int good = 1;
    for (int again = 0; again < 3; again++) {
        struct tally head = {0}, tail = {0};
        char *p = malloc(3 * bytes);
        if (!p)
            return 2;
        memset(p, 1, 3 * bytes);
        ask(&head, p, bytes);
        ask(&tail, p + bytes, 2 * bytes);
        good &= judge("head", &head, "0") & judge("tail", &tail, "1");
        good &= head.n[ON_NODE_0] + tail.n[ON_NODE_0] <= bytes / PAGE;
        free(p);
    }
    return !good;
}

int main(int argc, char **argv)
{
    static char *small[SMALL];
    struct tally tally[3] = {0};
    const char *expect = argc > 1 ? argv[1] : "0";
    unsigned seed = 1;

    if (argc > 2 && strcmp(expect, "split") == 0)
        return split((size_t)atoi(argv[2]) << 20);
    for (int i = 0; i < SMALL; i++) {
        seed = seed * 1103515245u + 12345u;
        size_t bytes = 64 + (seed >> 16) % 1500;
        small[i] = malloc(bytes);
        if (!small[i])
            return 2;
        memset(small[i], i, bytes);
    }
    for (int i = 0; i < SMALL; i += 4)
        ask(&tally[0], small[i], 1);
    for (int i = 0; i < BIG; i++) {
        char *big = malloc(BIG_BYTES);
        if (!big)
            return 2;
        memset(big, i, BIG_BYTES);
        ask(&tally[1], big, BIG_BYTES);
    }
    /* fsdax places heaps only: a mapping of the program's own stays in DRAM */
    char *map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return 2;
    memset(map, 1, MAP_BYTES);
    ask(&tally[2], map, MAP_BYTES);

    int good = judge("small", &tally[0], expect) & judge("big", &tally[1], expect);
    good &= judge("mmap", &tally[2], strcmp(expect, "none") == 0 ? "0" : expect);
    return good ? 0 : 1;
}
