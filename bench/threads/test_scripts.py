#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The benchmarks of this folder without their runs: what they conclude from given times, and what
they say to wrong input."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import curves  # noqa: E402: found by the path above
import groups  # noqa: E402


def linear(knee):
    return {n: 100 / min(n, knee) for n in range(1, curves.CPUS + 1)}


def row(times):
    chosen, runs = curves.tuned(times)
    best = min(times.values())
    return {"ms": times, "speed_up": {n: times[1] / t for n, t in times.items()}, "offline": chosen,
            "offline_runs": runs, "offline_over_best": chosen and times[chosen] / best,
            "best": min(n for n in times if times[n] == best)}


class CurvesTest(unittest.TestCase):
    def judged(self, name, dram, pm, online=None):
        found = {"class": curves.WORKLOADS[name], "dram": row(dram), "pm": row(pm)}
        if online:
            found["online"] = {"over_off": online, "chosen": 3}
        wrong = []
        curves.judge(name, found, wrong)
        return wrong

    def test_offline_choice(self):
        for knee in (1, 3, 4, 8, 14, 20):
            self.assertEqual(curves.tuned(linear(knee))[0], knee)
        # Not all measured, and tune would ask for one of these: no choice is told.
        self.assertEqual(curves.tuned({1: 100, 4: 30, 20: 10}), (None, 0))

    def test_limits(self):
        self.assertEqual(self.judged("stream", linear(18), linear(3), 1.009), [])
        self.assertEqual(len(self.judged("stream", linear(18), linear(3), 1.011)), 1)
        self.assertEqual(len(self.judged("stream", linear(18), linear(12))), 1)  # PM scales on
        self.assertEqual(self.judged("pricing", linear(20), linear(20)), [])
        self.assertEqual(len(self.judged("pricing", linear(20), linear(11))), 1)  # only on DRAM
        self.assertEqual(len(self.judged("pricing", linear(8), linear(8))), 1)

    def test_table_tells_what_is_there(self):
        found = {"stream": {"class": "bandwidth", "dram": row(linear(18)), "pm": row(linear(3))}}
        counts = {"dram": [1, 20], "pm": list(range(1, 21))}
        text = curves.show(found, counts)
        self.assertIn("stream pm", text)
        self.assertNotIn("Without a profile", text)


class GroupsTest(unittest.TestCase):
    def test_groups_are_complete(self):
        for g in groups.GROUPS:
            self.assertEqual(len(g.programs), len(g.places))
            self.assertTrue(set(g.places) <= set("dp"))
            # Those on PM first: the others size their pools by what is left.
            self.assertEqual(g.places, "p" * g.places.count("p") + "d" * g.places.count("d"))

    def test_number_of_threads_is_no_difference(self):
        runner = groups.ThreadRunner(groups.Setup("/nowhere"))
        line = runner.comparable("fft 2 8 1: result 12 ok")
        self.assertEqual(runner.comparable("fft 16 8 1: result 12 ok"), line)
        self.assertNotEqual(runner.comparable("fft 2 8 1: result 13 ok"), line)


class CommandTest(unittest.TestCase):
    def run_script(self, name, *arguments):
        return subprocess.run([sys.executable, os.path.join(HERE, name), *arguments],
                              capture_output=True, text=True, check=False)

    def test_help(self):
        for name in ("curves.py", "groups.py", "cost.py"):
            done = self.run_script(name, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("--check", done.stdout)

    def test_not_built(self):
        with tempfile.TemporaryDirectory() as d:
            for name in ("curves.py", "groups.py", "cost.py"):
                done = self.run_script(name, "--build", d)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("is missing: build first", done.stderr)

    def test_unknown_workload(self):
        done = self.run_script("curves.py", "strem")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'strem' is no workload; there are stream", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
