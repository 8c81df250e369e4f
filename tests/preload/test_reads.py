#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pages that are read, as a program's user sees it: with a processor that samples loads (pl_pmu, in
the place of the kernel) what is read comes to DRAM, and the report names the source; without one
nothing changes for the program.

  test_reads.py --lib LIBHYBRID --ctl HYBRIDCTL --reads PL_READS --pmu PL_PMU
"""
import os
import sys
import tempfile
import time
import unittest

import driven

KIB = 1 << 10
SKIP = 77
PMU = None
SETTINGS = {'INTERVAL': '100ms', 'MIGRATE': 'lazy', 'MIGRATE_CORE': '100', 'DRAM': '4M',
            'MIGRATE_INTERVAL': '200ms', 'COUNTERS': 'off', 'POLICY': 'first-fit'}
HASWELL = {'type': '4\n', 'events/mem-stores': 'event=0xd0,umask=0x82\n'}


class ReadsTest(driven.DrivenCase):
    def on_processor(self, files, **settings):
        """A program on a processor that the kernel describes by these files."""
        tree = os.path.join(self.work, 'cpu')
        for name, text in files.items():
            path = os.path.join(tree, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='ascii') as f:
                f.write(text)
        os.environ['PMU_TREE'] = tree
        lib = self.lib
        try:
            driven.DrivenCase.lib = lib + ' ' + PMU
            return self.hold(**{**SETTINGS, **settings})
        finally:
            driven.DrivenCase.lib = lib
            del os.environ['PMU_TREE']

    def up(self, p):
        return self.status().get(p.pid, {}).get('promoted_bytes', 0)

    def settled(self, p):
        """What has come up when no more does: free DRAM has been filled."""
        self.wait_for('free DRAM is filled', lambda: self.status().get(p.pid, {}).get(
            'dram_bytes', 0) >= 4096 * KIB - 64 * KIB)
        last, since = -1, time.monotonic()
        while time.monotonic() < since + 2:
            if self.up(p) != last:
                last, since = self.up(p), time.monotonic()
            time.sleep(0.1)
        return last

    def test_what_is_read_comes_up(self):
        p = self.on_processor(HASWELL)
        p.do('big 16')  # the first few are on DRAM
        before = self.settled(p)
        p.do('read 12')
        # 256 KiB are read; some of it may have come up before.
        self.wait_for('what is read is on DRAM', lambda: self.up(p) >= before + 96 * KIB)
        m = p.do('calm').end()['migration']
        self.assertEqual(m['reads_by'], 'load-samples')
        self.assertGreater(m['down_bytes'], 0, 'room was made for them')

    def test_seccomp_filter(self):
        self.on_processor(HASWELL).do('filter', 'big 16', 'read 12', 'calm').end(confined=True)

    def test_without_such_a_processor(self):
        p = self.on_processor({})
        p.do('big 16')
        before = self.settled(p)
        p.do('read 12')
        self.assertLess(self.settled(p), before + 64 * KIB)
        self.assertNotEqual(p.do('calm').end()['migration']['reads_by'], 'load-samples')


def main():
    global PMU
    args, rest = driven.arguments('reads', 'pmu')
    PMU = args.pmu
    with tempfile.TemporaryDirectory(prefix='hybrid-reads-') as work:
        p = driven.Driven(driven.DrivenCase.lib, driven.DrivenCase.program, work, **SETTINGS)
        p.do('big 8')
        time.sleep(0.5)
        m = p.end()['migration']
    if m['state'] == 'off':
        print('SKIP: ' + m['why'])
        sys.exit(SKIP)
    unittest.main(argv=sys.argv[:1] + rest)


if __name__ == '__main__':
    main()
