/* SPDX-License-Identifier: BSD-2-Clause
 * Holds blocks and keeps writing to parts of them: one command a line on standard input, one
 * answer a line on standard output.
 *   big N      N blocks of 1 MiB, written         map N    a mapping of N MiB, written
 *   hot F N    a thread writes MiB F to F + N of all of it, again and again, from now on
 *   calm       it stops                            free     gives back what is not hot
 *   fork       a child checks, writes and checks all, the parent checks its own
 *   close      closes all descriptors from 3 on    filter   a seccomp filter that kills who
 *   check      all is as it was written                     asks for userfaultfd or move_pages
 *   faults F N its own userfaultfd is told of the writes to MiB F to F + N of all of it */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../filter.h"

#define MIB  (1ul << 20)
#define PAGE 4096ul
#define MAX  4096
static unsigned char *part[MAX]; /* of 1 MiB each */
static int n_parts;
static volatile int first, count, running;

static void keep(unsigned char *p)
{
    for (unsigned long k = 0; k < MIB; k++)
        p[k] = (unsigned char)(n_parts + k % 251);
    part[n_parts++] = p;
}

/* The first 8 bytes of each page are counters: the same in all, so that each can be checked. */
static void *heat(void *unused)
{
    (void)unused;
    while (1) {
        for (int i = first; i < first + count; i++)
            for (unsigned long k = 0; k < MIB; k += PAGE)
                part[i][k + PAGE - 1]++;
        usleep(500);
    }
    return NULL;
}

static int intact(void)
{
    for (int i = 0; i < n_parts; i++)
        for (unsigned long k = 0; k < MIB; k++)
            if (part[i] && k % PAGE != PAGE - 1 && part[i][k] != (unsigned char)(i + k % 251)) {
                fprintf(stderr, "part %d byte %lu is %d\n", i, k, part[i][k]);
                return 0;
            }
    return 1;
}

static int fork_check(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int ok = intact();
        for (int i = 0; i < n_parts; i++)
            memset(part[i], 0xee, MIB);
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < n_parts; i++)
                part[i][round * PAGE] = 0xee;
            usleep(5000);
        }
        for (int i = 0; i < n_parts; i++)
            for (unsigned long k = 0; k < MIB; k++)
                ok &= part[i][k] == 0xee;
        _exit(ok ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0 && intact();
}

/* Whole pages within a part: blocks of malloc do not begin with one. */
static struct uffdio_range pages_of(int i)
{
    unsigned long from = ((unsigned long)part[i] + PAGE - 1) & -PAGE;
    return (struct uffdio_range){from, MIB - PAGE};
}

/* Registered, protected, written by a call of the system's that fails as it is protected: it is
 * this userfaultfd that has the page. Then all is let go. */
static int own_faults(int from, int n)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    int pipes[2], ok = fd >= 0 && pipe(pipes) == 0 && ioctl(fd, UFFDIO_API, &api) == 0;
    for (int i = from; ok && i < from + n; i++) {
        struct uffdio_register reg = {.range = pages_of(i), .mode = UFFDIO_REGISTER_MODE_WP};
        struct uffdio_writeprotect wp = {.range = pages_of(i), .mode = UFFDIO_WRITEPROTECT_MODE_WP};
        char *page = (char *)(unsigned long)wp.range.start;
        ok = ioctl(fd, UFFDIO_REGISTER, &reg) == 0 && ioctl(fd, UFFDIO_WRITEPROTECT, &wp) == 0 &&
             write(pipes[1], page, 1) == 1 && read(pipes[0], page, 1) == -1 && errno == EFAULT;
        if (!ok)
            fprintf(stderr, "part %d: %s\n", i, strerror(errno));
    }
    close(pipes[0]);
    close(pipes[1]);
    close(fd);
    return ok;
}

static int obey(const char *what, long a, long b)
{
    static pthread_t thread;
    if (!strcmp(what, "big")) {
        for (long i = 0; i < a; i++)
            keep(malloc(MIB));
    } else if (!strcmp(what, "map")) {
        unsigned char *p =
            mmap(NULL, (size_t)a * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (long i = 0; i < a; i++)
            keep(p + (size_t)i * MIB);
    } else if (!strcmp(what, "hot")) {
        count = 0;
        first = (int)a;
        count = (int)b;
        if (!running)
            running = pthread_create(&thread, NULL, heat, NULL) == 0;
    } else if (!strcmp(what, "calm")) {
        count = 0;
    } else if (!strcmp(what, "free")) {
        for (int i = 0; i < n_parts; i++)
            if (i < first || i >= first + count) {
                free(part[i]);
                part[i] = NULL;
            }
    } else if (!strcmp(what, "fork")) {
        return fork_check();
    } else if (!strcmp(what, "close")) {
        for (int fd = 3; fd < 70000; fd++)
            close(fd);
    } else if (!strcmp(what, "faults")) {
        return own_faults((int)a, (int)b);
    } else if (!strcmp(what, "filter")) {
        return kill_on(SYS_userfaultfd, SYS_move_pages);
    }
    return 1;
}

int main(void)
{
    char line[64], what[32];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        long a = 0, b = 0;
        if (sscanf(line, "%31s %ld %ld", what, &a, &b) < 1)
            continue;
        printf("%s\n", obey(what, a, b) && intact() ? "ok" : "BROKEN");
    }
    return 0;
}
