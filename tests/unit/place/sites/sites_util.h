/* SPDX-License-Identifier: BSD-2-Clause
 * Call sites end to end: stacks made by modules of our own (sites_plugin.c), which the arguments
 * of the program name. What test_sites.c and test_sites_steer.c share. */
#ifndef HYBRID_TESTS_SITES_UTIL_H
#define HYBRID_TESTS_SITES_UTIL_H

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "child.h"
#include "place/sites.h"
#include "sites_plugin.h"

struct plugin {
    void *handle;
    unsigned (*walk)(capture_fn *, unsigned, unsigned);
    unsigned (*alloca_frame)(capture_fn *, unsigned);
    unsigned (*realigned)(capture_fn *, unsigned);
    unsigned (*qsort_frame)(capture_fn *, unsigned);
    unsigned (*noreturn_call)(capture_fn *, unsigned);
    unsigned (*huge)(capture_fn *, unsigned);
};

static const char *plugin_path[2];
static struct plugin one;

static unsigned capture(void)
{
    return sites_capture();
}

static struct plugin load(const char *path)
{
    struct plugin p = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (p.handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)&p.walk = dlsym(p.handle, "plugin_walk");
    *(void **)&p.alloca_frame = dlsym(p.handle, "plugin_alloca");
    *(void **)&p.realigned = dlsym(p.handle, "plugin_realigned");
    *(void **)&p.qsort_frame = dlsym(p.handle, "plugin_qsort");
    *(void **)&p.noreturn_call = dlsym(p.handle, "plugin_noreturn");
    *(void **)&p.huge = dlsym(p.handle, "plugin_huge_frame");
    return p;
}

static struct site_info info_of(site_id id)
{
    struct site_info s;
    assert_true(sites_get(id, &s));
    return s;
}

static const void *return_address(const struct hy_frame *f, const void *in_module)
{
    Dl_info i;
    assert_int_not_equal(dladdr(in_module, &i), 0);
    return (const char *)i.dli_fbase + f->offset;
}

/* The modules, and the table of sites. 0, or the status to end with: 77, call sites cannot be told
 * here. */
static int sites_begin(char **plugins)
{
    char err[200] = "";
    plugin_path[0] = plugins[0];
    plugin_path[1] = plugins[1];
    one = load(plugin_path[0]);
    if (one.walk(capture, 1, 1) != 0) {
        fprintf(stderr, "a site before sites_init\n");
        return 1;
    }
    int r = sites_init(err, sizeof(err));
    if (r == -ENOTSUP) {
        fprintf(stderr, "skipped: %s\n", err);
        return 77;
    }
    if (r != 0) {
        fprintf(stderr, "sites_init: %s\n", err);
        return 1;
    }
    return 0;
}

#endif
