#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The race without runs: which placements are tried, what is learnt of a program, and the figures."""
import itertools
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import contenders
import figures
import learn
import optimum
import results
from contenders import Setup
from race_fixtures import ALL, SETUP, PAIR, record, contender


class Placements(unittest.TestCase):
    def test_a_group_tries_every_combination_once(self):
        tried = optimum.of_group(PAIR.programs)
        self.assertEqual(sorted(tried), ["dd", "dp", "pd", "pp"])

    def objects(self, *pages):
        return [optimum.Object(i, 4096 * n) for i, n in enumerate(pages)]

    def test_sets_fit_and_none_can_be_added(self):
        objects = self.objects(5, 4, 3, 2, 1)
        for room in range(16):
            for some in optimum.fitting_sets(objects, room * 4096):
                used = sum(o.bytes for o in some)
                self.assertLessEqual(used, room * 4096)
                self.assertTrue(all(used + o.bytes > room * 4096
                                    for o in objects if o not in some))

    def test_no_fitting_set_that_is_best_is_missed(self):
        objects, worth = self.objects(5, 4, 3, 2, 1), (7, 6, 2, 2, 3)
        for room in range(16):
            sets = [s for n in range(6) for s in itertools.combinations(objects, n)
                    if sum(o.bytes for o in s) <= room * 4096]
            best = max(sum(worth[o.number] for o in s) for s in sets)
            tried, possible = optimum.of_objects(objects, room * 4096)
            self.assertEqual(len(tried), len(set(tried)))
            self.assertEqual(len(tried), possible)
            self.assertLessEqual(best, max(sum(w for w, d in zip(worth, digits) if d == "0")
                                           for digits in tried))

    def test_linux_order_is_among_them(self):
        self.assertIn("000001", optimum.of_objects(self.objects(5, 4, 3, 2, 1), 8192)[0])

    def test_more_objects_than_digits_to_try(self):
        objects = self.objects(*range(1, 21))
        tried, possible = optimum.of_objects(objects, 100 * 4096)
        small = [o.number for o in objects if o.bytes <= 8 * 4096]
        self.assertEqual(len(tried), optimum.MOST_TRIED)
        self.assertGreater(possible, len(tried))
        for digits in tried:
            self.assertTrue(all(digits[n] == "0" for n in small))

    def test_of_too_many_those_with_most_traffic_are_tried(self):
        objects = [optimum.Object(i, 4096, 100 if i == 7 else 1) for i in range(12)]
        tried, possible = optimum.of_objects(objects, 4 * 4096)
        self.assertGreater(possible, len(tried))
        self.assertTrue(all(digits[7] == "0" for digits in tried))

    def test_listing_is_read(self):
        text = "# number bytes\n0 4096 1 10 20 0 emu-cg+0x1 77\n\n1 70000\n"
        self.assertEqual(optimum.parse_objects(text),
                         [optimum.Object(0, 4096, 70), optimum.Object(1, 70000)])


    def listed(self, *rows):
        """number, bytes, born, died, caller"""
        return "# head\n" + "".join(f"{n} {size} 1 {n} 0 0 {caller} 77 {born} {died}\n"
                                    for n, size, born, died, caller in rows)

    def test_temporaries_that_follow_each_other_are_one_object(self):
        text = self.listed((0, 8192, 1, 9, "a"), (1, 8192, 2, 4, "b"), (2, 8192, 3, 5, "b"),
                           (3, 8192, 6, 7, "b"), (4, 4096, 8, 0, "b"), (5, 8192, 10, 0, "c"))
        found = optimum.successors(optimum.parse_objects(text), text)
        self.assertEqual([sorted(o.numbers()) for o in found], [[0], [1, 3], [2], [4], [5]])
        self.assertEqual((found[1].bytes, found[1].traffic), (8192, 4))
        digits, _ = optimum.of_objects(found, 3 * 4096)
        self.assertTrue(all(d[1] == d[3] for d in digits))

    def test_a_listing_without_lives_is_left_as_it_is(self):
        objects = self.objects(1, 2)
        self.assertEqual(optimum.successors(objects, "0 4096 1 10 20 0 x+0x1 77\n"), objects)

    def test_more_objects_than_fit_go_in_bundles_that_are_used_alike(self):
        objects = [optimum.Object(i, 4096, 9 if i % 4 == 0 else 1) for i in range(48)]
        found = optimum.bundles(objects, 12, 12 * 4096)
        self.assertLessEqual(len(found), 13)
        self.assertEqual(sorted(n for o in found for n in o.numbers()), list(range(48)))
        self.assertEqual(sum(o.bytes for o in found), 48 * 4096)
        digits, _ = optimum.of_objects(objects, 12 * 4096)
        hot = "".join("0" if i % 4 == 0 else "1" for i in range(48)) + "1"
        self.assertIn(hot, digits)
        self.assertEqual(optimum.bundles(objects[:12], 12, 0), objects[:12])


