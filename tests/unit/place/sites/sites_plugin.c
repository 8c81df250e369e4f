/* SPDX-License-Identifier: BSD-2-Clause
 * A module with call sites: the library's own frames are left out of a site, so
 * the callers of test_sites.c lie in modules of their own. Built several times
 * with another PLUGIN_NUMBER: same layout, another build-id. */
#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sites_plugin.h"

const char plugin_number[] = "plugin " PLUGIN_NUMBER;

/* Keeps a call from becoming a jump or being merged with its neighbours. */
#define KEEP(n) __asm__ volatile("# site %0" ::"i"(n) : "memory")

/* 4^depth different stacks: two bits of `path` choose the call at each level. */
__attribute__((noinline)) unsigned plugin_walk(capture_fn *capture, unsigned depth, unsigned path)
{
    unsigned r;
    if (depth == 0) {
        r = capture();
        KEEP(9);
        return r;
    }
    switch (path & 3) {
    case 0:
        r = plugin_walk(capture, depth - 1, path >> 2);
        KEEP(0);
        break;
    case 1:
        r = plugin_walk(capture, depth - 1, path >> 2);
        KEEP(1);
        break;
    case 2:
        r = plugin_walk(capture, depth - 1, path >> 2);
        KEEP(2);
        break;
    default:
        r = plugin_walk(capture, depth - 1, path >> 2);
        KEEP(3);
    }
    return r;
}

__attribute__((noinline)) unsigned plugin_alloca(capture_fn *capture, unsigned bytes)
{
    volatile char *p = alloca(bytes);
    p[0] = 1;
    unsigned r = capture();
    p[bytes - 1] = 1;
    return r;
}

__attribute__((noinline)) unsigned plugin_realigned(capture_fn *capture, unsigned bytes)
{
    volatile char big[256] __attribute__((aligned(128)));
    volatile char *p = alloca(bytes);
    big[0] = p[0] = 1;
    unsigned r = capture();
    big[1] = p[0];
    return r + (unsigned)(big[1] & 0);
}

static __thread struct {
    capture_fn *capture;
    unsigned result;
} sorting;

static int compare(const void *a, const void *b)
{
    if (sorting.result == 0)
        sorting.result = sorting.capture();
    KEEP(5);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) unsigned plugin_qsort(capture_fn *capture, unsigned unused)
{
    int v[2] = {2, 1};
    (void)unused;
    sorting.capture = capture;
    sorting.result = 0;
    qsort(v, 2, sizeof(v[0]), compare);
    KEEP(6);
    return sorting.result;
}

/* A call that does not come back is the last instruction of its function: the
 * return address lies behind the function. */
static __thread jmp_buf back;

__attribute__((noinline, noreturn)) static void no_return(capture_fn *capture)
{
    sorting.result = capture();
    longjmp(back, 1);
}

__attribute__((noinline)) static void ends_with_a_call(capture_fn *capture)
{
    KEEP(7);
    no_return(capture);
}

__attribute__((noinline)) unsigned plugin_noreturn(capture_fn *capture, unsigned unused)
{
    (void)unused;
    if (setjmp(back) == 0)
        ends_with_a_call(capture);
    return sorting.result;
}

/* Frames above any that a rule can describe: the walk ends, no more. */
__attribute__((noinline)) unsigned plugin_huge_frame(capture_fn *capture, unsigned unused)
{
    volatile char big[3 << 20];
    (void)unused;
    big[0] = big[sizeof(big) - 1] = 1;
    unsigned r = capture();
    big[1] = 1;
    return r;
}
