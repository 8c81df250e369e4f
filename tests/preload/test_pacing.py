#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""HYBRID_PACE with two programs on the emulated machine: one writes to PM, the other to DRAM.

    test_pacing.py --ctl FILE --lib libhybrid.so --tools DIR --lines PL_LINES [unittest arguments]

With windows of 1 ms the first trial comes some 35 ms of virtual time after the victim was seen. That clock waits
for the library's thread, so a loaded computer changes nothing but the length of the test."""
import json
import subprocess
import unittest

import viewed
from page import lines_of
from viewed import OPTIONS, PATIENCE_S, Case, ctl

THREADS, KIB = 4, 8192
# Where HYBRID_PACE=auto paces the same writer after 270 to 330 ms.
WITHOUT_MS = 450


class Pacing(Case):
    def begin(self, policy, pace, milliseconds=0, **more):
        env = self.env(HYBRID_POLICY=policy, HYBRID_PACE=pace, HYBRID_INTERVAL='1ms', HYBRID_CLASS_PERIOD='1ms',
                       HYBRID_MIGRATE='off', HYBRID_STRICT='1', HYBRID_EMU_PRESET='optane',
                       HYBRID_EMU_CPUS=str(2 * THREADS), HYBRID_EMU_MACHINE=self.dir + '/machine', **more)
        del env['HYBRID_DRAM']
        p = subprocess.Popen([OPTIONS.lines, str(THREADS), str(KIB), str(milliseconds)],
                             env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for release in (p.stdout.close, p.wait, p.kill, p.stdin.close):
            self.addCleanup(release)
        self.assertEqual(p.stdout.readline(), 'up\n')
        return p

    def writer(self, pace, milliseconds=0):
        # Of a latency-sensitive program no search for its own best number of threads takes from the purse.
        return self.begin('pm', pace, milliseconds, HYBRID_CLASS='latency', HYBRID_TRACE=self.dir + '/trace',
                          HYBRID_STATS=self.dir + '/stats')

    def told(self, p):
        out = json.loads(ctl('status', '--json', '--registry', self.registry).stdout)
        return {e['pid']: e for e in out['participants']}[p.pid]

    def ticks(self):
        return [d for d in lines_of(self.dir + '/trace') if 'tick' in d]

    def report(self):
        with open(self.dir + '/stats', encoding='utf-8') as f:
            return json.load(f)['pacing']

    def test_fewer_threads_write_while_somebody_is_held_up_and_all_when_he_has_gone(self):
        writer, victim = self.writer('auto'), self.begin('dram', 'auto')
        self.until(lambda: self.told(writer)['paced_threads'], 'it is not paced')
        entry = self.told(writer)
        self.assertLess(entry['paced_threads'], THREADS)
        self.assertEqual(entry['paced_for_pid'], victim.pid)
        self.assertRegex(
            ctl('status', '--registry', self.registry).stdout,
            r'(?m)^ +%d is paced to [1-3] of %d threads for [0-9.]+ s: its writes to PM hold up %d \(pl_lines\)$' %
            (writer.pid, THREADS, victim.pid))
        victim.kill()  # ends like this, too
        self.until(lambda: self.told(writer)['paced_threads'] == 0, 'still paced')
        self.until(lambda: self.ticks() and self.after_pacing(), 'the trace does not tell the end of it')
        writer.communicate('', timeout=PATIENCE_S)
        self.assertEqual(writer.returncode, 0)
        self.check_trace()
        report = self.report()
        self.assertEqual((report['paced'], report['times'], report['for']), (0, 1, 'pl_lines'))
        self.assertTrue(0 < report['fewest'] < report['fewest_of'] == THREADS, report)

    def after_pacing(self):
        """Samples from the first on after the last with fewer threads."""
        ticks = self.ticks()
        last = max((i for i, t in enumerate(ticks) if t['paced']), default=len(ticks))
        return ticks[last + 1:]

    def check_trace(self):
        paced = [t for t in self.ticks() if t['paced']]
        # While it is paced, the threads have no more CPUs than it says, but for looks at more of them.
        kept = [t for t in paced if t['held'] == t['paced']]
        self.assertGreater(len(kept), len(paced) / 2)
        self.assertEqual(self.after_pacing()[-1]['held'], 0)

    def test_off_keeps_all_threads(self):
        writer, victim = self.writer('off', WITHOUT_MS), self.begin('dram', 'off')
        writer.wait(PATIENCE_S)
        self.assertEqual((writer.returncode, victim.poll()), (0, None))
        ticks = self.ticks()
        self.assertGreater(ticks[-1]['ns'], 0.9 * WITHOUT_MS * 1e6)
        self.assertEqual({(t['paced'], t['held']) for t in ticks}, {(0, 0)})
        self.assertEqual(self.report()['times'], 0)


if __name__ == '__main__':
    viewed.main('lines')
