#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What hybridctl run tells beforehand of an emulated machine: test_run_emulated.py HYBRIDCTL HYBRID_EMU"""
import os
import re
import shutil
import subprocess
import sys

HYBRIDCTL, HYBRID_EMU = sys.argv[1:3]
ENV = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_'))}


def told(command, **env):
    p = subprocess.run([*command, HYBRIDCTL, 'run', '--check', '--pm', 'emulated', '--dram', '50%', 'true'],
                       env={**ENV, **env}, text=True, capture_output=True, timeout=300)
    assert p.returncode == 0, p
    return dict(re.findall(r'^(\S+) +(.*)$', p.stderr, re.M))


# Nothing of an emulated machine: what it always was.
plain = told([])
assert plain['PM'].startswith('ordinary memory'), plain
computer = plain['DRAM'].split(' of ')[1].split(' for ')[0]

# One that only an instrumented program has: it cannot be known, and that is said.
other = told([], HYBRID_EMU_DRAM='4M')
assert 'if the program is built for it' in other['PM'], other
assert computer in other['DRAM'] and 'HYBRID_EMU_DRAM' in other['DRAM'], other

if not shutil.which('qemu-x86_64'):
    print('skipped: no qemu-x86_64 (package qemu-user)')
    sys.exit(77)

# The one that hybridctl is on itself.
guest = told([HYBRID_EMU, 'run', '--dram', '4M', '--'])
assert guest['PM'] == "the emulated machine's, on which this runs", guest
assert guest['DRAM'] == '2.0 MiB of 4.0 MiB for this program', guest
assert guest['shared'].startswith('4.0 MiB '), guest
guest = told([HYBRID_EMU, 'run', '--'])
assert computer in guest['DRAM'] and guest['DRAM'].endswith('has no limit)'), guest
