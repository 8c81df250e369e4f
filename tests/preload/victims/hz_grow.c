/* SPDX-License-Identifier: BSD-2-Clause
 * More memory than PM has (or than the directory gives): allocations go on,
 * content holds. Argument 1: MiB. Argument 2 "rm": half-way the program removes
 * the directory named by VICTIM_REMOVE, if that is set. */
#include "victim.h"

#include <dirent.h>

static void remove_directory(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[1200];
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            unlink(path);
        }
    if (d)
        closedir(d);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    size_t target = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20, have = 0;
    enum { MAX = 100000 };
    static struct {
        char *p;
        size_t n;
    } b[MAX];
    uint64_t s = 21;
    int count = 0, removed = 0;
    while (have < target && count < MAX) {
        size_t n = random_size(&s) * 2 + 1;
        b[count].p = count % 4 ? malloc(n) : calloc(1, n);
        CHECK(b[count].p);
        b[count].n = n;
        fill(b[count].p, n, (uint64_t)count);
        have += n;
        count++;
        if (!removed && argc > 2 && have > target / 2 && getenv("VICTIM_REMOVE")) {
            remove_directory(getenv("VICTIM_REMOVE"));
            removed = 1;
        }
    }
    for (int round = 0; round < 2; round++) {
        for (int i = round; i < count; i += 2) {
            CHECK(holds(b[i].p, b[i].n, (uint64_t)i));
            b[i].p = realloc(b[i].p, b[i].n / 2 + 8);
            CHECK(b[i].p);
        }
        pid_t pid = fork();
        if (pid == 0) {
            for (int i = 0; i < count; i++)
                free(b[i].p);
            _exit(4);
        }
        CHECK(reap(pid) == 4);
    }
    for (int i = 0; i < count; i++)
        free(b[i].p);
    char *m = mmap(NULL, 24 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(m != MAP_FAILED);
    fill(m, 24 << 20, 1);
    CHECK(holds(m, 24 << 20, 1));
    printf("%d blocks\n", count);
    return 0;
}
