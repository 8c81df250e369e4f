/* SPDX-License-Identifier: BSD-2-Clause
 * vm_fork: parent and child must have independent memories. Each writes all of
 * its blocks while the other lives, and then finds only what it wrote itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 20000, BIG = 16, ALL = SMALL + BIG, BIG_BYTES = 1 << 20 };

static unsigned char *block[ALL];
static size_t bytes[ALL];

static void write_all(int value)
{
    for (int i = 0; i < ALL; i++)
        memset(block[i], value, bytes[i]);
}

static unsigned foreign_blocks(int value)
{
    unsigned wrong = 0;
    for (int i = 0; i < ALL; i++) {
        size_t at = 0;
        while (at < bytes[i] && block[i][at] == value)
            at++;
        wrong += at < bytes[i];
    }
    return wrong;
}

static void step(int to, int from)
{
    char c = 0;
    if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
        _exit(4);
}

static int play(const char *who, int to, int from, int old, int value)
{
    unsigned lost = foreign_blocks(old);
    step(to, from); /* both have seen the memory of before the fork */
    write_all(value);
    free(malloc(100000)); /* the allocator itself works on both sides */
    step(to, from);       /* both have written */
    unsigned wrong = foreign_blocks(value);
    if (lost || wrong)
        printf("%s: %u blocks not as before the fork, %u written by the other\n", who, lost, wrong);
    fflush(stdout);
    return lost || wrong;
}

int main(void)
{
    int down[2], up[2], status;
    for (int i = 0; i < ALL; i++) {
        bytes[i] = i < SMALL ? 16 + (size_t)i % 1000 : BIG_BYTES;
        block[i] = malloc(bytes[i]);
        if (!block[i])
            return 2;
    }
    write_all(1);
    if (pipe(down) < 0 || pipe(up) < 0)
        return 2;
    pid_t child = fork();
    if (child < 0)
        return 2;
    if (child == 0)
        _exit(play("child", up[1], down[0], 1, 2));
    int bad = play("parent", down[1], up[0], 1, 3);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bad = 1;
    return bad;
}
