/* SPDX-License-Identifier: BSD-2-Clause
 * Allocates at four call sites on command: one command a line on standard input, one answer a
 * line on standard output.
 *   a N ... d N   a block of N KiB, written      drop a ... drop d   frees all of that site
 *   fork          a child allocates at all sites and checks them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX 4096
static unsigned char *block[4][MAX];
static int n_blocks[4];

/* No tail calls: each function must be seen on the stack. */
#define SITE(name)                                                                                 \
    __attribute__((noinline)) static unsigned char *site_##name(size_t n)                          \
    {                                                                                              \
        unsigned char *p = malloc(n);                                                              \
        __asm__ volatile("" : "+r"(p));                                                            \
        return p;                                                                                  \
    }
SITE(a)
SITE(b)
SITE(c)
SITE(d)

static int take(int site, size_t n)
{
    static unsigned char *(*const at[])(size_t) = {site_a, site_b, site_c, site_d};
    unsigned char *p = at[site](n);
    if (!p || n_blocks[site] == MAX)
        return 0;
    memset(p, 'a' + site, n);
    block[site][n_blocks[site]++] = p;
    return 1;
}

static void drop(int site)
{
    while (n_blocks[site] > 0)
        free(block[site][--n_blocks[site]]);
}

static int in_child(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int ok = 1;
        for (int round = 0; round < 20; round++)
            for (int site = 0; site < 4; site++) {
                ok &= take(site, 300000) && block[site][0][0] == 'a' + site;
                if (round % 5 == 4)
                    drop(site);
            }
        _exit(ok ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
    char line[64], what[16], site = 'a';
    size_t n = 0;
    setvbuf(stdin, malloc(4096), _IOFBF, 4096);
    while (fgets(line, sizeof(line), stdin)) {
        int ok = 0;
        if (sscanf(line, "drop %c", &site) == 1 && site >= 'a' && site <= 'd') {
            drop(site - 'a');
            ok = 1;
        } else if (strcmp(line, "fork\n") == 0) {
            ok = in_child();
        } else if (sscanf(line, "%15s %zu", what, &n) == 2 && what[0] >= 'a' && what[0] <= 'd') {
            ok = take(what[0] - 'a', n << 10);
        }
        puts(ok ? "ok" : "failed");
        fflush(stdout);
    }
    return 0;
}
