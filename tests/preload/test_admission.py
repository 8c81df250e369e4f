#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""HYBRID_ADMISSION with real processes: who waits before main, for whom, how long, and what is told.

    test_admission.py --ctl FILE --lib libhybrid.so --tools DIR [unittest arguments]
"""
import json
import os
import re
import signal
import subprocess
import time
import unittest

import viewed
from viewed import NOTHING_OF_OURS, OPTIONS, PATIENCE_S, Case, ctl

# Says `up`, holds 16 MiB, and ends at the end of its input.
PROGRAM = "import sys\nb = [bytearray(1 << 20) for _ in range(16)]\nprint('up', flush=True)\nsys.stdin.read()\n"
WRITER = '[app]\nclass = latency\nwrite-intensive = 1\nfootprint = 16M\n[options]\npolicy = pm\n'
READER = '[app]\nclass = bandwidth\nfootprint = 16M\n'
SOLVER = '[app]\nclass = cpu\nfootprint = 16M\n'


class Admission(Case):
    def setUp(self):
        super().setUp()
        self.left = []
        self.addCleanup(self.end_all)
        for name, text in (('writer', WRITER), ('reader', READER), ('solver', SOLVER)):
            with open('%s/%s.ini' % (self.dir, name), 'w', encoding='utf-8') as f:
                f.write(text)

    def end_all(self):
        for p in self.left:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
            p.communicate()

    def begin(self, profile, admission='wait:300', argv=('/usr/bin/python3', '-c', PROGRAM), **more):
        env = dict(NOTHING_OF_OURS, LD_PRELOAD=OPTIONS.lib, HYBRID_PM='emulated', HYBRID_REGISTRY=self.registry,
                   HYBRID_ADMISSION=admission, HYBRID_STATS=self.dir + '/stats-%p', HYBRID_MIGRATE='off', **more)
        if profile:
            env['HYBRID_PROFILE'] = '%s/%s.ini' % (self.dir, profile)
        p = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.left.append(p)
        return p

    def runs(self, p):
        """Main has begun."""
        self.assertEqual(p.stdout.readline(), 'up\n', p.poll())
        return p

    def participants(self):
        out = ctl('status', '--json', '--registry', self.registry).stdout
        return {e['pid']: e for e in json.loads(out)['participants']} if out.startswith('{') else {}

    def waits(self, p):
        """It is seen to wait, and main has not begun."""
        end = time.monotonic() + PATIENCE_S
        while not self.participants().get(p.pid, {}).get('waits_ms'):
            self.assertIsNone(p.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return p

    def end(self, p):
        p.communicate('')
        self.assertEqual(p.returncode, 0)
        try:
            with open('%s/stats-%d' % (self.dir, p.pid), encoding='utf-8') as f:
                return json.load(f)['admission']
        except FileNotFoundError:
            return None

    def test_method_1_beside_a_writer_on_pm_the_reader_waits_and_the_solver_begins(self):
        writer = self.runs(self.begin('writer'))
        reader = self.waits(self.begin('reader'))
        self.runs(self.begin('solver'))
        self.assertTrue(self.participants()[reader.pid]['waits_ms'])
        told = self.participants()[writer.pid]
        self.assertTrue(told['write_intensive'] and told['on_pm'])
        self.end(writer)
        self.runs(reader)
        told = self.end(reader)
        self.assertEqual((told['for_pid'], told['asked']), (writer.pid, True))
        self.assertGreater(told['waited_ns'], 0)
        self.assertIn('has ended', told['why'])

    def test_method_2_beside_a_reader_on_dram_the_writer_waits(self):
        reader = self.runs(self.begin('reader'))
        writer = self.waits(self.begin('writer'))
        self.runs(self.begin('solver'))
        second = self.waits(self.begin('reader'))  # else the writer would wait without end
        self.end(reader)
        self.runs(writer)
        self.assertTrue(self.participants()[second.pid]['waits_ms'])

    def test_a_wait_has_an_end(self):
        self.runs(self.begin('writer'))
        told = self.end(self.runs(self.begin('reader', 'wait:1')))
        self.assertIn('as long as HYBRID_ADMISSION allows', told['why'])
        # From its birth, in hundredths of a second; the rest is the start of the interpreter.
        self.assertGreater(told['waited_ns'], 0.5e9)

    def test_in_order_of_arrival(self):
        writer = self.runs(self.begin('writer'))
        reader = self.waits(self.begin('reader'))
        second = self.waits(self.begin('writer'))  # behind the reader, though it gets on with the first
        self.end(writer)
        self.runs(reader)
        self.assertTrue(self.participants()[second.pid]['waits_ms'])
        self.end(reader)
        self.runs(second)

    def test_killed_while_waiting_it_delays_nobody(self):
        self.runs(self.begin('writer'))
        reader = self.waits(self.begin('reader'))
        second = self.waits(self.begin('writer'))
        reader.kill()
        self.runs(second)
        reader.wait()
        self.assertNotIn(reader.pid, self.participants())

    def test_stopped_while_waiting_it_delays_nobody_and_goes_on_later(self):
        writer = self.runs(self.begin('writer'))
        reader = self.waits(self.begin('reader'))
        second = self.waits(self.begin('writer'))
        reader.send_signal(signal.SIGSTOP)
        self.runs(second)
        reader.send_signal(signal.SIGCONT)
        self.waits(reader)
        self.end(writer)
        self.end(second)
        self.runs(reader)

    def test_a_signal_ends_it_as_usual(self):
        self.runs(self.begin('writer'))
        for number in (signal.SIGTERM, signal.SIGINT):
            reader = self.waits(self.begin('reader'))
            reader.send_signal(number)
            self.assertEqual(reader.wait(PATIENCE_S), -number)

    def test_helpers_do_not_wait(self):
        self.runs(self.begin('reader'))
        shell = ('/bin/sh', '-c', 'echo up; /bin/sh -c "/usr/bin/env true; echo inner"; cat > /dev/null')
        for profile, more in ((None, {'HYBRID_CLASS': 'bandwidth'}), ('writer', {})):
            p = self.begin(profile, 'wait:2', argv=shell, **more)
            out, _ = p.communicate('', timeout=PATIENCE_S)
            self.assertEqual(out, 'up\ninner\n')
            told = []
            for name in os.listdir(self.dir):
                if name.startswith('stats-'):
                    with open(self.dir + '/' + name, encoding='utf-8') as f:
                        told.append(json.load(f)['admission'])
                    os.unlink(self.dir + '/' + name)
            self.assertLessEqual(sum(t['waited_ns'] > 0.5e9 for t in told), 1, told)

    def test_who_is_not_known_or_does_not_ask_begins_at_once(self):
        self.runs(self.begin('reader'))
        self.assertIn('neither HYBRID_CLASS nor a profile', self.end(self.runs(self.begin(None)))['why'])
        told = self.end(self.runs(self.begin('writer', 'off')))
        self.assertEqual((told['asked'], told['waited_ns']), (False, 0))
        self.assertIn('suffers little', self.end(self.runs(self.begin('solver')))['why'])

    def test_without_a_registry_it_begins(self):
        self.registry = '/no/such/folder/registry'
        self.assertEqual(self.end(self.runs(self.begin('reader')))['why'], 'it is not in the registry')

    def test_it_is_told(self):
        writer = self.runs(self.begin('writer'))
        reader = self.waits(self.begin('reader', HYBRID_VERBOSE='1'))
        self.assertRegex(ctl('status', '--registry', self.registry).stdout, r'(?m)^ *%d .* bandwidth waits ' % reader.pid)
        self.assertRegex(ctl('top', '--once', '--interval', '0.1', '--registry', self.registry).stdout,
                         r'(?m)^ *%d .* bandw wait ' % reader.pid)
        self.end(writer)
        _, err = reader.communicate('')
        self.assertRegex(err, r'waiting for python3\S* \(%d\), as one of the two would hinder the other: 300 s at most' % writer.pid)
        self.assertRegex(err, r'begins after \d+ ms: ')

    def test_a_wrong_value_names_what_is_allowed(self):
        for value in ('wait', 'wait:', 'wait:0', 'wait:86401', 'on', 'wait:1s'):
            p = ctl('run', '--admission', value, '--check', '--', 'true')
            self.assertEqual(p.returncode, 2, value)
            self.assertRegex(p.stderr, r'HYBRID_ADMISSION="%s".*off, or wait:SECONDS with 1 to 86400' % re.escape(value))

    def test_the_registry_is_clean_and_the_environment_the_programs(self):
        p = self.begin('reader', argv=('/usr/bin/env',))
        out, _ = p.communicate('')
        self.assertIn('HYBRID_ADMISSION=wait:300\n', out)
        self.assertEqual(self.participants(), {})


if __name__ == '__main__':
    viewed.main()
