#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a profile's call sites get, as a user sees it: in the report at exit and in hybridctl
explain.

  test_sites.py --lib LIBHYBRID --ctl HYBRIDCTL --sites PL_SITES
"""
import json
import os
import re
import subprocess
import sys
import time
import unittest

import driven

MIB = 1 << 20
KIB = 1 << 10
FRAMES = {}


def section(name, size, reads, writes=0, block=0, frames=None, tier=None, count=1):
    lines = ['[site %s]' % name]
    lines += ['frame%d = %s+0x%x' % (i, f['build_id'], f['offset'])
              for i, f in enumerate(frames or FRAMES[name])]
    lines += ['count = %d' % count, 'bytes = %d' % (size * count), 'live-bytes = %d' % size,
              'max-size = %d' % (block or size)]
    if reads or writes:
        lines += ['reads = %d' % reads, 'writes = %d' % writes]
    if tier:
        lines.append('tier = %s' % tier)
    return '\n'.join(lines) + '\n'


class SitesTest(driven.DrivenCase):
    def setUp(self):
        super().setUp()
        if not FRAMES:
            self.learn()

    def hold(self, commands=(), **settings):
        return super().hold(**{'REGISTRY': 'none', **settings}).do(*commands)

    def learn(self):
        """The frames of the sites, by sizes that tell them apart; e and f are mappings."""
        sizes = {'a': 1000, 'b': 1100, 'c': 1200, 'd': 1300, 'e': 1400, 'f': 1500}
        report = self.hold(['%s %d' % s for s in sizes.items()], POLICY='dram').end()
        for name, kib in sizes.items():
            found = [s for s in report['sites'] if s['bytes'] == kib * KIB]
            self.assertEqual(len(found), 1, report['sites'])
            FRAMES[name] = found[0]['frames']

    def profile(self, *sections, app='class = bandwidth\nslowdown = 4\n', options=''):
        path = os.path.join(self.work, 'p.ini')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('[app]\nexe = %s\n%s\n%s\n' % (os.path.basename(self.program), app, options))
            f.write('\n'.join(sections))
        return path

    def run_with(self, profile, commands, **settings):
        """Report, and the bytes on DRAM and on PM in MiB, rounded."""
        settings.setdefault('DRAM', '10M')
        r = self.hold(commands, PROFILE=profile, **settings).end()
        self.assertEqual(r['state'], 'steering')
        return r, round(r['tiers']['dram']['charged'] / MIB), \
            round(r['tiers']['pm']['charged'] / MIB)

    # --- placement -----------------------------------------------------------------

    def test_the_better_site_gets_dram_whoever_comes_first(self):
        profile = self.profile(section('a', 8 * MIB, 9000000), section('c', 5 * MIB, 100000))
        for order in ['a 8192', 'c 5120'], ['c 5120', 'a 8192']:
            _, dram, pm = self.run_with(profile, order)
            self.assertEqual((dram, pm), (8, 5), order)

    def test_memory_that_no_site_explains_leaves_room_for_them(self):
        profile = self.profile(section('a', 8 * MIB, 9000000))
        _, dram, pm = self.run_with(profile, ['d 6144', 'a 8192'])
        self.assertEqual((dram, pm), (2 + 8, 4)) # what is not kept serves the first pages of d
        _, dram, pm = self.run_with(profile, ['d 1024', 'a 8192'])
        self.assertEqual((dram, pm), (9, 0)) # there is room for both

    def test_the_ranking_holds_for_other_sizes(self):
        profile = self.profile(section('a', 4 * MIB, 9000000), section('b', 4 * MIB, 5000000),
                               section('c', 4 * MIB, 100000))
        r, dram, pm = self.run_with(profile, ['a 4096', 'b 4096', 'c 4096'])
        self.assertEqual((dram, pm), (8, 4))
        self.assertEqual((r['plan']['on_dram'], r['plan']['scale_milli']), (2, 1000))
        # Twice as large, in any order: room for the best alone.
        for order in ['a 8192', 'b 8192', 'c 8192'], ['c 8192', 'b 8192', 'a 8192']:
            r, dram, pm = self.run_with(profile, order)
            self.assertEqual((dram, pm), (8, 16), order)
            self.assertEqual(r['plan']['scale_milli'], 2000)
        # Half: all fit.
        _, dram, pm = self.run_with(profile, ['c 2048', 'b 2048', 'a 2048'])
        self.assertEqual((dram, pm), (6, 0))

    def test_a_site_of_many_blocks_outgrows_those_of_lesser_rank(self):
        profile = self.profile(section('a', 4 * MIB, 9000000, block=MIB, count=4),
                               section('b', 5 * MIB, 900000, block=MIB, count=5))
        _, dram, pm = self.run_with(profile, ['a 1024'] * 9 + ['b 1024'] * 5)
        self.assertGreaterEqual(dram, 9)
        self.assertEqual(dram + pm, 14)

    def test_a_block_is_not_split(self):
        profile = self.profile(section('a', 12 * MIB, 90000000), section('b', 6 * MIB, 2000000))
        _, dram, pm = self.run_with(profile, ['a 12288', 'b 6144'])
        self.assertEqual((dram, pm), (6, 12))

    def test_blocks_of_some_pages_are_where_the_profile_says(self):
        for kib in 4, 12, 40, 60:
            count = 6 * MIB // (kib * KIB)
            named = self.profile(section('a', 6 * MIB, 0, block=kib * KIB, tier='pm', count=count))
            _, dram, pm = self.run_with(named, ['a %d' % kib] * count)
            self.assertEqual((dram, pm), (0, 6), kib)

    def test_what_does_not_come_is_not_kept_for_ever(self):
        profile = self.profile(section('a', 8 * MIB, 9000000))
        _, dram, pm = self.run_with(profile, ['d 5120'])
        self.assertEqual((dram, pm), (2, 3))
        _, dram, pm = self.run_with(profile, ['d 5120', 'd 5120', 'd 5120', 'd 5120'],
                                    DRAM='11M')
        self.assertEqual((dram, pm), (11, 9))

    def test_what_is_gone_is_kept_for_a_while(self):
        profile = self.profile(section('a', 8 * MIB, 9000000))
        _, dram, pm = self.run_with(profile, ['a 8192', 'drop a', 'd 4096', 'a 8192'])
        self.assertEqual((dram, pm), (2 + 8, 2))
        _, dram, pm = self.run_with(profile, ['a 8192', 'drop a', 'd 4096', 'd 4096', 'd 4096'])
        self.assertEqual(dram, 2 + 4)

    def test_a_named_memory_is_kept(self):
        profile = self.profile(section('a', 4 * MIB, 9000000, tier='pm'),
                               section('b', 4 * MIB, 10, tier='dram'),
                               section('c', 4 * MIB, 5000000))
        r, dram, pm = self.run_with(profile, ['c 4096', 'b 4096', 'a 4096'], DRAM='7M')
        self.assertEqual((dram, pm), (4, 8))
        tiers = {s['bytes']: s['tier'] for s in r['sites'] if s['tier']}
        self.assertEqual(sorted(s['tier'] for s in r['sites'] if s['bytes'] == 4 * MIB),
                         ['dram', 'pm', 'pm'], tiers)

    def test_without_counts_nothing_is_planned(self):
        profile = self.profile(section('a', 8 * MIB, 0), section('c', 5 * MIB, 0))
        _, dram, pm = self.run_with(profile, ['c 5120', 'a 8192'])
        self.assertEqual((dram, pm), (10, 3))

    def test_first_fit_plans_nothing(self):
        profile = self.profile(section('a', 8 * MIB, 9000000))
        _, dram, pm = self.run_with(profile, ['d 5120', 'a 8192'], POLICY='first-fit')
        self.assertEqual((dram, pm), (10, 3))

    def test_sites_of_another_build_keep_nothing(self):
        other = [dict(f, build_id='00' + f['build_id'][2:]) for f in FRAMES['a']]
        profile = self.profile(section('a', 8 * MIB, 9000000, frames=other),
                               section('c', 5 * MIB, 100000))
        _, dram, pm = self.run_with(profile, ['d 8192', 'c 1024'])
        self.assertEqual((dram, pm), (5 + 1, 3)) # c is known and has its part
        _, dram, pm = self.run_with(profile, ['d 4096', 'c 5120'])
        self.assertEqual((dram, pm), (9, 0))

    def test_the_plan_follows_the_share(self):
        """Another program holds most of the budget, and ends."""
        registry = os.path.join(self.work, 'registry')
        profile = self.profile(section('a', 8 * MIB, 90000000), section('b', 2 * MIB, 1000000))
        shared = {'REGISTRY': registry, 'DRAM_SHARED': '12M', 'INTERVAL': '50ms'}
        other = self.hold(['d 9216'], POLICY='dram', **shared)
        mine = self.hold(['b 2048', 'd 65536'], PROFILE=profile, DRAM='100%', **shared)
        self.assertEqual(other.end()['tiers']['dram']['charged'] // MIB, 9)

        def fits():  # at a tick of its own clock
            mine.do('a 8192')
            if self.status()[mine.pid]['dram_bytes'] >= 8 * MIB:
                return True
            mine.do('drop a')
            return False
        self.wait_for('a block of a fits', fits)
        r = mine.end()
        self.assertGreaterEqual(r['tiers']['dram']['charged'], 8 * MIB)

    def test_a_forked_child_goes_on(self):
        profile = self.profile(section('a', 8 * MIB, 9000000), section('c', 5 * MIB, 100000))
        self.run_with(profile, ['c 5120', 'fork', 'a 8192', 'fork'])

    # --- mappings of the program's own ---------------------------------------------------

    def of_site(self, report, name):
        return {s['nth']: s for s in report['sites'] if s['frames'] == FRAMES[name]}

    def test_mappings_have_call_sites(self):
        r = self.hold(['e 8192', 'f 2048', 'e 4096'], POLICY='pm').end()
        e = self.of_site(r, 'e')
        self.assertEqual([(s['count'], s['live_bytes']) for _, s in sorted(e.items())],
                         [(1, 8 * MIB), (1, 4 * MIB)])
        self.assertEqual(self.of_site(r, 'f')[0]['bytes'], 2 * MIB)
        # A part goes; all go, and the next one is the first again.
        r = self.hold(['e 8192', 'half e'], POLICY='pm').end()
        self.assertEqual(self.of_site(r, 'e')[0]['live_bytes'], 4 * MIB)
        r = self.hold(['e 8192', 'half e', 'f 2048', 'drop e', 'e 6144'], POLICY='pm').end()
        e = self.of_site(r, 'e')
        self.assertEqual(list(e), [0])
        self.assertEqual((e[0]['count'], e[0]['live_count'], e[0]['live_bytes']), (2, 1, 6 * MIB))

    def test_small_blocks_have_sites_when_placement_begins_late(self):
        # The thread had its cache before anybody wanted sites.
        for wait_s in (0.2, 2, 10, 60): # how long the control thread may take
            p = self.hold(['b 1', 'a 8192'], POLICY='dram', START='1M')
            time.sleep(wait_s)
            r = p.do(*['b 1'] * 3000).end()
            if self.of_site(r, 'b'):
                break
        self.assertGreater(self.of_site(r, 'b')[0]['count'], 500)

    def test_objects_of_one_site_are_told_apart_as_text(self):
        p = self.hold(['e 8192', 'e 4096'], POLICY='pm', STATS='1')
        _, text = p.proc.communicate(timeout=driven.PATIENCE_S)
        lines = [line for line in text.splitlines() if 'pl_sites!' in line]
        self.assertEqual([bool(re.search(r'!0x[0-9a-f]+#1 <', line)) for line in lines[:2]],
                         [False, True], text)

    def test_a_profile_places_mappings(self):
        profile = self.profile(section('e', 8 * MIB, 9000000), section('f', 5 * MIB, 100000),
                               section('a', 2 * MIB, 5000000))
        for order in ['e 8192', 'f 5120', 'a 2048'], ['f 5120', 'a 2048', 'e 8192']:
            r, dram, pm = self.run_with(profile, order, DRAM='11M')
            self.assertEqual((dram, pm), (10, 5), order)
            self.assertEqual(self.of_site(r, 'f')[0]['tier'], 'pm')
            self.assertEqual(r['tiers']['dram']['mapped'], 8 * MIB)
            self.assertEqual(r['tiers']['pm']['mapped'], 5 * MIB)
        named = self.profile(section('e', 8 * MIB, 0, tier='pm'))
        _, dram, pm = self.run_with(named, ['e 8192', 'f 2048'])
        self.assertEqual((dram, pm), (2, 8))

    # --- explain -------------------------------------------------------------------------

    def explain(self, *args, status=0, env=()):
        clean = {k: v for k, v in os.environ.items() if not k.startswith('HYBRID_')}
        done = subprocess.run([self.ctl, 'explain', *args], env={**clean, **dict(env)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(bool(done.stderr), status != 0, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_explain_tells_what_will_happen(self):
        profile = self.profile(section('a', 8 * MIB, 9000000), section('b', 12 * MIB, 20000000),
                               section('c', 5 * MIB, 100000), section('d', MIB, 0))
        told = json.loads(self.explain(profile, '--dram', '10M', '--machine', 'pram', '--json'))
        sites = {s['name']: s for s in told['sites']}
        self.assertEqual({n: s['tier'] for n, s in sites.items()},
                         {'a': 'dram', 'b': 'pm', 'c': 'pm', 'd': 'pm'})
        self.assertIn('one block', sites['b']['why'])
        self.assertLess(told['slowdown_plan'], told['slowdown_pm'])
        self.assertAlmostEqual(told['slowdown_pm'], 4, delta=0.2)
        self.assertLessEqual(told['dram_planned'], told['dram'])
        self.assertEqual([s['rank'] for s in told['sites']], [1, 2, 3, 4])
        # The library does as told.
        _, dram, pm = self.run_with(profile, ['d 1024', 'c 5120', 'b 12288', 'a 8192'],
                                    MACHINE='pram')
        self.assertEqual((dram, pm), (8, 18))
        text = self.explain(profile, '--dram', '10M', '--machine', 'pram')
        for word in ('bandwidth-sensitive', '10.0 MiB (--dram)', 'idle: DRAM would save',
                     '4.00 with all on PM'):
            self.assertIn(word, text)

    def test_explain_shows_behaviours(self):
        profile = self.profile(section('a', 8 * MIB, 9000000), options='[behaviours]\nbehaviour1 = 19.9 9000 4000 1.1 '
                               '0.1 0.9 4\nbehaviour2 = 80.1 123456789 123456789 12.34 0.1 0.9 4\n')
        text = self.explain(profile)
        self.assertIn('  behaviours  80% of time: 1.5M lines read, 1.5M written a ms; slowdown 12.34\n', text)
        self.assertIn('              20% of time: 452 lines read, 201 written a ms; slowdown 1.10\n', text)
        self.assertLessEqual(max(map(len, text[text.index('\n'):].splitlines())), 80)
        told = json.loads(self.explain(profile, '--json'))
        self.assertEqual([b['reads'] for b in told['behaviours']], [9000, 123456789])

    def test_explain_takes_the_settings_of_a_run(self):
        profile = self.profile(section('a', 8 * MIB, 9000000), options='[options]\ndram = 9M\n')
        self.assertIn('9.0 MiB (the profile)', self.explain(profile))
        self.assertIn('iB (all of this machine)', self.explain(profile, '--dram', '1024T'))
        self.assertIn('3.0 MiB (HYBRID_DRAM)', self.explain(profile, env={'HYBRID_DRAM': '3M'}))
        by_name = {'HYBRID_PROFILE_PATH': self.work}
        self.assertIn('chosen: the best use', self.explain('p', env=by_name))

    def test_explain_says_what_does_not_fit(self):
        profile = self.profile(section('a', 8 * MIB, 0),
                               options='[threads]\ndram = 1000\n[modules]\n%s = /no/such/lib\n'
                               % FRAMES['a'][0]['build_id'])
        text = self.explain(profile, '--dram', '1G')
        self.assertIn('no site has reads or writes', text)
        self.assertIn('/no/such/lib is not here', text)
        self.assertIn('threads on DRAM is 1000', text)
        self.assertIn('no call sites', self.explain(self.profile()))
        many = [section('s%d' % i, (i + 1) * MIB, 0, frames=FRAMES['a']) for i in range(30)]
        text = self.explain(self.profile(*many))
        self.assertIn('and 10 more (--all)', text)
        self.assertLess(text.index('s29'), text.index('s28')) # by size
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn('s0 ', self.explain(self.profile(*many), '--all'))
        text = self.explain(self.profile(section('libsqlite3.so.0.8.6+0xa7f21~2', MIB, 0,
                                                 frames=FRAMES['a'])))
        self.assertIn('+0xa7f21~2 ', text)  # what tells it from its like

    def test_explain_refuses_what_is_no_profile(self):
        path = os.path.join(self.work, 'x')
        with open(path, 'wb') as f:
            f.write(b'\x7fELF\0\0')
        self.assertIn('no profile', self.explain(path, status=1))
        with open(path, 'w', encoding='utf-8') as f:
            f.write('hello\n')
        self.assertIn('no profile', self.explain(path, status=1))
        self.assertIn('no such file', self.explain('nowhere', status=1))
        self.assertIn('cannot be read', self.explain(self.work + '/none.ini', status=1))
        self.assertIn('cannot be read', self.explain(self.work, status=1))
        self.assertIn('which profile', self.explain(status=2))
        good = self.profile(section('a', 8 * MIB, 9))
        self.assertIn("--dram: 'lots'", self.explain(good, '--dram', 'lots', status=2))
        self.assertIn('allowed: auto, optane', self.explain(good, '--machine', 'x', status=2))
        self.assertIn('unrecognized option', self.explain(good, '--bogus', status=2))
        none, bad = os.path.join(self.work, 'none.ini'), os.path.join(self.work, 'x')
        self.assertIn('cannot be read', self.explain(good, '--machine', none, status=2))
        self.assertIn('no machine file', self.explain(good, '--machine', bad, status=2))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + driven.arguments('sites')[1])
