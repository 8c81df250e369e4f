/* SPDX-License-Identifier: BSD-2-Clause
 * What kind of file a program is: can LD_PRELOAD reach it at all? */
#include "tools/ctl/ctl.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_at(int fd, void *buf, size_t len, uint64_t offset)
{
    ssize_t n = pread(fd, buf, len, (off_t)offset);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -ENOEXEC;
}

static void read_interpreter(int fd, const Elf64_Phdr *ph, struct ctl_program *ret)
{
    size_t len = HY_MIN(ph->p_filesz, sizeof(ret->interpreter) - 1);
    ret->is_dynamic = true;
    if (read_at(fd, ret->interpreter, len, ph->p_offset) < 0)
        len = 0;
    ret->interpreter[len] = '\0';
}

static void read_build_id(int fd, const Elf64_Phdr *ph, struct ctl_program *ret)
{
    uint8_t notes[4096];
    size_t len = HY_MIN(ph->p_filesz, sizeof(notes));
    if (read_at(fd, notes, len, ph->p_offset) < 0)
        return;
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= len;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof(note));
        size_t name = at + sizeof(note), desc = name + hy_align_up(note.n_namesz, 4);
        size_t end = desc + hy_align_up(note.n_descsz, 4);
        if (note.n_namesz > len || note.n_descsz > len || end > len)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= sizeof(ret->build_id)) {
            memcpy(ret->build_id, notes + desc, note.n_descsz);
            ret->build_id_len = note.n_descsz;
            return;
        }
        at = end;
    }
}

static int inspect_elf64(int fd, struct ctl_program *ret)
{
    Elf64_Ehdr eh;
    int r = read_at(fd, &eh, sizeof(eh), 0);
    if (r < 0)
        return r;
    ret->machine = eh.e_machine;
    if (eh.e_phentsize != sizeof(Elf64_Phdr))
        return -ENOEXEC;
    for (unsigned i = 0; i < eh.e_phnum; i++) {
        Elf64_Phdr ph;
        r = read_at(fd, &ph, sizeof(ph), eh.e_phoff + (uint64_t)i * sizeof(ph));
        if (r < 0)
            return r;
        if (ph.p_type == PT_INTERP)
            read_interpreter(fd, &ph, ret);
        else if (ph.p_type == PT_NOTE && ret->build_id_len == 0)
            read_build_id(fd, &ph, ret);
    }
    return 0;
}

/* "#!  /usr/bin/env -S x" gives "/usr/bin/env". */
static void read_script(const char *head, struct ctl_program *ret)
{
    const char *at = head + 2 + strspn(head + 2, " \t");
    size_t len = HY_MIN(strcspn(at, " \t\r\n"), sizeof(ret->interpreter) - 1);
    memcpy(ret->interpreter, at, len);
    ret->interpreter[len] = '\0';
}

int ctl_inspect_program(const char *path, struct ctl_program *ret)
{
    char head[260] = "";
    struct ctl_program p = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = pread(fd, head, sizeof(head) - 1, 0);
    int r = n < 0 ? -errno : 0;
    if (n > EI_DATA && memcmp(head, ELFMAG, SELFMAG) == 0) {
        p.is_elf = true;
        p.is_64bit = head[EI_CLASS] == ELFCLASS64;
        if (p.is_64bit && head[EI_DATA] == ELFDATA2LSB)
            r = inspect_elf64(fd, &p);
    } else if (n > 2 && head[0] == '#' && head[1] == '!') {
        read_script(head, &p);
    }
    close(fd);
    if (r == 0)
        *ret = p;
    return r;
}
