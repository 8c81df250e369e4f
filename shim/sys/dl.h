/* SPDX-License-Identifier: BSD-2-Clause
 * The dynamic loader: the only user of dlopen and dlsym.
 * Private libraries are opened RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, under the
 * re-entrancy guard; never call this from malloc (loader lock). */
#ifndef HYBRID_SYS_DL_H
#define HYBRID_SYS_DL_H

#include "base/types.h"

/* The program does not ask for errors in this thread. */
void dl_thread_is_ours(void);
/* Next definition of `name` after this library, or NULL. */
void *dl_next(const char *name);
/* In a hook: fn, the next definition of what it stands for, looked up once. */
#define DL_NEXT(name)                                                                              \
    static __typeof__(&name) next;                                                                 \
    __typeof__(&name) fn = __atomic_load_n(&next, __ATOMIC_RELAXED);                               \
    if (HY_UNLIKELY(!fn))                                                                          \
    __atomic_store_n(&next, fn = (__typeof__(&name))dl_next(#name), __ATOMIC_RELAXED)
/* The constructor is done: from now on there may be threads, and libraries that come and go. */
void dl_main_begins(void);
/* The same for a call from `caller`: where no library of the program's global scope behind this one
 * has it, the definition that the caller's object brings along (opened RTLD_LOCAL, with
 * libraries of its own). Takes the loader's lock. What it finds stays loaded. */
void *dl_next_of(const char *name, const void *caller);
/* First definition among the program's global symbols, or NULL. */
void *dl_global(const char *name);
/* Is a function defined where its address says? Where an executable that is not
 * position-independent takes the address of one, all see that of its PLT entry, whoever defines the
 * function. Takes the loader's lock. */
bool dl_is_definition(const void *fn);
/* Open a library privately; NULL on failure with a reason in err. */
void *dl_open_private(const char *soname, char *err, size_t err_cap);
void *dl_symbol(void *handle, const char *name);
/* Base address of the object that holds addr, 0 if none. Safe in malloc. */
uintptr_t dl_object_base(const void *addr);

/* The loaded object that holds an address. Takes no lock and allocates nothing
 * (_dl_find_object), so that malloc may ask. Pointers are good as long as the
 * object stays loaded: true of objects with a frame on the caller's stack. */
struct dl_object {
    uintptr_t bias;           /* address - bias = address in the ELF file */
    uintptr_t start, end;     /* mapped range; dl_find: of the segment if there are gaps */
    const void *handle;       /* identity, for comparison only */
    const void *eh_frame_hdr; /* unwind tables (dl_find only), NULL if none */
    const char *name;         /* path; "" for the main program */
};
int dl_find(const void *addr, struct dl_object *ret); /* 0 or -ENOENT */
/* Mapped ranges of all objects, under the loader's lock: never from malloc. */
void dl_each_object(void (*fn)(const struct dl_object *o, void *ctx), void *ctx);

/* What opening a library touched only once (relocations, constructors of what it
 * depends on) need not stay resident: give back the read-only pages of the
 * objects loaded after the first `first`; they come from the file when needed. */
unsigned dl_count_objects(void);
void dl_drop_clean_pages(unsigned first);

#endif
