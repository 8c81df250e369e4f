#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs with threads under every cap: same output and status as without the library, no
hang, never a failed pthread_create.

    tests/stress/caps/caps.py [--build DIR] [--runs N] [--seed K] [--list] [CASE ...]

Barriers, condition variables, spin barriers, pools (pthreads); nested, dynamic and oversubscribed
OpenMP teams of libgomp and LLVM; MPI processes with threads; Java, Go and node. Native runs
have the caps that this computer's CPUs allow and one more; instrumented ones (-emu) all from 1
to 20 on the emulated machine. 'flip' cases map and unmap memory, so that the cap comes and
goes every few milliseconds; the library's own report must say so.

--runs: so many, each case at least once, drawn by --seed; without it each case at each cap. What is
not installed is named and left out."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCALE = float(os.environ.get('HYBRID_TEST_SCALE', '1'))
PATIENCE_S = 600 * SCALE
EMU_CPUS = 20
CPUS = len(os.sched_getaffinity(0))
FIRST_LINE = re.compile(r'^.*\n?')
CHANGES = 4  # of a flip case, at least: a run of some 100 ms at a look a millisecond,
TRIES = 20   # or so many of them where a busy computer lets the library look seldom
MPI = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
       'OMPI_MCA_rmaps_base_oversubscribe': '1', 'OMPI_MCA_btl_vader_single_copy_mechanism': 'none'}


class Absent(Exception):
    """What a case needs is not here."""


class Broken(Exception):
    pass


class Case:
    """`make(folder)` gives the command, once. `answers`: the second line tells what OpenMP says."""

    def __init__(self, name, make, env=None, emulated=False, answers=False, flip=False,
                 inner=False):
        self.name, self.make, self.env, self.emulated = name, make, dict(env or {}), emulated
        self.answers, self.flip = answers, flip
        self.inner = inner  # the preload is for the programs that the command starts
        self.command = None
        self.expected = None

    def caps(self):
        return list(range(1, EMU_CPUS + 1)) if self.emulated else list(range(1, CPUS + 2))


def need(name):
    path = shutil.which(name)
    if not path:
        raise Absent(name + ' is not installed')
    return path


