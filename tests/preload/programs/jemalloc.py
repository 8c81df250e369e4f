# SPDX-License-Identifier: BSD-2-Clause
"""A C program linked with libjemalloc that mixes both of its interfaces."""
import os

import harness

COMMAND = ['gcc', '-O1', '-g', '-fno-builtin-malloc', '-pthread', '-o']


def build(cache):
    return harness.built(cache, harness.source_of('jemalloc.c'), lambda src, out: [*COMMAND, out, src, '-ljemalloc'])


def prepare(cache):
    harness.need('gcc')
    if not os.path.exists('/usr/include/jemalloc/jemalloc.h'):
        raise harness.Skip('not installed: libjemalloc-dev')
    build(cache)


def run(ctx):
    ctx.run([build(ctx.cache)], label='program')
