/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <sys/single_threaded.h>

#include "base/guard.h"
#include "sys/os.h"

static __thread bool ours __attribute__((tls_model("initial-exec")));

void dl_thread_is_ours(void)
{
    ours = true;
}

/* A failed look-up leaves a message that the program's next dlerror() would
 * return: take our own back. After success there is none, so touch nothing. Nor in a thread of
 * ours: dlerror translates, and waits for a program's thread in setlocale, which may wait for ours.
 */
static void take_back_error(char *err, size_t cap)
{
    if (ours && cap == 0)
        return;
    const char *why = dlerror();
    if (err != NULL && cap > 0)
        snprintf(err, cap, "%s", why != NULL ? why : "unknown loader error");
}

void *dl_symbol(void *where, const char *name)
{
    int saved = errno;
    hy_guard_enter();
    void *p = dlsym(where, name);
    if (p == NULL)
        take_back_error(NULL, 0);
    hy_guard_leave();
    errno = saved;
    return p;
}

/* --- before main ------------------------------------------------------------------------------ */

/* What an object's dynamic section tells of its symbols (gABI, with GNU's hash table). */
struct symbols {
    const struct link_map *of;
    const ElfW(Sym) * sym;
    const char *str;
    const ElfW(Half) * version; /* NULL: none */
    const uint32_t *hash;
};

static bool find_symbols(const struct link_map *m, struct symbols *ret)
{
    if (ret->of == m)
        return true; /* the libc, asked again */
    *ret = (struct symbols){.of = m};
    for (const ElfW(Dyn) *d = m->l_ld; d->d_tag != DT_NULL; d++) {
        /* The loader has made addresses of them, but where the section is read-only. */
        uintptr_t at = d->d_un.d_ptr < m->l_addr ? d->d_un.d_ptr + m->l_addr : d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB)
            ret->sym = (const ElfW(Sym) *)at;
        else if (d->d_tag == DT_STRTAB)
            ret->str = (const char *)at;
        else if (d->d_tag == DT_VERSYM)
            ret->version = (const ElfW(Half) *)at;
        else if (d->d_tag == DT_GNU_HASH)
            ret->hash = (const uint32_t *)at;
    }
    if (ret->sym && ret->str && ret->hash)
        return true;
    ret->of = NULL;
    return false;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name != '\0'; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

/* At every start a look-up less than with strcmp. */
static bool same_name(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b)
        a++, b++;
    return *a == *b;
}

/* The default version of an exported function, NULL if there is none. */
static const ElfW(Sym) * find_symbol(const struct symbols *s, const char *name, uint32_t h)
{
    uint32_t buckets = s->hash[0], first = s->hash[1], words = s->hash[2], shift = s->hash[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(s->hash + 4);
    const uint32_t *bucket = (const uint32_t *)(bloom + words);
    const unsigned bits = sizeof(*bloom) * 8;
    ElfW(Addr) word = bloom[h / bits & (words - 1)];
    if (!(word >> h % bits & word >> (h >> shift) % bits & 1))
        return NULL;
    uint32_t i = bucket[h % buckets];
    if (i < first)
        return NULL;
    for (const uint32_t *chain = bucket + buckets - first;; i++) {
        const ElfW(Sym) *sym = &s->sym[i];
        if ((chain[i] | 1) == (h | 1) && sym->st_shndx != SHN_UNDEF &&
            !(s->version && (s->version[i] & 0x8000)) && same_name(s->str + sym->st_name, name))
            return sym;
        if (chain[i] & 1)
            return NULL;
    }
}

extern const ElfW(Ehdr) __ehdr_start HY_HIDDEN;

/* The loader leaves it in the second entry of the table of names that it binds lazily. Where it
 * binds them all at once (LD_BIND_NOW) that entry is empty, or is none of the loader's. */
static const struct link_map *map_of_ours(void)
{
    const struct link_map *const *table = NULL;
    bool lazy = false;
    for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_PLTGOT) {
            uintptr_t base = (uintptr_t)&__ehdr_start, at = d->d_un.d_ptr;
            table = (const struct link_map *const *)(at < base ? base + at : at);
        } else if (d->d_tag == DT_JMPREL) {
            lazy = true;
        } else if (d->d_tag == DT_BIND_NOW ||
                   (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_BIND_NOW)) ||
                   (d->d_tag == DT_FLAGS_1 && (d->d_un.d_val & DF_1_NOW))) {
            return NULL;
        }
    }
    const struct link_map *m = lazy && table ? table[1] : NULL;
    return m && m->l_ld == _DYNAMIC ? m : NULL;
}

