# SPDX-License-Identifier: BSD-2-Clause
"""An OpenMP program with teams larger than the machine; the number of threads must not change."""
import harness

COMMAND = ['gcc', '-O1', '-fopenmp', '-Wall', '-Wno-unknown-pragmas', '-o']


def prepare(cache):
    harness.need('gcc')
    harness.built(cache, harness.source_of('openmp.c'), lambda src, out: [*COMMAND, out, src])


def run(ctx):
    program = harness.built(ctx.cache, harness.source_of('openmp.c'), lambda src, out: [*COMMAND, out, src])
    ctx.run([program], label='default team')
    ctx.run([program], env={'OMP_NUM_THREADS': '7', 'OMP_WAIT_POLICY': 'passive', 'OMP_DYNAMIC': 'false'}, label='seven')
