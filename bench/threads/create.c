/* SPDX-License-Identifier: BSD-2-Clause
 * bench-create COUNT: makes COUNT threads that do nothing, one after the other. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *nothing(void *p)
{
    return p;
}

int main(int argc, char **argv)
{
    long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    pthread_t t;

    if (count < 1) {
        fputs("usage: bench-create COUNT\n", stderr);
        return 2;
    }
    for (long i = 0; i < count; i++)
        if (pthread_create(&t, NULL, nothing, NULL) != 0 || pthread_join(t, NULL) != 0) {
            perror("bench-create");
            return 1;
        }
    return 0;
}
