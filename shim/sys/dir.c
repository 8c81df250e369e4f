/* SPDX-License-Identifier: BSD-2-Clause
 * Folder listings without opendir, which allocates (sys/os.h). */
#include "sys/os.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "sys/raw.h"

/* What getdents64 writes; glibc's struct dirent64 has the same fields. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

unsigned os_folder_count(const char *path)
{
    struct stat st;
    if (raw_stat(path, 0, &st) != 0 || st.st_nlink < 2)
        return 0;
    return (unsigned)st.st_nlink - 2; /* its name and its dot; each folder has a dot-dot */
}

int os_list_dir(const char *path, void (*fn)(void *ctx, const char *name), void *ctx)
{
    char buf[4096] __attribute__((aligned(8)));

    int fd = raw_open(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    long n;
    while ((n = raw3(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
        for (long at = 0; at < n;) {
            const struct entry *e = (const struct entry *)(buf + at);
            if (e->name[0] != '.')
                fn(ctx, e->name);
            at += e->length;
        }
    }
    os_close(fd);
    return n < 0 ? (int)n : 0;
}