class Learning(unittest.TestCase):
    def test_who_does_not_get_dram_uses_pm(self):
        app, options = learn.program_facts(10, 11, False)
        self.assertEqual((app[0], options), ("class = cpu", ["policy = pm"]))
        app, options = learn.program_facts(10, 40, True)
        self.assertEqual((app, options), (["class = bandwidth", "slowdown = 4.00"], []))

    def test_fewest_threads_that_are_as_fast_as_any(self):
        self.assertEqual(learn.fewest_threads({1: 100, 2: 51, 4: 40, 8: 39}), 4)
        self.assertEqual(learn.fewest_threads({1: 100, 2: 51, 4: 30, 8: 45}), 4)
        self.assertEqual(learn.fewest_threads({1: 1}), 1)
        self.assertEqual(learn.thread_counts(8), [1, 2, 3, 4, 6, 8])
        self.assertEqual(learn.thread_counts(1), [1])

    def test_profile_tells_all_that_was_learnt(self):
        text = learn.profile("cg", ["class = cpu"], ["policy = pm"], {"dram": 8, "pm": 3})
        self.assertEqual(text, "[app]\nexe = emu-cg\nclass = cpu\n\n[options]\npolicy = pm\n\n"
                               "[threads]\ndram = 8\npm = 3\n")

    def test_most_benefit_that_fits_not_most_by_size(self):
        sizes, benefit = {"a": 50, "b": 30, "c": 20, "d": 10}, {"a": 5, "b": 4, "c": 3, "d": .5}
        self.assertEqual(learn.choose(sizes, benefit, 60), {"b", "c", "d"})
        self.assertEqual(learn.choose(sizes, benefit, 50), {"b", "c"})
        self.assertEqual(learn.choose(sizes, benefit, 5), frozenset())

    def test_what_gains_nothing_gets_nothing(self):
        self.assertEqual(learn.choose({"a": 5, "b": 3}, {"a": -1.0, "b": 4.0}, 50), {"b"})

    def test_what_was_recorded_keeps_its_own_description_of_the_program(self):
        text = learn.profile("cg", threads={"pm": 3}, recorded="[app]\nexe = emu-cg\n")
        self.assertEqual(text, "[app]\nexe = emu-cg\n\n[threads]\npm = 3\n")


