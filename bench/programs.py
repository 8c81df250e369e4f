#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What real programs pay: processor time and resident memory under libhybrid, over those of the plain program.

    bench/programs.py --lib build/shim/libhybrid.so [--rounds 5] [--settings default] [--check] [NAME...]

The programs are those of tests/preload/programs.py. In each round each runs once in every setting, one after
the other; the time is the least of all rounds (user and system, of all its processes), the memory the median
of the peaks of its largest process. The setting mimalloc is that allocator, for comparison. Python's own memory
hides a process below 16 MiB: shown as '-'.
--check: status 1 if a setting takes more than 1.05 of the time or 1.10 of the memory.
"""
import argparse
import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'preload')
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import harness # noqa: E402
import programs # noqa: E402

CPU_LIMIT, RSS_LIMIT = 1.05, 1.10
FLOOR_KIB = 16 << 10
STEERED = {'E': {'HYBRID_PM': 'emulated'}, 'E0': {'HYBRID_PM': 'emulated', 'HYBRID_START': '0'}}
SETTINGS = {'plain': harness.Setting('plain', preload=False), 'default': harness.Setting('default'),
            **{name: harness.Setting(name, env) for name, env in STEERED.items()},
            'mimalloc': harness.Setting('mimalloc', {'LD_PRELOAD': 'libmimalloc.so.2'}, preload=False)}


def run_here(name, setting, lib, cache):
    """In a process of its own, whose children are the program's."""
    case = importlib.import_module('programs.' + name)
    _, problems = harness.run_once(case, SETTINGS[setting], lib, cache)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss, len(problems))


def measure(name, setting, args):
    got = subprocess.run([sys.executable, __file__, '--lib', args.lib, '--cache', args.cache, '--one', setting, name], check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = got.stdout.split()
    if got.returncode or len(told) != 3 or told[2] != '0':
        raise harness.Broken(f'{name} {setting}: ' + (got.stderr.strip().splitlines() or ['does not run'])[-1])
    return float(told[0]), int(told[1])


def ratios(name, settings, args):
    runs = {s: [] for s in ('plain', *settings)}
    for _ in range(args.rounds):
        for s, into in runs.items():
            into.append(measure(name, s, args))
    cpu = {s: min(r[0] for r in got) for s, got in runs.items()}
    rss = {s: statistics.median(r[1] for r in got) for s, got in runs.items()}
    return {s: (cpu[s] / cpu['plain'], rss[s] / rss['plain'] if rss['plain'] > FLOOR_KIB else None) for s in settings}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--lib', required=True, type=os.path.abspath)
    p.add_argument('--cache', default=os.path.join(tempfile.gettempdir(), 'hybrid-preload-cache'))
    p.add_argument('--rounds', type=int, default=5)
    p.add_argument('--settings', default='default', help='of ' + ', '.join(list(SETTINGS)[1:]))
    p.add_argument('--check', action='store_true')
    p.add_argument('--one', help=argparse.SUPPRESS)
    p.add_argument('names', nargs='*')
    args = p.parse_args()
    if args.one:
        run_here(args.names[0], args.one, args.lib, args.cache)
        return 0
    over = 0
    settings = args.settings.split(',')
    for name in args.names or programs.CASES + programs.LONG_CASES:
        case = importlib.import_module('programs.' + name)
        try:
            if hasattr(case, 'prepare'):
                os.makedirs(args.cache, exist_ok=True)
                case.prepare(args.cache)
            got = ratios(name, settings, args)
        except (harness.Skip, harness.Broken) as e:
            print(f'{name:12} not measured: {e}', flush=True)
            continue
        for s, (cpu, rss) in got.items():
            bad = cpu > CPU_LIMIT or (rss or 0) > RSS_LIMIT
            over += bad
            print(f'{name:12} {s:8} time {cpu:5.2f}  memory {"-" if rss is None else format(rss, "5.2f")}{"  !" if bad else ""}', flush=True)
    return 1 if args.check and over else 0


if __name__ == '__main__':
    sys.exit(main())
