/* SPDX-License-Identifier: BSD-2-Clause
 * fl_back CASE [FOLDER]: memory on files (HYBRID_PM=file:, HYBRID_POLICY=pm) that is freed goes
 * back to the file system, and what is allocated again is on a file again. Status 0: so it was.
 *   back    freed, given back, allocated again
 *   fork    the same in a process that has forked: its child keeps what it had
 *   full    others fill the file system meanwhile (FOLDER is on it): the program goes on in DRAM
 *   pipe    a page stays in a pipe: giving back on a DAX file system would wait for it
 *   daemon  the program closes all descriptors, ours too, goes on allocating, and forks */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 48, BYTES = 1 << 20, PATIENCE = 12000, FEW = 16 };

static unsigned char *block[BLOCKS];

/* MiB that unlinked files which we hold open take on their file systems. */
static long file_mib(void)
{
    char path[300];
    struct stat st;
    long blocks = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0)
            blocks += st.st_blocks;
    }
    if (d)
        closedir(d);
    return blocks / 2048;
}

static int allocate(int from, int to, int value)
{
    int bad = 0;
    for (int i = from; i < to; i++) {
        block[i] = calloc(1, BYTES);
        for (int k = 0; k < BYTES; k++)
            bad |= block[i][k] != 0;
        memset(block[i], value + i, BYTES);
    }
    if (bad)
        printf("calloc gave memory that is not zero\n");
    return bad;
}

static int intact(const char *who, int n, int value)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < BYTES; k++)
            if (block[i][k] != (unsigned char)(value + i)) {
                printf("%s: block %d has changed\n", who, i);
                return 0;
            }
    return 1;
}

static void free_all(void)
{
    for (int i = 0; i < BLOCKS; i++)
        free(block[i]);
}

/* Until the control thread has given back what is free. */
static long wait_until_below(long mib)
{
    const struct timespec a_while = {0, 25000000};
    long now = file_mib();
    for (int i = 0; i < PATIENCE && now >= mib; i++) {
        nanosleep(&a_while, NULL);
        now = file_mib();
    }
    return now;
}

static int back(void)
{
    int bad = allocate(0, BLOCKS, 1);
    long full = file_mib();
    free_all();
    long empty = wait_until_below(FEW);
    bad |= allocate(0, BLOCKS, 101);
    long again = file_mib();
    printf("%ld MiB on files, %ld when free, %ld again\n", full, empty, again);
    return bad || !intact("again", BLOCKS, 101) || full < BLOCKS || empty >= FEW || again < BLOCKS;
}

static int forked(void)
{
    int go[2], status = -1;
    char c;
    int bad = allocate(0, BLOCKS, 1) | pipe(go);
    long full = file_mib();
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        bad |= !intact("child", BLOCKS, 1);
        (void)!read(go[0], &c, 1);
        bad |= !intact("child, after its parent's changes", BLOCKS, 1);
        fflush(stdout);
        _exit(bad);
    }
    free_all();
    long empty = wait_until_below(FEW);
    bad |= allocate(0, BLOCKS, 101);
    long again = file_mib();
    close(go[1]);
    bad |= waitpid(child, &status, 0) != child || status != 0;
    printf("%ld MiB on files, %ld after the fork, %ld again\n", full, empty, again);
    return bad || !intact("parent", BLOCKS, 101) || full < BLOCKS || empty >= FEW ||
           again < BLOCKS - FEW;
}

static int closed(void)
{
    int status = -1, bad = allocate(0, BLOCKS / 2, 1);
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    bad |= allocate(BLOCKS / 2, BLOCKS, 1);
    pid_t child = fork();
    if (child == 0) {
        bad |= !intact("child", BLOCKS, 1);
        memset(block[0], 0, BYTES);
        memset(block[BLOCKS - 1], 0, BYTES);
        fflush(stdout);
        _exit(bad);
    }
    bad |= waitpid(child, &status, 0) != child || status != 0;
    return bad || !intact("parent", BLOCKS, 1);
}

/* A file that takes all room there is. */
static int fill(const char *folder)
{
    static char much[BYTES];
    char path[300];
    size_t part = sizeof(much);
    snprintf(path, sizeof(path), "%s/fl_back.XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    unlink(path);
    while (part >= 512)
        if (write(fd, much, part) != (ssize_t)part)
            part /= 2;
    return 0; /* open until the end */
}

static int full(const char *folder)
{
    int bad = allocate(0, BLOCKS, 1);
    long before = file_mib();
    free_all();
    long empty = wait_until_below(FEW);
    bad |= fill(folder);
    bad |= allocate(0, BLOCKS, 101); /* a store into a hole would be SIGBUS */
    printf("%ld MiB on files, %ld when free\n", before, empty);
    return bad || !intact("again", BLOCKS, 101) || before < BLOCKS || empty >= FEW;
}

static int piped(void)
{
    int ends[2], bad = allocate(0, BLOCKS, 1) | pipe(ends);
    unsigned char *page = block[1] + 4096 - (uintptr_t)block[1] % 4096;
    struct iovec v = {page, 4096};
    bad |= vmsplice(ends[1], &v, 1, 0) != 4096;
    for (int i = 2; i < BLOCKS; i++)
        free(block[i]);
    (void)!alarm(1200); /* instead of waiting without end */
    usleep(1000000);
    bad |= allocate(2, BLOCKS, 1);
    return bad || !intact("again", BLOCKS, 1);
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    if (strcmp(which, "back") == 0)
        return back();
    if (strcmp(which, "full") == 0 && argc > 2)
        return full(argv[2]);
    if (strcmp(which, "pipe") == 0)
        return piped();
    if (strcmp(which, "fork") == 0)
        return forked();
    return strcmp(which, "daemon") == 0 ? closed() : 2;
}
