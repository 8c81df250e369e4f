/* SPDX-License-Identifier: BSD-2-Clause
 * vfork, posix_spawn, system, popen, and a chain of exec: argument "chain N". */
#include "victim.h"

#include <spawn.h>

extern char **environ;

int main(int argc, char **argv)
{
    char *p = malloc(300000);
    memset(p, 3, 300000);
    if (argc > 2) {
        int left = atoi(argv[2]);
        if (left == 0) {
            printf("end of the chain\n");
            return 6;
        }
        char next[20];
        snprintf(next, sizeof next, "%d", left - 1);
        execl("/proc/self/exe", argv[0], "chain", next, (char *)NULL);
        return 98;
    }
    for (int i = 0; i < 60; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
            _exit(98);
        }
        CHECK(pid > 0 && reap(pid) == 5 && p[299999] == 3);
        char *const args[] = {"sh", "-c", "exit 7", NULL};
        CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ) == 0 && reap(pid) == 7);
        CHECK(posix_spawnp(&pid, "no-such-program", NULL, NULL, args, environ) == ENOENT);
        pid = vfork();
        if (pid == 0) {
            execl("/no/such/program", "x", (char *)NULL);
            _exit(errno == ENOENT ? 9 : 98);
        }
        CHECK(reap(pid) == 9);
        free(malloc((size_t)i * 1000));
    }
    CHECK(WEXITSTATUS(system("exit 11")) == 11);
    FILE *f = popen("echo from a pipe", "r");
    char line[100];
    CHECK(f && fgets(line, sizeof line, f) && strcmp(line, "from a pipe\n") == 0 && pclose(f) == 0);
    pid_t pid = fork();
    if (pid == 0)
        execl("/proc/self/exe", argv[0], "chain", "30", (char *)NULL);
    printf("chain %d\n", reap(pid));
    free(p);
    return 0;
}
