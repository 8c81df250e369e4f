/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl options: the table, from the same source as the library's own. */
#include "tools/ctl/ctl.h"

#include <getopt.h>
#include <string.h>

#include "tools/ctl/rules/options_words.h"

static void explain(enum hy_opt_id id)
{
    const struct hy_opt_info *o = options_info(id);
    const struct hy_opt_words *w = options_words(id);

    printf("%s\n", o->env);
    printf("  profile key   %s\n", o->env_only ? "(none: not settable in a profile)" : o->key);
    printf("  run option    --");
    for (const char *c = o->key; *c; c++)
        putchar(*c == '_' ? '-' : *c);
    printf("\n  type          %s%s%s%s\n", w->type, *w->unit ? " (" : "", w->unit,
           *w->unit ? ")" : "");
    printf("  allowed       %s\n", o->allowed);
    printf("  default       %s\n\n", o->dflt);
    ctl_print_wrapped(w->help, 2, 78);
}

static void list_json(enum hy_opt_id only)
{
    struct ctl_json j = {.to = stdout};
    ctl_json_open(&j, NULL, '[');
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const struct hy_opt_info *o = options_info(i);
        const struct hy_opt_words *w = options_words(i);

        if (only != OPT_COUNT && only != i)
            continue;
        ctl_json_open(&j, NULL, '{');
        ctl_json_text(&j, "env", o->env);
        ctl_json_text(&j, "key", o->env_only ? NULL : o->key);
        ctl_json_text(&j, "type", w->type);
        ctl_json_text(&j, "unit", *w->unit ? w->unit : NULL);
        ctl_json_text(&j, "allowed", o->allowed);
        ctl_json_text(&j, "default", o->dflt);
        ctl_json_text(&j, "help", w->help);
        ctl_json_close(&j, '}');
    }
    ctl_json_close(&j, ']');
}

static void list_text(void)
{
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const struct hy_opt_info *o = options_info(i);
        const struct hy_opt_words *w = options_words(i);

        printf("%s=%s\n", o->env, o->allowed);
        printf("      %s; default %s%s\n", w->type, o->dflt,
               o->env_only ? "; environment only" : "");
        ctl_print_wrapped(w->help, 6, 78);
        if (i + 1 < OPT_COUNT)
            putchar('\n');
    }
}

enum hy_opt_id ctl_find_option(const char *name, const char *prefix)
{
    enum hy_opt_id id = options_by_key(name); /* takes '-' for '_' */
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const struct hy_opt_info *o = options_info(i);
        if (strcasecmp(name, o->env) == 0 || strcasecmp(name, o->key) == 0)
            id = i;
    }
    if (id != OPT_COUNT)
        return id;
    enum hy_opt_id near = options_nearest(name, strlen(name));
    if (near != OPT_COUNT)
        ctl_error("%sthere is no option '%s'; did you mean %s?", prefix, name,
                  options_info(near)->env);
    else
        ctl_error("%sthere is no option '%s'; see hybridctl options", prefix, name);
    return OPT_COUNT;
}

int ctl_options(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'}, {0}};
    bool json = false;
    int c;

    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c != 'j')
            return CTL_USAGE;
        json = true;
    }
    enum hy_opt_id only = OPT_COUNT;
    if (argc - optind > 1) {
        ctl_error("options takes at most one name");
        return CTL_USAGE;
    }
    if (optind < argc && (only = ctl_find_option(argv[optind], "")) == OPT_COUNT)
        return CTL_USAGE;
    if (json)
        list_json(only);
    else if (only != OPT_COUNT)
        explain(only);
    else
        list_text();
    return CTL_OK;
}
