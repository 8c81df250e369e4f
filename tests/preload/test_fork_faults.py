#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a fork costs a child under the library, and a shell its start, in page faults above those of a plain
one: they are most of a shell's price, and the same at any load. Each is a page that some handler of ours,
or of memkind's, writes or reads for the first time. mimalloc: 1 for a child, 23 for the start.

  test_fork_faults.py LIBHYBRID FORK_FAULTS
"""
import os
import subprocess
import sys

STEERED = {'HYBRID_PM': 'emulated', 'HYBRID_REGISTRY': 'none'}
ON_PM = {**STEERED, 'HYBRID_START': '0', 'HYBRID_POLICY': 'pm'}
# Name, settings, MiB that are allocated as well, pages above plain: by default nothing but the heap has been at
# work; with much on PM there is memkind, whose handlers touch each of its arenas.
CASES = (('one memory', {'HYBRID_PM': 'none'}, '0', 4),
         ('defaults', STEERED, '0', 9),
         ('at once', {**STEERED, 'HYBRID_START': '0'}, '0', 16),
         ('on PM', ON_PM, '0', 16),
         ('much on PM', ON_PM, '100', 75))
STARTS = (('one memory', {'HYBRID_PM': 'none'}, 23),
          ('defaults', STEERED, 38),
          ('at once', {**STEERED, 'HYBRID_START': '0'}, 45))


def faults(program, settings, *argv):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_', 'MEMKIND'))}
    got = subprocess.run([program, *argv], env={**env, **settings}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
                         text=True, timeout=120)
    if got.stderr:
        sys.exit('it said: ' + got.stderr)
    return int(got.stdout)


def main(lib, program):
    bad = 0
    for name, settings, mib, most in CASES:
        plain = faults(program, {}, mib)
        more = faults(program, {**settings, 'LD_PRELOAD': lib}, mib) - plain
        print(f'{name}: {more} page faults above the {plain} of a plain child, at most {most} allowed')
        bad += more > most
    shell = ('0', '/bin/sh', '-c', ':')
    plain = faults(program, {}, *shell)
    for name, settings, most in STARTS:
        more = faults(program, {**settings, 'VICTIM_PRELOAD': lib}, *shell) - plain
        print(f'{name}: {more} page faults above the {plain} of a plain shell, at most {most} allowed')
        bad += more > most
    return 1 if bad else 0


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
