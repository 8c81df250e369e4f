#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Thread caps as a program and its user see them: answers to 'how many CPUs', where threads
run, what other programs inherit, what becomes of affinities that the user chose.

  test_threadcap.py --lib LIBHYBRID --cpus PL_CPUS
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = None
# Instead of waiting without end: nothing here takes a tenth of it on a loaded computer.
PATIENCE_S = 400
CPUS = sorted(os.sched_getaffinity(0))
STARTERS = ('fork', 'vfork', 'vfork!', 'spawn', 'spawnp', 'system', 'popen', 'execl', 'execlp', 'execle', 'execvp')


def ranges(cpus):
    return ','.join(map(str, cpus))


class Program:
    def __init__(self, prefix=(), **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_'))}
        env.update({'LD_PRELOAD': ARGS.lib, 'HYBRID_PM': 'emulated', 'HYBRID_START': '0',
                    'HYBRID_REGISTRY': 'none', 'HYBRID_INTERVAL': '20ms'})
        env.update({'HYBRID_' + k: v for k, v in settings.items()})
        command = list(prefix) + [ARGS.cpus]
        if prefix:  # the tool in front must not be capped itself
            preload = env.pop('LD_PRELOAD')
            command = list(prefix) + ['env', 'LD_PRELOAD=' + preload, ARGS.cpus]
        self.proc = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def do(self, line):
        self.proc.stdin.write(line + '\n')
        self.proc.stdin.flush()
        return self.proc.stdout.readline().strip()

    def until(self, line, wanted, seconds=PATIENCE_S):
        """Ask until the answer is as wanted; the answer."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.do(line)
            if wanted(got):
                return got
            time.sleep(0.02)
        raise AssertionError('%s: %r' % (line, got))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.proc.kill()
        _, err = self.proc.communicate(timeout=PATIENCE_S)
        if not kind and (self.proc.returncode or err):
            raise AssertionError('exit %s: %s' % (self.proc.returncode, err))


class ThreadCapTest(unittest.TestCase):
    def setUp(self):
        self.all = 'online %d %d configured %d affinity %s' % (
            os.sysconf('SC_NPROCESSORS_ONLN'), os.sysconf('SC_NPROCESSORS_ONLN'),
            os.sysconf('SC_NPROCESSORS_CONF'), ranges(CPUS))

    @staticmethod
    def capped(answer):
        """One CPU, whichever."""
        m = re.fullmatch(r'online 1 1 configured %d affinity (\d+)' % os.sysconf('SC_NPROCESSORS_CONF'), answer)
        return bool(m) and int(m[1]) in CPUS

    def free(self, answer):
        return answer == self.all

    def test_answers_at_start(self):
        with Program(POLICY='pm', THREADS='1') as p:
            self.assertTrue(self.capped(p.do('ask')))

    def test_as_many_as_there_are_is_no_cap(self):
        with Program(POLICY='pm', THREADS='1024') as p:
            self.assertEqual(p.do('ask'), self.all)

    def test_a_young_program_is_kept_to_its_cap(self):
        """LLVM's OpenMP sizes its team by the kernel's answer, at any time before it has threads."""
        with Program(THREADS='1', POLICY='pm', INTERVAL='5ms') as p:
            p.do('alloc 20')
            self.assertRegex(p.do('kernel'), r'^\d+ other 0$')

    def test_no_cap_without_reason(self):
        for settings in ({'POLICY': 'dram', 'THREADS': '1'}, {'POLICY': 'pm'}, {'POLICY': 'off', 'THREADS': '1'},
                         {'POLICY': 'pm', 'THREADS': 'off'}, {'PM': 'none', 'POLICY': 'pm', 'THREADS': '1', 'DRAM': '1G'}):
            with self.subTest(**settings):
                p = Program(**settings)
                self.assertEqual(p.do('ask'), self.all)
                p.proc.communicate()

    def test_threads_and_barriers(self):
        with Program(POLICY='pm', THREADS='1') as p:
            for n in (1, 2, 3, 8, 40):
                self.assertRegex(p.do('threads %d 50' % n), r'^%d on \d+$' % n)

    def test_other_programs_do_not_inherit_it(self):
        with Program(POLICY='pm', THREADS='1') as p:
            for how in STARTERS:
                with self.subTest(how=how):
                    self.assertEqual(p.do('child ' + how), str(len(CPUS)))
                    self.assertTrue(self.capped(p.do('ask')), 'still capped')

    def test_follows_the_data(self):
        with Program(POLICY='first-fit', THREADS='1', DRAM='8M') as p:
            self.assertEqual(p.do('ask'), self.all)
            p.do('alloc 64')  # most of it beyond the limit
            p.until('ask', self.capped)
            p.do('free')
            p.do('alloc 4')
            # Free memory is given back with time; then what is left is on DRAM.
            p.until('ask', self.free)

    def test_own_affinity_stays(self):
        last = CPUS[-1]
        with Program(POLICY='first-fit', THREADS='1', DRAM='8M') as p:
            p.do('pin %d' % last)
            p.do('alloc 64')
            p.until('ask', self.capped)
            self.assertEqual(p.do('pinned'), str(last))
            self.assertEqual(p.do('set ' + ranges(CPUS)), 'ok')
            time.sleep(0.2)  # several looks of the control thread
            self.assertEqual(p.do('ask'), self.all)

    def test_other_programs_inherit_the_users_affinity(self):
        with Program(POLICY='pm', THREADS='1') as p:
            told = int(p.do('ask').split()[-1])
            other = next(c for c in CPUS if c != told)
            self.assertEqual(p.do('set %d' % other), 'ok')
            for how in STARTERS:
                with self.subTest(how=how):
                    self.assertEqual(p.do('child ' + how), '1')
                    self.assertIn('affinity %d' % other, p.do('ask'))

    def test_putting_back_what_was_seen_is_no_wish(self):
        with Program(POLICY='first-fit', THREADS='1', DRAM='8M') as p:
            p.do('alloc 64')
            told = p.until('ask', self.capped)
            self.assertEqual(p.do('set ' + told.split()[-1]), 'ok')
            p.do('free')
            p.do('alloc 4')
            p.until('ask', self.free)

    def pinned_program(self):
        """One whose data are on DRAM or on PM at will, with a thread that has pinned itself."""
        p = Program(POLICY='first-fit', THREADS='1', DRAM='8M')
        p.do('pin %d' % CPUS[-1])
        return p

    def confine(self, p):
        p.do('alloc 64')
        return int(p.until('ask', self.capped).split()[-1])

    def release(self, p):
        p.do('free')
        p.do('alloc 4')
        p.until('ask', self.free)

    def test_affinity_of_another_thread_by_its_number(self):
        for how in ('setpinned', 'npset'):
            with self.subTest(how=how), self.pinned_program() as p:
                told = self.confine(p)
                other = next(c for c in CPUS if c != told)
                for wanted in (other, told, other):
                    p.do('%s %d' % (how, wanted))
                    self.assertEqual(p.do('pinned'), str(wanted))
                # All CPUs, while there is a cap, is a wish and stays one.
                p.do('%s %s' % (how, ranges(CPUS)))
                time.sleep(0.2)
                self.assertEqual(p.do('pinned'), ranges(CPUS))
                self.release(p)
                self.confine(p)
                time.sleep(0.2)
                self.assertEqual(p.do('pinned'), ranges(CPUS))

    def test_affinity_of_an_attribute(self):
        with self.pinned_program() as p:
            told = self.confine(p)
            for wanted in (str(told), ranges(CPUS), str(next(c for c in CPUS if c != told))):
                self.assertEqual(p.do('born ' + wanted), wanted)

    def test_kept_and_put_back(self):
        """What hwloc does: bind here and there, then put back what was before."""
        with self.pinned_program() as p:
            self.assertEqual(p.do('around %d' % CPUS[-1]), ranges(CPUS))
            told = self.confine(p)  # still ours to confine
            other = next(c for c in CPUS if c != told)
            self.assertEqual(p.do('around %d' % other), str(told))
            self.release(p)  # and to release: the thread did not keep the cap

    def test_other_processes_are_left_alone(self):
        with self.pinned_program() as p:
            told = self.confine(p)
            for wanted in (str(told), ranges(CPUS), str(next(c for c in CPUS if c != told))):
                self.assertEqual(p.do('child_set ' + wanted), wanted)

    def test_what_confined_ones_leave_is_offered(self):
        with tempfile.TemporaryDirectory() as d:
            shared = {'REGISTRY': d + '/registry'}
            with Program(POLICY='pm', THREADS='1', **shared) as one:
                told = int(one.do('ask').split()[-1])
                with Program(POLICY='dram', **shared) as two:
                    m = re.fullmatch(r'online (\d+) (\d+) configured \d+ affinity (.*)', two.do('ask'))
                    self.assertEqual(m[3], ranges([c for c in CPUS if c != told]))
                    self.assertEqual((m[1], m[2]), (str(len(CPUS) - 1),) * 2)
                    # It is told, not confined: what it starts sees all.
                    self.assertEqual(two.do('child spawn'), str(len(CPUS)))
                with Program(POLICY='dram', THREADS='off', **shared) as three:
                    self.assertEqual(three.do('ask'), self.all)
            # Nobody leaves any: all are there again.
            with Program(POLICY='dram', **shared) as four:
                self.assertEqual(four.do('ask'), self.all)

    def test_offer_keeps_to_the_users_affinity(self):
        with tempfile.TemporaryDirectory() as d:
            shared = {'REGISTRY': d + '/registry'}
            with Program(POLICY='pm', THREADS='1', **shared) as one:
                told = int(one.do('ask').split()[-1])
                # Nothing would be left of it: then it is all.
                with Program(('taskset', '-c', str(told)), POLICY='dram', **shared) as two:
                    self.assertIn('affinity %d' % told, two.do('ask'))

    def test_profile_on_dram(self):
        with tempfile.NamedTemporaryFile('w', suffix='.ini') as f:
            f.write('[app]\nexe = %s\n[threads]\ndram = 1\n' % os.path.basename(ARGS.cpus))
            f.flush()
            with Program(POLICY='dram', PROFILE=f.name) as p:
                self.assertTrue(self.capped(p.do('ask')))
            with Program(POLICY='pm', PROFILE=f.name) as p:
                self.assertEqual(p.do('ask'), self.all)

    def test_threads_are_counted(self):
        with tempfile.TemporaryDirectory() as d:
            with Program(POLICY='pm', THREADS='1', STATS=d + '/stats') as p:
                p.do('alloc 32')
                p.do('threads 9 20')
                p.do('pin %d' % CPUS[0])
                # Joined threads are listed for a moment more. Left are main, the pinned one, and ours.
                end = time.monotonic() + PATIENCE_S
                while len(os.listdir('/proc/%d/task' % p.proc.pid)) > 3:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.02)
            with open(d + '/stats', encoding='utf-8') as f:
                t = json.load(f)['threads']
        self.assertEqual((t['created'], t['live'], t['cap']), (10, 2, 1))
        self.assertGreaterEqual(t['most'], 2)

    def test_within_what_the_user_allows(self):
        if len(CPUS) < 2:
            self.skipTest('one CPU')
        with Program(('taskset', '-c', str(CPUS[1])), POLICY='pm', THREADS='1') as p:
            self.assertIn('affinity %d' % CPUS[1], p.do('ask'))
            self.assertEqual(p.do('child spawn'), '1')

    def test_two_programs_share_out_the_cpus(self):
        with tempfile.TemporaryDirectory() as d:
            shared = {'POLICY': 'pm', 'THREADS': '1', 'REGISTRY': d + '/registry'}
            with Program(**shared) as one, Program(**shared) as two:
                for p in (one, two):  # with a thread more than their cap, so that they are confined
                    p.do('alloc 32')
                    p.do('pin %d' % CPUS[0])
                # Of two that chose the same CPU, one goes elsewhere; it does not come back.
                end = time.monotonic() + PATIENCE_S
                while one.do('ask') == two.do('ask'):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.05)
                seen = {one.do('ask'), two.do('ask')}
                time.sleep(0.3)
                self.assertEqual({one.do('ask'), two.do('ask')}, seen)

    def test_profile(self):
        with tempfile.NamedTemporaryFile('w', suffix='.ini') as f:
            f.write('[app]\nexe = %s\n[threads]\npm = 1\ndram = 2\n' % os.path.basename(ARGS.cpus))
            f.flush()
            with Program(POLICY='pm', PROFILE=f.name) as p:
                self.assertTrue(self.capped(p.do('ask')))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--lib', required=True)
    parser.add_argument('--cpus', required=True)
    ARGS, rest = parser.parse_known_args()
    if len(CPUS) < 2:
        print('skipped: this machine has one CPU, so no cap shows')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
