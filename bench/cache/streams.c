/* SPDX-License-Identifier: BSD-2-Clause
 * Two threads that stream through an array, one of which starts other programs when it is told to:
 * DIR/system, DIR/fork (test_cache.py). It ends when DIR/end is there. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N ((size_t)1 << 20)

static double *a;
static atomic_bool end;

static void pass(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        a[i] = a[i] * 0.5 + 1;
}

static void *other(void *unused)
{
    while (!atomic_load(&end))
        pass(N / 2, N);
    return unused;
}

/* Is the file there? It is gone afterwards. */
static int told(const char *dir, const char *what)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, what);
    return unlink(path) == 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc != 2 || !(a = calloc(N, sizeof(*a))) || pthread_create(&thread, NULL, other, NULL))
        return 2;
    while (!told(argv[1], "end")) {
        pass(0, N / 2);
        if (told(argv[1], "system") && system("true") != 0)
            return 1;
        if (told(argv[1], "fork")) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            printf("%d\n", (int)child);
            fflush(stdout);
            waitpid(child, NULL, 0);
        }
    }
    atomic_store(&end, 1);
    pthread_join(thread, NULL);
    return 0;
}
