#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Classes as a user sees them: where memory goes when the class changes, what the registry
shows, and that counting does no harm where it is impossible, punished, or the program's own.

  test_classes.py --lib LIBHYBRID --ctl HYBRIDCTL --hold PL_HOLD --count PL_COUNT
"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driven  # noqa: E402

MIB = 1 << 20
ARGS = None
# A window of 10 ms and 8 threads on DRAM: half of the time streams, and next to no misses.
STREAMS = ('elapsed-ns=10000000 busy-ns=80000000 reads=5000000 reads-pm=0 writes=1700000 '
           'writes-pm=0 foreseen=5000000 stall-ns=46000000 wait-ns=10000000')
COMPUTES = ('elapsed-ns=10000000 busy-ns=80000000 reads=1000 reads-pm=0 writes=100 writes-pm=0 '
            'foreseen=500 stall-ns=30000 wait-ns=0')
CHASES = ('elapsed-ns=10000000 busy-ns=80000000 reads=900000 reads-pm=0 writes=100 writes-pm=0 '
          'foreseen=0 stall-ns=72000000 wait-ns=500000')


class Base(driven.DrivenCase):
    def recording(self, *windows):
        path = os.path.join(self.work, 'it.rec')
        with open(path, 'w', encoding='ascii') as f:
            f.write('hybrid-recording 1\n' + ''.join(f'w {w}\n' for w in windows))
        return path

    def replayed(self, *windows, **settings):
        return self.hold(COUNTERS='replay:' + self.recording(*windows), CLASS_PERIOD='10ms',
                         INTERVAL='200ms', MACHINE='pram', **settings)

    def wait_for_class(self, held, cls):
        self.wait_for(f'class {cls} in the registry',
                      lambda: self.status().get(held.pid, {}).get('class') == cls)


class FollowTest(Base):
    def test_the_registry_shows_class_and_confidence(self):
        for window, cls in (STREAMS, 'bandwidth'), (COMPUTES, 'cpu'), (CHASES, 'latency'):
            h = self.replayed(*[window] * 6).do('big 20')
            self.wait_for_class(h, cls)
            # One window alone is worth a half.
            self.wait_for('it is sure', lambda: self.status()[h.pid]['confidence_milli'] > 600)
            found = h.end()['classification']
            self.assertEqual((found['class'], found['weak']), (cls, False))
            self.assertGreater(found['confidence_milli'], 500)

    def test_a_program_that_turns_out_cpu_bound_yields_at_once(self):
        cpu = self.replayed(*[STREAMS] * 6, *[COMPUTES] * 6, DRAM_SHARED='48M').do('big 40')
        self.wait_for_class(cpu, 'cpu')
        new = self.hold(DRAM_SHARED='48M', CLASS='bandwidth').do('big 20')
        self.wait_for('it wishes for DRAM', lambda: self.status()[new.pid]['wish_bytes'] > 4 * MIB)
        self.wait_for('it is asked', lambda: self.status()[cpu.pid]['asked_bytes'])
        before = self.status()[cpu.pid]['pm_bytes']
        cpu.do('big 5')
        self.wait_for('its new memory is on PM',
                      lambda: self.status()[cpu.pid]['pm_bytes'] >= before + 5 * MIB)
        self.assertEqual(cpu.end()['classification']['phases'], 1)

    def test_one_that_becomes_sensitive_gets_free_dram_at_once(self):
        h = self.replayed(*[COMPUTES] * 6, *[STREAMS] * 6, DRAM_SHARED='48M').do('big 40')
        self.wait_for_class(h, 'bandwidth')
        rival = self.hold(DRAM_SHARED='48M', CLASS='bandwidth').do('big 20')
        h.do('free').do('big 4')
        r = h.end()
        self.assertGreaterEqual(r['tiers']['dram']['charged'], 4 * MIB)
        self.assertEqual((r['class'], r['classification']['phases']), ('bandwidth', 1))
        rival.end()

    def test_one_odd_window_in_five_changes_nothing(self):
        h = self.replayed(*([STREAMS] * 4 + [COMPUTES]) * 6).do('big 20')
        self.wait_for_class(h, 'bandwidth')
        found = h.end()['classification']
        self.assertEqual((found['class'], found['phases']), ('bandwidth', 0))

    def test_a_user_who_names_the_class_is_right(self):
        h = self.replayed(*[STREAMS] * 6, CLASS='cpu').do('big 20')
        self.wait_for_class(h, 'cpu')
        self.assertEqual(h.end()['class'], 'cpu')

    def test_kernel_hints_are_weak_and_move_nothing(self):
        h = self.hold(COUNTERS='kernel', CLASS_PERIOD='10ms', INTERVAL='100ms').do('big 20')
        self.wait_for('it is in the registry', lambda: h.pid in self.status())
        h.do('big 1')
        r = h.end()
        self.assertEqual(r['class'], 'unknown')
        if r['classification']['windows']:
            self.assertTrue(r['classification']['weak'])


