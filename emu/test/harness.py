# SPDX-License-Identifier: BSD-2-Clause
"""Running programs on the emulated machine, for the tests."""
import json
import os
import re
import subprocess
import sys
import tempfile

# Instead of waiting without end: nothing here takes a tenth of it on a loaded computer.
PATIENCE_S = 600
ENV = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_EMU', 'OMP_', 'GOMP_'))}


def start(command, env=None, **settings):
    """Settings by their names without HYBRID_EMU_."""
    all_env = dict(ENV, **{'HYBRID_EMU_' + k: str(v) for k, v in settings.items()}, **(env or {}))
    return subprocess.Popen([str(a) for a in command], env=all_env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def running(command, **settings):
    """One of the kernels, once its threads have begun: however long a busy computer takes."""
    p = start(command, {'KERNEL_SAY': '1'}, **settings)
    said = p.stderr.readline()
    assert said == 'running\n', (p.args, said)
    return p


def end(p):
    p.kill()
    p.communicate()


def finish(p, status=0):
    out, err = p.communicate(timeout=PATIENCE_S)
    assert p.returncode == status, (p.args, p.returncode, err)
    return out, err


def run(command, env=None, **settings):
    return finish(start(command, env, **settings))[0]


def virtual(command, **settings):
    return int(re.search(r'virtual_us (\d+)', run(command, **settings)).group(1))


def reports(command, env=None, **settings):
    """What it prints, and the JSON reports of all its processes in the order of their ends."""
    with tempfile.TemporaryDirectory() as d:
        out = run(command, env, STATS=d + '/stats', **settings)
        with open(d + '/stats') as f:
            return out, [json.loads(line) for line in f]


def near(what, value, want, tolerance):
    print(f'{what}: {value:.4g}, expected {want:.4g} within {tolerance:.2%}')
    assert abs(value - want) <= tolerance * want, what


# What lies.c prints on a machine with 4096 pages of DRAM and placement first-touch.
LIES = dict(books=4096, unused=3000, used_by_asking=0, took=1500, dram=1500, unused_yet=1500,
            touched=4, named=0, moved_with_name=500, pm=1000, unnamed=0, stay=1000, by_machine=2500,
            full=0, given=1, bad=1)


def lies(out):
    """Every answer, and nothing written beyond what was asked for."""
    got = {k: int(v) for k, v in re.findall(r'^(\w+) (-?\d+)$', out, re.M)}
    print(got)
    for name, want in LIES.items():
        assert got.pop(name) == want, (name, want, out)
    assert set(got.values()) == {7} and all(k.startswith('beyond_') for k in got), got


def main(cases):
    """Runs case_NAME of the caller's globals; NAME is the last argument."""
    sys.stdout.reconfigure(line_buffering=True)
    cases['case_' + sys.argv[-1]]()
