#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where memory goes, as a user sees it: in the report at exit and in hybridctl
status, for one program and for several that share one DRAM budget.

  test_placement.py --lib LIBHYBRID --ctl HYBRIDCTL --hold PL_HOLD
"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import driven

MIB = 1 << 20
# memkind.h: JSON, and nothing of single arenas, bins, large sizes, locks and extents.
STATS_OPTIONS = 1 | 32 | 64 | 128 | 256


class PlacementTest(driven.DrivenCase):
    def tiers(self, commands, **settings):
        h = self.hold(**settings)
        for c in commands:
            h.do(c)
        r = h.end()
        self.assertEqual(r['state'], 'steering')
        return r, r['tiers']['dram'], r['tiers']['pm']

    # --- one program ----------------------------------------------------------

    def test_policy_pm_and_dram(self):
        _, dram, pm = self.tiers(['big 20', 'small 20000'], POLICY='pm')
        self.assertGreater(pm['charged'], 24 * MIB)
        self.assertLess(dram['charged'], MIB)
        _, dram, pm = self.tiers(['big 20', 'small 20000'], POLICY='dram')
        self.assertGreater(dram['charged'], 24 * MIB)
        self.assertEqual(pm['charged'], 0)

    def test_first_fit_fills_the_limit_then_pm(self):
        for limit in 4, 16:
            _, dram, pm = self.tiers(['big 40'], POLICY='first-fit', DRAM='%dM' % limit)
            self.assertLessEqual(dram['peak'], limit * MIB)
            self.assertGreater(dram['peak'], (limit - 2) * MIB)
            self.assertGreater(pm['charged'], (40 - limit) * MIB)
            self.assertGreater(dram['turned_away'], 0)

    def test_full_pm_goes_to_dram_and_full_both_goes_on(self):
        _, dram, pm = self.tiers(['big 40'], POLICY='pm', PM='emulated:8M')
        self.assertLessEqual(pm['peak'], 8 * MIB)
        self.assertGreater(dram['charged'], 31 * MIB)
        r, dram, pm = self.tiers(['big 40'], POLICY='first-fit', DRAM='4M', PM='emulated:8M')
        self.assertLessEqual(pm['peak'], 8 * MIB)
        self.assertGreater(dram['charged'] + pm['charged'], 40 * MIB)
        self.assertGreater(r['forced_dram_bytes'], 20 * MIB)

    def test_large_mappings_are_steered(self):
        _, dram, pm = self.tiers(['map 30'], POLICY='pm')
        self.assertGreaterEqual(pm['mapped'], 30 * MIB)
        _, dram, pm = self.tiers(['map 30'], POLICY='first-fit', DRAM='8M')
        self.assertEqual((dram['mapped'], pm['mapped'] >= 30 * MIB), (0, True))
        _, dram, pm = self.tiers(['map 30'], POLICY='pm', MMAP_MIN='64M')
        self.assertEqual(pm['mapped'], 0)

    def test_a_sparse_mapping_does_not_use_up_the_tiers(self):
        _, dram, pm = self.tiers(['sparse 1000000', 'big 20'], POLICY='first-fit', DRAM='64M')
        self.assertGreater(dram['charged'], 20 * MIB)
        self.assertLess(dram['charged'] + pm['charged'], 30 * MIB)

    def test_file_backend_holds_the_memory_and_forks_apart(self):
        for where in '/dev/shm', self.work:
            r, dram, pm = self.tiers(['big 20', 'small 20000', 'fork', 'small 20000', 'fork'],
                                     POLICY='pm', PM='file:' + where)
            self.assertGreater(pm['charged'], 20 * MIB)
            self.assertGreater(r['file_private_bytes'], 20 * MIB)

    def test_emulated_forks_apart(self):
        self.tiers(['big 20', 'small 20000', 'fork', 'big 5', 'fork'], POLICY='pm')

    def test_realloc_keeps_the_tier(self):
        _, dram, pm = self.tiers(['grow 64'], POLICY='pm')
        self.assertGreater(pm['peak'], 64 * MIB)
        self.assertEqual(dram['peak'], 0)

    def test_next_allocator_serves_dram_within_its_limit(self):
        _, dram, pm = self.tiers(['small 200000', 'big 60'], POLICY='first-fit', DRAM='40M',
                                 DRAM_ALLOCATOR='next')
        self.assertGreater(pm['charged'], 40 * MIB)
        self.assertEqual(dram['heap_live'], 0)

    def test_small_processes_are_left_alone(self):
        h = self.hold(START='64M')
        h.do('big 2')
        self.assertEqual(h.end()['state'], 'serving')
        h = self.hold(START='16M', POLICY='pm')
        h.do('big 30')

        def steered():  # the heaps are there when the library's thread has made them
            h.do('big 1')
            return self.status().get(h.pid, {}).get('pm_bytes', 0) > 0
        self.wait_for('new memory is on PM', steered)
        h.do('big 10')
        r = h.end()
        self.assertEqual(r['state'], 'steering')
        self.assertGreater(r['tiers']['pm']['charged'], 9 * MIB)

    def test_below_the_start_nothing_is_begun_and_memkind_only_for_pm(self):
        def seen(pid):
            with open('/proc/%d/status' % pid) as f:
                threads = int(f.read().split('Threads:')[1].split()[0])
            with open('/proc/%d/maps' % pid) as f:
                maps = f.read()
            return threads, 'memkind' in maps, 'libhybrid-' in maps.replace('libhybrid.so', '')
        h = self.hold(START='64M', POLICY='pm')
        h.do('big 2', 'small 20000')
        self.assertEqual(seen(h.pid), (1, False, False))
        self.assertEqual(h.end()['state'], 'serving')
        h = self.hold(START='4M', POLICY='dram', MIGRATE='off')
        h.do('big 20', 'small 20000')
        self.wait_for('placement has begun', lambda: seen(h.pid)[0] > 1)
        self.assertFalse(seen(h.pid)[1])
        h.do('big 5')
        r = h.end()
        self.assertEqual(r['state'], 'steering')
        self.assertGreater(r['tiers']['dram']['charged'], 25 * MIB)  # from before as well
        self.assertEqual(r['tiers']['pm']['charged'], 0)
        h = self.hold(POLICY='pm')
        h.do('big 20', 'small 20000')
        self.assertFalse(seen(h.pid)[1])  # what is little does without
        h.do('big 80')
        self.assertTrue(seen(h.pid)[1])
        r = h.end()
        self.assertGreater(r['tiers']['pm']['charged'], 103 * MIB)
        self.assertEqual(r['tiers']['dram']['charged'], 0)

    def test_little_pm_is_there_without_memkind(self):
        """Where that is not installed, only who needs much is told, and keeps what there is."""
        with open(os.path.join(self.work, 'libmemkind.so.0'), 'w'):
            pass
        report = os.path.join(self.work, 'report.json')
        env = dict(os.environ, LD_PRELOAD=self.lib, LD_LIBRARY_PATH=self.work, HYBRID_PM='emulated',
                   HYBRID_START='0', HYBRID_POLICY='pm', HYBRID_REGISTRY='none', HYBRID_STATS=report)
        for mib, said in (20, r'\A\Z'), (100, r'\A.*libmemkind cannot be used.*\n\Z'):
            code = 'keep = [bytearray(1 << 20) for i in range(%d)]' % mib
            err = subprocess.run(['/usr/bin/python3', '-c', code], env=env, check=True, text=True,
                                 stderr=subprocess.PIPE, timeout=driven.PATIENCE_S).stderr
            self.assertRegex(err, said)
            with open(report) as f:
                tiers = json.load(f)['tiers']
            self.assertTrue(20 * MIB <= tiers['pm']['peak'] <= 72 * MIB, tiers)

    def test_one_memory_is_passive(self):
        h = self.hold(PM='none')
        h.do('big 2')
        self.assertEqual(h.end()['state'], 'passive')

    def test_auto_on_one_node_ends_passive_without_a_thread(self):
        with open('/sys/devices/system/node/online') as f:
            if f.read().strip() != '0':
                self.skipTest('this machine has several nodes')
        h = self.hold(PM='auto', START='4M')
        h.do('big 40')
        with open('/proc/%d/status' % h.pid) as f:
            self.assertIn('Threads:\t1\n', f.read())
        with open('/proc/%d/maps' % h.pid) as f:
            self.assertNotIn('memkind', f.read())
        self.assertEqual(h.end()['state'], 'passive')

    def test_the_code_of_memkind_does_not_stay_in_memory(self):
        h = self.hold(POLICY='pm').do('big 100')
        with open('/proc/%d/smaps' % h.pid) as f:
            code = re.findall(r' r-xp .*libmemkind.*\n(?:\w+: .*\n)*?Rss: +(\d+) kB', f.read())
        h.end()
        self.assertEqual(len(code), 1)
        self.assertLess(int(code[0]), 128)

    def test_memkind_is_told_to_make_one_arena_unless_the_user_says_otherwise(self):
        code = ('import ctypes, json\n'
                'much = bytearray(100 << 20)\n'
                'said = []\n'
                'write = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(\n'
                '    lambda _, text: said.append(text.decode()))\n'
                'memkind = ctypes.CDLL("libmemkind.so.0")\n'
                'memkind.memkind_stats_print(write, None, %d)\n'
                'print(json.loads("".join(said))["jemalloc"]["opt"]["narenas"])\n' % STATS_OPTIONS)
        env = {k: v for k, v in os.environ.items() if k != 'JEMK_MALLOC_CONF'}
        env.update(LD_PRELOAD=self.lib, HYBRID_PM='emulated', HYBRID_START='0',
                   HYBRID_POLICY='pm', HYBRID_REGISTRY='none')
        for said, narenas in (None, '1'), ('narenas:7', '7'):
            if said:
                env['JEMK_MALLOC_CONF'] = said
            out = subprocess.run(['/usr/bin/python3', '-c', code], env=env, check=True, text=True,
                                 stdout=subprocess.PIPE, timeout=driven.PATIENCE_S).stdout
            self.assertEqual(out.strip(), narenas)

    def test_a_report_is_written_when_sigterm_ends_in_exit(self):
        report = os.path.join(self.work, 'term-%p.json')
        env = dict(os.environ, LD_PRELOAD=self.lib, HYBRID_PM='emulated', HYBRID_START='0',
                   HYBRID_POLICY='pm', HYBRID_REGISTRY='none', HYBRID_STATS=report)
        code = ('import signal, sys, time\n'
                'signal.signal(signal.SIGTERM, lambda *a: sys.exit(7))\n'
                'keep = [bytearray(100000) for i in range(100)]\n'
                'print("ready", flush=True)\n'
                'time.sleep(%d)\n' % (2 * driven.PATIENCE_S))
        with subprocess.Popen(['/usr/bin/python3', '-c', code], env=env, stdout=subprocess.PIPE,
                              text=True) as p:
            self.assertEqual(p.stdout.readline(), 'ready\n')
            p.terminate()
            self.assertEqual(p.wait(timeout=driven.PATIENCE_S), 7)
        with open(report.replace('%p', str(p.pid))) as f:
            r = json.load(f)
        self.assertGreater(r['tiers']['pm']['peak'], 9 * MIB)

    # --- profiles ---------------------------------------------------------------

    def sites(self, report):
        """Sites of pl_hold's two functions, by bytes a block."""
        return {s['bytes'] // max(s['count'], 1): s for s in report['sites']
                if 'pl_hold' in s['frames'][0]['name']}

    def profile(self, site, tier, name='it'):
        path = os.path.join(self.work, name + '.ini')
        with open(path, 'w') as f:
            f.write('[app]\nexe = pl_hold\n\n[site %s]\ntier = %s\nmin-size = %d\n' %
                    (name, tier, 200))
            for i, frame in enumerate(site['frames'][:2]):
                f.write('frame%d = %s+%#x\n' % (i, frame['build_id'], frame['offset']))
        return path

    def test_sites_of_a_profile_steer_their_blocks(self):
        r, _, _ = self.tiers(['big 20', 'small 100000'], POLICY='first-fit', SITE_SAMPLE='4K')
        sites = self.sites(r)
        big, small = sites[MIB], min(sites.items())[1]
        # Blocks of one stack that are in use together: sites of their own, with the same frames.
        same = [s for s in r['sites'] if s['frames'] == big['frames']]
        self.assertAlmostEqual(sum(s['count'] for s in same), 20, delta=1)
        self.assertGreater(small['bytes'], 10 * MIB)
        _, dram, pm = self.tiers(['big 20', 'small 100000'], POLICY='first-fit',
                                 PROFILE=self.profile(big, 'pm', 'big'))
        self.assertGreaterEqual(pm['charged'], 20 * MIB)
        self.assertLess(pm['charged'], 21 * MIB)
        self.assertGreater(dram['charged'], 19 * MIB)
        _, dram, pm = self.tiers(['big 20', 'small 100000'], POLICY='first-fit',
                                 PROFILE=self.profile(small, 'pm', 'small'))
        self.assertGreaterEqual(dram['charged'], 20 * MIB)
        self.assertLess(dram['charged'], 22 * MIB)
        self.assertGreater(pm['charged'], 19 * MIB)

    def test_class_and_options_of_a_profile(self):
        path = os.path.join(self.work, 'p.ini')
        with open(path, 'w') as f:
            f.write('[app]\nexe = pl_hold\nclass = bandwidth\n[options]\npolicy = pm\n')
        r, dram, pm = self.tiers(['big 4'], PROFILE=path)
        self.assertEqual((r['class'], r['policy']), ('bandwidth', 'pm'))
        self.assertGreater(pm['charged'], 4 * MIB)
        r, dram, pm = self.tiers(['big 4'], PROFILE=path, POLICY='dram', CLASS='cpu')
        self.assertEqual((r['class'], r['policy'], pm['charged']), ('cpu', 'dram', 0))

    # --- several programs ----------------------------------------------------------

    def test_programs_share_one_budget(self):
        shared = {'DRAM_SHARED': '64M', 'CLASS': 'bandwidth'}
        many = [self.hold(**shared).do('big 30') for _ in range(4)]
        told = self.status() # of one moment
        total = sum(told[h.pid]['dram_bytes'] for h in many)
        self.assertLessEqual(total, 64 * MIB)
        self.assertGreater(total, 60 * MIB)
        reports = [h.end() for h in many]
        # They end one after the other: who is still there may take a lease (a MiB) of what has been left.
        used = sum(r['tiers']['dram']['charged'] for r in reports)
        self.assertLessEqual(used, (64 + len(many) - 1) * MIB)
        self.assertGreater(sum(r['tiers']['pm']['charged'] for r in reports), 55 * MIB)
        self.assertEqual(self.status(), {})

    def test_a_program_that_grows_fast_is_not_turned_away(self):
        """It gets its claims from a thread of ours, in many steps; all the DRAM is its own."""
        for start in '0', '1M':
            r, dram, pm = self.tiers(['big 30', 'small 300000', 'big 60', 'free', 'big 90'], DRAM_SHARED='256M',
                                     CLASS='bandwidth', START=start)
            self.assertEqual((dram['turned_away'], pm['charged']), (0, 0))
            self.assertGreater(dram['charged'], 90 * MIB)

    def test_only_threads_of_ours_ask_the_registry(self):
        """malloc, free and exit make no call for it."""
        strace = shutil.which('strace')
        if not strace or subprocess.run([strace, '-o', '/dev/null', '/bin/true'], check=False).returncode:
            self.skipTest('no strace, or it may not trace')
        trace = os.path.join(self.work, 'trace')
        # Placement begins later than main: no constructor asks.
        h = self.hold(wrap=(strace, '-f', '-qq', '-o', trace, '-e', 'trace=execve,pwrite64,fcntl',
                            'env', 'LD_PRELOAD=' + self.lib), START='1M', DRAM_SHARED='256M', CLASS='bandwidth')
        h.do('big 30', 'small 100000', 'big 60', 'free', 'big 90').end()
        with open(trace) as f:
            lines = f.readlines()
        program = lines[0].split()[0] # its execve
        asked = [line.split()[0] for line in lines if 'pwrite64(' in line or 'F_OFD' in line]
        self.assertGreater(len(asked), 10)
        self.assertNotIn(program, asked)

    def test_newcomer_finds_dram_of_cpu_bound_ones_wished_free(self):
        cpu = self.hold(DRAM_SHARED='64M', CLASS='cpu').do('big 60')
        new = self.hold(DRAM_SHARED='64M', CLASS='bandwidth').do('big 20')
        self.wait_for('it wishes for DRAM', lambda: self.status()[new.pid]['wish_bytes'] > 10 * MIB)
        s = self.status()
        self.assertEqual((s[cpu.pid]['class'], s[new.pid]['class']), ('cpu', 'bandwidth'))
        self.wait_for('it is on PM', lambda: self.status()[new.pid]['pm_bytes'] > 14 * MIB)
        # The addressee sees it and keeps away from DRAM with what is new.
        self.wait_for('the CPU-bound program is asked', lambda: self.status()[cpu.pid]['asked_bytes'])
        before = self.status()[cpu.pid]['pm_bytes']
        cpu.do('big 10')
        self.wait_for('its new memory is on PM',
                      lambda: self.status()[cpu.pid]['pm_bytes'] >= before + 10 * MIB)
        # What it frees goes to the newcomer, not back to it.
        cpu.do('free')
        self.wait_for('its DRAM is given up', lambda: self.status()[cpu.pid]['dram_bytes'] < 8 * MIB)
        def more():
            new.do('big 4')
            return self.status()[new.pid]['dram_bytes'] >= 30 * MIB
        self.wait_for('the newcomer has it', more)
        new.end()
        cpu.end()

    def test_a_program_on_pm_alone_is_seen_too(self):
        h = self.hold(POLICY='pm').do('big 40')
        self.wait_for('it is in the registry', lambda: h.pid in self.status())
        self.wait_for('its PM shows', lambda: self.status()[h.pid]['pm_bytes'] >= 40 * MIB)
        self.assertEqual(self.status()[h.pid]['threads'], 1)

    def test_a_killed_program_gives_its_share_back(self):
        first = self.hold(DRAM_SHARED='64M').do('big 60')
        first.proc.kill()
        first.proc.wait()
        r = self.hold(DRAM_SHARED='64M').do('big 50').end()
        self.assertGreater(r['tiers']['dram']['charged'], 49 * MIB)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + driven.arguments('hold')[1])
