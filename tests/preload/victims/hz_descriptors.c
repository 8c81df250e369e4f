/* SPDX-License-Identifier: BSD-2-Clause
 * The program's table of descriptors is its own: the lowest free number is given, a pipe ends when
 * the program closes it, and what is printed is there although main has ended first. */
#include "victim.h"

#include <dirent.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/stat.h>

static void grow(void)
{
    for (int i = 0; i < 240; i++)
        memset(malloc(100000), i, 100000);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The old way to put a file on descriptor 0. */
static void numbers(long ms)
{
    uint64_t end = now_ms() + (uint64_t)ms;
    long other = 0;
    while (now_ms() < end)
        for (int i = 0; i < 200; i++) {
            close(0);
            int fd = open("/dev/null", O_RDONLY);
            CHECK(fd >= 0);
            if (fd != 0) {
                other++;
                CHECK(dup2(fd, 0) == 0);
                close(fd);
            }
        }
    CHECK(other == 0);
}

static void end_of_pipe(void)
{
    int fd[2];
    char c;
    CHECK(pipe(fd) == 0);
    for (int i = 0; i < 30; i++) {
        memset(malloc(300000), i, 300000);
        nap_us(10000);
    }
    close(fd[1]);
    struct pollfd p = {fd[0], POLLIN, 0};
    CHECK(poll(&p, 1, 0) == 1 && read(fd[0], &c, 1) == 0);
    close(fd[0]);
}

/* A program that is capped from its start asks in its own thread who has which CPUs. */
static bool is_registry(const char *number)
{
    char link[64];
    struct stat fd, file;
    const char *registry = getenv("HYBRID_REGISTRY");
    snprintf(link, sizeof(link), "/proc/self/fd/%s", number);
    return getenv("HYBRID_THREADS") && registry && stat(link, &fd) == 0 &&
           stat(registry, &file) == 0 && fd.st_dev == file.st_dev && fd.st_ino == file.st_ino;
}

static void only_low_numbers(void)
{
    DIR *d = opendir("/proc/self/fd");
    CHECK(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        CHECK(e->d_name[0] == '.' || atoi(e->d_name) < 10 || getenv("VICTIM_FILE") ||
              is_registry(e->d_name));
    closedir(d);
}

static void *outlives_main(void *arg)
{
    (void)arg;
    nap_us(600000);
    end_of_pipe();
    printf("written by exit()\n");
    return NULL;
}

/* The first numbers that are free, as without us: under a limit of few, too. */
static void first_numbers(void)
{
    int fd[8];
    for (int i = 0; i < 8; i++)
        CHECK((fd[i] = open("/dev/null", O_RDONLY)) >= 0 && printf("%d ", fd[i]) > 0);
    for (int i = 0; i < 8; i++)
        close(fd[i]);
}

int main(int argc, char **argv)
{
    pthread_t t;
    CHECK(argc > 1);
    grow();
    first_numbers();
    numbers(atol(argv[1]));
    end_of_pipe();
    only_low_numbers();
    printf("still in the buffer\n");
    CHECK(pthread_create(&t, NULL, outlives_main, NULL) == 0);
    pthread_exit(NULL);
}
