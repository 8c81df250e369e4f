#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Profiles of a processor that samples accesses (pl_pmu, in the place of the kernel): the lines of
call sites against what the program itself counts, where they come from, and what is planned by them.

  test_accesses.py --lib LIBHYBRID --ctl HYBRIDCTL --program PL_ACCESS --pmu PL_PMU --papi FOLDER
"""
import argparse
import configparser
import json
import os
import subprocess
import sys
import tempfile
import unittest

ARGS = None
MILLIONS = 400
HASWELL = {'type': '4', 'events/mem-stores': 'event=0xd0,umask=0x82', 'nmi_watchdog': '0'}
SETTINGS = {'PM': 'emulated', 'START': '0', 'REGISTRY': 'none', 'POLICY': 'dram', 'MIGRATE': 'off',
            'SITE_SAMPLE': '64K', 'THREADS': 'off', 'MACHINE': 'optane', 'COUNTERS': 'off'}
# Sites by the size of their blocks.
SIZES = {'1M': 'read-most', '2M': 'read', '3M': 'written', '4M': 'mapped', '256': 'small'}
# A window of counts: twice as many lines as a load misses, a tenth of what stores miss L1.
READS, WRITES = 1000000000, 100000000
WINDOW = ('hybrid-recording 1\nw elapsed-ns=1000000000 busy-ns=1000000000 instructions=1000000000 '
          'cycles=3000000000 reads=%d writes=%d stall-ns=700000000\n' % (READS, WRITES))


class Accesses(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix='hybrid-accesses-')
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def processor(self, files):
        for name, text in files.items():
            path = self.path('cpu/' + name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='ascii') as f:
                f.write(text + '\n')

    def record(self, *words, files=None, env=None, **settings):
        """(what the program counted, its profile, its report)"""
        self.processor(HASWELL if files is None else files)
        full = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_'))}
        full.update(LD_PRELOAD=ARGS.lib + ' ' + ARGS.pmu, PMU_TREE=self.path('cpu'), **(env or {}))
        full.update({'HYBRID_' + k: v for k, v in {
            **SETTINGS, 'RECORD': self.path('p.ini'), 'STATS': self.path('report.json'),
            **settings}.items()})
        got = subprocess.run([ARGS.program, str(MILLIONS), *words], env=full, text=True,
                             check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if got.returncode == 77:
            self.skipTest('no seccomp filter can be installed here')
        self.assertEqual((got.returncode, got.stderr), (0, ''))
        counted = {}
        for line in got.stdout.splitlines():
            name, _, loads, stores = line.split()
            counted[name] = (int(loads), int(stores))
        ini = configparser.ConfigParser(interpolation=None, delimiters=('=',))
        ini.read(self.path('p.ini'))
        with open(self.path('report.json'), encoding='utf-8') as f:
            return counted, ini, json.load(f)

    def lines(self, ini):
        """(reads, writes) by site, of all that has a size we know."""
        found = dict.fromkeys(SIZES.values(), (0, 0))
        for name, s in ini.items():
            if name.startswith('site ') and s['max-size'] in SIZES:
                site = SIZES[s['max-size']]
                found[site] = (found[site][0] + int(s['reads']), found[site][1] + int(s['writes']))
        return found

    def explain(self):
        got = subprocess.run([ARGS.ctl, 'explain', '--json', '--dram', '4M', '--machine', 'optane',
                              self.path('p.ini')], check=True, text=True, stdout=subprocess.PIPE)
        text = subprocess.run([ARGS.ctl, 'explain', '--machine', 'optane', self.path('p.ini')],
                              check=True, text=True, stdout=subprocess.PIPE).stdout
        return json.loads(got.stdout), text

    def same_shares(self, found, counted, kind, more=0):
        """Within ten points: 5 standard deviations of 600 samples. `more`: of the second kind that
        the first has, too."""
        want = {n: c[kind] for n, c in counted.items()}
        got = {n: f[kind] - more * f[1] for n, f in found.items()}
        for name in want:
            self.assertAlmostEqual(got[name] / sum(got.values()), want[name] / sum(want.values()),
                                   delta=0.1, msg='%s: %s %s' % (name, found, counted))

    def test_loads(self):
        """Without counters and stores: as many lines as there were."""
        counted, ini, report = self.record('wait', env={'PMU_STORES': '0'})
        rec, found = ini['recorded'], self.lines(ini)
        self.assertEqual(rec['accesses'], 'load-samples')
        self.assertGreater(float(rec['known']), 95)
        self.same_shares(found, counted, 0)
        reads, loads = sum(f[0] for f in found.values()), sum(c[0] for c in counted.values())
        self.assertAlmostEqual(reads / loads, 1, delta=0.35, msg=str(dict(rec)))
        self.assertEqual(sum(f[1] for f in found.values()), 0)
        self.assertAlmostEqual(int(rec['samples']) * int(rec['period']) / loads, 1, delta=0.35)
        self.assertEqual(report['record']['accesses_by'], 'load-samples')
        self.assertGreater(report['record']['samples'], 100)
        self.assertIn('stores were not sampled', ' '.join(self.explain()[0]['notes']))

    def test_stores_and_counters(self):
        """Shares are the samples', sums the counters'."""
        with open(self.path('it.rec'), 'w', encoding='ascii') as f:
            f.write(WINDOW)
        counted, ini, _ = self.record('wait', COUNTERS='replay:' + self.path('it.rec'), CLASS_PERIOD='10ms')
        rec, found = ini['recorded'], self.lines(ini)
        self.assertEqual(rec['accesses'], 'load-samples and store-samples, sums by the counters')
        self.assertEqual((int(rec['reads']), int(rec['writes'])), (READS, WRITES))
        self.assertGreater(float(rec['known']), 95)
        self.same_shares(found, counted, 1)  # and none for what L1 had
        self.same_shares(found, counted, 0, more=1)
        self.assertAlmostEqual(sum(f[1] for f in found.values()), WRITES, delta=0.05 * WRITES)
        self.assertAlmostEqual(sum(f[0] for f in found.values()), READS, delta=0.05 * READS)
        plan, text = self.explain()
        self.assertIn('accesses   ' + rec['accesses'], text)
        self.assertEqual(plan['accesses_by'], rec['accesses'])
        self.assertTrue(plan['counted'])
        self.assertNotIn('not sampled', ' '.join(plan['notes']))
        tiers = {s['block_bytes']: s['tier'] for s in plan['sites']}
        # 4 MiB: 55% of what is read in one, 70% of what is written in three.
        self.assertEqual((tiers[1 << 20], tiers[3 << 20], tiers[4 << 20]), ('dram', 'dram', 'pm'),
                         text)

    def with_counters(self, *words, watchdog):
        """A PAPI that takes counters; what is said of it, and [recorded]."""
        _, ini, report = self.record(*words, COUNTERS='hardware', CLASS_PERIOD='10ms',
                                     files={**HASWELL, 'nmi_watchdog': watchdog},
                                     env={'LD_LIBRARY_PATH': ARGS.papi, 'PMU_STORES': '0'})
        said = report['classification']['counters']
        self.assertIn('hardware events (PAPI)', said, report)
        return said, ini['recorded']

    def test_a_counter_is_left(self):
        """The events of the class leave one out, and samples are taken to the end."""
        said, rec = self.with_counters('wait', watchdog='0')
        self.assertEqual(rec['accesses'], 'load-samples, sums by the counters')
        if ': 5' not in said:
            self.assertIn(': 6', said)
            self.skipTest('this processor has more than four counters')
        self.assertIn('left out for samples', said)
        # With the kernel's watchdog leaving one out would not be enough: samples give way.
        said, rec = self.with_counters(watchdog='1')
        self.assertIn(': 6', said)
        self.assertNotIn('left out', said)
        if 'samples' in rec:
            self.assertIn('of the first', rec['accesses'])

    def test_filter(self):
        """One that kills who samples comes in the middle: the program survives, and nothing is
        written from then on but what the profile had before."""
        with self.assertRaises(FileNotFoundError): # the report; status and stderr are looked at before
            self.record('filter')

    def test_without_such_a_processor(self):
        _, ini, report = self.record(files={})
        self.assertNotIn('samples', ini['recorded'])
        self.assertEqual(report['record']['samples'], 0)
        self.assertIn('nothing samples', report['record']['why'])
        self.assertFalse(self.explain()[0]['counted'])


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    for name in 'lib', 'ctl', 'program', 'pmu', 'papi':
        parser.add_argument('--' + name, required=True, type=os.path.abspath)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)


if __name__ == '__main__':
    main()
