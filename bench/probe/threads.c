/* SPDX-License-Identifier: BSD-2-Clause
 * threads COUNT: creates and joins COUNT threads, eight alive at a time. Each makes
 * blocks of several sizes, frees most, and leaves one to be freed by a thread of the
 * next eight. Nothing of a joined thread may remain: not memory, not mappings. */
#include "proc.h"

#include <pthread.h>

#define ALIVE 8

struct life {
    void *inherited; /* made by a thread that is gone */
    void *left;
};

static void *live(void *arg)
{
    struct life *life = arg;
    static const size_t size[] = {24, 64, 200, 1000, 5000, 40000};
    enum { SIZES = sizeof(size) / sizeof(size[0]) };
    char *block[SIZES];

    for (int i = 0; i < SIZES; i++) {
        block[i] = malloc(size[i]);
        if (!block[i]) {
            fputs("threads: out of memory\n", stderr);
            _exit(1);
        }
        block[i][size[i] - 1] = 1;
    }
    free(life->inherited);
    for (int i = 1; i < SIZES; i++)
        free(block[i]);
    life->left = block[0];
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0, waves = count / ALIVE, done = 0;
    struct life life[ALIVE] = {{NULL, NULL}};

    if (waves < 10) {
        fputs("usage: threads COUNT (at least 80)\n", stderr);
        return 2;
    }
    for (unsigned tenth = 1; tenth <= 10; tenth++) {
        for (; done < waves * (long)tenth / 10; done++) {
            pthread_t id[ALIVE];

            for (int i = 0; i < ALIVE; i++) {
                int error = pthread_create(&id[i], NULL, live, &life[i]);

                if (error) {
                    fprintf(stderr, "threads: pthread_create: %s\n", strerror(error));
                    return 1;
                }
            }
            for (int i = 0; i < ALIVE; i++)
                pthread_join(id[i], NULL);
            for (int i = 0; i < ALIVE; i++)
                life[i].inherited = life[(i + 1) % ALIVE].left;
        }
        proc_report(tenth * 10);
    }
    for (int i = 0; i < ALIVE; i++)
        free(life[i].inherited);
    return 0;
}