def compiled(command):
    """In the folder of this run."""
    def make(folder, *arguments):
        done = subprocess.run([w.replace('@', folder) for w in command], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise Absent('cannot be compiled: ' + (done.stderr.strip().splitlines() or ['?'])[-1])
        return [a.replace('@', folder) for a in arguments]
    return make


def all_cases(build):
    source = {name: str(HERE / name)
              for name in ('teams.c', 'ranks.c', 'Pools.java', 'pools.go', 'pools.js')}

    def built(name, *arguments):
        def make(_folder):
            path = str(pathlib.Path(build) / 'tests' / 'stress' / 'caps' / name)
            if not os.path.exists(path):
                raise Absent(name + ' is not built')
            return [path, *arguments]
        return make

    def llvm(*arguments):
        def make(folder):
            clang = next((c for c in ('clang-14', 'clang') if shutil.which(c)), None)
            if not clang:
                raise Absent('clang is not installed')
            return compiled([clang, '-O1', '-fopenmp', '-o', '@/teams-llvm', source['teams.c']])(
                folder, '@/teams-llvm', *arguments)
        return make

    def ranks(folder):
        need('mpirun')
        return compiled([need('mpicc'), '-O1', '-pthread', '-o', '@/ranks', source['ranks.c']])(
            folder, need('mpirun'), '-n', '2', '@/preloaded', '@/ranks')

    def java(folder):
        need('java')
        return compiled([need('javac'), '-d', '@', source['Pools.java']])(
            folder, need('java'), '-Xmx64m', '-cp', '@', 'Pools')

    def go(folder):
        # What tests/preload has compiled of Go's library is not compiled again.
        os.environ.setdefault('GOCACHE', build + '/tests/preload/cache/go')
        build_it = compiled([need('go'), 'build', '-o', '@/pools-go', source['pools.go']])
        return build_it(folder, '@/pools-go')

    def node(_folder):
        return [need('node'), source['pools.js']]

    cases = []
    for kind, n, rounds in (('barrier', 6, 200), ('cond', 6, 60), ('spin', 4, 40), ('pool', 6, 60),
                            ('mixed', 9, 40)):
        cases.append(Case(kind, built('caps-threads', kind, str(n), str(rounds))))
        cases.append(Case(kind + '-emu', built('caps-threads-emu', kind, '16', '6'), emulated=True))
    cases += [
        Case('flip-barrier', built('caps-threads', 'barrier', '6', '4000', 'flip'), flip=True),
        Case('flip-mixed', built('caps-threads', 'mixed', '8', '1500', 'flip'), flip=True),
        Case('flip-emu', built('caps-threads-emu', 'mixed', '16', '6', 'flip'), emulated=True),
    ]
    passive = {'OMP_WAIT_POLICY': 'passive'}
    for runtime, make in (('gomp', lambda *a: built('caps-teams', *a)), ('llvm', llvm)):
        cases += [
            Case(runtime, make('0', '6'), passive, answers=True),
            Case(runtime + '-late', make('0', '1', 'late'), passive, answers=True),
            Case(runtime + '-7', make('7', '6'), passive),
            Case(runtime + '-active', make('3', '2'), {'OMP_WAIT_POLICY': 'active'}),
            Case(runtime + '-dynamic', make('0', '6'),
                 {**passive, 'OMP_DYNAMIC': 'true', 'OMP_NESTED': 'true'}),
            Case(runtime + '-bound', make('0', '4'), {**passive, 'OMP_PROC_BIND': 'true'}),
        ]
    cases += [
        Case('gomp-emu', built('caps-teams-emu', '0', '1'), passive, emulated=True, answers=True),
        Case('gomp-13-emu', built('caps-teams-emu', '13', '1'), passive, emulated=True),
        Case('mpi', ranks, {**MPI, **passive}, inner=True),
        Case('java', java), Case('go', go), Case('node', node),
    ]
    return cases


def clean_env(extra):
    foreign = ('HYBRID_', 'LD_', 'OMP_', 'GOMP_', 'KMP_')
    return {**{k: v for k, v in os.environ.items() if not k.startswith(foreign)}, **extra}


def execute(case, env):
    """(status, output, errors); a program that hangs is ended with all that it started."""
    p = subprocess.Popen(case.command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = p.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        raise Broken('not done after %d s' % PATIENCE_S) from None
    return p.returncode, out, err


def check_answers(line, cap, cpus):
    """What OpenMP said: procs, max threads, team, and a dynamic team of at most so many."""
    told = dict(zip(line.split()[::2], map(int, line.split()[1::2])))
    wanted = min(cap, cpus) if cap else cpus
    if (told['procs'], told['max'], told['team']) != (wanted,) * 3 or told['dynamic'] > wanted:
        raise Broken('with a cap of %s on %d CPUs: %s' % (cap or 'none', cpus, line))


def plain(case, folder):
    if case.inner:
        wrapper(folder, None)
    status, out, err = execute(case, clean_env(machine(case, case.env)))
    if status:
        raise Broken('plainly: status %d\n%s%s' % (status, out, err))
    first = FIRST_LINE.match(out).group()
    if case.answers:
        check_answers(out[len(first):], 0, EMU_CPUS if case.emulated else CPUS)
    return first


def machine(case, env):
    if not case.emulated:
        return dict(env)
    return {**env, 'HYBRID_EMU_CPUS': str(EMU_CPUS), 'HYBRID_EMU_PRESET': 'optane'}


def wrapper(folder, preload):
    """mpirun's own processes are none of ours: its programs are started through this."""
    path = folder + '/preloaded'
    with open(path + '.new', 'w', encoding='utf-8') as f:
        line = 'export LD_PRELOAD=%s\n' % preload if preload else ''
        f.write('#!/bin/sh\n%sexec "$@"\n' % line)
    os.chmod(path + '.new', 0o755)
    os.replace(path + '.new', path)


def run(case, cap, library, folder):
    """Once; how often the cap has changed, where that matters."""
    stats = folder + '/stats.json'
    env = {**machine(case, case.env), 'HYBRID_PM': 'emulated', 'HYBRID_START': '0',
           'HYBRID_REGISTRY': 'none', 'HYBRID_THREADS': str(cap), 'HYBRID_POLICY': 'pm',
           'HYBRID_INTERVAL': '5ms'}
    if 'flip' in case.name:
        env.update(HYBRID_POLICY='first-fit', HYBRID_DRAM='8M', HYBRID_INTERVAL='1ms',
                   HYBRID_STATS=stats)
    if case.inner:
        wrapper(folder, library)
    else:
        env['LD_PRELOAD'] = library
    status, out, err = execute(case, clean_env(env))
    first = FIRST_LINE.match(out).group()
    if status or first != case.expected or 'hybrid[' in err:
        raise Broken('status %d, output %r, plainly %r\n%s'
                     % (status, out, case.expected, err[-2000:]))
    if case.answers:
        check_answers(out[len(first):], cap, EMU_CPUS if case.emulated else CPUS)
    if case.flip and cap < CPUS:
        with open(stats, encoding='utf-8') as f:
            return json.load(f)['threads']['changes']
    return CHANGES


def chosen(cases, runs, seed):
    """(case, cap): all, or so many, each case at least once with its smallest cap."""
    every = [(c, cap) for c in cases for cap in c.caps()]
    if runs is None:
        return every
    jobs = [(c, 1) for c in cases]
    rng = random.Random(seed)
    rest = [j for j in every if j not in jobs]
    while len(jobs) < runs:
        more = rest or every
        jobs += rng.sample(more, min(len(more), runs - len(jobs)))
        rest = every
    return jobs


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    p.add_argument('--runs', type=int, metavar='N')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--list', action='store_true', help='the cases and their caps')
    p.add_argument('cases', nargs='*', metavar='CASE')
    o = p.parse_args()
    build = os.path.abspath(o.build)
    library = build + '/shim/libhybrid.so'
    cases = all_cases(build)
    unknown = set(o.cases) - {c.name for c in cases}
    if unknown:
        p.error('no such case: %s; --list shows them' % ', '.join(sorted(unknown)))
    cases = [c for c in cases if not o.cases or c.name in o.cases]
    if o.list:
        for c in cases:
            print('%-14s caps 1 to %d' % (c.name, c.caps()[-1]))
        return 0
    if not os.path.exists(library):
        p.error('%s is not built' % library)
    failed, left_out = [], 0
    with tempfile.TemporaryDirectory() as folder:
        ready = []
        for case in cases:
            try:
                case.command = case.make(folder)
                case.expected = plain(case, folder)
                ready.append(case)
            except Absent as why:
                print('left out: %s: %s' % (case.name, why))
                left_out += 1
        jobs = chosen(ready, o.runs, o.seed)
        for n, (case, cap) in enumerate(jobs, 1):
            try:
                changes = 0
                for _ in range(TRIES):
                    changes += run(case, cap, library, folder)
                    if changes >= CHANGES:
                        break
                else:
                    raise Broken('the cap changed %d times in %d runs: at least %d were to be tried'
                                 % (changes, TRIES, CHANGES))
            except Broken as why:
                failed.append('%s, cap %d: %s' % (case.name, cap, why))
                print('FAIL ' + failed[-1], flush=True)
            if n % 50 == 0:
                print('%d of %d runs, %d failed' % (n, len(jobs), len(failed)), flush=True)
    print('%d runs of %d cases, %d failed; %d cases left out'
          % (len(jobs), len(ready), len(failed), left_out))
    if not ready:
        return 77
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
