#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shares of the last-level cache as their user sees them: on the emulated machine, and by a group of
resctrl in a fake tree, where this script plays the kernel. Times are virtual.

    test_cache.py --build BUILD
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ARGS = None
# Instead of waiting without end: nothing here takes a tenth of it on a loaded computer.
PATIENCE_S = 400
HOLD = "import sys\nb = bytearray(8 << 20)\nprint('up', flush=True)\nsys.stdin.readline()\n"


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)


class Kernel:
    """A fake tree of resctrl with one delegated group; `writes`: what was written to which tasks."""

    def __init__(self, root):
        self.root, self.group = root, root + '/libhybrid'
        put(root + '/info/L3/cbm_mask', 'ff\n')
        put(root + '/info/L3/min_cbm_bits', '1\n')
        put(self.group + '/schemata', 'L3:0=1\n')
        self.writes = []
        for where in (root, self.group):
            os.mkfifo(where + '/tasks')
            pipe = os.open(where + '/tasks', os.O_RDWR)
            threading.Thread(target=self.read, args=(pipe, where == self.group), daemon=True).start()

    def read(self, pipe, into):
        while True:
            # A task a write; several that come at once have no space between them here.
            self.writes.append((into, os.read(pipe, 4096).decode()))

    def moved(self, into, since=0):
        return ' '.join(text for where, text in self.writes[since:] if where == into)

    def is_back(self, tid, since):
        """It has left and come back. By counts, as what is written to the two files at once is read in
        any order."""
        return self.moved(True, since).count(tid) >= self.moved(False, since).count(tid) > 0

    def is_out(self, tid, since):
        """It has left since then, or had left already and not come back."""
        last = [into for into, text in self.writes[:] if tid in text][-1:]
        return tid in self.moved(False, since) or last == [False]


class CacheTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='hybrid-cache-', dir='/dev/shm')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def env(self, name, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_'))}
        env.update({'LD_PRELOAD': ARGS.build + '/shim/libhybrid.so', 'HYBRID_PM': 'emulated',
                    'HYBRID_START': '0', 'HYBRID_POLICY': 'dram',
                    'HYBRID_REGISTRY': self.dir + '/registry', 'HYBRID_CLASS_PERIOD': '1ms',
                    'HYBRID_INTERVAL': '1ms', 'HYBRID_VERBOSE': '1',
                    'HYBRID_STATS': f'{self.dir}/{name}.json', 'HYBRID_EMU_PRESET': 'optane',
                    'HYBRID_EMU_CPUS': '8', 'HYBRID_EMU_MACHINE': self.dir + '/machine',
                    'OMP_WAIT_POLICY': 'passive'})
        return {**env, **settings}

    def start(self, name, args, **settings):
        p = subprocess.Popen(args, env=self.env(name, **settings), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        return p

    def report(self, name):
        with open(f'{self.dir}/{name}.json', encoding='utf-8') as f:
            return json.load(f)['cache']

    def workloads(self, *programs, **settings):
        """Side by side: of each what it told of its work, and the report of its share."""
        running = [self.start(name, [f'{ARGS.build}/bench/workloads/emu-{name}', '--threads', '2',
                                     '--size', size, '--rounds', rounds, '--time', '--gate',
                                     f'{self.dir}/gate,{len(programs)}'], **settings)
                   for name, size, rounds in programs]
        found = []
        for (name, *_), p in zip(programs, running):
            out, err = p.communicate(timeout=PATIENCE_S)
            self.assertEqual(p.returncode, 0, out + err)
            found.append(({k: int(v) for k, v in re.findall(r'(\w+)=(\d+)', out)},
                          self.report(name)))
        os.remove(self.dir + '/gate')
        return found

    def test_what_a_stream_does_without_others_have(self):
        stream, gups = ('stream', '8', '150'), ('gups', '1', '300')
        (s_off, none), (g_off, _) = self.workloads(stream, gups, HYBRID_CACHE='off')
        self.assertEqual((none['possible'], none['few_ns']), (False, 0))
        (s_on, cache), (g_on, other) = self.workloads(stream, gups)
        self.assertEqual((cache['few'], cache['ways'], cache['times'] > 0), (1, 8, True), cache)
        self.assertGreaterEqual(cache['speed_milli'], 990)
        self.assertEqual((other['few_ns'], other['times']), (0, 0), 'gups uses what it has')
        self.assertLess(g_on['LLC_RD_DRAM'], 0.85 * g_off['LLC_RD_DRAM'])
        self.assertLess(g_on['work_ns'], 0.9 * g_off['work_ns'])
        self.assertLess(s_on['work_ns'], 1.015 * s_off['work_ns'])

    def test_alone_nothing_is_tried(self):
        ((_, cache),) = self.workloads(('stream', '8', '150'))
        self.assertEqual((cache['possible'], cache['few_ns'], cache['times']), (True, 0, 0))

    def until(self, what, true):
        end = time.monotonic() + PATIENCE_S
        while not true():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def ctl(self, *command):
        return subprocess.run([ARGS.build + '/tools/hybridctl', *command, '--registry',
                               self.dir + '/registry'], stdout=subprocess.PIPE, text=True,
                              timeout=PATIENCE_S, check=True).stdout

    def threads(self, p):
        return os.listdir(f'/proc/{p.pid}/task')

    def test_threads_go_into_the_group_and_back(self):
        kernel = Kernel(self.dir + '/resctrl')
        neighbour = self.start('neighbour', [sys.executable, '-c', HOLD])
        self.assertEqual(neighbour.stdout.readline(), 'up\n')
        p = self.start('streams', [ARGS.build + '/bench/cache/emu-streams', self.dir],
                       HYBRID_CACHE='group:' + kernel.group)
        self.until('it is tried', lambda: kernel.moved(True))
        self.until('it is kept', lambda: 'are enough' in p.stderr.readline())
        told = r'(?m)^ *%d keeps to 1 way of the last-level cache: it streams' % p.pid
        self.until('status tells', lambda: re.search(told, self.ctl('status')))
        self.until('top tells',
                   lambda: re.search(told, self.ctl('top', '--once', '--interval', '0.1')))
        entries = {e['pid']: e for e in json.loads(self.ctl('status', '--json'))['participants']}
        self.assertEqual((entries[p.pid]['cache_class'], entries[p.pid]['cache_ways']),
                         ('streams', 1))
        self.assertEqual(entries[neighbour.pid]['cache_ways'], 0, 'it has all')
        for tid in self.threads(p):
            self.assertIn(tid, kernel.moved(True))
        # What it starts has all of the cache: the caller leaves the group and comes back.
        self.assertGreater(len(self.threads(p)), 2)
        before, (main, *others) = len(kernel.writes), sorted(self.threads(p), key=int)
        system = self.dir + '/system'

        def more_often():
            left = kernel.moved(False, before)
            return left.count(main) > max(left.count(tid) for tid in others)

        def again():
            # All are out of it now and then, to see what that would gain: who leaves then is not seen.
            if not os.path.exists(system) and not more_often():
                put(system, '')
            return not os.path.exists(system) and more_often()
        self.until('the caller alone has left', again)
        time.sleep(0.5)
        self.assertTrue(more_often())
        self.until('the caller has come back', lambda: kernel.is_back(main, before))

        def child_has_left():
            put(self.dir + '/fork', '')
            child, end = p.stdout.readline().strip(), time.monotonic() + 1
            while child not in kernel.moved(False, before) and time.monotonic() < end:
                time.sleep(0.02)
            return child in kernel.moved(False, before)
        self.until('fork', child_has_left)
        # Without a neighbour it has all. What is told is what is kept: that its threads are out for a moment,
        # to see what that would gain, is none of it.
        before = len(kernel.writes)
        neighbour.communicate('\n', timeout=PATIENCE_S)
        self.until('it has all ways again', lambda: not re.search(told, self.ctl('status')))
        self.until('its threads are out', lambda: all(kernel.is_out(t, before) for t in self.threads(p)))
        put(self.dir + '/end', '')
        _, err = p.communicate(timeout=PATIENCE_S)
        self.assertEqual(p.returncode, 0, err)
        self.assertIn('all ways of the last-level cache again', err)
        cache = self.report('streams')
        self.assertEqual((cache['where'], cache['few'], cache['ways'], cache['now']),
                         (kernel.group, 1, 8, False))

    def test_a_group_that_is_none_is_told(self):
        os.mkdir(self.dir + '/empty')
        p = self.start('streams', [ARGS.build + '/bench/cache/emu-streams', self.dir],
                       HYBRID_CACHE=f'group:{self.dir}/empty')
        self.until('it is told', lambda: f'HYBRID_CACHE=group:{self.dir}/empty: {self.dir} offers no '
                   'shares of the last-level cache' in p.stderr.readline())
        put(self.dir + '/end', '')
        _, err = p.communicate(timeout=PATIENCE_S)
        self.assertEqual(p.returncode, 0, err)
        self.assertFalse(self.report('streams')['possible'])


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    ARGS, left = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + left, verbosity=2)
