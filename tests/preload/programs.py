#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real programs under the preload: same output, status and files as without it.

    programs.py --lib build/shim/libhybrid.so [--settings passive,pm-shm] [NAME...]

Without --settings each program runs in three of them, and with HYBRID_TEST_LONG=1 (scripts/test --long) in
all. A program that is not installed skips (77) and says so. With --lib libmemtier.so.0
--settings peer --setenv MEMKIND_MEM_TIERS=... the same matrix judges another library.
"""
import argparse
import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import harness # noqa: E402  (the path is set just above)
from programs import CASES, LONG_CASES # noqa: E402  (the package beside this file)

# All on DRAM is the same with files as without; a disk is for those that fork and have much.
LESS = ('dram-shm', 'pm-disk')
ON_DISK = ('python', 'redis', 'sqlite')


def settings_of(name, settings):
    if harness.LONG:
        return [s for s in settings if s.name not in LESS or (s.name == 'pm-disk' and name in ON_DISK)]
    return harness.some_of(settings, (CASES + LONG_CASES).index(name))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--list', action='store_true')
    harness.common_arguments(p)
    if '--list-long' in sys.argv: # none where the long list is not asked for
        print('\n'.join(LONG_CASES if harness.LONG else []))
        return 0
    if '--list' in sys.argv:
        print('\n'.join(CASES))
        return 0
    args = p.parse_args()
    extra = harness.prepare_arguments(args)
    harness.check_library(args.lib)
    settings = harness.chosen_settings(args)
    verdicts = {}
    for name in list(args.names or CASES) * args.repeat:
        if name not in CASES + LONG_CASES:
            sys.exit(f'no program {name}; there are: {" ".join(CASES + LONG_CASES)}')
        case = importlib.import_module('programs.' + name)
        chosen = settings if args.settings else settings_of(name, settings)
        got = harness.run_case(name, case, args.lib, chosen, args.cache, extra, args.keep)
        verdicts[name] = max(verdicts.get(name, 0), got, key=lambda v: (v == harness.FAIL, v))
    failed = sorted(n for n, v in verdicts.items() if v == harness.FAIL)
    skipped = sorted(n for n, v in verdicts.items() if v == harness.SKIP)
    print(f'{len(verdicts) - len(failed) - len(skipped)} of {len(verdicts)} programs in order'
          + (f'; broken: {" ".join(failed)}' if failed else '')
          + (f'; skipped: {" ".join(skipped)}' if skipped else ''))
    return harness.FAIL if failed else harness.SKIP if len(skipped) == len(verdicts) else harness.PASS


if __name__ == '__main__':
    sys.exit(main())
