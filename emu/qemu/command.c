/* SPDX-License-Identifier: BSD-2-Clause
 * Composes commands. See command.h. No allocation: it also runs between fork and exec. */
#include "qemu/command.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define SCRIPTS 4 /* as deep as the kernel goes */

struct room {
    char *at, *end;
};

static void *take(struct room *r, size_t bytes)
{
    char *p = (char *)(((uintptr_t)r->at + 15) & ~(uintptr_t)15); /* NOLINT: alignment */
    if (p > r->end || bytes > (size_t)(r->end - p))
        return NULL;
    r->at = p + bytes;
    return p;
}

static char *join(struct room *r, const char *a, const char *b, const char *c)
{
    size_t la = strlen(a), lb = strlen(b), lc = strlen(c);
    char *p = take(r, la + lb + lc + 1);
    if (!p)
        return NULL;
    memcpy(p, a, la);
    memcpy(p + la, b, lb);
    memcpy(p + la + lb, c, lc + 1);
    return p;
}

static size_t length(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* A list of strings that grows at its end. */
struct list {
    char **item;
    size_t n, max;
};

static int list_make(struct room *r, struct list *ret, size_t max)
{
    ret->item = take(r, (max + 1) * sizeof(char *));
    ret->n = 0;
    ret->max = max;
    return ret->item ? 0 : -E2BIG;
}

static void list_add(struct list *l, const char *s)
{
    if (l->n < l->max && s)
        l->item[l->n++] = (char *)s; /* NOLINT: execve's type */
    l->item[l->n] = NULL;
}

static bool names_loader(const char *variable)
{
    return strncmp(variable, "LD_", 3) == 0 || strncmp(variable, "GLIBC_TUNABLES=", 15) == 0;
}

/* In a list with colons or blanks between. */
static bool listed(const char *list, const char *item)
{
    size_t n = strlen(item);
    for (const char *p = list; (p = strstr(p, item)); p += n)
        if ((p == list || p[-1] == ':' || p[-1] == ' ') &&
            (p[n] == '\0' || p[n] == ':' || p[n] == ' '))
            return true;
    return false;
}

/* LD_PRELOAD with our library at its end, where it gets in nobody's way. */
static char *with_library(struct room *r, const char *variable, const char *library)
{
    const char *value = variable ? variable + sizeof("LD_PRELOAD=") - 1 : "";

    if (listed(value, library))
        return join(r, "LD_PRELOAD=", value, "");
    return *value ? join(r, variable, ":", library) : join(r, "LD_PRELOAD=", library, "");
}

/* ... and without it: a program that is not QEMU's guest cannot use it. */
static char *without_library(struct room *r, const char *variable, const char *library)
{
    char *copy = join(r, variable, "", ""), *at = copy ? strstr(copy, library) : NULL;
    size_t n = strlen(library);

    if (!at)
        return copy;
    if (at[n] == ':' || at[n] == ' ')
        n++;
    else if (at > copy && (at[-1] == ':' || at[-1] == ' ')) {
        at--;
        n++;
    }
    memmove(at, at + n, strlen(at + n) + 1);
    return strcmp(copy, "LD_PRELOAD=") == 0 ? NULL : copy;
}

static int as_it_is(struct room *r, char *const envp[], const char *library, struct command *ret)
{
    struct list env;

    if (list_make(r, &env, length(envp)) < 0)
        return -E2BIG;
    list_add(&env, NULL);
    for (size_t i = 0; envp && envp[i]; i++)
        list_add(&env, library && strncmp(envp[i], "LD_PRELOAD=", 11) == 0
                           ? without_library(r, envp[i], library)
                           : envp[i]);
    ret->envp = env.item;
    return COMMAND_AS_IT_IS;
}

static int guest_variables(struct room *r, struct list *args, struct list *env, char *const envp[],
                           const char *library, bool is_static)
{
    const char *preload = NULL;
    char *v;

    for (size_t i = 0; envp && envp[i]; i++) {
        if (!names_loader(envp[i])) {
            list_add(env, envp[i]);
        } else if (strchr(envp[i], ',')) {
            return -EINVAL;
        } else if (strncmp(envp[i], "LD_PRELOAD=", 11) == 0) {
            preload = envp[i];
        } else {
            list_add(args, "-E");
            list_add(args, envp[i]);
        }
    }
    v = library && !is_static ? with_library(r, preload, library) : (char *)preload; /* NOLINT */
    if (v && strchr(v, ','))
        return -EINVAL;
    if (v) {
        list_add(args, "-E");
        list_add(args, v);
    }
    return 0;
}

/* QEMU's command line for an ELF file. */
static int under_qemu(struct room *r, const char *path, const struct list *program,
                      char *const envp[], const struct command_tools *t, bool is_static,
                      struct command *ret)
{
    struct list args, env;
    char *plugin;
    int e;

    if (list_make(r, &args, program->n + 2 * length(envp) + 12) < 0 ||
        list_make(r, &env, length(envp)) < 0)
        return -E2BIG;
    list_add(&env, NULL);
    if (strchr(t->plugin, ',') || (t->guest_library && strchr(t->guest_library, ',')))
        return -EINVAL;
    plugin = join(r, t->plugin, t->guest_library ? ",guest=" : "",
                  t->guest_library ? t->guest_library : "");
    if (!plugin)
        return -E2BIG;
    list_add(&args, t->qemu);
    list_add(&args, "-plugin");
    list_add(&args, plugin);
    list_add(&args, "-0");
    list_add(&args, program->n ? program->item[0] : path);
    e = guest_variables(r, &args, &env, envp, t->guest_library, is_static);
    if (e < 0)
        return e;
    list_add(&args, path);
    for (size_t i = 1; i < program->n; i++)
        list_add(&args, program->item[i]);
    *ret = (struct command){t->qemu, args.item, env.item};
    return COMMAND_OK;
}

int command_make(const char *path, char *const argv[], char *const envp[],
                 const struct command_tools *tools, void *room, size_t bytes, struct command *ret,
                 struct program *ret_program)
{
    struct room r = {room, (char *)room + bytes};
    struct list program;
    int depth = 0, e;

    if (list_make(&r, &program, length(argv) + 2 * SCRIPTS) < 0)
        return -E2BIG;
    list_add(&program, NULL);
    for (size_t i = 0; argv && argv[i]; i++)
        list_add(&program, argv[i]);
    for (;;) {
        size_t extra;
        e = program_look(path, ret_program);
        if (e < 0 || ret_program->kind != PROGRAM_SCRIPT)
            break;
        if (++depth > SCRIPTS)
            return -ELOOP;
        /* argv[0] gives way to: interpreter [argument] script */
        extra = ret_program->argument[0] ? 2 : 1;
        if (program.n == 0)
            list_add(&program, path);
        memmove(program.item + 1 + extra, program.item + 1, program.n * sizeof(char *));
        program.n += extra;
        program.item[extra] = (char *)path; /* NOLINT: execve's type */
        if (extra == 2 && !(program.item[1] = join(&r, ret_program->argument, "", "")))
            return -E2BIG;
        path = program.item[0] = join(&r, ret_program->interpreter, "", "");
        if (!path)
            return -E2BIG;
    }
    if (e < 0)
        return e;
    *ret = (struct command){path, program.item, (char **)envp};
    if (ret_program->kind != PROGRAM_GUEST || ret_program->set_id)
        return as_it_is(&r, envp, tools->guest_library, ret);
    return under_qemu(&r, path, &program, envp, tools, ret_program->is_static, ret);
}
