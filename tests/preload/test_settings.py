#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is told of settings, when, and how often; where profiles are found; whom programs are said to be."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

OPTIONS = None
OURS = re.compile(r'^hybrid\[\d+\]: (.*)$', re.M)
NOTHING_OF_OURS = {k: v for k, v in os.environ.items() if not k.startswith('HYBRID_') and k != 'LD_PRELOAD'}
PLACED = {'HYBRID_PM': 'emulated', 'HYBRID_START': '0', 'HYBRID_REGISTRY': 'none'}
FILL = 'b = bytearray(%d << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\n'


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='hybrid-settings-')
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def path(self, name, text=None):
        p = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(p), exist_ok=True)
        if text is not None:
            with open(p, 'w', encoding='ascii') as f:
                f.write(text)
        return p

    def run_with(self, argv, lib=None, **env):
        return subprocess.run(argv, env=dict(NOTHING_OF_OURS, LD_PRELOAD=lib or OPTIONS.lib, **env), cwd=self.dir, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)

    def lines(self, argv, **env):
        got = self.run_with(argv, **env)
        self.assertEqual(got.returncode, 0, got.stderr)
        return OURS.findall(got.stderr)


class Told(Case):
    def test_places_that_are_not_there_are_told_at_the_start(self):
        """Of a program that stays small, too; once."""
        for name, value in (('PM', 'file:/no/such/folder'), ('PM', 'node:63'), ('REGISTRY', '/no/such/folder/r'),
                            ('MACHINE', '/no/such/machine.ini')):
            told = self.lines(['/bin/true'], **{'HYBRID_' + name: value})
            self.assertEqual(len(told), 1, (name, value, told))
            self.assertIn(value.split(':')[-1], told[0])
            told = self.lines(['/bin/true'], HYBRID_POLICY='off', **{'HYBRID_' + name: value})
            self.assertEqual(told, [])
        for name, value in (('PM', 'file:' + self.dir), ('REGISTRY', self.path('r')), ('MACHINE', 'cxl')):
            self.assertEqual(self.lines(['/bin/true'], **{'HYBRID_' + name: value}), [])

    def test_once_for_a_tree_of_programs(self):
        script = '/bin/true; (/bin/true; /bin/ls >/dev/null); /bin/sh -c "/bin/true; /bin/true; :"; :'
        told = self.lines(['/bin/sh', '-c', script], HYBRID_DRAMM='1G', HYBRID_PM='file:/no/such/folder')
        self.assertEqual(len(told), 2, told)
        # What the parent did not have is told by the child.
        told = self.lines(['/bin/sh', '-c', 'HYBRID_POLICI=pm /bin/true; :'], HYBRID_DRAMM='1G')
        self.assertEqual(len(told), 3, told)

    def test_a_report_that_cannot_be_written_is_told_once_for_a_tree(self):
        script = '/bin/true; (/bin/true; /bin/ls >/dev/null); /bin/sh -c "/bin/true; /bin/true; :"; :'
        for name in ('STATS', 'TRACE', 'RECORD'):
            told = self.lines(['/bin/sh', '-c', script], **dict(PLACED, **{'HYBRID_' + name: '/no/such/folder/r'}))
            self.assertEqual(told, ['HYBRID_%s=/no/such/folder/r cannot be written (ENOENT)' % name])
        # What nobody could know at the start is told in the end.
        late = 'mkdir gone && cd gone && rmdir ../gone && exec /bin/true'
        told = self.lines(['/bin/sh', '-c', late], HYBRID_STATS='r.json')
        self.assertEqual(len(told), 1, told)

    def test_strict_tells_and_ends(self):
        got = self.run_with(['/bin/true'], HYBRID_POLICI='pm', HYBRID_STRICT='1')
        self.assertEqual(got.returncode, 78)
        self.assertIn('did you mean HYBRID_POLICY?', got.stderr)
        got = self.run_with(['/bin/sh', '-c', '/bin/true; exit 3'], HYBRID_REGISTRY='/no/such/folder/r', HYBRID_STRICT='1')
        self.assertEqual(got.returncode, 78)

    def test_a_home_that_may_not_be_read(self):
        """A daemon started by root that has become nobody."""
        if os.getuid() != 0:
            self.skipTest('becoming nobody needs root')
        os.chmod(self.dir, 0o755)
        os.makedirs(self.path('home/.config/libhybrid'))
        os.chmod(self.path('home'), 0o700)
        env = dict(NOTHING_OF_OURS, LD_PRELOAD=OPTIONS.lib, HOME=self.path('home'), HYBRID_RECORD='/dev/null', **PLACED)
        program = 'import time, sys\n' + FILL % 30 + 'time.sleep(2.5)'
        got = subprocess.run(['/usr/bin/python3', '-c', program], env=env, text=True, stderr=subprocess.PIPE,
                             timeout=120, check=False, user=65534, group=65534, extra_groups=[])
        if 'cannot be preloaded' in got.stderr:
            self.skipTest('nobody cannot read the library where it has been built')
        self.assertNotIn('machine.ini', got.stderr)


