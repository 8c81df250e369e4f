/* SPDX-License-Identifier: BSD-2-Clause
 * Page faults of a forked child that ends at once, of a process with some memory in use.
 *   fork_faults MIB                  and so much that it has never touched
 *   fork_faults MIB PROGRAM ARG...   of a child that becomes the program, whose environment is this one's and what
 *                                    VICTIM_PRELOAD tells */
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
        int status = 0;
        pid_t pid = fork();
        if (pid == 0 && argc > 2) {
            const char *lib = getenv("VICTIM_PRELOAD");
            if (lib)
                setenv("LD_PRELOAD", lib, 1);
            execv(argv[2], argv + 2);
            _exit(127);
        }
        if (pid == 0)
            _exit(0);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return 1;
    }
    if (getrusage(RUSAGE_CHILDREN, &children))
        return 1;
    printf("%ld\n", children.ru_minflt / FORKS);
    free(block);
    free(more);
    return 0;
}
