#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl record: what its profiles say, against the emulated machine's own counts; that they
place the next run; --offline. The options are those of test_record.py.
"""
import json
import os
import re
import shutil
import subprocess

from record_case import ARGS, Case, environment, main, read, sites, size

KEYS = ('count', 'live-bytes', 'reads', 'writes')


class Workload(Case):
    """kv: a table of 16 equal parts, an index, and two smaller blocks, on 8 threads."""

    def record(self, *extra):
        program = self.emulated('kv', '--emulated', '--threads', '8')
        self.ctl('record', '-o', 'kv.ini', *extra, '--', *program,
                 env={'EMU_STATS': self.path('stats'), 'EMU_PRESET': 'pram'})
        with open(self.path('stats'), encoding='utf-8') as f:
            return read(self.path('kv.ini')), json.loads(f.readlines()[-1])

    def test_facts(self):
        ini, stats = self.record()
        app, rec = ini['app'], ini['recorded']
        self.assertEqual(app['exe'], 'emu-kv')
        self.assertEqual(app['class'], 'latency')
        self.assertEqual(ini['threads']['seen'], '8')
        self.assertEqual(ini['machine']['figures'], 'pram')
        self.assertTrue(31 << 20 < size(app['footprint']) < 36 << 20, app['footprint'])
        # Virtual time on PM over that on DRAM is 2.41 for the whole program.
        self.assertTrue(2.1 < float(app['slowdown']) < 2.7, app['slowdown'])
        phases = [v.split() for k, v in ini['phases'].items()]
        self.assertEqual(phases[0][0], '0')
        self.assertIn('latency', [p[1] for p in phases])
        self.assertGreater(float(rec['known']), 99)
        # The counters open a moment after the start.
        reads, windows = sum(int(s['reads']) for s in sites(ini).values()), int(rec['reads'])
        self.assertLess(abs(reads / stats['llc_reads_dram'] - 1), 0.05, (reads, stats))
        self.assertLess(abs(windows / stats['llc_reads_dram'] - 1), 0.15)
        writes = sum(int(s['writes']) for s in sites(ini).values())
        self.assertLess(abs(writes / stats['writebacks_dram'] - 1), 0.05, (writes, stats))
        self.no_message('kv.ini')

    def test_classes(self):
        for name, cls, writes in (('stream', 'bandwidth', '1'), ('pricing', 'cpu', '0')):
            program = self.emulated(name, '--emulated', '--threads', '4')
            self.ctl('record', '-o', name + '.ini', '--', *program, env={'EMU_PRESET': 'pram'})
            app = read(self.path(name + '.ini'))['app']
            self.assertEqual((app['class'], app['write-intensive']), (cls, writes))
            self.assertEqual(float(app['slowdown']) < 1.5, cls == 'cpu', app['slowdown'])

    def test_sites(self):
        """Lines by site, against those that the machine counts for each block."""
        if not ARGS.place or not os.path.exists(ARGS.place):
            self.skipTest('bench-place.so is not built')
        ini, _ = self.record()
        env = environment(PLACE='0', PLACE_LIST=self.path('blocks'), EMU_PAGE_COUNTS=1,
                          EMU_PRESET='pram')
        subprocess.run(self.emulated('kv', '--emulated', '--threads', '8'), check=True,
                       stdout=subprocess.DEVNULL, env=dict(env, LD_PRELOAD=ARGS.place))
        counted = {}
        with open(self.path('blocks'), encoding='ascii') as f:
            for line in f:
                if not line.startswith('#'):
                    _, size_, _, r, w = map(int, line.split()[:5])
                    old = counted.get(size_, (0, 0, 0))
                    counted[size_] = (old[0] + 1, old[1] + r, old[2] + w)
        found = {}
        for s in sites(ini).values():  # all parts of the table come from one place
            self.assertEqual(s['min-size'], s['max-size'])
            sums = found.setdefault(size(s['max-size']), dict.fromkeys(KEYS, 0))
            for key in sums:
                sums[key] += size(s[key])
        self.assertEqual(sorted(found), sorted(counted))
        for n, (count, reads, writes) in counted.items():
            s = found[n]
            self.assertEqual(s['count'], count)
            self.assertEqual(s['live-bytes'], count * n)
            for got, want in ((s['reads'], reads), (s['writes'], writes)):
                # One line in 64 is seen: 4 standard deviations, and 3 % for another layout.
                error = 4 * (want / 64 + 4) ** 0.5 * 64 + 0.03 * want
                self.assertLess(abs(got - want), error, (n, got, want))

    def test_next_run(self):
        """With room for one of them, the part used most for each byte goes to DRAM."""
        ini, _ = self.record()
        per_byte = {n: (int(s['reads']) + int(s['writes'])) / size(s['live-bytes'])
                    for n, s in sites(ini).items()}
        best = max(per_byte, key=per_byte.get)
        env = environment(PROFILE='./kv.ini', PM='emulated', START='0', DRAM='4M', MIGRATE='off',
                          STATS=self.path('report.json'), EMU_PRESET='pram')
        got = subprocess.run(self.emulated('kv', '--emulated', '--threads', '8'), cwd=self.dir,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
                             env=dict(env, LD_PRELOAD=ARGS.lib))
        self.assertNotIn('profile', got.stderr)
        with open(self.path('report.json'), encoding='utf-8') as f:
            report = json.load(f)

        def tier(name):
            frames = [sites(ini)[name].get('frame%d' % i) for i in range(8)]
            for s in report['sites']:
                mine = ['%s+0x%x' % (f['build_id'], f['offset']) for f in s['frames']]
                nth = int(sites(ini)[name].get('nth', 0))
                if mine == [f for f in frames if f] and s['nth'] == nth:
                    return s['tier']
            return None

        self.assertEqual(tier(best), 'dram', per_byte)
        self.assertLessEqual(report['tiers']['dram']['peak'], 4 << 20)
        self.assertGreater(report['tiers']['pm']['peak'], 27 << 20)

    def test_recording(self):
        """Windows of counts become the facts that the library finds itself."""
        ini, _ = self.record()
        program = self.emulated('kv', '--emulated', '--threads', '8')
        env = environment(RECORD=self.path('kv.rec'), PM='emulated', START='0', POLICY='dram',
                          CLASS_PERIOD='1ms', EMU_PRESET='pram')
        subprocess.run(program, env=dict(env, LD_PRELOAD=ARGS.lib), check=True,
                       stdout=subprocess.DEVNULL)
        self.ctl('record', '--merge', '--machine', 'pram', 'kv.rec', '-o', 'facts.ini')
        facts = read(self.path('facts.ini'))
        self.assertEqual(facts['app']['class'], ini['app']['class'])
        again, first = float(facts['app']['slowdown']), float(ini['app']['slowdown'])
        self.assertLess(abs(again / first - 1), 0.1)


class Offline(Case):
    def test_plain_program(self):
        if not shutil.which('valgrind'):
            self.skipTest('valgrind is not installed')
        plain = ARGS.workloads and ARGS.workloads + '/wl-gups'
        if not plain or not os.path.exists(plain):
            self.skipTest('the workloads are not built')
        got = self.ctl('record', '--offline', '--llc', '128K', '-o', 'g.ini', '--', plain,
                       '--size', 1, '--rounds', 1)
        self.assertIn('runs the program twice', got.stderr)
        ini = read(self.path('g.ini'))
        self.assertEqual(ini['app']['class'], 'bandwidth')
        total = int(re.search(r'lines read (\d+)', got.stderr)[1])
        if 'known of' not in got.stderr:
            self.skipTest('no emulated machine here: the rest is not known')
        reads = sum(int(s['reads']) for s in sites(ini).values())
        # Two simulations of one program; code, stacks and libraries are read as well.
        self.assertTrue(0.8 < reads / total < 1.05, (reads, total))
        self.no_message('g.ini')

    def test_mappings(self):
        """What a program maps itself has sites with their lines, also where it unmaps it."""
        if not shutil.which('valgrind') or not ARGS.sites:
            self.skipTest('valgrind is not installed, or pl_sites not built')
        with open(self.path('in'), 'w', encoding='ascii') as f:
            f.write('e 2048\nf 4096\ndrop f\na 1024\n')
        with open(self.path('in'), encoding='ascii') as f:
            got = subprocess.run([ARGS.ctl, 'record', '--offline', '--llc', '64K', '-o', 'm.ini',
                                  '--', ARGS.sites], stdin=f, cwd=self.dir, env=environment(),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 check=False, timeout=600)
        self.assertEqual((got.returncode, got.stdout), (0, 2 * 4 * 'ok\n'), got.stderr)
        ini = read(self.path('m.ini'))
        if 'known of' not in got.stderr:
            self.skipTest('no emulated machine here: the lines are not known')
        found = {size(s['max-size']): s for s in sites(ini).values()}
        for mib in 2, 4, 1:
            lines = mib << 14
            s = found[mib << 20]
            error = 4 * (lines / 64) ** 0.5 * 64 + 0.1 * lines  # one in 64 is seen
            self.assertLess(abs(int(s['writes']) - lines), error, s)
        # In shares of the 7 MiB: the second came after 2 of them and went after 6.
        self.assertEqual([(s.get('from'), s.get('until')) for s in (found[2 << 20], found[4 << 20], found[1 << 20])],
                         [(None, None), ('0.286', '0.857'), ('0.857', None)])
        self.assertLess(float(ini['recorded']['mapped']), 1)

    def test_input_and_status(self):
        if not shutil.which('valgrind'):
            self.skipTest('valgrind is not installed')
        with open(self.path('in'), 'w', encoding='ascii') as f:
            f.write('skipped\nb\na\n')
        with open(self.path('in'), encoding='ascii') as f:
            os.lseek(f.fileno(), 8, os.SEEK_SET)  # both runs begin where the first one did
            got = subprocess.run([ARGS.ctl, 'record', '--offline', '-o', 's.ini', '--', 'sort'],
                                 stdin=f, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 cwd=self.dir, env=environment(), check=False, timeout=600)
        self.assertEqual((got.returncode, got.stdout), (0, 2 * 'a\nb\n'), got.stderr)
        self.assertNotIn('pipe', got.stderr)
        got = self.ctl('record', '--offline', '--', 'sh', '-c', 'exit 3', status=3)
        self.assertIn('nothing is written', got.stderr)


if __name__ == '__main__':
    main()
