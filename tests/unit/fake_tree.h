/* SPDX-License-Identifier: BSD-2-Clause
 * Fake folders for tests: /sys, /etc. After cmocka.h. */
#ifndef HYBRID_TESTS_FAKE_TREE_H
#define HYBRID_TESTS_FAKE_TREE_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int tree_remove_entry(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st, (void)flag, (void)where;
    return remove(path);
}

static inline int tree_remove(const char *top)
{
    return nftw(top, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Write a file, with all folders above it; new ones have mode 0755, the file 0644. */
static inline void tree_put(const char *root, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0644), 0);
}

#endif
