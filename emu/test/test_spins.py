#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Threads that spin for one another, instrumented and under QEMU: test_spins.py SPINS SPINS_PLAIN HYBRID_EMU"""
import os
import re
import shutil
import subprocess
import sys

SPINS, PLAIN, HYBRID_EMU = sys.argv[1:4]
PATIENCE_S = 120
ENV = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_', 'OMP_', 'GOMP_'))}
FRONT_ENDS = [[SPINS]]
if shutil.which('qemu-x86_64'):
    FRONT_ENDS.append([HYBRID_EMU, 'run', '--', PLAIN])
else:
    print('not under QEMU: no qemu-x86_64 (package qemu-user)')
STEPS = 12


def spin(front_end, how, threads, **settings):
    """Virtual us of a run, which has to end, and those of a step."""
    env = dict(ENV, **{'HYBRID_EMU_' + k: str(v) for k, v in settings.items()},
               HYBRID_EMU_STATS='1', OMP_NUM_THREADS=str(threads))
    p = subprocess.run([*front_end, how, str(threads), str(STEPS)], env=env, text=True,
                       capture_output=True, timeout=PATIENCE_S)
    assert p.returncode == 0 and re.search(r'valid +yes', p.stderr), (p.args, p.stderr)
    got = re.fullmatch(r'sum (\d+) right (\d) step_us (\S+) took_us (\S+)\n', p.stdout)
    total, right, step, took = (float(x) for x in got.groups())
    assert right or how == 'sweep', (p.args, p.stdout)
    return total, step, took


def main():
    """Threads that spin for one another get on, in the time of the work: a hand-over may be seen
    late by what they may be apart (a batch and the lookahead, 40 us), early by half of it. At the
    end a thread waits in a futex for one that has a step more to do, and that may be quicker than
    its system call: then that step is missing."""
    for front_end in FRONT_ENDS:
        total, _, alone = spin(front_end, 'sweep', 1)
        for threads in (2, 4, 8):
            same, _, took = spin(front_end, 'sweep', threads)
            assert same == total, (front_end, threads, same, total)
            # There and back: a plane for each thread before the last one has something to do.
            rounds = STEPS + 2 * (threads - 1)
            ideal = alone * rounds / STEPS / threads
            print('sweep', threads, took, ideal)
            assert 0.95 * ideal < took < 1.03 * ideal + rounds * 40, (front_end, took, ideal)
            for how in ('acquire', 'relaxed', 'yield', 'lock', 'swap'):
                # Each turn of a wait is a system call, and the computer's two CPUs take 40 s and more.
                if how == 'yield' and threads == 8 and front_end[0] == HYBRID_EMU:
                    continue
                _, step, took = spin(front_end, how, threads)
                rounds = STEPS + threads - 1
                print(how, threads, took, rounds * step)
                assert -rounds * 20 - step < took - rounds * step < rounds * 40, (front_end, how, took, step)
        # With fewer CPUs than threads a turn is spent in vain now and then.
        for how in ('sweep', 'acquire', 'lock'):
            print(how, 'on two CPUs', spin(front_end, how, 4, AFFINITY='0-1'))


main()
