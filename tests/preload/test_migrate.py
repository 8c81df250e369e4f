#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pages that move, as a program and its user see it: what is written comes to DRAM, budgets
are kept, what is freed is given back, wishes of others are granted, and nothing of it
disturbs the program. Moves are made in the books only (HYBRID_PM=emulated without the
machine); writes are those that the kernel tells.

  test_migrate.py --lib LIBHYBRID --ctl HYBRIDCTL --pages PL_PAGES
"""
import glob
import os
import sys
import tempfile
import time
import unittest

import driven

MIB = 1 << 20
SKIP = 77
SETTINGS = {'INTERVAL': '20ms', 'MIGRATE': 'lazy', 'MIGRATE_CORE': '100',
            'MIGRATE_INTERVAL': '40ms', 'COUNTERS': 'off'}


def fds(p):
    """Of all threads: the library's have a table of their own."""
    files = []
    for link in glob.glob('/proc/%d/task/*/fd/*' % p.pid):
        try:
            files.append(os.readlink(link))
        except FileNotFoundError:
            pass    # closed since it was listed
    return files


def threads(p):
    return len(os.listdir('/proc/%d/task' % p.pid))


class MigrateTest(driven.DrivenCase):
    def moving(self, **settings):
        return self.hold(**{**SETTINGS, **settings})

    @staticmethod
    def given_time(attempt, done):
        """attempt(seconds), again with more of them until it is done: a busy computer lets the
        library's threads run late, and nothing that can be seen tells that they have."""
        for seconds in (0.7, 5, 60):
            told = attempt(seconds)
            if done(told):
                break
        return told

    def dram(self, p):
        return self.status().get(p.pid, {}).get('dram_bytes', 0)

    def pm(self, p):
        return self.status().get(p.pid, {}).get('pm_bytes', 0)

    # --- one program ----------------------------------------------------------

    def test_nothing_where_nothing_can_be_gained(self):
        for settings in ({'MIGRATE': 'off'}, {'MIGRATE': 'auto'},
                         {'MIGRATE': 'auto', 'POLICY': 'pm'}):
            with self.subTest(**settings):
                # Settings of moves that have no effect are told: left at their defaults.
                p = self.moving(MIGRATE_CORE=None, MIGRATE_INTERVAL=None, **settings)
                p.do('big 20', 'hot 0 2')
                time.sleep(0.3)
                self.assertNotIn('anon_inode:[userfaultfd]', fds(p))
                self.assertLessEqual(threads(p), 3)  # main, the hot one, the control thread

    def test_hot_pages_come_to_dram(self):
        p = self.moving(DRAM='8M', POLICY='first-fit')
        p.do('big 24')  # the first 8 on DRAM, 16 on PM
        # What is claimed of the DRAM of all may be more for a moment, what is used may not (peak).
        self.wait_for('no more is claimed than the limit', lambda: 0 < self.dram(p) <= 8 * MIB)
        p.do('hot 16 4')
        self.wait_for('hot pages are on DRAM', lambda: self.moved(p) >= 3 * MIB)
        p.do('check', 'calm')
        r = p.end()
        m = r['migration']
        self.assertEqual(m['state'], 'on')
        self.assertGreaterEqual(m['up_bytes'], 3 * MIB)
        self.assertGreaterEqual(m['down_bytes'], 2 * MIB, 'room was made for them')
        # Hot are 4 MiB: what has come up is that and not everything.
        self.assertLessEqual(m['up_bytes'], 12 * MIB)
        self.assertLessEqual(r['tiers']['dram']['peak'], 8 * MIB)

    def test_mappings_too(self):
        p = self.moving(DRAM='8M', POLICY='first-fit')
        p.do('big 7', 'map 16', 'hot 10 3')
        self.wait_for('hot pages are on DRAM', lambda: self.moved(p) >= 2 * MIB)
        r = p.do('calm', 'check').end()
        self.assertGreaterEqual(r['migration']['up_bytes'], 2 * MIB)
        self.assertLessEqual(r['tiers']['dram']['peak'], 8 * MIB)

    def test_free_dram_is_filled(self):
        p = self.moving(DRAM='8M', POLICY='first-fit')
        p.do('big 2', 'map 16')  # too large for DRAM, so all of it is on PM
        self.wait_for('what fits has come up', lambda: self.dram(p) >= 7 * MIB)
        p.do('check')
        r = p.end()
        self.assertLessEqual(r['tiers']['dram']['peak'], 8 * MIB)
        self.assertEqual(r['migration']['down_bytes'], 0)

    def test_books_are_right_after_free(self):
        p = self.moving(DRAM='8M', POLICY='first-fit')
        p.do('big 24', 'hot 16 4')
        self.wait_for('hot pages are on DRAM', lambda: self.moved(p) >= 3 * MIB)
        p.do('calm', 'hot 0 0', 'free')
        # All of it is given back: neither tier keeps what lay on the other one.
        self.wait_for('all is given back', lambda: self.dram(p) < MIB and self.pm(p) < MIB)
        p.do('big 6')
        self.wait_for('new memory is charged as such', lambda: 6 * MIB <= self.dram(p) <= 8 * MIB)
        p.end()

    def moved(self, p):
        return self.status().get(p.pid, {}).get('promoted_bytes', 0)

    def test_eager(self):
        p = self.moving(DRAM='16M', POLICY='first-fit', MIGRATE='eager')
        p.do('big 12', 'hot 0 2')  # DRAM has room for all, and 10 MiB of it are cold
        self.wait_for('cold pages are on PM', lambda: self.pm(p) >= 8 * MIB)
        p.do('calm', 'check').end()

    def test_fork(self):
        p = self.moving(DRAM='8M', POLICY='first-fit')
        p.do('big 24', 'hot 16 4')
        self.wait_for('hot pages are on DRAM', lambda: self.moved(p) > 0)
        p.do('calm', 'fork', 'fork', 'check')
        p.end()

    # --- hazards -----------------------------------------------------------------

    def test_descriptors_closed_by_the_program(self):
        p = self.moving(DRAM='8M', POLICY='first-fit')
        p.do('big 24', 'hot 16 2')
        self.wait_for('pages are watched', lambda: 'anon_inode:[userfaultfd]' in fds(p))
        p.do('close')
        self.wait_for('and again', lambda: 'anon_inode:[userfaultfd]' in fds(p))
        p.do('calm', 'check').end()

    def test_userfaultfd_of_the_program(self):
        p = self.moving(DRAM='8M', POLICY='first-fit')
        p.do('faults 0 0', 'big 24', 'map 16', 'hot 16 4')
        self.wait_for('hot pages are on DRAM', lambda: self.moved(p) > 0)
        p.do('calm', 'faults 2 3', 'faults 18 1', 'faults 28 4', 'faults 0 40')
        p.do('hot 5 2')
        time.sleep(0.3)
        p.do('calm', 'check')
        p.end()

    def test_seccomp_filter(self):
        """It kills who looks at pages: the program survives, and nothing is written any more."""
        for late in (False, True):
            with self.subTest(late=late):
                p = self.moving(DRAM='8M', POLICY='first-fit')
                if not late:
                    p.do('filter')
                p.do('big 24', 'hot 16 2')
                if late:
                    self.wait_for('pages are watched', lambda: 'anon_inode:[userfaultfd]' in fds(p))
                    p.do('filter')
                time.sleep(0.7)
                p.do('calm', 'check')
                p.end(confined=True)

    def begin(self, number, answer, **settings):
        """A program started by hybridctl under a filter, some of whose pages are hot."""
        filters = driven.filtered(number, answer)
        if not filters:
            self.skipTest('no seccomp filter can be installed here')
        p = self.moving(wrap=[*filters, self.ctl, 'run', '--'], DRAM='8M', POLICY='first-fit',
                        **settings)
        return p.do('big 24', 'hot 16 2')

    def watches(self, p):
        return 'anon_inode:[userfaultfd]' in fds(p)

    def test_a_filter_that_does_not_kill(self):
        """As Docker's: hybridctl tries the calls before, in a child that may be lost."""
        plain = self.moving(DRAM='8M', POLICY='first-fit').do('big 24', 'hot 16 2')
        end = time.monotonic() + 10
        while not self.watches(plain):
            if time.monotonic() > end:
                self.skipTest('pages are not watched by userfaultfd here')
            time.sleep(0.1)
        p = self.begin(driven.KEXEC_LOAD, driven.REFUSE)
        self.wait_for('pages are watched', lambda: self.watches(p))
        p.do('calm', 'check')
        self.assertNotIn('seccomp', p.end()['migration']['why'])

    def test_filters_that_kill(self):
        for number, answer, settings in (
                (driven.USERFAULTFD, driven.KILL, {}),
                (driven.KEXEC_LOAD, driven.REFUSE, {'SECCOMP': '2'})):  # it is one
            for seconds in 1, 4, 16, 64:  # a busy computer lets the library's thread run late
                p = self.begin(number, answer, **settings)
                p.do('big 2')  # it has a thread by now, so ours may be made as well
                time.sleep(seconds)
                p.do('calm', 'check')
                m = p.end()['migration']
                if m['state'] != 'idle':
                    break
            self.assertEqual(m['state'], 'off')
            self.assertIn('seccomp', m['why'])

    # --- several -------------------------------------------------------------------

    def test_wishes_are_granted_and_room_comes_back(self):
        settings = {'DRAM': '32M', 'DRAM_SHARED': '32M', 'POLICY': 'auto'}
        a = self.moving(CLASS='cpu', **settings)
        a.do('big 28')
        self.wait_for('it has DRAM', lambda: self.dram(a) >= 24 * MIB)
        b = self.moving(CLASS='bandwidth', **settings)
        b.do('big 20', 'hot 0 16')
        def shared_out():  # in one moment; what is claimed settles after a move
            s = self.status()
            has_a, has_b = s[a.pid]['dram_bytes'], s[b.pid]['dram_bytes']
            return has_b >= 12 * MIB and has_a < 20 * MIB and has_a + has_b <= 34 * MIB
        self.wait_for('the sensitive one has what it uses, and no more than there is is claimed',
                      shared_out)
        b.do('calm', 'check').end()
        a.do('hot 0 28')  # what it writes now comes back up
        self.wait_for('the other has its own again', lambda: self.dram(a) >= 24 * MIB)
        a.do('calm', 'check').end()

    def test_what_others_leave_is_filled(self):
        settings = {'DRAM': '32M', 'DRAM_SHARED': '32M', 'POLICY': 'auto', 'CLASS': 'bandwidth'}
        a = self.moving(**settings)
        a.do('big 26')
        self.wait_for('it has DRAM', lambda: self.dram(a) >= 24 * MIB)
        b = self.moving(**settings)
        b.do('big 20')  # nothing of it is used any more
        self.wait_for('the other has what is free', lambda: self.dram(b) >= 4 * MIB)
        time.sleep(0.3)  # passes that find nothing to move
        a.do('check').end()
        self.wait_for('and what was left', lambda: self.dram(b) >= 18 * MIB)
        b.do('check').end()


def kernel_tells():
    """Is there a kernel here that tells an unprivileged process what it writes?"""
    def attempt(seconds):
        with tempfile.TemporaryDirectory(prefix='hybrid-migrate-') as work:
            case = driven.DrivenCase
            p = driven.Driven(case.lib, case.program, work, **SETTINGS)
            p.do('big 20', 'check')  # with less the library's thread comes late, or not at all
            time.sleep(seconds)
            return p.end()['migration']

    m = MigrateTest.given_time(attempt, lambda m: m['state'] != 'idle')
    return m['state'] != 'off', m['why']


def main():
    _, rest = driven.arguments('pages')
    tells, why = kernel_tells()
    if not tells:
        print('SKIP: ' + why)
        sys.exit(SKIP)
    unittest.main(argv=sys.argv[:1] + rest)


if __name__ == '__main__':
    main()
