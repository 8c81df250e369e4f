/* SPDX-License-Identifier: BSD-2-Clause
 * exit() while PM is being filled: memkind's destructor has to wait. Status 0 if it did.
 *   exit_fill main|child: who exits */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 100 << 20, BLOCK = 200000, KEEP = 2000, SECONDS = 40, NO_FILL = 4 };

static void *grow(void *unused)
{
    static char *kept[KEEP];
    (void)unused;
    for (int i = 0; i < KEEP; i++) {
        if ((kept[i] = malloc(BLOCK)))
            memset(kept[i], 1, 1);
        usleep(1000); /* the control thread has to come by */
    }
    return NULL;
}

static void grow_and_exit(void)
{
    void *memkind = dlopen("libmemkind.so.0", RTLD_NOW | RTLD_NOLOAD);
    int *slow = memkind ? dlsym(memkind, "slow") : NULL;
    int *inside = memkind ? dlsym(memkind, "inside") : NULL;
    pthread_t t;
    alarm(SECONDS);
    if (!slow || !inside || pthread_create(&t, NULL, grow, NULL))
        exit(NO_FILL);
    __atomic_store_n(slow, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(inside, __ATOMIC_SEQ_CST))
        usleep(1000);
    exit(0);
}

int main(int argc, char **argv)
{
    int status = 0;
    if (malloc(FIRST) == NULL) /* so much comes from memkind */
        return NO_FILL;
    if (argc < 2 || strcmp(argv[1], "child") != 0)
        grow_and_exit();
    pid_t pid = fork();
    if (pid == 0)
        grow_and_exit();
    return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? NO_FILL
                                                                            : WEXITSTATUS(status);
}
