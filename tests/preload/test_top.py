#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl top on a terminal and without one.

    test_top.py --ctl FILE --lib libhybrid.so --tools DIR [unittest arguments]
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import viewed
from viewed import HOLD, NOTHING_OF_OURS, OPTIONS, PATIENCE_S, Case, ctl


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
                    'ebw_dram_milli', 'ebw_pm_milli', 'pm_written_milli', 'pm_writers_milli',
                    'hindered_milli', 'paced_threads', 'paced_for_pid', 'paced_for_ms',
                    'heartbeat_age_ms', 'wish_bytes', 'asked_bytes'):
            self.assertIsInstance(entry[key], int, key)

    def after(self, offset, values, *command):
        """What is shown just after that was told; its owner may tell the truth at any time."""
        with open(self.registry, 'r+b') as f:
            f.seek(4096 + offset)  # shim/place/registry_file.h: in the first slot
            f.write(values)
        return ctl(*command, '--registry', self.registry).stdout

    def test_who_keeps_to_few_ways_of_the_cache(self):
        p = self.hold(40, HYBRID_INTERVAL='60s')
        reuses, streams = 1, 2

        def told(cls, ways, *command):
            return self.after(316, struct.pack('<2I', cls, ways), *command)

        def in_json(*command):
            entry, = json.loads(told(streams, 5, *command, '--json'))['participants']
            return entry['cache_class'], entry['cache_ways']

        for command in (('status',), ('top', '--once', '--interval', '0.1')):
            for cls, ways, said in (
                (streams, 2, '%d keeps to 2 ways of the last-level cache: it streams through its data'),
                (streams, 1, '%d keeps to 1 way of the last-level cache: it streams through its data'),
                (reuses, 3, '%d keeps to 3 ways of the last-level cache'),
                (streams, 0, '%d streams through its data, and fills all of the last-level cache')):
                self.until(lambda: re.search(r'(?m)^ *%s$' % (said % p.pid), told(cls, ways, *command)), said)
            self.until(lambda: 'last-level cache' not in told(reuses, 0, *command), 'nothing to tell')
            self.until(lambda: in_json(*command) == ('streams', 5), 'told in JSON')

    def test_who_is_paced_and_for_whom(self):
        p = self.hold(40, HYBRID_CLASS='bandwidth', HYBRID_INTERVAL='60s')

        def told(*command):
            values = struct.pack('<10IQ', 500, 9000, 400, 3000, 8000, 5000, 1590, 4, 8, p.pid, 1)
            return self.after(176, values, *command)  # from `ebw_dram` on

        self.until(
            lambda: re.search(
                r'(?m)^ +%d is paced to 4 of 8 threads for \d+\.\d s: its writes to PM '
                r'hold up %d \(' % (p.pid, p.pid), told('status')), 'status: not paced')
        self.until(
            lambda: re.search(r'asks 0\.50 of DRAM and 9\.00 of PM .*, 40 % of that on PM written',
                              told('status')), 'status: no traffic')
        self.until(
            lambda: re.search(r'is slower by 59 % by the others. writes to PM, as predicted',
                              told('status')), 'status: not hindered')
        self.until(
            lambda: re.search(r'(?m)^%d is paced to 4 of 8 threads' % p.pid,
                              told('top', '--once', '--interval', '0.1')), 'top: not paced')

    BOX = ['unshare', '--user', '--map-root-user', '--pid', '--mount-proc', '--fork',
           '--kill-child']

    def contained(self, mib):
        """A program with user, PID and mount namespaces of its own; number 1 there."""
        if subprocess.run([*self.BOX, 'true'], check=False).returncode != 0:
            self.skipTest('this user may make no user, PID and mount namespaces')
        ours = ['%s=%s' % v for v in self.env().items() if v not in NOTHING_OF_OURS.items()]
        return self.run_until_up([*self.BOX, 'env', *ours, sys.executable, '-c', HOLD % mib],
                                 NOTHING_OF_OURS)

    def test_containers_share_one_registry(self):
        first, second = self.contained(40), self.contained(40)
        outside = self.hold(40)

        def told():
            return json.loads(ctl('status', '--json', '--registry', self.registry).stdout)

        def pids():
            return sorted(e['pid'] for e in told()['participants'])

        # Both containers have a number 1, and each is one of three.
        self.until(lambda: pids() == [1, 1, outside.pid], 'they do not see each other')
        self.until(lambda: all(e['pm_bytes'] >= 24 << 20 for e in told()['participants']),
                   'somebody does not tell')
        # So it is for whoever looks from a container of its own, where no number means anything.
        seen = subprocess.run([*self.BOX, OPTIONS.ctl, 'status', '--json', '--registry',
                               self.registry], check=True, text=True, stdout=subprocess.PIPE)
        self.assertEqual(sorted(e['pid'] for e in json.loads(seen.stdout)['participants']), pids())
        now = told()
        self.assertLessEqual(now['total']['dram_bytes'], now['dram_budget'])
        # One is stopped, whatever it was doing, and one is killed: the others go on.
        with open('/proc/%d/task/%d/children' % (first.pid, first.pid), encoding='ascii') as f:
            os.kill(int(f.read()), signal.SIGSTOP)
        second.kill()
        second.wait()
        late = self.hold(40)
        self.until(lambda: pids() == sorted([1, outside.pid, late.pid]), 'the killed one is there')
        for p in (outside, late):
            p.communicate('\n', timeout=PATIENCE_S)
            self.assertEqual(p.returncode, 0)

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
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            while self.take():
                pass
            if true(self.screen.cells):
                for line in self.screen.cells:
                    self.assertLessEqual(len(line), self.screen.columns, line)
                return
        self.fail('%s: %s' % (what, '\n'.join(self.screen.cells)))

    def drawn(self, columns, rows):
        """Does the next drawing fit on a fresh screen of that size?"""
        self.screen = Screen(columns, rows)
        self.screen.other = self.screen.hidden = True
        end = time.monotonic() + 10
        while not any(self.screen.cells) and time.monotonic() < end:
            self.take()
        while self.take():
            pass
        return (any(self.screen.cells) and not self.screen.scrolled
                and all(len(line) <= columns for line in self.screen.cells))

    def key(self, text):
        os.write(self.master, text.encode())

    def gives_back(self, status):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.p.poll() is None:
            self.take()
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
        one.communicate('\n', timeout=PATIENCE_S)  # redrawn in place: it goes, and leaves no trace
        self.shows(lambda cells: self.order() == [two.pid] and str(one.pid) not in '\n'.join(cells),
                   'one row')
        self.assertFalse(self.screen.scrolled)
        self.key('\033[A')  # an arrow is no command
        self.key('q')
        self.gives_back(0)

    def test_resize(self):
        self.hold(40)
        self.open('--interval', '0.5', columns=120)
        self.shows(lambda cells: 'ON DRAM' in '\n'.join(cells), 'wide columns')
        for columns, rows in ((80, 24), (50, 10), (20, 3), (1, 1), (132, 50)):
            fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
            # What was drawn for the old size may still be on its way: then it is the next drawing
            # that has to fit.
            self.until(lambda: self.drawn(columns, rows), 'no drawing of %d x %d' % (columns, rows))
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


if __name__ == '__main__':
    viewed.main()
