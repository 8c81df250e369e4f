#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl batch --pair and --clock: whom they put beside whom, and what becomes of the processors' clock,
in fake trees of cpufreq and powercap.

  test_batch_pair.py HYBRIDCTL [unittest arguments]
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + '/batch']
import batch_facts  # noqa: E402
import batch_order as order  # noqa: E402
import batch_pair as pair  # noqa: E402
import batch_power as power  # noqa: E402
from batch_order import Facts  # noqa: E402

CTL = ''
PATIENCE = 240
ENV = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_PRELOAD'))}


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)


def get(path):
    with open(path, encoding='ascii') as f:
        return f.read()


class Pure(unittest.TestCase):
    def together(self, demands, slots):
        """Who runs beside whom, all of one length."""
        class Job:
            def __init__(self, i):
                self.index, self.key, self.after = i, i, ()
        facts = {i: Facts(ebw_d=d) for i, d in enumerate(demands)}
        planner = order.Planner([Job(i) for i in facts], facts, slots, order.ALPHA, pair.ranking)
        rounds = []
        while planner.waiting:
            while (c := planner.next(0)) is not None:
                planner.started(c, 0)
            rounds.append(sorted(demands[i] for i in planner.running))
            for i in list(planner.running):
                planner.ended(i, 1, True)
        return rounds

    def test_memory_bound_beside_compute_bound(self):
        self.assertEqual(self.together([1, 1, 1, 1, 0, 0, 0, 0], 4), [[0, 0, 1, 1]] * 2)
        self.assertEqual(self.together([0.9, 0.1, 0.7, 0.3], 2), [[0.1, 0.9], [0.3, 0.7]])
        self.assertEqual(self.together([0.5] * 3, 2), [[0.5, 0.5], [0.5]])
        self.assertEqual(self.together([], 2), [])

    def test_conflicts_of_004_count_here_too(self):
        writer = Facts(ebw_nv=1, writes=True, pm=2)
        victim = Facts(ebw_d=0.1, cls='bandwidth', dram=2)
        known, running = {0: victim, 1: Facts(ebw_d=0.2)}, {2: writer}
        c = order.choose([], pair.ranking(known, running), known, running)
        self.assertEqual(c.key, 1)

    def test_what_waits_for_memory_takes_no_longer_at_the_low_clock(self):
        def stretch(compute, use):
            f = [Facts(compute=compute, bus=use)]
            return pair.times(f, pair.LOW)[0] / pair.times(f, 1.0)[0]
        self.assertAlmostEqual(stretch(0, 0.5), 1)
        self.assertAlmostEqual(stretch(1, 0), 1.5)
        self.assertAlmostEqual(stretch(0.5, 0.5), 1.25)

    def test_beside_each_other_they_wait_until_the_bus_suffices(self):
        for n in (1, 2, 4, 8):
            for clock in (1.0, pair.LOW):
                t = pair.times([Facts(compute=0.4, bus=0.5)] * n, clock)[0]
                self.assertAlmostEqual(t, max(0.4 / clock + 0.6, 0.5 * n), places=6)
        light, *heavy = pair.times([Facts(compute=1, bus=0)] + [Facts(compute=0.4, bus=0.6)] * 3, 1.0)
        self.assertEqual(light, 1)
        self.assertAlmostEqual(heavy[0], 1.8, places=6)
        self.assertEqual(pair.times([], 1.0), [])

    def test_numbers_that_do_not_agree_end_as_well(self):
        for compute in (0, 1e-9, 1):
            for use in (0, 1):
                for t in pair.times([Facts(compute=compute, bus=use)] * 3, pair.LOW):
                    self.assertTrue(0 < t < 1e7, (compute, use))

    def test_the_ends_are_the_papers(self):
        """001: EDP x(1.4 - 0.8 x) as found best, x(1.67 - 0.79 x) by its microbenchmarks (power 0.78)."""
        for x, practice, theory in ((0, 1.4, 1.67), (1, 1.4 - 0.8, 1.67 - 0.79)):
            one = [Facts(compute=1 - x, bus=x)]
            self.assertAlmostEqual(pair.edp_factors(one)[0], practice, delta=0.05)
            self.assertAlmostEqual(pair.edp_factors(one, 1.16 / 1.49)[0], theory, delta=0.11)

    def test_measured_waiting_counts_more_than_the_bandwidth(self):
        self.assertEqual(pair.computing(Facts(ebw_d=0.3, compute=0.1)), 0.1)
        self.assertAlmostEqual(pair.computing(Facts(ebw_d=0.3)), 0.7)
        self.assertAlmostEqual(pair.computing(Facts(ebw_d=0.3, ebw_nv=7)), 0)
        self.assertEqual(pair.bus(Facts(ebw_d=9, bus=0.1)), 0.1)

    def test_the_clock_is_lowered_only_where_all_in_all_it_gains(self):
        waits, computes = Facts(compute=0, bus=0.2), Facts(compute=1, bus=0)
        self.assertFalse(pair.low_clock([]))
        self.assertTrue(pair.low_clock([waits] * 4))
        self.assertFalse(pair.low_clock([waits, waits, computes, computes]))  # 0.64 x (2 + 2 x 2.25) / 4 = 1.04
        self.assertTrue(pair.low_clock([waits] * 3 + [computes]))             # 0.64 x (3 + 2.25) / 4 = 0.84
        self.assertFalse(pair.low_clock([computes]))
        half = Facts(compute=0.55, bus=0.5)
        self.assertFalse(pair.low_clock([half]))
        self.assertTrue(pair.low_clock([half] * 4), 'they wait for each other')

    def test_what_runs_tell_of_waiting(self):
        def report(busy, compute):
            return {'gain': {'busy_ns': busy, 'compute_ns': compute, 'judged': 9}, 'classification': {'windows': 9}}
        of = batch_facts.of_reports
        self.assertAlmostEqual(of([report(100, 25)], 1).compute, 0.25)
        self.assertAlmostEqual(of([report(100, 25), report(300, 75)], 1).compute, 0.25)
        self.assertEqual(of([report(100, 1000)], 1).compute, 1)
        self.assertIsNone(of([report(0, 0)], 1).compute)
        self.assertIsNone(of([report(0, 0)], 1).bus)
        some = {'gain': {'as_placed_ns': 100, 'service_ns': 30}}
        self.assertAlmostEqual(of([some], 1).bus, 0.3)
        self.assertAlmostEqual(of([some] * 2, 1).bus, 0.6)
        self.assertEqual(of([some] * 9, 1).bus, 1)
        self.assertIsNone(of([{'gain': {'busy_ns': 'x', 'compute_ns': -1}}], 1).compute)

    def test_it_is_kept_for_the_next_batch(self):
        with tempfile.TemporaryDirectory() as folder:
            for compute in (0.25, 0.0, None):
                batch_facts.Learnt(folder + '/learnt').add('a', Facts(0.3, 0.2, compute=compute, bus=compute, source='its last run'))
                f = batch_facts.Learnt(folder + '/learnt').facts['a']
                self.assertEqual((f.compute, f.bus, f.ebw_d, f.ebw_nv, f.counted), (compute, compute, 0.3, 0.2, True))


