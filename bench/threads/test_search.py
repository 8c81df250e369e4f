#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The search for the number of threads while a program runs, as its user sees it: on the emulated
machine, without a profile. Times are virtual, so no load of the computer decides.

    test_search.py --build BUILD
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ARGS = None
# Long enough for several trials: the first is paid for after 250 windows, 800 where these differ much.
STREAM = ('stream', '--size', '8', '--rounds', '120')
# Long enough for one: 500 windows.
SHORTER = (*STREAM[:-1], '50')
PRICING = ('pricing', '--size', '2', '--rounds', '12')
# A machine that PM's traffic slows more than any: half of the threads are faster than all there, by 10 to
# 20 percent while one of the three arrays lies on DRAM. Some windows have next to no lines, or none.
HINDERED = {'SET': 'ctl_write_pct=60,ctl_read_pct=60,ctl_cross_pct=60,ctl_queue=20'}
MIXED = {'POLICY': 'first-fit', 'DRAM': '2816K', 'MIGRATE': 'off'}
# The purse, and what the clock of a busy computer is off.
NEVER_SLOWER = 1.015


def run(workload, threads='20', emu=None, **settings):
    """(stdout's first line, stderr, the report)."""
    with tempfile.TemporaryDirectory() as d:
        env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_'))}
        env.update({'LD_PRELOAD': ARGS.build + '/shim/libhybrid.so', 'HYBRID_PM': 'emulated',
                    'HYBRID_START': '0', 'HYBRID_POLICY': 'pm', 'HYBRID_REGISTRY': 'none',
                    'HYBRID_CLASS_PERIOD': '1ms', 'HYBRID_INTERVAL': '1ms', 'HYBRID_VERBOSE': '1',
                    'HYBRID_EMU_PRESET': 'optane', 'HYBRID_STATS': d + '/stats'})
        env.update({'HYBRID_' + k: v for k, v in settings.items()})
        env.update({'HYBRID_EMU_' + k: v for k, v in (emu or {}).items()})
        name, *rest = workload
        program = ARGS.build + '/bench/workloads/emu-' + name
        done = subprocess.run([program, '--threads', threads, '--emulated', '--time', *rest], env=env,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError('status %d: %s%s' % (done.returncode, done.stdout, done.stderr))
        with open(d + '/stats', encoding='utf-8') as f:
            return done.stdout, done.stderr, json.load(f)['threads']


def virtual_ms(out):
    return int(re.search(r'work_ns=(\d+)', out)[1]) / 1e6


class SearchTest(unittest.TestCase):
    def test_costs_nothing_where_nothing_is_gained(self):
        # One thread fills this PM: every number is as good as all.
        out, _, t = run(STREAM, THREADS='off')
        self.assertEqual(t['searches'], 0)
        plain = virtual_ms(out)
        out, err, t = run(STREAM)
        self.assertLessEqual(virtual_ms(out), NEVER_SLOWER * plain, (err, t))
        self.assertGreaterEqual(t['searches'], 1)
        self.assertEqual(t['tried'][0], {'threads': 20, 'speed_milli': 1000}, t)
        self.assertLessEqual(len(t['tried']), 16)
        self.assertLessEqual(err.count('threads: at most'), err.count('are as fast as all'), err)

    def test_finds_fewer_where_they_gain(self):
        long = (*STREAM[:-1], '200')
        plain = virtual_ms(run(long, emu=HINDERED, THREADS='off', **MIXED)[0])
        out, err, t = run(long, emu=HINDERED, **MIXED)
        self.assertLessEqual(virtual_ms(out), NEVER_SLOWER * plain, (err, t))
        said = re.findall(r'threads: (\d+) of 20 are as fast as all', err)
        self.assertTrue(said and all(1 <= int(n) < 20 for n in said), (err, t))

    def test_short_runs_try_nothing(self):
        _, err, t = run((*STREAM[:-1], '10'))
        self.assertEqual((t['searches'], t['changes'], t['cap']), (0, 0, 0))
        self.assertNotIn('threads:', err)

    def with_profile(self, workload, n):
        with tempfile.NamedTemporaryFile('w', suffix='.ini') as f:
            f.write('[app]\nexe = emu-%s\n[threads]\npm = %d\n' % (workload[0], n))
            f.flush()
            return run(workload, PROFILE=f.name)

    def test_profile_that_is_slower_is_given_up(self):
        # It takes three times as long with two threads.
        _, err, t = self.with_profile(('kv', '--rounds', '50'), 2)
        self.assertRegex(err, r"threads: the profile's 2 on PM are given up: with 20 it is [1-9]\S+ times as fast")
        self.assertEqual((t['cap'], t['held']), (0, 0))

    def test_profile_that_is_as_fast_stays(self):
        _, err, t = self.with_profile(STREAM, 4)
        self.assertNotIn('given up', err)
        self.assertEqual(t['cap'], 4)
        self.assertGreaterEqual(t['changes'], 3, 'it was checked')

    def test_never_cpu_bound(self):
        out, err, t = run(PRICING)
        self.assertIn(' ok', out)
        self.assertEqual((t['searches'], t['cap'], t['changes']), (0, 0, 0))
        self.assertNotIn('threads:', err)

    def test_never_where_somebody_knows(self):
        self.assertGreaterEqual(run(SHORTER)[2]['searches'], 1, 'otherwise there is one')
        for settings in ({'CLASS': 'latency'}, {'POLICY': 'dram'}, {'COUNTERS': 'off'}):
            with self.subTest(**settings):
                self.assertEqual(run(SHORTER, **settings)[2]['searches'], 0)
        _, _, t = run(SHORTER, THREADS='3')
        self.assertEqual((t['searches'], t['cap']), (0, 3))

    def test_within_the_users_affinity(self):
        _, _, t = run(SHORTER, threads='6', emu={'AFFINITY': '4-6'})
        self.assertEqual(t['cpus'], 3)
        self.assertTrue(all(x['threads'] <= 3 for x in t['tried']), t)
        self.assertLessEqual(t['cap'], 2)

    def test_one_thread_needs_none(self):
        _, _, t = run(SHORTER, threads='1')
        self.assertEqual((t['searches'], t['cap']), (0, 0))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    ARGS, left = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + left, verbosity=2)