static bool main_has_begun;

void dl_main_begins(void)
{
    main_has_begun = true;
}

/* NULL: this is not the start, or the map is not known. Nothing is loaded or unloaded at the start,
 * as there is one thread, and it is in a constructor. */
static const struct link_map *map_at_start(void)
{
    static const struct link_map *of_ours;
    if (main_has_begun || !__libc_single_threaded)
        return NULL;
    if (!of_ours)
        of_ours = map_of_ours();
    return of_ours;
}

/* dlsym(RTLD_NEXT) at a tenth of its price, for the start of every process. NULL: ask dlsym.
 * `from_end`: for a name that the loader itself defines, as it is one of the last objects. */
static void *next_at_start(const char *name, bool from_end)
{
    static struct symbols of_libc; /* mostly */
    struct symbols of_any = {0}, *s = from_end ? &of_any : &of_libc;
    const struct link_map *self = map_at_start(), *m = self ? self->l_next : NULL;
    uint32_t h = m ? gnu_hash(name) : 0;
    while (from_end && m && m->l_next)
        m = m->l_next;
    for (; m && m != self; m = from_end ? m->l_prev : m->l_next) {
        const ElfW(Sym) *sym = find_symbols(m, s) ? find_symbol(s, name, h) : NULL;
        if (sym) /* of another kind, the loader knows how */
            return (sym->st_info & 15) == STT_FUNC ? (void *)(m->l_addr + sym->st_value) : NULL;
    }
    return NULL;
}

void *dl_next(const char *name)
{
    void *p = next_at_start(name, false);
    return p ? p : dl_symbol(RTLD_NEXT, name);
}

static void *open_quietly(const char *name, int flags, char *err, size_t err_cap)
{
    int saved = errno;
    hy_guard_enter();
    void *h = dlopen(name, flags);
    if (h == NULL)
        take_back_error(err, err_cap);
    hy_guard_leave();
    errno = saved;
    return h;
}

/* The object that holds an address, if it is still there; to be closed. */
static void *open_object_of(const void *address, int flags)
{
    struct dl_object o;
    if (dl_find(address, &o) != 0)
        return NULL;
    return open_quietly(o.name[0] ? o.name : NULL, RTLD_LAZY | RTLD_NOLOAD | flags, NULL, 0);
}

void *dl_next_of(const char *name, const void *caller)
{
    void *fn = dl_next(name);
    if (fn)
        return fn;
    int saved = errno;
    void *h = open_object_of(caller, 0), *pinned;
    if (h) {
        fn = dl_symbol(h, name);
        /* A handle's scope is its own: ours is in it only if the caller is linked with us. */
        if (fn && dl_object_base(fn) == dl_object_base((const void *)(uintptr_t)dl_next_of))
            fn = NULL;
        if (fn && (pinned = open_object_of(fn, RTLD_NODELETE)) != NULL)
            (void)dlclose(pinned);
        (void)dlclose(h);
    }
    errno = saved;
    return fn;
}

void *dl_global(const char *name)
{
    return dl_symbol(RTLD_DEFAULT, name);
}

bool dl_is_definition(const void *fn)
{
    Dl_info info;
    ElfW(Sym) *sym = NULL;
    return dladdr1(fn, &info, (void **)&sym, RTLD_DL_SYMENT) == 0 || !sym ||
           sym->st_shndx != SHN_UNDEF;
}

