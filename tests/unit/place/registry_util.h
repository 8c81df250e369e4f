/* SPDX-License-Identifier: BSD-2-Clause
 * A registry file of its own for each test. registry_other.h has processes to meet there. */
#ifndef HYBRID_TESTS_REGISTRY_UTIL_H
#define HYBRID_TESTS_REGISTRY_UTIL_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "place/registry.h"
#include "place/registry_file.h"
#include "sys/os.h"

#define REG_LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define MB          HY_MIB
#define BUDGET      (100 * MB)

static char dir[256], path[300];
static struct registry_view view;

static inline int make_dir(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof(dir), "%s/registry-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/r", dir);
    return 0;
}

static inline int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static inline struct registry *open_or_fail(uint64_t budget)
{
    struct registry *r = NULL;
    assert_int_equal(registry_open(path, budget, &r), 0);
    assert_non_null(r);
    return r;
}

static inline struct registry *open_and_join(uint64_t budget, enum hy_class cls)
{
    struct registry *r = open_or_fail(budget);
    assert_int_equal(registry_join(r, cls), 0);
    assert_true(registry_joined(r));
    return r;
}

/* Claims look for dead ones at a bounded rate: try for at most two seconds. */
static inline int claim_soon(struct registry *r, uint64_t bytes)
{
    int err = -ENOSPC;
    for (int i = 0; i < 200 && err == -ENOSPC; i++) {
        err = registry_claim_dram(r, bytes);
        if (err == -ENOSPC)
            usleep(10000);
    }
    return err;
}

static inline const struct registry_entry *entry_of(pid_t pid)
{
    for (unsigned i = 0; i < view.n; i++)
        if (view.entry[i].pid == pid)
            return &view.entry[i];
    return NULL;
}

/* The file as others could scribble on it. */
static inline struct reg_file *map_raw(void)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    struct reg_file *f = mmap(NULL, REGISTRY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(f != MAP_FAILED);
    close(fd);
    return f;
}

/* Its slots are going to be written here. */
static inline struct reg_file *map_to_write(void)
{
    struct reg_file *f = map_raw();
    memset(f->head.used, 1, sizeof(f->head.used));
    return f;
}

static inline void unmap_raw(struct reg_file *f)
{
    munmap(f, REGISTRY_BYTES);
}

static inline uint64_t word_of(pid_t pid, enum reg_state state)
{
    struct os_proc_id id;
    assert_int_equal(os_proc_id(pid, &id), 0);
    return reg_identity(&id) | state;
}

/* A process that only lives. */
static inline pid_t sleeper(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static inline void end_sleeper(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#endif
