#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl batch: who runs next, beside whom (papers 000 and 004), and what is known of a job. Pure.

  test_batch_order.py [unittest arguments]
"""
import os
import random
import sys
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + '/batch']
import batch_ahead as ahead  # noqa: E402
import batch_facts  # noqa: E402
import batch_jobs  # noqa: E402
import batch_order as order  # noqa: E402
from batch_order import Facts  # noqa: E402


class Order(unittest.TestCase):
    def test_the_first_k_below_alpha_are_latency_sensitive(self):
        # sorted 1, 2, 3, 4, 10: sums 1, 3, 6, 10, 20 of 20
        facts = {k: Facts(ebw_d=v) for k, v in enumerate((4, 10, 1, 3, 2))}
        self.assertEqual(order.latency_sensitive(facts, 0.16), [2, 4])
        self.assertEqual(order.latency_sensitive(facts, 0.15), [2])  # 3 is not below 0.15 * 20
        self.assertEqual(order.latency_sensitive(facts, 0), [])
        self.assertEqual(order.latency_sensitive(facts, 1), [2, 4, 3, 0])
        self.assertEqual(order.latency_sensitive({1: Facts(), 2: Facts()}), [1, 2])

    def test_both_memories_make_the_ebw(self):
        facts = {0: Facts(ebw_d=1, ebw_nv=8), 1: Facts(ebw_d=5), 2: Facts(ebw_nv=2)}
        self.assertEqual(order.latency_sensitive(facts, 1), [2, 1])

    def test_a_tenth_of_the_time_of_the_others(self):
        self.assertTrue(order.latency_first(0, 0))
        self.assertTrue(order.latency_first(0.9, 10))
        self.assertFalse(order.latency_first(1.0, 10))
        self.assertFalse(order.latency_first(3, 0))

    def test_bandwidth_sensitive_ones_take_turns(self):
        known = {0: Facts(5, 1), 1: Facts(4, 9), 2: Facts(3, 2), 3: Facts(8, 7), 4: Facts(1, 6)}
        got = [c.key for c in order.ranking(known, 0, 0, 1, alpha=0)]
        # largest EBW_D: 3 (8); smallest EBW_NV: 0 (1); largest EBW_NV: 1 (9); smallest EBW_D: 4 (1)
        self.assertEqual(got, [3, 0, 1, 4, 2])
        self.assertEqual(order.ranking(known, 2, 0, 1, alpha=0)[0].key, 1)

    def test_latency_sensitive_first_lowest_first_until_the_others_starve(self):
        known = {0: Facts(9, 9), 1: Facts(0.2, 0), 2: Facts(0.1, 0)}
        self.assertEqual([c.key for c in order.ranking(known, 0, 0, 0)], [2, 1, 0])
        self.assertEqual([c.key for c in order.ranking(known, 0, 2, 10)], [0, 2, 1])
        del known[0]
        self.assertEqual(sorted(c.key for c in order.ranking(known, 0, 2, 10)), [1, 2])

    def test_interference_methods_1_and_2(self):
        lu = Facts(0.5, 3, 'latency', True, dram=0, pm=9)
        ocean = Facts(3, 0, 'bandwidth', False, dram=9, pm=0)
        mining = Facts(0.5, 0, 'cpu', False, dram=9, pm=0)
        self.assertTrue(order.conflict(lu, ocean) and order.conflict(ocean, lu))
        self.assertFalse(order.conflict(lu, mining))

        def choose(known, running):
            return order.choose([], order.ranking(known, 0, 9, 1, 0), known, running)
        # Method 1: beside a writer on PM, the one that suffers little; 2: beside ocean, no writer.
        self.assertEqual(choose({1: ocean, 2: mining}, {0: lu}).key, 2)
        self.assertEqual(choose({1: lu, 2: mining}, {0: ocean}).key, 2)
        # Nobody else is there: it is not left standing.
        last = choose({1: ocean}, {0: lu})
        self.assertTrue(last.key == 1 and last.beside)

    def test_two_that_fill_pm_hold_each_other_up(self):
        radix = Facts(9, 9, 'bandwidth', True, 0, 8, 89)
        pagerank = Facts(1, 1, 'bandwidth', True, 0, 10, 122)
        cluster = Facts(9, 0, 'bandwidth', False, 8, 0, 44)
        for a, b in ((radix, pagerank), (radix, Facts(1, 1, 'latency', True, 0, 9)),
                     (radix, Facts(1, 1, 'bandwidth', False, 1, 9))):
            self.assertTrue(order.conflict(a, b) and order.conflict(b, a))
        self.assertFalse(order.conflict(radix, Facts(1, 1, 'cpu', False, 0, 9)))
        # Of three that all hold each other up the two are together that are over soonest.
        self.assertEqual(sorted(self.plan(2, radix, cluster, pagerank)[:2]), [0, 1])

    @staticmethod
    def plan(slots, *facts, dram=float('inf')):
        jobs = batch_jobs.parse(''.join('job %d\n' % i for i in range(len(facts))), 'f')
        planner = order.Planner(jobs, dict(zip((j.key for j in jobs), facts)), slots, 0.1, dram=dram)
        return [i for _, i, _, _ in order.rehearse(planner, 0.0, lambda i: facts[i].seconds or 1.0)]

    def test_short_ones_first_unless_all_takes_longer_by_it(self):
        def of(*seconds):
            return [Facts(1, 0, 'bandwidth', seconds=s) for s in seconds]
        self.assertEqual(self.plan(1, *of(9, 1, 3)), [1, 2, 0])
        # The long ones begin when the two of 1 have ended; as the last they would end at 10 instead of 9.
        self.assertEqual(self.plan(2, *of(8, 1, 8, 1)), [1, 3, 0, 2])
        self.assertEqual(self.plan(2, *of(8, 1, 3, 4)), [1, 0, 2, 3])
        # Those of one length in 000's order: the larger EBW on DRAM, the smaller one on PM.
        self.assertEqual(self.plan(1, Facts(5, 1, seconds=5), Facts(6, 9, seconds=6), Facts(5, 5, seconds=9)), [1, 0, 2])

    def test_the_whole_is_never_longer_than_with_the_longest_first(self):
        rng = random.Random(5)
        for _ in range(300):
            slots, times = rng.randint(1, 5), [rng.choice((0.1, 1, 2, 5, 30)) * rng.random() + 0.01 for _ in range(rng.randint(1, 14))]
            facts = [Facts(1, 0, 'bandwidth', seconds=s) for s in times]
            jobs = batch_jobs.parse(''.join('job %d\n' % i for i in range(len(facts))), 'f')
            planner = order.Planner(jobs, dict(zip((j.key for j in jobs), facts)), slots, 0.1)
            end = max(at + times[i] for at, i, _, _ in order.rehearse(planner, 0.0, lambda i, t=times: t[i]))
            self.assertLessEqual(end, ahead.whole([0.0] * slots, times) * 1.000001)

    def test_what_others_come_after_does_not_wait_for_short_ones(self):
        jobs = batch_jobs.parse('name=a a\nname=b after=a b\nafter=b c\n' + 'short\n' * 28, 'f')
        times = [10, 10, 10] + [1] * 28
        facts = {j.key: Facts(1, 0, 'bandwidth', seconds=times[j.index]) for j in jobs}
        plan = order.rehearse(order.Planner(jobs, facts, 2, 0.1), 0.0, lambda i: times[i])
        self.assertEqual(max(at + times[i] for at, i, _, _ in plan), 30)

    def test_what_has_begun_counts_against_starvation(self):
        # A light one of 10 s has begun, so the heavy ones are next, though nobody has run for long.
        light, heavy = Facts(0.01, 0, 'cpu', seconds=10), Facts(9, 0, 'bandwidth', seconds=10)
        self.assertEqual(self.plan(2, heavy, light, light, heavy), [1, 0, 3, 2])

    def test_memory_that_does_not_fit_waits(self):
        def big(b, cls='bandwidth', **more):
            return Facts(1, 0, cls, False, b, 0, 5, **more)
        self.assertEqual(self.plan(2, big(6), big(6), big(2), dram=10)[:2], [0, 2])
        self.assertEqual(self.plan(2, big(6), big(6), big(2), dram=20)[:2], [0, 1])
        # CPU-bound ones leave it to others, and what is told to lie on PM needs none.
        beside = ahead.Beside([ahead.kind(big(6))], 10)
        self.assertFalse(beside.hinders(ahead.kind(big(6, pm_only=True))) or beside.hinders(ahead.kind(big(6, 'cpu'))))
        self.assertTrue(beside.hinders(ahead.kind(big(60))))
        self.assertTrue(ahead.Beside([ahead.kind(big(60))], 10).hinders(ahead.kind(big(1))))  # it is all there is
        self.assertFalse(ahead.Beside([ahead.kind(big(60))], 10).conflict())
        # Nobody fits: it begins all the same, and does not count as one that 004 would hold back.
        known = {1: big(6)}
        c = order.choose([], order.ranking(known, 0, 0, 0), known, {0: big(6)}, 2, {0: 1.0}, 10)
        self.assertTrue(c.key == 1 and not c.beside and 'DRAM does not suffice' in c.why)

    def test_a_thousand_jobs(self):
        rng = random.Random(4)
        facts = [Facts(rng.random(), rng.random(), rng.choice(('cpu', 'bandwidth')), rng.random() < 0.3, rng.random(),
                       rng.random(), rng.random() * 100) for _ in range(1000)]
        since = time.process_time()
        self.assertEqual(sorted(self.plan(8, *facts, dram=3)), list(range(1000)))
        self.assertLess(time.process_time() - since, 60)

    def test_a_conflict_that_would_come_later_is_foreseen(self):
        lu = Facts(0.5, 0.1, 'latency', True, dram=0, pm=9, seconds=102)
        ocean = Facts(30, 0, 'bandwidth', False, dram=9, pm=0, seconds=45)
        mining = Facts(2, 0, 'cpu', False, dram=9, pm=0, seconds=62)
        def started(*facts):
            return self.plan(2, *facts)
        # lu goes first by its EBW. Beside it only mining may run, after whose end ocean would have to run beside lu.
        self.assertEqual(sorted(started(lu, ocean, mining)[:2]), [1, 2])
        # mining outlives lu: no conflict either way, so the shortest begins.
        self.assertEqual(started(lu, ocean, Facts(2, 0, 'cpu', False, 9, 0, 103)), [1, 2, 0])
        # Nothing is foreseen of times that are not known.
        self.assertEqual(started(lu, Facts(30, 0, 'bandwidth', False, 9, 0, 45), Facts(2, 0, 'cpu', False, 9, 0, 62))[2], 0)
        unknown = {0: lu, 1: ocean, 2: Facts(2, 0, 'cpu', False, 9, 0)}
        self.assertEqual(order.choose([], order.ranking(unknown, 0, 0, 0), unknown, {}, 2, {}).key, 0)

    def test_unknown_jobs_once_first(self):
        jobs = batch_jobs.parse('x 1\nx 1\ny\nz after\n', 'f')
        p = order.Planner(jobs, {jobs[3].key: Facts(cls='cpu')}, 3, 0.1)
        keys = []
        for _ in range(3):
            c = p.next(0)
            keys.append(c.key)
            p.started(c, 0)
        self.assertEqual(keys, [0, 2, 3])  # the second `x 1` waits until the first has told
        self.assertIsNone(p.next(0))  # no slot

    def test_no_job_is_forgotten_whatever_is_known(self):
        rng = random.Random(1)
        for _ in range(300):
            n = rng.randint(1, 12)
            jobs = batch_jobs.parse(''.join('p %d\n' % rng.randint(0, 6) for _ in range(n)), 'f')
            facts = {j.key: Facts(rng.random(), rng.random(), rng.choice(('cpu', 'bandwidth')), rng.random() < 0.5,
                                  rng.random(), rng.random()) for j in jobs if rng.random() < 0.7}
            planner = order.Planner(jobs, facts, rng.randint(1, 4), rng.random())
            plan = order.rehearse(planner, 0.0, lambda i: 1.0 + i)
            self.assertEqual(sorted(i for _, i, _, _ in plan), list(range(n)))
            self.assertTrue(all(len(beside) < planner.slots for _, _, _, beside in plan))

    def test_jobs_that_end_at_the_same_moment_are_beside_none_that_begins_then(self):
        jobs = batch_jobs.parse('name=a p\nname=b q\nafter=a r\n', 'f')
        plan = order.rehearse(order.Planner(jobs, {}, 2, 0.1), 0.0, lambda i: 1.0)
        self.assertEqual([(at, i, beside) for at, i, _, beside in plan], [(0.0, 0, []), (0.0, 1, [0]), (1.0, 2, [])])

    def test_time_left(self):
        self.assertIsNone(order.remaining([None], [None], 2))
        self.assertEqual(order.remaining([10, 10, 4], [], 2), 14)
        self.assertEqual(order.remaining([None], [6], 1), 12)


class WhatIsKnown(unittest.TestCase):
    REPORT = {'class': 'bandwidth', 'classification': {'ebw_milli': [1500, 250], 'write_intensive': True, 'windows': 10},
              'gain': {'judged': 10}, 'tiers': {'dram': {'peak': 10}, 'pm': {'peak': 30}}}

    def test_of_a_report(self):
        f = batch_facts.of_reports([self.REPORT], 2.5)
        self.assertEqual((f.ebw_d, f.ebw_nv, f.cls, f.writes, f.on_pm, f.seconds, f.counted),
                         (1.5, 0.25, 'bandwidth', True, True, 2.5, True))

    def test_a_short_helper_counts_for_its_part(self):
        helper = dict(self.REPORT, classification={'ebw_milli': [1000, 0], 'windows': 1}, tiers={})
        self.assertAlmostEqual(batch_facts.of_reports([self.REPORT, helper], 1).ebw_d, 1.6)

    def test_nonsense_is_survived(self):
        for bad in ({}, {'classification': 3, 'tiers': []}, {'classification': {'ebw_milli': [-1, 'x']}}, 7, None):
            batch_facts.of_reports([bad], 1)

    def test_a_run_without_counters_does_not_replace_counts(self):
        old, new = Facts(2, 0, counted=True, seconds=1), Facts(1, 0, counted=False, seconds=9)
        self.assertEqual((batch_facts.better(new, old).ebw_d, batch_facts.better(new, old).seconds), (2, 9))


if __name__ == '__main__':
    unittest.main()
