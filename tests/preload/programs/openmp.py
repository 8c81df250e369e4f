# SPDX-License-Identifier: BSD-2-Clause
"""An OpenMP program with teams larger than the machine; the number that was asked for must not change."""
import os
import re

import harness

COMMAND = ['gcc', '-O1', '-fopenmp', '-Wall', '-Wno-unknown-pragmas', '-o']


def prepare(cache):
    harness.need('gcc')
    harness.built(cache, harness.source_of('openmp.c'), lambda src, out: [*COMMAND, out, src])


def run(ctx):
    program = harness.built(ctx.cache, harness.source_of('openmp.c'), lambda src, out: [*COMMAND, out, src])
    res = ctx.run([program], label='default team', record='status')
    out = res.out.strip()
    if 'HYBRID_THREADS' in ctx.env:  # one thread, as it was told; all else must be as without
        ctx.check(out.endswith(b'threads 1'), out)
        out = re.sub(rb'\d+$', str(len(os.sched_getaffinity(0))).encode(), out)
    ctx.record('default team stdout', out)
    ctx.run([program], env={'OMP_NUM_THREADS': '7', 'OMP_WAIT_POLICY': 'passive', 'OMP_DYNAMIC': 'false'}, label='seven')
