/* SPDX-License-Identifier: BSD-2-Clause
 * fl_back CASE [FOLDER]: memory on files (HYBRID_PM=file:, HYBRID_POLICY=pm) that is freed goes
 * back to the file system, and what is allocated again is on a file again. Status 0: so it was.
 *   back    freed, given back, allocated again
 *   fork    the same in a process that has forked: its child keeps what it had, until it ends
 *   server  forks again and again, and each child lives while its parent frees and allocates
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

/* A child that looks at what it had when the pipe `go` is closed. */
static pid_t spawn_child(int go[2], int n, int value)
{
    char c;
    if (pipe(go))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        int bad = !intact("child", n, value);
        (void)!read(go[0], &c, 1);
        bad |= !intact("child, after its parent's changes", n, value);
        free_all();
        bad |= allocate(0, BLOCKS, 151) || !intact("child, its own", BLOCKS, 151);
        fflush(stdout);
        _exit(bad);
    }
    close(go[0]);
    return child;
}

static int end_child(pid_t child, const int go[2])
{
    int status = -1;
    close(go[1]);
    return waitpid(child, &status, 0) != child || status != 0;
}

static int forked(void)
{
    int go[2];
    int bad = allocate(0, BLOCKS, 1);
    long full = file_mib();
    pid_t child = spawn_child(go, BLOCKS, 1);
    free_all();
    usleep(200000); /* the control thread gives back */
    bad |= allocate(0, BLOCKS, 101);
    long again = file_mib();
    bad |= end_child(child, go);
    bad |= !intact("parent", BLOCKS, 101);
    free_all();
    bad |= allocate(0, BLOCKS, 51);
    bad |= end_child(spawn_child(go, BLOCKS, 51), go); /* it is seen that the first has ended */
    free_all();
    long empty = wait_until_below(FEW);
    printf("%ld MiB on files, %ld beside a child, %ld in the end\n", full, again, empty);
    return bad || full < BLOCKS || again < BLOCKS || again > 2 * BLOCKS + FEW || empty >= FEW;
}

/* Mappings of this process, and how many unlinked files they are of. */
static long mappings(int *ret_files)
{
    enum { MOST = 100 };
    unsigned long inode[MOST], now;
    char line[600];
    long n = 0;
    int files = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    for (; f && fgets(line, sizeof(line), f); n++) {
        if (!strstr(line, "(deleted)") || sscanf(line, "%*s %*s %*s %*s %lu", &now) != 1)
            continue;
        int known = 0;
        for (int i = 0; i < files; i++)
            known |= inode[i] == now;
        if (!known && files < MOST)
            inode[files++] = now;
    }
    if (f)
        fclose(f);
    *ret_files = files;
    return n;
}

/* Two thirds of the blocks are replaced beside each child, by blocks of odd sizes. */
static int server(void)
{
    enum { FORKS = 60, SETTLED = 20 };
    int go[2], bad = 0, max = 0, n_files = 0;
    long files[2] = {0, 0}, maps[2] = {0, 0}, live = 0;
    size_t size[BLOCKS * 8] = {0};
    char *some[BLOCKS * 8] = {0};
    unsigned x = 7;
    for (int round = 0; round < FORKS; round++) {
        bad |= pipe(go);
        pid_t child = fork();
        if (child == 0) {
            char c;
            close(go[1]);
            (void)!read(go[0], &c, 1);
            for (int i = 0; i < max; i++)
                bad |= size[i] && (some[i][0] != (char)i || some[i][size[i] - 1] != (char)i);
            _exit(bad);
        }
        close(go[0]);
        for (int k = 0; k < BLOCKS * 5; k++) {
            x = x * 1103515245 + 12345;
            int i = (int)((x >> 8) % (BLOCKS * 8));
            free(some[i]);
            live -= (long)size[i];
            size[i] = 50000 + (x >> 12) % 200000;
            some[i] = malloc(size[i]);
            memset(some[i], i, size[i]);
            live += (long)size[i];
        }
        max = BLOCKS * 8;
        bad |= end_child(child, go);
        int late = round >= SETTLED;
        files[late] = file_mib() > files[late] ? file_mib() : files[late];
        long now = mappings(&n_files);
        maps[late] = now > maps[late] ? now : maps[late];
    }
    printf(
        "live %ld MiB on %d files; most MiB there and mappings: first %ld, %ld, later %ld, %ld\n",
        live >> 20, n_files, files[0], maps[0], files[1], maps[1]);
    /* What a child sees and what has come since, and what lies free; none on files of old. */
    return bad || n_files != 1 || files[1] > 2 * (live >> 20) + FEW + 16 ||
           maps[1] > maps[0] * 5 / 4 + 60;
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
    if (strcmp(which, "server") == 0)
        return server();
    return strcmp(which, "daemon") == 0 ? closed() : 2;
}
