/* SPDX-License-Identifier: BSD-2-Clause
 * Page faults of a forked child that ends at once, of a process with some memory in use.
 *   fork_faults [MIB]: and so much that it has never touched */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 50

int main(int argc, char **argv)
{
    struct rusage children;
    char *block = malloc(4 << 20);
    void *volatile more = malloc((argc > 1 ? strtoul(argv[1], NULL, 10) : 0) << 20);

    memset(block, 1, 4 << 20);
    for (int i = 0; i < 1000; i++)
        free(malloc(100 + (size_t)i));
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
            return 1;
    }
    if (getrusage(RUSAGE_CHILDREN, &children))
        return 1;
    printf("%ld\n", children.ru_minflt / FORKS);
    free(block);
    free(more);
    return 0;
}
