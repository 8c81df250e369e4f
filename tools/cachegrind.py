# SPDX-License-Identifier: BSD-2-Clause
"""Counts of an unmodified program from valgrind's cache simulation, as a recording."""
import glob
import os
import re

ASSOCIATIVITY, LINE = 16, 64


def cache_bytes(asked):
    """A size that the simulation takes: a power of two of sets of 16 lines."""
    size = ASSOCIATIVITY * LINE
    while size * 2 <= asked:
        size *= 2
    return size


def machine_cache():
    """Bytes of the last-level cache; None."""
    best = (0, None)
    for path in glob.glob('/sys/devices/system/cpu/cpu0/cache/index*'):
        try:
            with open(path + '/level', encoding='ascii') as f:
                level = int(f.read())
            with open(path + '/size', encoding='ascii') as f:
                m = re.match(r'(\d+)([KM]?)', f.read())
        except (OSError, ValueError):
            continue
        best = max(best, (level, int(m[1]) << {'': 0, 'K': 10, 'M': 20}[m[2]]))
    return best[1]


def command(folder, llc, write_backs, program):
    tool = ['--tool=callgrind', '--simulate-wb=yes', '--cache-sim=yes'] if write_backs else \
        ['--tool=cachegrind', '--cache-sim=yes']
    out = 'callgrind' if write_backs else 'cachegrind'
    return ['valgrind', '-q', *tool, '--trace-children=yes', '--log-file=%s/valgrind.%%p' % folder,
            '--%s-out-file=%s/out.%%p' % (out, folder),
            '--LL=%d,%d,%d' % (llc, ASSOCIATIVITY, LINE), *program]


class Counts:
    """Of one process: the sums of a simulation's output."""

    def __init__(self, path):
        with open(path, encoding='utf-8', errors='replace') as f:
            text = f.read()
        names = re.search(r'^events: (.*)$', text, re.M)[1].split()
        # callgrind's totals leave out what a program does after main's exit; they suffice.
        sums = re.findall(r'^(?:summary|totals): (.*)$', text, re.M)
        self.count = dict.fromkeys(names, 0)
        self.count.update(zip(names, map(int, sums[-1].split())))
        self.command = re.search(r'^cmd: ?(.*)$', text, re.M)[1]
        get = self.count.get
        self.instructions = get('Ir', 0)
        self.reads = get('ILmr', 0) + get('DLmr', 0) + get('DLmw', 0)
        # Write-backs where they were simulated, else store misses, which lead to as many.
        self.write_backs = 'DLdmr' in self.count
        self.writes = get('ILdmr', 0) + get('DLdmr', 0) + get('DLdmw', 0) if self.write_backs \
            else get('DLmw', 0)

    def per_1000(self):
        return 1000 * self.reads / max(self.instructions, 1)

    def recording(self):
        return ('hybrid-recording 1\nsource %s\nw instructions=%d reads=%d writes=%d\n' %
                ('callgrind' if self.write_backs else 'cachegrind', self.instructions, self.reads,
                 self.writes))


def read_all(folder):
    """Counts of each process, most instructions first; files of killed ones are left out."""
    found = []
    for path in glob.glob(os.path.join(glob.escape(folder), 'out.*')):
        try:
            found.append(Counts(path))
        except (OSError, TypeError, ValueError, IndexError):
            continue
    return sorted(found, key=lambda c: -c.instructions)
