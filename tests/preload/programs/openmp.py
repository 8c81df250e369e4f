# SPDX-License-Identifier: BSD-2-Clause
"""An OpenMP program with teams larger than the machine; the number that was asked for must not change."""
import re

import harness

COMMAND = ['gcc', '-O1', '-fopenmp', '-Wall', '-Wno-unknown-pragmas', '-o']


def prepare(cache):
    harness.need('gcc')
    harness.built(cache, harness.source_of('openmp.c'), lambda src, out: [*COMMAND, out, src])


def run(ctx):
    program = harness.built(ctx.cache, harness.source_of('openmp.c'), lambda src, out: [*COMMAND, out, src])
    # How many threads it gets is the machine's to say, and a cap's: all else must be the same.
    res = ctx.run([program], label='default team', record='status')
    ctx.record('default team stdout', re.sub(rb'threads \d+$', b'threads N', res.out.strip()))
    ctx.run([program], env={'OMP_NUM_THREADS': '7', 'OMP_WAIT_POLICY': 'passive', 'OMP_DYNAMIC': 'false'}, label='seven')
