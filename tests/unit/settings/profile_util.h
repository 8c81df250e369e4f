/* SPDX-License-Identifier: BSD-2-Clause
 * A profile is parsed, and what was said about it is kept: what test_profile.c and
 * test_profile_hostile.c share. */
#ifndef HYBRID_TESTS_PROFILE_UTIL_H
#define HYBRID_TESTS_PROFILE_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "settings/rules/profile.h"

static struct profile p;
static struct profile_site sites[PROFILE_MAX_SITES];
static unsigned n_heard;
static char heard[16384];

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    n_heard++;
    assert_true(strlen(message) < 1024);
    for (const char *c = message; *c; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s\n", message);
}

static int parse_bytes(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1); /* exact size: an overread is seen by sanitizers */
    int r;

    assert_non_null(copy);
    memcpy(copy, text, len);
    n_heard = 0;
    heard[0] = '\0';
    p.sites = sites;
    r = profile_parse(copy, len, "x.ini", &p, hear, NULL);
    free(copy);
    return r;
}

static int parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void assert_heard(const char *part)
{
    if (!strstr(heard, part))
        fail_msg("nothing says \"%s\" in:\n%s", part, heard);
}

static const char full[] = "# made by hand\n"
                           "[app]\n"
                           "exe = redis-server\n"
                           "path = /usr/*/redis-server\n"
                           "build-id = 00AB12\n"
                           "args = *--port 7777*\n"
                           "class = bandwidth\n"
                           "slowdown = 1.875\n"
                           "write-intensive = 1\n"
                           "footprint = 512M ; measured\n"
                           "exposure = 0.25\n"
                           "foreseen = 0\n"
                           "busy-threads = 7.5\n"
                           "\n"
                           "[options]\n"
                           "dram = 25%\n"
                           "mmap_min: 2M\n"
                           "site-min = 40K\n"
                           "[threads]\n"
                           "dram = 8\n"
                           "pm = 3\n"
                           "seen = 20\n"
                           "[phases]\n"
                           "phase1 = 0 bandwidth 5.97\n"
                           "phase2 = 1200 none\n"
                           "[tasks]\n"
                           "task1 = 00ab12+0x4f0 256K+8K 480 310us 1200us\n"
                           "task2 = 00ab12+0x600 1M 3 2ms -\n"
                           "[machine]\n"
                           "figures = measured on a host\n"
                           "pm = 1T\n"
                           "cpus = 40\n"
                           "[recorded]\n"
                           "runs = 3\n"
                           "confidence = 0.875\n"
                           "known = 99.5\n"
                           "reads = 123456789012\n"
                           "[modules]\n"
                           "00ab12 = /usr/bin/redis server\n"
                           "[site dict]\n"
                           "frame0 = 00ab12+0x4f0\n"
                           "frame1 = 0123456789abcdef0123456789abcdef01234567+0xFFFFFFFFFFFFFFFF\n"
                           "tier = pm\n"
                           "count = 18446744073709551615\n"
                           "bytes = 1G\n"
                           "live-bytes = 100\n"
                           "min-size = 64\n"
                           "max-size = 64K\n"
                           "reads = 7\n"
                           "writes = 0\n"
                           "from = 0.125\n"
                           "until = 0.5\n"
                           "[site b c]\n"
                           "frame0=aa+0x0\n";

#endif
