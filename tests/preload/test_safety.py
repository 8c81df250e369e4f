#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the library calls inside a process: straced programs against the tables of docs/safety.md.

    test_safety.py --lib build/shim/libhybrid.so --page docs/safety.md --grow build/tests/preload/hz_grow
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
CALL = re.compile(r'^(\d+) +(?:<\.\.\. )?(\w+)(?:\(| resumed)')
# The libc has one for the first thread that is made.
HANDLER = re.compile(r'rt_sigaction\((SIG(?!RT)\w+), \{sa_handler=0x')


def tables(page):
    """{title of a section: calls in the first column of its table}"""
    out, title = {}, ''
    with open(page, encoding='utf-8') as f:
        for line in f:
            if line.startswith('#'):
                title = line.strip('# \n')
            elif line.startswith('| `'):
                out.setdefault(title, set()).update(re.findall(r'`(\w+)`', line.split('|')[1]))
    return out


def traced(argv, env):
    """{True: calls of the first thread, False: of all others}, lines, status of the program."""
    with tempfile.NamedTemporaryFile('r', suffix='.trace') as log:
        # strace itself runs without the library.
        sets = [x for k, v in env.items() for x in ('-E', f'{k}={v}')]
        status = subprocess.run(['strace', '-f', '-qq', '-o', log.name, *sets, *argv], env={'PATH': os.environ['PATH']},
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=240, check=False).returncode
        lines = log.read().splitlines()
    calls, first = {True: set(), False: set()}, lines[0].split()[0]
    for line in lines:
        got = CALL.match(line)
        if got:
            calls[got.group(1) == first].add(got.group(2))
    return calls, lines, status


def handled(lines):
    return {m.group(1) for m in map(HANDLER.search, lines) if m}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ('lib', 'page', 'grow'):
        p.add_argument('--' + name, required=True)
    args = p.parse_args()
    args.lib = os.path.abspath(args.lib)
    if not shutil.which('strace'):
        print('not installed: strace')
        return 77
    if subprocess.run(['strace', '-o', '/dev/null', 'true'], stderr=subprocess.DEVNULL, check=False).returncode:
        print('this container allows no strace')
        return 77
    page = tables(args.page)
    begin, alloc, ours = (page[t] for t in ('Before main', 'The threads of the program', 'Our threads'))
    problems, seen, seen_ours = [], set(), set()
    with tempfile.TemporaryDirectory() as work:
        registry = os.path.join(work, 'registry')
        settings = {
            'one memory': ({}, begin),
            'off': ({'HYBRID_POLICY': 'off'}, begin),
            'emulated': ({'HYBRID_PM': 'emulated'}, begin | alloc),
            'at once': ({'HYBRID_PM': 'emulated', 'HYBRID_START': '0'}, begin | page['With HYBRID_START=0'] | alloc),
            'moving': ({'HYBRID_PM': 'emulated', 'HYBRID_START': '1M', 'HYBRID_DRAM': '8M', 'HYBRID_POLICY': 'first-fit',
                        'HYBRID_MIGRATE': 'eager', 'HYBRID_INTERVAL': '50ms'}, begin | alloc),
            'files': ({'HYBRID_PM': 'file:' + work, 'HYBRID_START': '1M', 'HYBRID_DRAM': '8M', 'HYBRID_POLICY': 'first-fit'},
                      begin | alloc | page['Only with HYBRID_PM=file']),
        }
        for argv in (['/bin/true'], ['/usr/bin/sort', '/proc/self/maps'], [args.grow, '48']):
            plain, plain_lines, plain_status = traced(argv, {})
            for name, (env, allowed) in settings.items():
                env = dict(env, LD_PRELOAD=args.lib, HYBRID_REGISTRY=registry)
                got, lines, status = traced(argv, env)
                label = f'{os.path.basename(argv[0])}, {name}'
                more, other = got[True] - plain[True], got[False] - plain[False]
                print(f'{label}: {" ".join(sorted(more)) or "nothing more"}; our threads: {" ".join(sorted(other)) or "none"}')
                if status != plain_status:
                    problems.append(f'{label}: status {status}, {plain_status} without the library')
                if more - allowed:
                    problems.append(f'{label}: the page does not name {sorted(more - allowed)} for the program\'s threads')
                if other - ours - (alloc if plain[False] else set()):
                    problems.append(f'{label}: the page does not name {sorted(other - ours)} for our threads')
                if name in ('one memory', 'off') and other:
                    problems.append(f'{label}: there is a thread')
                handlers = handled(lines) - handled(plain_lines)
                if handlers:
                    problems.append(f'{label}: handlers of signals: {sorted(handlers)}')
                seen |= more
                seen_ours |= other
    # The test would pass over a page that allows everything, or a library that did nothing.
    for what in sorted(page['What it never does'] & (seen | seen_ours)):
        problems.append(f'the page says that this is never called: {what}')
    if not {'clone3', 'clone'} & seen or not {'fcntl', 'pwrite64'} <= seen_ours:
        problems.append(f'nothing was placed: {sorted(seen)}, {sorted(seen_ours)}')
    print('\n'.join(problems) or 'the page and the traces agree')
    return 1 if problems else 0


if __name__ == '__main__':
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main())
