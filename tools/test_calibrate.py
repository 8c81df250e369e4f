#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl calibrate: its decisions, the command, and whether what it finds on emulated machines
is what they were made of. test_calibrate.py HYBRIDCTL LIBRARY [HYBRID_EMU]: with the last one only
the emulated machines."""
import configparser
import glob
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import calibrate_figures as calibrate  # noqa: E402


def filling(limit, each):
    """A medium that N threads fill, each asking for as much."""
    return {n: min(limit, each * n) for n in calibrate.thread_counts(32, False)}


class Decisions(unittest.TestCase):
    def test_counts(self):
        self.assertEqual(calibrate.thread_counts(1, False), [1])
        self.assertEqual(calibrate.thread_counts(20, True), [1, 2, 4, 8, 16, 20])
        for most in range(1, 200):
            for quick in (False, True):
                counts = calibrate.thread_counts(most, quick)
                self.assertEqual(counts, sorted(set(counts)))
                self.assertEqual((counts[0], counts[-1]), (1, most))

    def test_level_and_knee(self):
        for limit, each in ((12, 3), (100, 7), (50, 50), (80, 2.5)):
            curve = filling(limit, each)
            self.assertAlmostEqual(calibrate.level(curve), limit, delta=0.08 * limit)
            self.assertAlmostEqual(calibrate.knee(curve), max(1, 0.9 * limit / each),
                                   delta=1 + 0.05 * limit / each)
        # Beyond its knee it may fall, and one lucky point is not its level.
        falling = {1: 10, 2: 20, 4: 30, 8: 22, 16: 15}
        self.assertEqual(calibrate.level(falling), 30)
        self.assertLess(calibrate.knee(falling), 4)
        lucky = {1: 10, 2: 30, 3: 30, 4: 30, 5: 33}
        self.assertEqual(calibrate.level(lucky), 30)

    def test_write_alone(self):
        # The product's formula gives back what was measured.
        for stores, reads in ((3.27, 12), (1.09, 13), (45, 113)):
            alone = calibrate.write_alone(stores, reads)
            self.assertAlmostEqual(1 / (1 / alone + 1 / reads), stores, places=6)
        # A link with a way for each: stores as fast as reads.
        self.assertEqual(calibrate.write_alone(24, 24), 96)
        self.assertEqual(calibrate.write_alone(23.9, 24), 96)

    def test_random_traffic(self):
        self.assertEqual(calibrate.at_random(filling(3, 1), 13), 3)
        # 32 threads do not fill it: their number ends it, not the medium.
        self.assertEqual(calibrate.at_random(filling(1000, 2), 96), 96)

    def test_write_latency(self):
        def rounds(chase, update, cache=(5, 6)):
            tiers = {('chase', 'dram', 1): chase, ('update', 'dram', 1): update}
            return {**tiers, ('chase', 'cache', 1): [cache[0]] * len(chase),
                    ('update', 'cache', 1): [cache[1]] * len(chase)}
        steady = rounds([80, 80, 80], [85, 85, 85])
        self.assertEqual(calibrate.added_by_writes(steady, 'dram'), 4)
        self.assertEqual(calibrate.write_latency(4, 80), 80)
        noisy = rounds([80, 95, 70, 82], [85, 70, 99, 81])
        self.assertIsNone(calibrate.added_by_writes(noisy, 'dram'))
        self.assertEqual(calibrate.write_latency(None, 80), 80)
        self.assertEqual(calibrate.write_latency(500, 80), 800)

    def test_doubts(self):
        dram = {'read-ns': 80, 'seq-read-mbs': 90e3, 'seq-write-mbs': 80e3}
        slow = {'read-ns': 240, 'seq-read-mbs': 12e3, 'seq-write-mbs': 4e3}
        self.assertEqual(calibrate.doubts({'dram': dram, 'pm': slow}, {}, 0, 100), [])
        wrong = calibrate.doubts({'dram': dram, 'pm': dram}, {'read PM': 0.5}, 30, 100)
        self.assertEqual(len(wrong), 3)
        self.assertIn('differs by 50 %', wrong[0])
        self.assertIn('30 of 100 rounds', wrong[1])
        self.assertIn('no second kind of memory', wrong[2])
        # Slow only when written to: STT-RAM.
        self.assertEqual(calibrate.doubts({'dram': dram, 'pm': dict(dram, **{
            'seq-write-mbs': 30e3})}, {}, 0, 100), [])


class Command(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.config = os.path.join(self.dir.name, 'config')
        self.file = os.path.join(self.config, 'libhybrid', 'machine.ini')
        self.env = {k: v for k, v in os.environ.items() if not k.startswith('HYBRID_')}
        self.env['XDG_CONFIG_HOME'] = self.config

    def tearDown(self):
        self.dir.cleanup()

    def calibrate(self, *options, **env):
        return subprocess.run([CTL, 'calibrate', '--quick', '--size', '16M', '--threads', '2',
                               *options], env=dict(self.env, **env), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=600, check=False)

    def files(self):
        return sorted(f for _, _, names in os.walk(self.dir.name) for f in names)

    def test_ordinary_memory_is_not_taken_for_pm(self):
        p = self.calibrate('--pm', 'emulated')
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn('it says nothing of a PM', p.stdout)
        self.assertIn('no machine file is written', p.stderr)
        self.assertIn('latency of a load', p.stdout)
        self.assertEqual(os.listdir(self.dir.name), [])
        # Nor are files without DAX; and what was there stays.
        os.makedirs(os.path.dirname(self.file))
        with open(self.file, 'w', encoding='ascii') as f:
            f.write('mine')
        p = self.calibrate('--pm', 'file:' + self.dir.name, '--threads', '1')
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn('it says nothing of a PM', p.stdout)
        self.assertIn('one core: interference is not measured', p.stdout)
        with open(self.file, encoding='ascii') as f:
            self.assertEqual(f.read(), 'mine')
        self.assertEqual(self.files(), ['machine.ini'])

    def test_the_file_is_used_from_then_on(self):
        p = self.calibrate('--force', HYBRID_PM='emulated')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('machine file: ' + self.file, p.stdout)
        self.assertNotIn('HYBRID_MACHINE=', p.stdout)
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o644)
        parser = configparser.ConfigParser()
        parser.read(self.file)
        self.assertEqual(parser['machine']['pm'], 'emulated')
        self.assertIn('1', parser['curve dram seq-read'])
        with open(self.file, encoding='ascii') as f:
            self.assertIn('# doubtful: ', f.read())
        doctor = subprocess.run([CTL, 'doctor'], env=dict(self.env, HYBRID_PM='emulated'),
                                stdout=subprocess.PIPE, text=True, check=False).stdout
        self.assertRegex(doctor, r'ok from +measured 20\d\d-\d\d-\d\d \(%s\)'
                         % re.escape(self.file))
        run = dict(self.env, HYBRID_PM='emulated', HYBRID_START='0', HYBRID_VERBOSE='1',
                   HYBRID_COUNTERS='kernel', HYBRID_REGISTRY='none', HYBRID_INTERVAL='10ms',
                   HYBRID_CLASS_PERIOD='10ms', LD_PRELOAD=LIBRARY)
        # Until it has looked: the control thread has its own pace on a busy machine.
        for seconds in (0.5, 5, 50):
            p = subprocess.run(['/usr/bin/python3', '-c', 'import time\n'
                                'b = bytearray(64 << 20)\ntime.sleep(%g)' % seconds], env=run,
                               stderr=subprocess.PIPE, text=True, check=False)
            if 'figures of the machine' in p.stderr:
                break
        self.assertIn('figures of the machine: measured', p.stderr)
        self.assertIn(self.file, p.stderr)

    def test_an_interruption_leaves_nothing(self):
        for sign, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            p = subprocess.Popen([CTL, 'calibrate', '--pm', 'emulated', '--force', '--size', '16M'],
                                 env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
            self.assertIn('PM: ordinary memory', p.stdout.readline())
            time.sleep(0.2)
            p.send_signal(sign)
            _, err = p.communicate(timeout=400)
            self.assertEqual(p.returncode, status, err)
            self.assertNotIn('Traceback', err)
            self.assertEqual(self.files(), [])

    def test_no_second_memory(self):
        p = self.calibrate('--pm', 'none')
        self.assertEqual((p.returncode, p.stdout), (2, ''))
        self.assertIn('nothing to measure', p.stderr)
        if len(glob.glob('/sys/devices/system/node/node[0-9]*')) == 1:
            p = self.calibrate()
            self.assertEqual((p.returncode, p.stdout), (1, ''))  # no mistake of the user's
            self.assertIn('no second memory was found', p.stderr)
            self.assertEqual(self.files(), [])

    def test_bad_arguments(self):
        for options, text in ((['--pm', 'rubbish'], 'allowed: auto'),
                              (['--pm', 'node:62'], 'no node 62'),
                              (['--pm', 'file:/no/such'], 'no file of 16 MiB can be made there'),
                              (['--threads', '0'], '1 to 512'), (['--size', '3'], '1M to 1024G'),
                              (['--plot', 'x.gif'], '.png, .svg, .pdf'), (['more'], 'more'),
                              (['-o', '/dev/null/x'], 'no file can be made in /dev/null'),
                              (['-o', '/proc/x/y'], 'no file can be made in /proc'),
                              (['-o', '/tmp'], 'Is a directory'),
                              (['--emulated'], 'needs -o'), (['--what'], '--what')):
            p = self.calibrate(*options)
            self.assertEqual(p.returncode, 2, (options, p.stderr))
            self.assertIn(text, p.stderr)
            self.assertNotIn('Traceback', p.stderr)
        p = self.calibrate('--pm', 'emulated', XDG_CONFIG_HOME='config', HOME='')
        self.assertEqual(p.returncode, 2)
        self.assertIn('name the file with -o', p.stderr)


def presets():
    """{name: {medium: (read ns, write ns, read MB/s, write MB/s, block)}}, as hybrid-emu says."""
    out = subprocess.run([HYBRID_EMU, 'presets'], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    found, name = {}, None
    for line in re.findall(r'^[a-z-]* +(?:DRAM|PM) +[0-9].*', out, re.M):
        words = line.split()
        name = words.pop(0) if words[0] not in ('DRAM', 'PM') else name
        found.setdefault(name, {})[words[0].lower()] = tuple(float(w) for w in words[1:6])
    return found


class EmulatedMachines(unittest.TestCase):
    """What is measured is what the machine is made of. 48 CPUs, as 20 do not fill its DRAM."""

    def measure(self, preset, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith('HYBRID_')}
        env.update(HYBRID_EMU_PRESET=preset, HYBRID_EMU_CPUS='48', **settings)
        with tempfile.TemporaryDirectory() as d:
            p = subprocess.run([CTL, 'calibrate', '--emulated', '--quick', '-o', d + '/m.ini'],
                               env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=900, check=False)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            parser = configparser.ConfigParser()
            parser.read(d + '/m.ini')
        self.assertEqual(parser['machine']['cpu'], 'emulated')
        self.assertTrue(parser['machine']['pm'].startswith('emulated machine ' + preset))
        return {s: {k: float(v) for k, v in parser[s].items()}
                for s in ('dram', 'pm', 'interference')}

    def near(self, here, want, low, high, what):
        """`here` is from (1 - low) to (1 + high) of what it should be."""
        if not want * (1 - low) <= here <= want * (1 + high):
            self.fail('%s: %g measured, the machine has %g' % (what, here, want))

    def check_media(self, here, machine, scatter):
        for tier, (read_ns, write_ns, read_mbs, write_mbs, block) in machine.items():
            m, lines = here[tier], block / 64
            # A step of the chain computes for a ns.
            self.near(m['read-ns'], read_ns, 0, 0.02, tier + ' read-ns')
            # A twentieth of it is measured; blocks that are written beside it delay loads.
            self.near(m['write-ns'], write_ns, 0.05, 0.05 if block == 64 else 0.3,
                      tier + ' write-ns')
            self.near(m['seq-read-mbs'], read_mbs, 0.07, 0.01, tier + ' seq-read')
            # Of neighbours that cached stores write, `scatter` come too late for one block.
            together = scatter * lines + 1 - scatter
            self.near(m['seq-write-mbs'], write_mbs / together, 0.05, 0.07, tier + ' seq-write')
            # 48 threads with four misses each need not fill a medium.
            idle = 48 * 4 * 64e3 / read_ns
            self.near(m['random-read-mbs'], read_mbs / lines, 0.1 if idle > 2 * read_mbs else 0.3,
                      0.06, tier + ' random-read')
            self.near(m['random-write-mbs'], write_mbs / lines, 0.1, 0.09, tier + ' random-write')

    def check_interference(self, here, reads, writes, pm):
        for key, want in (('dram-read-left', reads), ('dram-write-left', writes), ('pm-left', pm)):
            self.assertAlmostEqual(here['interference'][key], want, delta=4, msg=key)

    def test_optane(self):
        here = self.measure('optane')
        self.check_media(here, presets()['optane'], 0.95)
        # 9 requests wait at PM: 1 / (1 + 0.05 * 81), 1 / (1 + 0.52 * 81); PM: 1 / (1 + 0.2).
        self.check_interference(here, 19.8, 2.3, 84)
        self.near(here['dram']['stream-ns'], 101 / 23, 0.05, 0.05, 'stream')
        self.near(here['pm']['stream-ns'], 305 / 17, 0.05, 0.05, 'stream')
        # Paper 004: reads of PM end with 4 to 5 threads, writes with fewer, DRAM with 10 or more.
        self.assertTrue(3 <= here['pm']['read-knee'] <= 6)
        self.assertLessEqual(here['pm']['write-knee'], 2)
        self.assertGreaterEqual(here['dram']['read-knee'], 10)

    def test_cxl(self):
        here = self.measure('cxl')
        self.check_media(here, presets()['cxl'], 0)
        self.check_interference(here, 100, 100, 100)

    def test_a_machine_of_no_preset(self):
        here = self.measure('custom', HYBRID_EMU_SET='pm_read_ns=400,pm_write_ns=900,'
                            'pm_read_mbs=9000,pm_write_mbs=2500')
        self.check_media(here, {'dram': presets()['custom']['dram'],
                                'pm': (400, 900, 9000, 2500, 64)}, 0)


if __name__ == '__main__':
    CTL, LIBRARY = [os.path.abspath(a) for a in sys.argv[1:3]]
    HYBRID_EMU = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
    tests = ['EmulatedMachines'] if HYBRID_EMU else ['Decisions', 'Command']
    unittest.main(argv=sys.argv[:1] + tests, verbosity=2)