void *dl_open_private(const char *soname, char *err, size_t err_cap)
{
    return open_quietly(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, err, err_cap);
}

/* Not by its name: a second library that this one needs, the loader, costs each start the check of
 * its versions. First asked by the constructor (sys/next.c), so that malloc need not look it up. */
static bool find_object(const void *addr, struct dl_find_object *ret)
{
    static __typeof__(&_dl_find_object) find;
    __typeof__(find) fn = __atomic_load_n(&find, __ATOMIC_RELAXED);
    if (HY_UNLIKELY(!fn)) {
        void *p = next_at_start("_dl_find_object", true);
        fn = (__typeof__(find))(p ? p : dl_symbol(RTLD_DEFAULT, "_dl_find_object"));
        __atomic_store_n(&find, fn, __ATOMIC_RELAXED);
    }
    return fn && fn((void *)(uintptr_t)addr, ret) == 0;
}

int dl_find(const void *addr, struct dl_object *ret)
{
    struct dl_find_object o;
    if (!find_object(addr, &o))
        return -ENOENT;
    ret->bias = o.dlfo_link_map->l_addr;
    ret->start = (uintptr_t)o.dlfo_map_start;
    ret->end = (uintptr_t)o.dlfo_map_end;
    ret->handle = o.dlfo_link_map;
    ret->eh_frame_hdr = o.dlfo_eh_frame;
    ret->name = o.dlfo_link_map->l_name != NULL ? o.dlfo_link_map->l_name : "";
    return 0;
}

uintptr_t dl_object_base(const void *addr)
{
    struct dl_object o;
    return dl_find(addr, &o) == 0 ? o.start : 0;
}

struct each_ctx {
    void (*fn)(const struct dl_object *o, void *ctx);
    void *ctx;
};

static int each_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct each_ctx *c = arg;
    struct dl_object o = {.bias = info->dlpi_addr,
                          .start = UINTPTR_MAX,
                          .name = info->dlpi_name != NULL ? info->dlpi_name : ""};
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD)
            continue;
        o.start = HY_MIN(o.start, info->dlpi_addr + ph->p_vaddr);
        o.end = HY_MAX(o.end, info->dlpi_addr + ph->p_vaddr + ph->p_memsz);
    }
    if (o.end > o.start)
        c->fn(&o, c->ctx);
    return 0;
}

void dl_each_object(void (*fn)(const struct dl_object *o, void *ctx), void *ctx)
{
    struct each_ctx c = {fn, ctx};
    int saved = errno;
    hy_guard_enter();
    dl_iterate_phdr(each_object, &c);
    hy_guard_leave();
    errno = saved;
}

/* Text relocations live in otherwise clean pages: such an object is left alone. */
static bool has_text_relocations(const struct dl_phdr_info *info, const ElfW(Phdr) * dynamic)
{
    const ElfW(Dyn) *d = (const ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr);
    for (; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
            return true;
    return false;
}

static int drop_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    unsigned *skip = arg;
    (void)size;
    if (*skip) {
        --*skip;
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
            has_text_relocations(info, &info->dlpi_phdr[i]))
            return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t from = (info->dlpi_addr + ph->p_vaddr) & ~(uintptr_t)(HY_PAGE - 1);
        uintptr_t to = hy_align_up(info->dlpi_addr + ph->p_vaddr + ph->p_filesz, HY_PAGE);
        if (ph->p_type == PT_LOAD && !(ph->p_flags & PF_W))
            (void)os_purge((void *)from, to - from);
    }
    return 0;
}

static int count_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info;
    (void)size;
    ++*(unsigned *)arg;
    return 0;
}

unsigned dl_count_objects(void)
{
    unsigned n = 0;
    dl_iterate_phdr(count_object, &n);
    return n;
}

void dl_drop_clean_pages(unsigned first)
{
    dl_iterate_phdr(drop_object, &first);
}
