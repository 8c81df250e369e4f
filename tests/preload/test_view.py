#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl top on a terminal and without one; traces, and the pages that hybridctl report makes
of them, also of traces that nobody would write.

    test_view.py --ctl FILE --lib libhybrid.so --tools DIR [unittest arguments]
"""
import argparse
import fcntl
import glob
import html.parser
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

OPTIONS = None  # paths, from the command line
NOTHING_OF_OURS = {
    k: v
    for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_PRELOAD'))
}
HOLD = ("import sys\nb = [bytearray(1 << 20) for _ in range(%d)]\nprint('up', flush=True)\n"
        "sys.stdin.readline()\n")


def ctl(*args, **kw):
    return subprocess.run([OPTIONS.ctl, *args], env=NOTHING_OF_OURS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
                          **kw)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='hybrid-view-')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.registry = self.dir + '/registry'

    def env(self, **more):
        return {
            **NOTHING_OF_OURS, 'LD_PRELOAD': OPTIONS.lib, 'HYBRID_PM': 'emulated',
            'HYBRID_START': '0', 'HYBRID_REGISTRY': self.registry, 'HYBRID_POLICY': 'first-fit',
            'HYBRID_DRAM': '16M', 'HYBRID_INTERVAL': '50ms', **more
        }

    def start(self, code, program=sys.executable, **more):
        """A program under the library, once it says that it is up."""
        p = subprocess.Popen([program, '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True, env=self.env(**more), cwd=self.dir)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.addCleanup(p.stdin.close)
        self.assertEqual(p.stdout.readline(), 'up\n')
        return p

    def hold(self, mib, **more):
        """One that holds memory, once the registry tells of its PM."""
        p = self.start(HOLD % mib, **more)
        self.until(
            lambda: any(e['pid'] == p.pid and e['pm_bytes'] > 0 for e in json.loads(
                ctl('status', '--json', '--registry', self.registry).stdout)['participants']),
            'never told')
        return p

    def until(self, true, what):
        for _ in range(600):
            if true():
                return
            time.sleep(0.05)
        self.fail(what)

    def ends(self, done, status, said):
        self.assertEqual(done.returncode, status, done.stdout[:500] + done.stderr)
        self.assertIn(said, done.stderr + done.stdout[:500])


# --- top ---------------------------------------------------------------------------------


class TopLines(Case):
    def test_no_registry(self):
        self.ends(ctl('top', '--once', '--registry', self.registry), 1,
                  'No registry at ' + self.registry)
        done = ctl('top', '--once', '--json', '--registry', self.registry)
        self.assertEqual((json.loads(done.stdout)['exists'], done.returncode), (False, 1))
        self.assertFalse(os.path.exists(self.registry))

    def test_wrong_arguments(self):
        for bad in ('0', '0.05', '3601', 'x', '-1', ''):
            self.ends(ctl('top', '--interval', bad), 2, '0.1 to 3600')
        self.ends(ctl('top', '--sort', 'size'), 2, 'dram, pm, moves')
        self.ends(ctl('top', 'extra'), 2, "'extra'")
        with open(self.registry, 'w', encoding='ascii') as f:
            f.write('rubbish')
        os.chmod(self.registry, 0o600)
        self.ends(ctl('top', '--once', '--registry', self.registry), 1, 'no registry')

    def test_a_participant(self):
        p = self.hold(40, HYBRID_CLASS='bandwidth')
        done = ctl('top', '--once', '--interval', '0.1', '--registry', self.registry)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn('\033', done.stdout)
        self.assertRegex(done.stdout, r'(?m)^ *%d \S+ +bandw ' % p.pid)
        self.assertRegex(done.stdout, r'(?m)^DRAM +\[\|+ *\] .* for all$')
        told = json.loads(
            ctl('top', '--once', '--json', '--interval', '0.1', '--registry', self.registry).stdout)
        entry, = told['participants']
        self.assertEqual((entry['pid'], entry['class']), (p.pid, 'bandwidth'))
        self.assertGreaterEqual(entry['pm_bytes'], 20 << 20)
        for key in ('promoted_per_s', 'demoted_per_s', 'written_bytes', 'confidence_milli',
                    'slowdown_milli', 'placed_slowdown_milli', 'thread_cap', 'threads',
                    'heartbeat_age_ms', 'wish_bytes', 'asked_bytes'):
            self.assertIsInstance(entry[key], int, key)

    def test_a_name_cannot_steer_the_terminal(self):
        evil = self.dir + '/a\033[2J<b>'
        os.symlink(os.path.realpath(sys.executable), evil)
        p = self.start(HOLD % 40, evil, PYTHONHOME=sys.prefix)
        self.until(
            lambda: ' %d ' % p.pid in ctl('top', '--once', '--interval', '0.1', '--registry', self.
                                          registry).stdout, 'never told')
        out = ctl('top', '--once', '--interval', '0.1', '--registry', self.registry).stdout
        self.assertNotIn('\033', out)
        self.assertRegex(out, r'(?m)^ *%d a\?\[2J<b> ' % p.pid)


class Screen:
    """As much of a terminal as top needs: what stands where."""
    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.other = self.hidden = self.scrolled = False
        self.clear()

    def clear(self):
        self.cells = [''] * self.rows
        self.row = 0
        self.fresh = True

    def feed(self, text):
        for part in re.findall(r'\033\[[?0-9;]*[A-Za-z]|[^\033\r\n]+|[\r\n]', text):
            if part == '\n':
                self.scrolled |= self.row == self.rows - 1
                self.row = min(self.row + 1, self.rows - 1)
                self.fresh = True
            elif part == '\033[H' or re.fullmatch(r'\033\[\d+;1H', part):
                self.row = min(int(part[2:-3]) - 1, self.rows - 1) if part != '\033[H' else 0
                self.fresh = True
            elif part in ('\033[K', '\033[J', '\033[2J'):
                if self.fresh or part == '\033[2J':
                    self.cells[self.row] = ''
                if part != '\033[K':
                    for r in range(self.row + 1, self.rows):
                        self.cells[r] = ''
            elif part in ('\033[?1049h', '\033[?1049l'):
                self.other = part.endswith('h')
            elif part in ('\033[?25h', '\033[?25l'):
                self.hidden = part.endswith('l')
            elif part.startswith('\033['):
                assert part.endswith('m'), repr(part)
            elif part != '\r':
                self.cells[self.row] = part if self.fresh else self.cells[self.row] + part
                self.fresh = False


class TopTerminal(Case):
    def open(self, *args, columns=80, rows=24, term='xterm', stdin=None):
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.addCleanup(os.close, slave)
        self.slave = slave
        self.screen = Screen(columns, rows)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.told = ''

        def own_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        p = subprocess.Popen([OPTIONS.ctl, 'top', '--registry', self.registry, *args],
                             stdin=slave if stdin is None else stdin, stdout=slave, stderr=slave,
                             env={**NOTHING_OF_OURS, 'TERM': term}, preexec_fn=own_terminal)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.p = p
        return p

    def take(self, seconds=0.05):
        if select.select([self.master], [], [], seconds)[0]:
            text = os.read(self.master, 65536).decode()
            self.told += text
            self.screen.feed(text)
            return True
        return False

    def shows(self, true, what):
        for _ in range(600):
            while self.take():
                pass
            if true(self.screen.cells):
                for line in self.screen.cells:
                    self.assertLessEqual(len(line), self.screen.columns, line)
                return
        self.fail('%s: %s' % (what, '\n'.join(self.screen.cells)))

    def key(self, text):
        os.write(self.master, text.encode())

    def gives_back(self, status):
        for _ in range(600):
            self.take()
            if self.p.poll() is not None:
                break
        while self.take():
            pass
        self.assertEqual(self.p.poll(), status)
        self.assertFalse(self.screen.other)
        self.assertFalse(self.screen.hidden)
        self.assertEqual(termios.tcgetattr(self.slave), self.before)

    def order(self):
        return [
            int(m.group(1)) for m in (re.match(r' *(\d+) ', line) for line in self.screen.cells)
            if m
        ]

    def test_live(self):
        one, two = self.hold(60), self.hold(40)
        self.open('--interval', '0.2')
        self.shows(lambda cells: len(self.order()) == 2, 'two rows')
        self.assertTrue(self.screen.other and self.screen.hidden)
        self.assertIn('q quit', self.screen.cells[-1])
        self.key('p')
        self.shows(lambda cells: self.order() == [one.pid, two.pid], 'most PM first')
        self.key('r')
        self.shows(lambda cells: self.order() == [two.pid, one.pid], 'least PM first')
        one.communicate('\n', timeout=60)  # redrawn in place: it goes, and leaves no trace
        self.shows(lambda cells: self.order() == [two.pid] and str(one.pid) not in '\n'.join(cells),
                   'one row')
        self.assertFalse(self.screen.scrolled)
        self.key('\033[A')  # an arrow is no command
        self.key('q')
        self.gives_back(0)

    def test_resize(self):
        self.hold(40)
        self.open(columns=120)
        self.shows(lambda cells: 'ON DRAM' in '\n'.join(cells), 'wide columns')
        for columns, rows in ((80, 24), (50, 10), (20, 3), (1, 1), (132, 50)):
            self.screen = Screen(columns, rows)
            self.screen.other = self.screen.hidden = True
            fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
            self.shows(lambda cells: any(cells), 'a new drawing')  # the kernel sends SIGWINCH
            self.assertFalse(self.screen.scrolled)
        self.shows(lambda cells: 'ON DRAM' in '\n'.join(cells), 'wide columns again')
        self.key('q')
        self.gives_back(0)

    def test_signals_give_the_terminal_back(self):
        for end, status in (('\x03', -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM),
                            (signal.SIGHUP, -signal.SIGHUP)):
            self.open()
            self.shows(lambda cells: 'No registry' in cells[0], 'a message')
            if isinstance(end, str):
                self.key(end)
            else:
                self.p.send_signal(end)
            self.gives_back(status)

    def test_stopped_and_continued(self):
        self.open()
        self.shows(lambda cells: 'No registry' in cells[0], 'a message')
        self.key('\x1a')
        _, status = os.waitpid(self.p.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        while self.take():
            pass
        self.assertFalse(self.screen.other)
        self.assertEqual(termios.tcgetattr(self.slave), self.before)
        self.p.send_signal(signal.SIGCONT)
        self.shows(lambda cells: self.screen.other and 'No registry' in cells[0],
                   'the screen again')
        self.key('q')
        self.gives_back(0)

    def test_dumb_terminal(self):
        self.open('--interval', '0.1', term='dumb')
        self.until(lambda: self.take() and self.told.count('No registry') >= 2, 'lines')
        self.assertNotIn('\033', self.told)
        self.key('\x03')
        self.gives_back(-signal.SIGINT)

    def test_no_keys_without_a_terminal_to_type_on(self):
        self.open('--interval', '0.1', stdin=subprocess.DEVNULL)
        self.until(lambda: self.take() and self.told.count('No registry') >= 3, 'redrawn')
        self.p.send_signal(signal.SIGTERM)
        self.gives_back(-signal.SIGTERM)


# --- pages -------------------------------------------------------------------------------


class Checker(html.parser.HTMLParser):
    """Tags close in order; nothing comes from outside; no script but ours."""
    VOID = ('meta', 'img', 'source', 'br', 'input', 'link')
    CLOSED = ('line', 'rect', 'polyline', 'polygon')

    def __init__(self, case):
        super().__init__(convert_charrefs=True)
        self.case, self.scripts = case, 0
        self.stack, self.text, self.ids, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.look(tag, attrs)
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.look(tag, attrs)
        self.case.assertIn(tag, self.CLOSED)

    def look(self, tag, attrs):
        self.case.assertNotIn(
            tag, ('link', 'iframe', 'object', 'embed', 'base', 'form', 'image', 'use', 'b>'))
        self.scripts += tag == 'script'
        names = [n for n, _ in attrs]
        self.case.assertEqual(len(names), len(set(names)), tag)
        for name, value in attrs:
            self.case.assertFalse(name.startswith('on'), (tag, name))
            if name in ('src', 'srcset'):
                self.case.assertTrue(value.startswith('data:image/png;base64,'), value[:60])
            elif name == 'href':
                self.case.assertTrue(value.startswith('#'), value)
                self.links.append(value[1:])
            elif name == 'id':
                self.ids.append(value)

    def handle_endtag(self, tag):
        self.case.assertTrue(self.stack, tag)
        self.case.assertEqual(self.stack.pop(), tag)

    def handle_data(self, data):
        if self.stack and self.stack[-1] == 'style':
            self.case.assertNotIn('url(', data)
            self.case.assertNotIn('@import', data)
        elif self.stack and self.stack[-1] != 'script':
            self.text.append(data)

    @property
    def words(self):
        return ' '.join(' '.join(self.text).split())


class PageCase(Case):
    def well_formed(self, page):
        c = Checker(self)
        c.feed(page)
        c.close()
        self.assertEqual(c.stack, [])
        self.assertEqual(c.scripts, 1)
        self.assertTrue(set(c.links) <= set(c.ids))
        self.assertEqual(len(c.ids), len(set(c.ids)))
        self.assertNotIn('http://', page)
        self.assertNotIn('https://', page)
        return c

    def page(self, *files):
        out = self.dir + '/out.html'
        done = ctl('report', '-o', out, *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding='utf-8') as f:
            return self.well_formed(f.read())


def lines_of(path):
    with open(path, encoding='utf-8') as f:
        return [json.loads(line) for line in f.read().splitlines()]


class Trace(PageCase):
    BUSY = (
        "import time\nb = [bytearray(1 << 20) for _ in range(40)]\nprint('up', flush=True)\n"
        "end = time.monotonic() + %s\nwhile time.monotonic() < end:\n  b[3][77] += 1\n"
        "  b[3][77] = 1\n"
    )

    def traced(self, code, name='t.trace', **more):
        p = self.start(code, HYBRID_TRACE=name, **more)
        out, _ = p.communicate('\n', timeout=120)
        self.assertEqual(p.returncode, 0, out)
        return p.pid

    def test_a_run(self):
        pid = self.traced(self.BUSY % 1.5, self.dir + '/%p.trace',
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
                         {'windows', 'judged', 'all_dram_ns', 'as_placed_ns', 'all_pm_ns'})
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
        self.traced("import os; os.chdir('elsewhere')\n" + self.BUSY % 1.2)
        self.assertTrue(os.path.exists(self.dir + '/t.trace'))
        self.assertEqual(os.listdir(self.dir + '/elsewhere'), [])

    def test_children(self):
        code = ("import os, time\n" + HOLD.replace('sys.stdin.readline()', '') % 40 +
                "pid = os.fork()\nb += [bytearray(1 << 20) for _ in range(20)]\ntime.sleep(1.2)\n"
                "if pid: os.waitpid(pid, 0)\n")
        pid = self.traced(code, '%p.trace')
        traces = {lines_of(f)[0]['pid'] for f in glob.glob(self.dir + '/*.trace')}
        self.assertIn(pid, traces)
        self.assertEqual(len(traces), 2)
        for f in glob.glob(self.dir + '/*.trace'):
            os.unlink(f)
        pid = self.traced(code)
        self.assertEqual(lines_of(self.dir + '/t.trace')[0]['pid'], pid)

    def test_warnings_are_kept(self):
        self.traced(self.BUSY % 1.2, HYBRID_DRAM_SHARED='lots')
        self.assertIn(
            'HYBRID_DRAM_SHARED',
            self.page(self.dir + '/t.trace').words.split('Warnings')[1].split('Settings')[0])

    def test_no_trace_harms_nobody(self):
        self.traced(self.BUSY % 1.2, self.dir + '/no/such/dir/x')
        self.traced(self.BUSY % 1.2, '/dev/null')
        self.assertTrue(os.path.exists('/dev/null') and not os.path.isfile('/dev/null'))


# --- traces that nobody would write ----------------------------------------------------------


def made_up(ticks=40, passes=20, name='/bin/<script>alert(1)</script>&"\'app'):
    """A trace as the library writes them."""
    out = [{
        'line': 'run', 'version': 1, 'libhybrid': '1', 'pid': 7, 'exe': name, 'pm': 'nodes',
        'clock': 'monotonic', 'start_ns': 5, 'capacity': [1 << 30, 1 << 34], 'profile': ''
    }, {
        'line': 'setting', 'name': 'HYBRID_DRAM', 'value': '"><img src=x onerror=alert(1)>',
        'from': 'environment'
    }, {
        'line': 'counters', 'source': 'hardware </title>', 'why': '', 'machine': 'm',
        'figures': 'measured <b>'
    }, {
        'line': 'migration', 'state': 'on', 'why': '', 'way': 'numa', 'writes': 'pagemap-scan',
        'reads': ''
    }, {'line': 'warning', 'ns': 3, 'text': 'a warning <script>alert(2)</script>'}]
    for i in range(1, ticks + 1):
        out.append({
            'tick': 'sample', 'ns': i * 10**8, 'used': [i << 20, 50 << 20], 'limit': [
                64 << 20, 1 << 34
            ], 'refused': [0, 0], 'claimed': 0, 'shared': 1, 'wish': i, 'asked': 0,
            'class': 'cpu' if i < 9 else 'bandwidth', 'threads': 4, 'running': 3500, 'cap': 2,
            'held': 2, 'cpus': 8, 'up': i << 20, 'down': i << 19, 'refused_pages': 0,
            'regretted_pages': 0, 'look_ns': i * 1000, 'move_ns': i * 2000, 'class_ns': i,
            'trace_ns': i, 'found': 'bandwidth', 'confidence': 900, 'weak': 0, 'write_intensive': 1,
            'slowdown': [3000, 2000, 1500], 'phases': 1, 'predicted_ns': [
                i * 5 * 10**7, i * 10**8, i * 2 * 10**8
            ], 'sums': {
                'windows': i, 'reads': i * 1000, 'reads-pm': i * 300, 'writes': i * 500,
                'writes-pm': i * 100, 'stall-ns': i * 10**7, 'wait-ns': 0, 'busy-ns': i * 10**8
            }
        })
    for i in range(1, passes + 1):
        n = 64
        out.append({
            'pass': 'pass', 'ns': i * 19 * 10**7, 'number': i, 'interval_ns': 10**8, 'on': [
                100, 924
            ], 'bands_dram': [1, 2, 3, 4, 5, 6], 'bands_pm': [600, 0, 0, 0, 0,
                                                              10], 'tracked': 1024, 'written': 100,
            'predicted': [900, 100, 24], 'observed': 1024, 'right': 1000, 'wanted': 5, 'paused': 0,
            'bins': n, 'at': [[0, 4096 * 1000, 16], [32, 4096 * 90000, 16]], 'heat': ''.join(
                '%x' % ((i + b) % 16) for b in range(n)), 'writes': ''.join(
                    '%x' % ((i * b) % 16)
                    for b in range(n)), 'will_write': '0' * n, 'on_pm': ('0' * 16 + 'f' * 16) * 2
        })
    out.append({'line': 'end', 'ns': (ticks + 1) * 10**8})
    return ''.join(json.dumps(d) + '\n' for d in out)


class Hostile(PageCase):
    def write(self, text, name='x.trace'):
        path = os.path.join(self.dir, name)
        with open(path, 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode('utf-8', 'surrogatepass'))
        return path

    def made(self, data):
        """The page of a file's bytes, by the program's own modules: quick enough for thousands."""
        import report_page
        import report_trace
        path = self.write(data)
        try:
            run = report_trace.read(path)
        except report_trace.Unreadable:
            return None
        page = report_page.page(report_trace.pair([run]))
        page.encode('utf-8')
        return page

    def test_everything_is_shown_and_nothing_runs(self):
        c = self.page(self.write(made_up()))
        for said in ('<script>alert(1)</script>&"\'app', '"><img src=x onerror=alert(1)>',
                     'hardware </title>', 'a warning <script>alert(2)</script>', 'Page heat',
                     'Write domain', 'Where the pages were', 'Pages moved', 'Threads',
                     'What it gained', 'Slowdown against all data on DRAM', 'Prediction of writes',
                     'Lines read', 'all on PM'):
            self.assertIn(said, c.words, said)
        # 20 s of 40 s by the model: half the time was spared, two thirds of what was possible
        self.assertIn('50 % less than with all data on PM, 66.7 % of what DRAM can bring', c.words)

    def test_truncated_anywhere(self):
        whole = made_up(ticks=6, passes=4).encode()
        first = whole.index(b'\n') + 1
        for end in list(range(first, first + 12)) + list(range(first, len(whole), 701)):
            page = self.made(whole[:end])
            self.assertIsNotNone(page)
            self.well_formed(page)

    def test_wrong_values(self):
        odd = [
            None, True, -1, 1 << 70, 1.5, 'x' * 5000, [], [[[]]], {}, [1 << 70] * 3, '\ud800',
            '</td>', [None] * 64, '0' * 300, [[0, 0, 1 << 62]], [[0, 1 << 61, 1 << 39]],
            [[5, 4096, 2]], 0
        ]
        lines = [json.loads(x) for x in made_up(ticks=2, passes=2).splitlines()]
        for number, line in enumerate(lines):
            for k, key in enumerate(line):
                if line.get('line') == 'run' and key in ('line', 'version'):
                    continue
                for value in odd[(number + k) % 6::6]:
                    changed = [
                        dict(d, **{key: value}) if i == number else d for i, d in enumerate(lines)
                    ]
                    page = self.made(''.join(json.dumps(d) + '\n' for d in changed))
                    self.assertIsNotNone(page)
                    self.well_formed(page)

    def test_random_damage(self):
        whole = made_up(ticks=8, passes=5).encode()
        rng = random.Random(4)
        seen = 0
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 30)):
                at = rng.randrange(len(data))
                data[at:at + rng.choice((0, 1, 1, 20))] = bytes(
                    rng.choice(b'0123456789"[]{},:<>&-e\n\xff\x00')
                    for _ in range(rng.choice((0, 1, 1, 3))))
            page = self.made(bytes(data))
            if page is not None:
                seen += 1
                self.well_formed(page)
        self.assertGreater(seen, 60)

    def test_long_runs_make_small_pages(self):
        trace = made_up(ticks=4000, passes=1500)
        page = self.made(trace)
        self.well_formed(page)
        self.assertLess(len(page), 600000)

    def test_nothing_in_it(self):
        first = made_up(ticks=0, passes=0)
        self.assertIn('no sample', self.page(self.write(first)).words)

    def test_other_files(self):
        for content in ('', 'x', '{}', '[1]', '{"line": "run"}', '[' * 100000, '\0' * 1000):
            done = ctl('report', '-o', self.dir + '/o.html', self.write(content))
            self.ends(done, 1, 'hybridctl report: ')
            self.assertNotIn('Traceback', done.stderr)
            self.assertFalse(os.path.exists(self.dir + '/o.html'))
        self.ends(ctl('report', self.dir + '/none'), 1, 'No such file')
        self.ends(ctl('report', self.dir), 1, 'directory')
        self.assertEqual(ctl('report').returncode, 2)

    def test_exit_reports_alone(self):
        odd = [None, [], {}, -1, 1 << 70, '<b>', [1, 'x', {}], True]
        whole = {
            'libhybrid': '1<b>', 'pid': 9, 'exe': '/bin/<i>x', 'class': 'latency', 'why': 'w',
            'tiers': {'dram': {'peak': 5 << 20}, 'pm': {'peak': 7 << 20}},
            'gain': {'all_dram_ns': 10**9, 'as_placed_ns': 10**9, 'all_pm_ns': 4 * 10**9},
            'classification': {'machine': 'm<b>', 'counters': 'c', 'why': ''},
            'warnings': ['w<script>'],
            'sites': [{'bytes': 5, 'tier': 'pm', 'frames': [{'name': '<u>f'}]}]
        }
        c = self.well_formed(self.made(json.dumps(whole)))
        for said in ('latency-sensitive', '7 MiB', '75 % less', 'w<script>', '<u>f', 'm<b>'):
            self.assertIn(said, c.words)
        for key in whole:
            for value in odd:
                page = self.made(json.dumps(dict(whole, **{key: value})))
                self.well_formed(page)
        for value in odd:
            self.well_formed(self.made(json.dumps(dict(whole, sites=[value, {'frames': value}]))))

    def test_several_processes(self):
        one, two = self.write(made_up(), 'a'), self.write(
            made_up(name='/bin/b').replace('"pid": 7', '"pid": 8'), 'b')
        bad = self.write('x', 'c')
        done = ctl('report', '-o', '-', one, bad, two)
        self.assertEqual(done.returncode, 1)
        c = self.well_formed(done.stdout)
        self.assertEqual(sorted(c.links), sorted(c.ids))
        self.assertEqual(len(c.ids), 2)
        self.assertIn('process 7', c.words)
        self.assertIn('process 8', c.words)

    def test_output(self):
        trace = self.write(made_up())
        self.ends(ctl('report', '-o', trace, trace), 2, 'one of the FILEs')
        with open(trace, encoding='utf-8') as f:
            self.assertEqual(f.read(), made_up())
        self.ends(ctl('report', '-o', self.dir + '/no/x.html', trace), 1, 'No such file')
        done = ctl('report', 'x.trace', cwd=self.dir)
        self.assertEqual((done.returncode, done.stdout), (0, 'page: x.html\n'))
        self.assertEqual(ctl('report', '-o', '/dev/null', trace).returncode, 0)
        self.assertFalse(os.path.isfile('/dev/null'))


def main():
    global OPTIONS
    p = argparse.ArgumentParser()
    p.add_argument('--ctl', required=True)
    p.add_argument('--lib', required=True)
    p.add_argument('--tools', required=True)
    OPTIONS, rest = p.parse_known_args()
    for name in ('ctl', 'lib', 'tools'):
        setattr(OPTIONS, name, os.path.abspath(getattr(OPTIONS, name)))
    sys.path.insert(0, OPTIONS.tools)
    unittest.main(argv=sys.argv[:1] + rest)


if __name__ == '__main__':
    main()
