/* SPDX-License-Identifier: BSD-2-Clause
 * Allocates at four call sites and maps at two on command: one command a line on standard
 * input, one answer a line on standard output.
 *   a N ... f N   a block of N KiB, written; e and f map it
 *   drop a ... drop f   frees all of that site
 *   half e, half f      unmaps the second half of the last one
 *   fork          a child allocates at all sites and checks them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX   4096
#define SITES 6
static unsigned char *block[SITES][MAX];
static size_t size[SITES][MAX];
static int n_blocks[SITES];

static unsigned char *map(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* No tail calls: each function must be seen on the stack. */
#define SITE(name, get)                                                                            \
    __attribute__((noinline)) static unsigned char *site_##name(size_t n)                          \
    {                                                                                              \
        unsigned char *p = get(n);                                                                 \
        __asm__ volatile("" : "+r"(p));                                                            \
        return p;                                                                                  \
    }
SITE(a, malloc)
SITE(b, malloc)
SITE(c, malloc)
SITE(d, malloc)
SITE(e, map)
SITE(f, map)

static int take(int site, size_t n)
{
    static unsigned char *(*const at[])(size_t) = {site_a, site_b, site_c, site_d, site_e, site_f};
    unsigned char *p = at[site](n);
    if (!p || n_blocks[site] == MAX)
        return 0;
    memset(p, 'a' + site, n);
    size[site][n_blocks[site]] = n;
    block[site][n_blocks[site]++] = p;
    return 1;
}

static void drop(int site)
{
    while (n_blocks[site]-- > 0)
        if (site < 4)
            free(block[site][n_blocks[site]]);
        else
            munmap(block[site][n_blocks[site]], size[site][n_blocks[site]]);
    n_blocks[site] = 0;
}

static int halve(int site)
{
    int last = n_blocks[site] - 1;
    if (last < 0)
        return 0;
    size[site][last] /= 2;
    return munmap(block[site][last] + size[site][last], size[site][last]) == 0;
}

static int in_child(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int ok = 1;
        for (int round = 0; round < 20; round++)
            for (int site = 0; site < SITES; site++) {
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
        if (sscanf(line, "drop %c", &site) == 1 && site >= 'a' && site <= 'f') {
            drop(site - 'a');
            ok = 1;
        } else if (sscanf(line, "half %c", &site) == 1 && (site == 'e' || site == 'f')) {
            ok = halve(site - 'a');
        } else if (strcmp(line, "fork\n") == 0) {
            ok = in_child();
        } else if (sscanf(line, "%15s %zu", what, &n) == 2 && what[0] >= 'a' && what[0] <= 'f') {
            ok = take(what[0] - 'a', n << 10);
        }
        puts(ok ? "ok" : "failed");
        fflush(stdout);
    }
    return 0;
}
