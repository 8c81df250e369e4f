/* SPDX-License-Identifier: BSD-2-Clause
 * Looks into executable files. See program.h. Also runs in a child of fork before it
 * execs: no allocation, no stdio. */
#include "qemu/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libpmemu.so"

struct image {
    const char *at;
    size_t bytes;
};

/* `n` bytes at an offset of the file; NULL when it ends before. */
static const void *part(const struct image *f, uint64_t offset, uint64_t n)
{
    return offset <= f->bytes && n <= f->bytes - offset ? f->at + offset : NULL;
}

/* Where the loader's address is in the file. */
static uint64_t offset_of(const Elf64_Phdr *ph, unsigned n, uint64_t address)
{
    for (unsigned i = 0; i < n; i++)
        if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr &&
            address - ph[i].p_vaddr < ph[i].p_filesz)
            return address - ph[i].p_vaddr + ph[i].p_offset;
    return UINT64_MAX;
}

static bool needs_library(const struct image *f, const Elf64_Phdr *ph, unsigned n,
                          const Elf64_Phdr *dynamic)
{
    uint64_t entries = dynamic->p_filesz / sizeof(Elf64_Dyn), strings = UINT64_MAX;
    const Elf64_Dyn *d = part(f, dynamic->p_offset, dynamic->p_filesz);

    for (uint64_t i = 0; d && i < entries && d[i].d_tag != DT_NULL; i++)
        if (d[i].d_tag == DT_STRTAB)
            strings = offset_of(ph, n, d[i].d_un.d_ptr);
    for (uint64_t i = 0; d && strings != UINT64_MAX && i < entries && d[i].d_tag != DT_NULL; i++) {
        const char *name;
        if (d[i].d_tag != DT_NEEDED || d[i].d_un.d_val > f->bytes)
            continue;
        name = part(f, strings + d[i].d_un.d_val, sizeof(LIBRARY) - 1);
        if (name && strncmp(name, LIBRARY, sizeof(LIBRARY) - 1) == 0)
            return true;
    }
    return false;
}

static void look_at_elf(const struct image *f, struct program *p)
{
    const Elf64_Ehdr *h = part(f, 0, sizeof(*h));
    const Elf64_Phdr *ph;

    p->kind = PROGRAM_FOREIGN;
    if (!h || h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != EM_X86_64 ||
        h->e_phentsize != sizeof(*ph))
        return;
    ph = part(f, h->e_phoff, (uint64_t)h->e_phnum * sizeof(*ph));
    if (!ph)
        return;
    p->kind = PROGRAM_GUEST;
    p->is_static = true;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (ph[i].p_type == PT_INTERP)
            p->is_static = false;
        if (ph[i].p_type == PT_DYNAMIC && needs_library(f, ph, h->e_phnum, &ph[i]))
            p->kind = PROGRAM_INSTRUMENTED;
    }
}

/* "#! interpreter one-argument": as the kernel takes it. */
static void look_at_script(const struct image *f, struct program *p)
{
    const char *at = f->at + 2, *end = f->at + (f->bytes < 4096 ? f->bytes : 4096), *stop;
    size_t n;

    stop = memchr(at, '\n', (size_t)(end - at));
    end = stop ? stop : end;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    for (stop = at; stop < end && *stop != ' ' && *stop != '\t'; stop++)
        ;
    n = (size_t)(stop - at);
    if (n == 0 || n >= sizeof(p->interpreter))
        return;
    memcpy(p->interpreter, at, n);
    p->interpreter[n] = '\0';
    for (at = stop; at < end && (*at == ' ' || *at == '\t'); at++)
        ;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    n = (size_t)(end - at);
    if (n >= sizeof(p->argument))
        return;
    memcpy(p->argument, at, n);
    p->argument[n] = '\0';
    p->kind = PROGRAM_SCRIPT;
}

int program_look(const char *path, struct program *ret)
{
    struct image f = {.at = NULL};
    struct stat st;
    void *m;
    int fd;

    ret->kind = PROGRAM_UNKNOWN;
    ret->is_static = ret->set_id = false;
    ret->interpreter[0] = ret->argument[0] = '\0';
    if (stat(path, &st) < 0 || access(path, X_OK) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
    ret->set_id = (st.st_mode & S_ISUID) || ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -errno; /* executable, not readable: not for us */
    m = st.st_size >= 4 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                        : MAP_FAILED;
    close(fd);
    if (m == MAP_FAILED)
        return 0;
    f = (struct image){m, (size_t)st.st_size};
    if (memcmp(f.at, ELFMAG, SELFMAG) == 0)
        look_at_elf(&f, ret);
    else if (memcmp(f.at, "#!", 2) == 0)
        look_at_script(&f, ret);
    munmap(m, f.bytes);
    return 0;
}