class Profiles(Case):
    TEXT = '[app]\nexe = true\nclass = latency\n'

    def test_a_file_in_the_current_folder(self):
        """What `hybridctl record -o py.ini` writes is found by the same name."""
        self.path('py.ini', self.TEXT)
        told = self.lines(['/bin/true'], HYBRID_PROFILE='py.ini', HYBRID_VERBOSE='1')
        self.assertTrue(any(t.startswith('profile py.ini:') for t in told), told)
        os.remove(self.path('py.ini'))
        self.assertEqual(len(self.lines(['/bin/true'], HYBRID_PROFILE='py.ini')), 1)

    def test_beside_where_the_library_lies(self):
        """An installation in a prefix of its own, moved as a whole."""
        self.path('share/libhybrid/profiles/moved.ini', self.TEXT)
        for below in ('lib', 'lib/x86_64-linux-gnu', 'lib64'):
            lib = self.path(below + '/libhybrid.so')
            shutil.copy(OPTIONS.lib, lib)
            got = self.run_with(['/bin/true'], lib=lib, HYBRID_PROFILE='moved', HYBRID_VERBOSE='1')
            self.assertIn('profile %s/share/' % self.dir, got.stderr)
        # Whoever names folders has only these.
        self.assertEqual(len(self.lines(['/bin/true'], HYBRID_PROFILE='moved', HYBRID_PROFILE_PATH='/nowhere')), 1)


class Reports(Case):
    def test_a_program_has_the_name_that_it_was_started_by(self):
        name = self.path('other-name')
        os.symlink('/bin/sleep', name)
        got = self.run_with([name, '0'], HYBRID_STATS='1', **PLACED)
        self.assertIn('report of %s: ' % name, got.stderr)
        # One that cannot be found again has its file's.
        got = self.run_with(['./other-name', '0'], HYBRID_STATS='1', **PLACED)
        self.assertIn('report of %s: ' % os.path.realpath('/bin/sleep'), got.stderr)

    def test_small_programs_that_another_started_say_nothing(self):
        got = self.lines(['/bin/bash', '-c', '/bin/true; (/bin/true; /bin/ls >/dev/null); :'], HYBRID_STATS='1', HYBRID_PM='emulated')
        self.assertEqual(len(got), 1, got)
        self.assertRegex(got[0], r'report of \S+sh: .*nothing was placed')
        # One that is placed does, and to files all do.
        got = self.run_with(['/bin/bash', '-c', '/bin/true; :'], HYBRID_STATS='1', **PLACED)
        self.assertEqual(got.stderr.count('report of'), 2, got.stderr)
        self.run_with(['/bin/bash', '-c', '/bin/true; :'], HYBRID_STATS=self.path('small-%p'), HYBRID_PM='emulated')
        self.assertEqual(len([n for n in os.listdir(self.dir) if n.startswith('small-')]), 2)

    def test_resident_memory_adds_up(self):
        got = self.run_with(['/usr/bin/python3', '-c', FILL % 30], HYBRID_STATS='1', HYBRID_SITES='on', **PLACED)
        self.assertRegex(got.stderr, r'resident in all [\d.]+ [KM]iB, [\d.]+ [KM]iB of it not placed')
        self.assertNotIn('PM was full', got.stderr)
        self.assertIn('call sites:', got.stderr)
        self.assertNotRegex(got.stderr, r'\btier\b')  # no profile: no site has one

    def test_a_reservation_is_not_used(self):
        report = self.path('report')
        reserve = ('import ctypes, mmap\nc = ctypes.CDLL(None)\n'
                   'c.mmap(None, ctypes.c_size_t(1 << 30), 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))\n')
        self.run_with(['/usr/bin/python3', '-c', reserve], HYBRID_STATS=report, HYBRID_DRAM='4G', **PLACED)
        with open(report, encoding='utf-8') as f:
            tiers = json.load(f)['tiers']
        self.assertGreaterEqual(sum(t['mapped'] for t in tiers.values()), 1 << 30)
        self.assertLess(sum(t['peak'] for t in tiers.values()), 1 << 29)


class Daemons(Case):
    def test_what_a_daemon_inherited_is_its_own_once_its_parent_has_gone(self):
        registry = self.path('registry')
        program = ('import os, time\n' + FILL % 40 + 'if os.fork():\n    os._exit(0)\n' + 'c = bytearray(20 << 20)\n'
                   'print(os.getpid(), flush=True)\ntime.sleep(60)\n')
        p = subprocess.Popen(['/usr/bin/python3', '-c', program], stdout=subprocess.PIPE, text=True,
                             env=dict(NOTHING_OF_OURS, LD_PRELOAD=OPTIONS.lib, **dict(PLACED, HYBRID_REGISTRY=registry)))
        daemon = int(p.stdout.readline())
        self.addCleanup(os.kill, daemon, 9)
        self.addCleanup(p.stdout.close)
        p.wait()
        held = 0
        for _ in range(150):
            told = json.loads(subprocess.check_output([OPTIONS.ctl, 'status', '--json', '--registry', registry], env=NOTHING_OF_OURS))
            held = sum(e['dram_bytes'] for e in told['participants'])
            if held >= 55 << 20:
                return
            time.sleep(0.2)
        self.fail('%d MiB are claimed, of 60 that are in use' % (held >> 20))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--ctl', required=True, type=os.path.abspath)
    parser.add_argument('--lib', required=True, type=os.path.abspath)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)