class Figures(unittest.TestCase):
    """Ratios, the table, the limits, the picture."""
    NAMES = ("all-pm", "linux", "hybrid-class", "optimum")

    def rows(self, failures=None, **times):
        # Each round is twice as slow as the one before: only paired ratios are constant.
        records = {name: {r: record(t * 2 ** r) for r in range(3)} for name, t in times.items()}
        names = [n.replace("_", "-") for n in records]
        records = dict(zip(names, records.values()))
        return results.evaluate_case(self.NAMES, records, failures or {}, {"linux": 1})

    def test_ratios_are_taken_within_a_round(self):
        row = self.rows(all_pm=4, linux=2, hybrid_class=1.5, optimum=1)["hybrid-class"]
        self.assertEqual(row["over_linux"], {"median": 0.75, "min": 0.75, "max": 0.75, "n": 3})
        self.assertAlmostEqual(row["speedup_over_all_pm"], 4 / 1.5)
        self.assertAlmostEqual(row["gain_fraction"], 0.5)

    def test_the_whole_program_has_a_ratio_of_its_own(self):
        records = {"linux": {0: record(2)}, "all-pm": {0: record(4)}}
        row = results.evaluate_case(("all-pm", "linux"), records, {}, {})["all-pm"]
        self.assertEqual((row["over_linux"]["median"], row["whole_over_linux"]["median"]),
                         (2, 9 / 5))
        self.assertEqual(results.table_row("x", row)[-2:], ["9.00", "1.800"])

    def test_no_gain_to_be_had_is_no_fraction(self):
        row = self.rows(all_pm=4, linux=2, hybrid_class=1.5, optimum=1.99)["hybrid-class"]
        self.assertIsNone(row["gain_fraction"])

    def test_all_dram_is_no_share_of_what_can_be_had(self):
        self.NAMES = ("all-dram", "linux", "optimum")
        self.assertIsNone(self.rows(all_dram=0.5, linux=2, optimum=1)["all-dram"]["gain_fraction"])

    def test_the_best_placement_is_one_that_was_repeated(self):
        by = {"dd": {0: 1.0}, "dp": {0: 1.1, 1: 1.3, 2: 1.2}, "pd": {0: 1.2, 1: 1.1, 2: 1.1}}
        self.assertEqual(results.best_placement(by), "pd")

    def found(self, **more):
        rows = self.rows(**more)
        case = {"name": "pair", "note": "", "dram_mib": 8, "footprint_mib": 16, "placement": "dp",
                "placements_tried": 4, "placements": 4, "contenders": rows,
                "programs": [vars(p) for p in PAIR.programs]}
        labels = {c.name: c.label for c in contenders.all_contenders(SETUP)}
        return {"labels": labels,
                "left_out": [{"name": "hybrid-migrate", "label": "migration",
                              "why": "not built: no option HYBRID_MIGRATE"}],
                "experiments": [{"name": "test", "title": "Test", "preset": "optane",
                                 "together": ["class", "profile"], "cases": [case]}]}

    def test_table_is_aligned_and_names_everything(self):
        text = results.text(self.found(all_pm=4, linux=2, hybrid_class=1.5, optimum=1,
                                       failures={"optimum": "broke"}))
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for part in ("FAILED: best static placement: broke", "not built: no option HYBRID_MIGRATE",
                     "1 runs were not valid", "best of 4 static placements: dp", "50%"):
            self.assertIn(part, text)
        table = [s for s in text.splitlines() if s.startswith(("contender", "libhybrid: class"))]
        self.assertEqual(len({len(s) for s in table}), 1)

    def test_a_long_placement_is_cut(self):
        found = self.found(all_pm=4, linux=2, optimum=1)
        found["experiments"][0]["cases"][0]["placement"] = "01" * 200
        self.assertIn("placements: " + "01" * 15 + "...\n", results.text(found))

    def test_longest_names_fit_the_table(self):
        setup = Setup("/b", "/l", "/m", "/p", ALL)
        names = [c.name for c in contenders.all_contenders(setup)]
        records = {n: {0: record(12345.678)} for n in names}
        rows = results.evaluate_case(names, records, {}, {})
        found = self.found(linux=1)
        found["labels"] = {c.name: c.label for c in contenders.all_contenders(setup)}
        found["experiments"][0]["cases"][0]["contenders"] = rows
        self.assertLessEqual(max(map(len, results.text(found).splitlines())), 100)

    def test_check_finds_a_libhybrid_that_is_worse_than_pm(self):
        good = self.found(all_pm=4, linux=2, hybrid_class=4.07, optimum=1)
        self.assertEqual(results.check(good), [])
        bad = self.found(all_pm=4, linux=2, hybrid_class=4.09, optimum=1)
        self.assertEqual(len(results.check(bad)), 1)
        self.assertIn("limit 1.02", results.check(bad)[0])

    def test_check_finds_what_failed(self):
        bad = self.found(all_pm=4, linux=2, failures={"optimum": "broke"})
        self.assertIn("broke", results.check(bad)[0])

    def test_picture(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("no matplotlib in this Python")
        with tempfile.TemporaryDirectory() as out:
            made = figures.save(self.found(all_pm=9, linux=2, hybrid_class=1.5, optimum=1), out)
            self.assertEqual([os.path.basename(p) for p in made], ["test.png"])
            with open(made[0], "rb") as f:
                self.assertEqual(f.read(4), b"\x89PNG")
            with open(os.path.join(out, "test.svg"), encoding="utf-8") as f:
                svg = f.read()
        self.assertIn("<svg", svg)


if __name__ == "__main__":
    unittest.main()
