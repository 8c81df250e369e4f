/* SPDX-License-Identifier: BSD-2-Clause
 * See cpu_table.h. The table is not exported, but QEMU fills it by a function of GLib's, whose
 * entry in QEMU's table of imported functions is ours. Where there is none, nothing is done. */
#include "qemu/cpu_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* GLib's, without its headers. */
typedef int insert_fn(void *table, void *key, void *value);
typedef int keep_fn(void *key, void *value, void *user);
typedef unsigned remove_fn(void *table, keep_fn *removes, void *user);

static insert_fn *insert;
static remove_fn *remove_from;
static void *cpus;
static __thread struct {
    void *table;
    const int *key;
} last;

/* Numbers are inserted as key and value; which table is theirs shows afterwards. */
static int on_insert(void *table, void *key, void *value)
{
    if (key == value) {
        last.table = table;
        last.key = key;
    }
    return insert(table, key, value);
}

/* The import of `name` by the program itself (not of a library). */
static void **import_of(const struct link_map *program, const char *name)
{
    const ElfW(Rela) *rela = NULL;
    const ElfW(Sym) *symbol = NULL;
    const char *text = NULL;
    size_t bytes = 0;

    for (const ElfW(Dyn) *d = program->l_ld; d->d_tag != DT_NULL; d++) {
        const void *at = (const void *)d->d_un.d_ptr; /* NOLINT: the loader has relocated it */
        if (d->d_tag == DT_JMPREL)
            rela = at;
        else if (d->d_tag == DT_SYMTAB)
            symbol = at;
        else if (d->d_tag == DT_STRTAB)
            text = at;
        else if (d->d_tag == DT_PLTRELSZ)
            bytes = d->d_un.d_val;
    }
    if (!rela || !symbol || !text)
        return NULL;
    for (size_t i = 0; i < bytes / sizeof(*rela); i++)
        if (strcmp(text + symbol[ELF64_R_SYM(rela[i].r_info)].st_name, name) == 0)
            return (void **)(program->l_addr + rela[i].r_offset); /* NOLINT: as above */
    return NULL;
}

/* Imports are read-only once they are resolved. */
static bool replace(void **import, void *by)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *base = (char *)import - (size_t)import % page;

    if (mprotect(base, page, PROT_READ | PROT_WRITE) < 0)
        return false;
    *import = by;
    (void)mprotect(base, page, PROT_READ);
    return true;
}

void cpu_table_watch(void)
{
    const struct link_map *program = dlopen(NULL, RTLD_LAZY);
    void **import = program ? import_of(program, "g_hash_table_insert") : NULL;

    insert = (insert_fn *)dlsym(RTLD_DEFAULT, "g_hash_table_insert");
    remove_from = (remove_fn *)dlsym(RTLD_DEFAULT, "g_hash_table_foreach_remove");
    if (import && insert && remove_from)
        (void)replace(import, (void *)on_insert);
}

void cpu_table_vcpu_made(unsigned vcpu)
{
    if (last.table && (unsigned)*last.key == vcpu)
        cpus = last.table;
}

static int is_other(void *key, void *value, void *vcpu)
{
    (void)value;
    return *(unsigned *)key != *(unsigned *)vcpu;
}

void cpu_table_forked(unsigned vcpu)
{
    if (cpus)
        (void)remove_from(cpus, is_other, &vcpu);
}
