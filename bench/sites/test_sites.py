#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The search for the best set of objects against brute force, and the verdict.
test_sites.py BUILD Real: a recorded profile against the best placement of cg, for real."""
import itertools
import os
import random
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "race")]
import search
import sites
from optimum import Object, pages

BUILD = ""


def some(seed, count):
    dice = random.Random(seed)
    return [Object(i, dice.randrange(4096, 1 << 20), (dice.randrange(10000), dice.randrange(5000)))
            for i in range(count)]


class Search(unittest.TestCase):
    def test_the_best_by_each_weight_is_among_the_candidates(self):
        for seed in range(8):
            objects = some(seed, 8)
            room = sum(pages(o.bytes) for o in objects) // 3
            chosen, _ = search.candidates(objects, room, 8)
            self.assertLessEqual(len(chosen), 8)
            for weight in search.WEIGHTS:
                best = max(search.worth(s, weight)
                           for k in range(9) for s in itertools.combinations(objects, k)
                           if sum(pages(o.bytes) for o in s) <= room)
                self.assertAlmostEqual(best, max(search.worth(s, weight) for s in chosen))
            for s in chosen:
                self.assertLessEqual(sum(pages(o.bytes) for o in s), room)

    def test_few_sets_are_all_tried(self):
        objects = some(1, 3)
        chosen, count = search.candidates(objects, sum(pages(o.bytes) for o in objects), 8)
        self.assertEqual((count, chosen), (1, [frozenset(objects)]))

    def test_digits(self):
        objects = some(2, 3)
        self.assertEqual(search.digits([objects[1]], objects), "1011")
        self.assertEqual(search.digits([], []), "1")

    def test_counts_are_read(self):
        text = "# number bytes tier reads writebacks freed caller pid\n0 8192 1 70 30 1 x+0x1 9\n"
        found = search.with_counts(sites.parse_objects(text), text)
        self.assertEqual([(o.number, o.bytes, o.traffic) for o in found], [(0, 8192, (70, 30))])



class Verdict(unittest.TestCase):
    def row(self, **more):
        return {"workload": "x", "size": 0, "share": "1/3", "objects": 3, "sets": 4, "tried": 4,
                "pm_ms": 100.0, "best_ms": 50.0, "profile_ms": 51.0, "counts": True,
                "of_gain": 0.98, **more}

    def test_limits(self):
        self.assertEqual(sites.failures([self.row()]), [])
        self.assertEqual(len(sites.failures([self.row(of_gain=0.94)])), 1)
        self.assertEqual(sites.failures([self.row(of_gain=0.7, size=16)]), [])
        self.assertEqual(len(sites.failures([self.row(of_gain=0.6, size=16)])), 1)
        no_gain = {"counts": False, "of_gain": None}
        self.assertEqual(sites.failures([self.row(**no_gain, best_ms=99.0, profile_ms=100.0)]), [])
        self.assertEqual(len(sites.failures([self.row(**no_gain, profile_ms=103.0)])), 1)

    def test_table_has_every_case(self):
        text = sites.table([self.row(), self.row(counts=False, of_gain=None)])
        self.assertIn("98.0 %", text)
        self.assertIn("(no gain)", text)


class Real(unittest.TestCase):
    def test_a_recorded_profile_gains_what_the_best_placement_does(self):
        done = subprocess.run([sys.executable, os.path.join(HERE, "sites.py"), "--build", BUILD,
                               "--share", "1/3", "--no-resize", "--sets", "4", "--check", "cg"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        BUILD = sys.argv[1]
        unittest.main(argv=[sys.argv[0], sys.argv[2]])
    unittest.main(argv=[sys.argv[0], "Search", "Verdict"])
