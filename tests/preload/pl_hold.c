/* SPDX-License-Identifier: BSD-2-Clause
 * Holds memory on command: one command a line on standard input, one answer a
 * line on standard output.
 *   big N     N blocks of 1 MiB, written        small N   N blocks of 200 bytes
 *   map N     an anonymous mapping of N MiB     free      frees all blocks
 *   sparse N  one of N MiB that is not touched
 *   fork      a child checks and changes all blocks, the parent checks its own
 *   grow N    doubles one block by realloc up to N MiB */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX 400000
static unsigned char *block[MAX];
static size_t size[MAX];
static int n_blocks;

static void keep(unsigned char *p, size_t n)
{
    memset(p, n_blocks % 251, n);
    block[n_blocks] = p;
    size[n_blocks++] = n;
}

__attribute__((noinline)) static unsigned char *site_big(size_t n)
{
    unsigned char *p = malloc(n);
    __asm__ volatile("" : "+r"(p)); /* no tail call: this frame must be seen */
    return p;
}

__attribute__((noinline)) static unsigned char *site_small(size_t n)
{
    unsigned char *p = malloc(n);
    __asm__ volatile("" : "+r"(p));
    return p;
}

static int intact(void)
{
    for (int i = 0; i < n_blocks; i++)
        for (size_t k = 0; k < size[i]; k += 509)
            if (block[i][k] != i % 251)
                return 0;
    return 1;
}

static int fork_check(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int ok = intact();
        for (int i = 0; i < n_blocks; i++)
            memset(block[i], 0xee, size[i]);
        _exit(ok ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0 && intact();
}

int main(void)
{
    char line[64], what[32];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        long n = 0;
        int ok = 1;
        sscanf(line, "%31s %ld", what, &n);
        if (!strcmp(what, "big"))
            for (long i = 0; i < n; i++)
                keep(site_big(1 << 20), 1 << 20);
        else if (!strcmp(what, "small"))
            for (long i = 0; i < n; i++)
                keep(site_small(200), 200);
        else if (!strcmp(what, "map"))
            memset(mmap(NULL, (size_t)n << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0), 1, (size_t)n << 20);
        else if (!strcmp(what, "sparse"))
            ok = mmap(NULL, (size_t)n << 20, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
        else if (!strcmp(what, "free"))
            while (n_blocks > 0)
                free(block[--n_blocks]);
        else if (!strcmp(what, "fork"))
            ok = fork_check();
        else if (!strcmp(what, "grow")) {
            size_t now = 1 << 16;
            unsigned char *p = malloc(now);
            memset(p, 7, now);
            for (; now < (size_t)n << 20; now *= 2) {
                p = realloc(p, now * 2);
                ok &= p[now - 1] == 7;
                memset(p + now, 7, now);
            }
            free(p);
        }
        printf("%s\n", ok && intact() ? "ok" : "BROKEN");
    }
    return 0;
}