class HarmlessTest(Base):
    def run_it(self, how, wrap=(), settle_ms=200, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_'))}
        env['PL_SETTLE_MS'] = str(settle_ms)
        if wrap:
            env['PL_THREADS'] = '1'
        if settings:
            env['LD_PRELOAD'] = self.lib
            env.update({'HYBRID_PM': 'emulated', 'HYBRID_START': '0', 'HYBRID_REGISTRY': 'none',
                        'HYBRID_CLASS_PERIOD': '10ms'})
            env.update({'HYBRID_' + k: v for k, v in settings.items()})
        return subprocess.run([*wrap, ARGS.count, how], env=env, text=True, timeout=300,
                              capture_output=True, check=False)

    def same(self, how, wrap=(), alone=False):
        """The line about counters that a user gets on request; none where the program has confined
        itself before there was a thread to count (alone)."""
        plain = self.run_it(how, wrap)
        if plain.returncode == 77:
            self.skipTest(f'{how}: not possible here (libpapi, or seccomp filters)')
        self.assertEqual(plain.returncode, 0, plain.stderr)
        for counters in 'auto', 'hardware', 'software':
            got = self.run_it(how, wrap, COUNTERS=counters)
            self.assertEqual((got.returncode, got.stdout, got.stderr), (0, plain.stdout, ''))
        lines = []
        for ms in (200, 2000) if alone else (200, 1000, 5000, 60000): # a busy computer lets the library's thread run late
            told = self.run_it(how, wrap, ms, COUNTERS='hardware', VERBOSE='1')
            self.assertEqual((told.returncode, told.stdout), (0, plain.stdout))
            lines = re.findall(r'^hybrid\[\d+\]: counters: .*$', told.stderr, re.M)
            if lines:
                break
        self.assertEqual(len(lines), 0 if alone else 1, told.stderr)
        return '' if alone else lines[0]

    def inherited(self, answer):
        wrap = driven.filtered(driven.PERF_EVENT_OPEN, answer)
        if not wrap:
            self.skipTest('no seccomp filter can be installed here')
        self.assertIn('a seccomp filter is in force', self.same('none', wrap))

    def test_nothing_special(self):
        self.assertRegex(self.same('none'), r'hints of the kernel.*\(.+\)|hardware events')

    def test_a_papi_of_the_program(self):
        self.assertRegex(self.same('papi'), 'the program uses PAPI itself|seccomp|/proc')

    def test_a_papi_of_the_program_opened_later(self):
        self.same('papi-late')

    def test_events_of_the_program(self):
        self.same('perf')

    def test_a_filter_that_kills(self):
        self.inherited(driven.KILL)
        self.same('kill', alone=True)

    def test_a_filter_that_kills_installed_later(self):
        self.same('late-kill')

    def test_a_filter_that_refuses(self):
        self.inherited(driven.REFUSE)
        self.same('refuse', alone=True)

    def test_no_proc(self):
        wrap = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c',
                'mount -t tmpfs none /proc && exec "$0" "$@"']
        if not shutil.which('unshare') or subprocess.run([*wrap, 'true'], check=False,
                                                         capture_output=True).returncode:
            self.skipTest('no user namespace with its own /proc can be made here')
        self.assertRegex(self.same('none', wrap), '/proc does not tell')

    def test_doctor_survives_a_filter_that_kills(self):
        wrap = driven.filtered(driven.PERF_EVENT_OPEN, driven.KILL)
        if not wrap:
            self.skipTest('no seccomp filter can be installed here')
        got = subprocess.run([*wrap, self.ctl, 'doctor', '--json'], text=True, capture_output=True,
                             timeout=300, check=False)
        self.assertIn(got.returncode, (0, 1), got.stderr)
        text = json.dumps(json.loads(got.stdout))
        self.assertIn('seccomp', text)


if __name__ == '__main__':
    ARGS, others = driven.arguments('hold', 'count')
    unittest.main(argv=sys.argv[:1] + others)