class Tree(unittest.TestCase):
    def setUp(self):
        self.sys = tempfile.mkdtemp(prefix='hybrid-pair-')
        self.addCleanup(shutil.rmtree, self.sys, ignore_errors=True)
        self.policy = self.sys + '/devices/system/cpu/cpufreq/policy0'
        put(self.policy + '/scaling_max_freq', '2400000\n')
        put(self.policy + '/cpuinfo_min_freq', '800000\n')
        self.rapl = self.sys + '/class/powercap/intel-rapl:0'
        put(self.rapl + '/energy_uj', '1000000\n')
        put(self.rapl + '/max_energy_range_uj', '10000000\n')
        put(self.rapl + ':0/energy_uj', '1\n')  # a part of the package

    def test_clock(self):
        clock = power.Clock(self.sys)
        self.assertTrue(clock.usable())
        self.assertFalse(clock.set(False))
        self.assertTrue(clock.set(True))
        self.assertEqual(get(self.policy + '/scaling_max_freq'), '1600000')
        self.assertFalse(clock.set(True))
        self.assertTrue(clock.set(False))
        self.assertEqual(get(self.policy + '/scaling_max_freq'), '2400000')
        put(self.policy + '/cpuinfo_min_freq', '2000000\n')
        clock = power.Clock(self.sys)
        clock.set(True)
        self.assertEqual(get(self.policy + '/scaling_max_freq'), '2000000')
        self.assertFalse(power.Clock(self.sys + '/none').usable())

    def test_energy_of_packages_and_wraps(self):
        energy = power.Energy(self.sys)
        put(self.rapl + '/energy_uj', '4000000\n')
        put(self.rapl + ':0/energy_uj', '9\n')
        self.assertAlmostEqual(energy.look(), 3)
        put(self.rapl + '/energy_uj', '1000000\n')
        self.assertAlmostEqual(energy.look(), 3 + 7)
        self.assertFalse(power.Energy(self.sys + '/none').usable())

    def batch(self, jobs, *options):
        put(self.sys + '/jobs', jobs)
        return subprocess.run([CTL, 'batch', '--sys', self.sys, *options, 'jobs'], cwd=self.sys, text=True,
                              env=dict(ENV, HYBRID_PM='emulated', HYBRID_REGISTRY=self.sys + '/registry'),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)

    def test_a_batch_lowers_the_clock_and_puts_it_back(self):
        # The job itself tells what clock it ran at, and what energy was used meanwhile.
        seen = f'cat {self.policy}/scaling_max_freq >>{self.sys}/seen; echo 3000000 >{self.rapl}/energy_uj'
        jobs = f'name=a class=bandwidth -- sh -c "sleep 0.5; {seen}"\n'
        first = self.batch(jobs, '--pair', '--clock')
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(get(self.sys + '/seen'), '2400000\n', 'nothing was known of it')
        again = self.batch(jobs, '--pair', '--clock')
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(get(self.sys + '/seen'), '2400000\n1600000')
        self.assertEqual(get(self.policy + '/scaling_max_freq'), '2400000')
        self.assertIn('the clock is lowered by a third', again.stderr)
        self.assertIn('energy of the processors: 2.0 J in ', first.stdout)
        without = self.batch(jobs, '--pair')
        self.assertTrue(get(self.sys + '/seen').endswith('2400000'), without.stderr)

    def test_a_clock_that_may_not_be_set_is_told(self):
        shutil.rmtree(self.sys + '/devices')
        done = self.batch('true\n', '--clock')
        self.assertEqual(done.returncode, 0)
        self.assertIn('may not write to scaling_max_freq', done.stderr)

    def test_the_plan_says_why(self):
        jobs = ''.join(f'name={n} class={c} true\n' for n, c in zip('abcd', ('bandwidth', 'bandwidth', 'cpu', 'cpu')))
        self.batch(jobs, '--pair')
        plan = self.batch(jobs, '--pair', '--dry-run').stdout
        self.assertIn('the most memory-bound one', plan)
        self.assertIn('the least memory-bound one', plan)


if __name__ == '__main__':
    CTL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
