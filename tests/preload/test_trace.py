#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Traces that programs leave, and the pages that hybridctl report makes of them.

    test_trace.py --ctl FILE --lib libhybrid.so --tools DIR [unittest arguments]
"""
import glob
import json
import os

import viewed
from page import PageCase, lines_of
from viewed import HOLD, PATIENCE_S


class Trace(PageCase):
    # Until its trace, if there is to be one, has that many samples more: the library's thread may run
    # late, the file is written once a second, and the first samples may be from before all is there.
    BUSY = (
        "import os, time\nb = [bytearray(1 << 20) for _ in range(40)]\nprint('up', flush=True)\n"
        "begin = time.monotonic()\nname = os.environ['HYBRID_TRACE'].replace('%%p', str(os.getpid()))\n"
        "def ticks():\n"
        "  return open(name).read().count('\"tick\"') if os.path.isfile(name) else 0\n"
        "first = ticks()\n"
        "while ticks() < first + %d and time.monotonic() < begin + %d:\n"
        "  b[3][77] ^= 1\n"
        "  time.sleep(0.01)\n"
    )

    def traced(self, code, name='t.trace', **more):
        p = self.start(code, HYBRID_TRACE=name, **more)
        out, _ = p.communicate('\n', timeout=PATIENCE_S)
        self.assertEqual(p.returncode, 0, out)
        return p.pid

    def test_a_run(self):
        pid = self.traced(self.BUSY % (4, PATIENCE_S / 2), self.dir + '/%p.trace',
                          HYBRID_STATS=self.dir + '/%p.json', HYBRID_CLASS='cpu')
        trace = '%s/%d.trace' % (self.dir, pid)
        lines = lines_of(trace)
        self.assertEqual((lines[0]['line'], lines[0]['version'], lines[0]['pid']), ('run', 1, pid))
        self.assertEqual(lines[-1]['line'], 'end')
        self.assertIn(
            {'line': 'setting', 'name': 'HYBRID_DRAM', 'value': '16M', 'from': 'environment'},
            lines)
        ticks = [d for d in lines if 'tick' in d]
        self.assertGreater(len(ticks), 3)
        self.assertEqual([t['ns'] for t in ticks], sorted(t['ns'] for t in ticks))
        self.assertGreaterEqual(max(t['used'][1] for t in ticks), 20 << 20)
        self.assertTrue(all(t['class'] == 'cpu' for t in ticks))
        c = self.page(trace, '%s/%d.json' % (self.dir, pid))
        self.assertIn('process %d' % pid, c.words)
        for said in ('CPU-bound', 'HYBRID_DRAM', 'Memory on each tier', 'At the end', 'heap live'):
            self.assertIn(said, c.words)
        self.assertNotIn('The trace has no end', c.words)
        with open('%s/%d.json' % (self.dir, pid), encoding='utf-8') as f:
            stats = json.load(f)
        self.assertIn('up_bytes', stats['migration'])
        self.assertEqual(set(stats['gain']),
                         {'windows', 'judged', 'all_dram_ns', 'as_placed_ns', 'all_pm_ns', 'busy_ns',
                          'compute_ns', 'service_ns'})
        self.assertIsInstance(stats['warnings'], list)

    def test_a_killed_program_leaves_what_was(self):
        p = self.start(HOLD % 40, HYBRID_TRACE='t.trace')
        path = self.dir + '/t.trace'
        self.until(lambda: os.path.exists(path) and any('tick' in d for d in lines_of(path)),
                   'nothing was written')
        p.kill()
        p.wait()
        self.assertNotIn('end', [d.get('line') for d in lines_of(path)])
        self.assertIn('The trace has no end', self.page(path).words)
        self.assertEqual(glob.glob(self.dir + '/*.tmp'), [])

    def test_the_directory_may_change(self):
        os.mkdir(self.dir + '/elsewhere')
        here = "import os; os.environ['HYBRID_TRACE'] = os.path.abspath('t.trace')\n"
        self.traced(here + "os.chdir('elsewhere')\n" + self.BUSY % (1, PATIENCE_S / 2))
        self.assertTrue(os.path.exists(self.dir + '/t.trace'))
        self.assertEqual(os.listdir(self.dir + '/elsewhere'), [])

    def test_children(self):
        code = ("import os, time\n" + HOLD.replace('sys.stdin.readline()', '') % 40 +
                "pid = os.fork()\nb += [bytearray(1 << 20) for _ in range(20)]\n%s\n"
                "if pid: os.waitpid(pid, 0)\n")
        own = ("end = time.monotonic() + %d\nwhile time.monotonic() < end and not os.path.exists("
               "'%%d.trace' %% os.getpid()):\n  time.sleep(0.01)" % (PATIENCE_S / 2))
        pid = self.traced(code % own, '%p.trace')
        traces = {lines_of(f)[0]['pid'] for f in glob.glob(self.dir + '/*.trace')}
        self.assertIn(pid, traces)
        self.assertEqual(len(traces), 2)
        for f in glob.glob(self.dir + '/*.trace'):
            os.unlink(f)
        pid = self.traced(code % 'time.sleep(1.2)')
        self.assertEqual(lines_of(self.dir + '/t.trace')[0]['pid'], pid)

    def test_warnings_are_kept(self):
        self.traced(self.BUSY % (1, PATIENCE_S / 2), HYBRID_DRAM_SHARED='lots')
        self.assertIn(
            'HYBRID_DRAM_SHARED',
            self.page(self.dir + '/t.trace').words.split('Warnings')[1].split('Settings')[0])

    def test_no_trace_harms_nobody(self):
        self.traced(self.BUSY % (1, 2), self.dir + '/no/such/dir/x')
        self.traced(self.BUSY % (1, 2), '/dev/null')
        self.assertTrue(os.path.exists('/dev/null') and not os.path.isfile('/dev/null'))


if __name__ == '__main__':
    viewed.main()
