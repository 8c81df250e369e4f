# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the measuring scripts: that a check fails when a limit is exceeded, that an
interrupted campaign goes on, that a preload which does not load is not measured.
test_bench.py [BUILD]: with a build folder, real (very short) runs as well."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import alloc_bench
import benchlib as lib
import instr
import memory
import shapes
import startup

BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
HERE = os.path.dirname(os.path.abspath(__file__))


def alloc_arguments(**changed):
    return argparse.Namespace(**{"rounds": 3, "benchmarks": list(alloc_bench.BENCHMARKS), "scale": 1.0,
                                 "seed": 1, **changed})


def alloc_records(args, ratios, out="same"):
    """glibc takes 1 s, 2 s, 4 s ... in the rounds: only paired ratios are constant."""
    records = []
    for number in range(args.rounds):
        for bench in args.benchmarks:
            for threads in alloc_bench.THREADS:
                for config, value in {"glibc": 1.0, **ratios}.items():
                    ratio = value.get(f"{bench}/{threads}", value["rest"]) if isinstance(value, dict) else value
                    records.append({"round": number, "bench": bench, "threads": threads, "config": config,
                                    "cpu": ratio * 2 ** number, "out": out, "problem": None})
    return records


def alloc_failures(args, ratios, change=lambda records: None):
    records = alloc_records(args, ratios)
    change(records)
    configs = [lib.Config(n, n) for n in ("glibc", *ratios)]
    return alloc_bench.check(args, alloc_bench.evaluate(args, configs, records))


class Statistics(unittest.TestCase):
    def test_quantiles_lie_between_neighbours(self):
        self.assertEqual(lib.quantile([4, 1, 3, 2], 0.5), 2.5)
        self.assertEqual(lib.quantile([5], 0.25), 5)
        self.assertEqual(lib.summary([1, 2, 3, 4, 5])["q3"], 4)

    def test_geometric_mean(self):
        self.assertAlmostEqual(lib.geomean([0.25, 1.0]), 0.5)


class ShapesCheck(unittest.TestCase):
    GOOD = {"glibc": 1.0, "mimalloc": 0.5, "tcmalloc": 0.6, "dram": 0.52, "pm": 0.5}

    def failures(self, allowance=0, **changed):
        table = {shape: dict(self.GOOD) for shape in shapes.SHAPES}
        table["barnes 1"].update(changed)
        return shapes.judge("cpu", table, allowance)

    def test_good_figures_pass(self):
        self.assertEqual(self.failures(), [])

    def test_one_shape_above_glibc_fails(self):
        self.assertIn("dram: barnes 1 takes 1.01 of glibc", self.failures(dram=1.01)[-1])
        self.assertFalse(any("takes" in f for f in self.failures(0.02, dram=1.01)))

    def test_the_mean_is_held_against_the_better_peer(self):
        table = {shape: dict(self.GOOD, pm=0.53) for shape in shapes.SHAPES}
        self.assertEqual(len(shapes.judge("cpu", table, 0)), 1)

    def test_what_was_not_measured_fails(self):
        self.assertEqual(len(shapes.judge("cpu", {"barnes 1": {"glibc": 1.0, "dram": 0.5}}, 0)), 2)


class AllocCheck(unittest.TestCase):
    GOOD = {"dram": 0.39, "pm": 0.44, "passive": 1.03}

    def test_good_figures_pass(self):
        self.assertEqual(alloc_failures(alloc_arguments(), self.GOOD), [])

    def test_ratios_are_paired_within_a_round(self):
        args = alloc_arguments()
        result = alloc_bench.evaluate(args, [lib.Config("dram", "d")], alloc_records(args, {"dram": 0.5}))
        self.assertAlmostEqual(result["dram"]["cells"]["big/2"]["q1"], 0.5)
        self.assertAlmostEqual(result["dram"]["cells"]["big/2"]["q3"], 0.5)

    def test_each_limit_fails_by_name(self):
        for name, value, word in (("dram", 0.41, "geometric mean 0.410"), ("pm", 0.46, "geometric mean"),
                                  ("passive", 1.05, "geometric mean 1.050")):
            failures = alloc_failures(alloc_arguments(), {**self.GOOD, name: value})
            self.assertEqual(len(failures), 1, failures)
            self.assertIn(name, failures[0])
            self.assertIn(word, failures[0])

    def test_one_slow_benchmark_fails_though_the_mean_is_good(self):
        failures = alloc_failures(alloc_arguments(), {**self.GOOD, "pm": {"big/2": 0.82, "rest": 0.3}})
        self.assertEqual(len(failures), 1, failures)
        self.assertIn("big/2", failures[0])

    def test_missing_configuration_or_part_fails(self):
        self.assertIn("pm: not measured", alloc_failures(alloc_arguments(), {"dram": 0.4, "passive": 1.0}))
        self.assertTrue(alloc_failures(alloc_arguments(benchmarks=["big"]), self.GOOD))

    def test_a_crash_or_another_checksum_fails(self):
        def crash(records):
            for record in records:
                if record["config"] == "pm" and record["bench"] == "server":
                    record["problem"] = "signal 11"

        def wrong(records):
            for record in records:
                if record["config"] == "dram" and record["bench"] == "tiny" and record["round"] == 2:
                    record["out"] = "other"
        self.assertTrue(any("signal 11" in f for f in alloc_failures(alloc_arguments(), self.GOOD, crash)))
        self.assertTrue(any("other result" in f for f in alloc_failures(alloc_arguments(), self.GOOD, wrong)))


class OtherChecks(unittest.TestCase):
    def test_instructions(self):
        args = argparse.Namespace(part="all")
        good = {"operations": {"dram": {"pair 64": 50}, "pm": {"pair 64": 49}}, "sites": {"perl": {"ratio": 1.02}}}
        self.assertEqual(instr.check(args, good), [])
        bad = {"operations": {"dram": {"pair 64": 51}, "pm": {"pair 64": 50}}, "sites": {"perl": {"ratio": 1.021}}}
        self.assertEqual(len(instr.check(args, bad)), 2)
        self.assertEqual(len(instr.check(args, {})), 3)

    def test_startup(self):
        def result(**added):
            return {n: {"label": n, "cpu_added_ms": {"median": added.get(n, 0.1), "q1": 0, "q3": 0}}
                    for n in startup.CHECKED}
        self.assertEqual(startup.check(result()), [])
        self.assertEqual(len(startup.check(result(pm=0.151))), 1)
        self.assertIn("auto: not measured", startup.check({k: v for k, v in result().items() if k != "auto"}))

    def test_memory(self):
        def programs(rss, peak):
            entry = {"VmRSS": [1000], "VmHWM": [1000]}
            entries = {c: entry for c in ("as installed", "glibc", *memory.CHECKED)}
            return {p: {**entries, "pm": {"VmRSS": [rss], "VmHWM": [peak]}}
                    for p in ("redis loaded", "redis churned", "python objects")}
        self.assertEqual(memory.check_programs(programs(1100, 1100)), [])
        self.assertEqual(len(memory.check_programs(programs(1101, 1000))), 3)
        self.assertEqual(len(memory.check_programs(programs(1000, 1101))), 3)
        self.assertTrue(memory.check_programs({}))
        without = programs(1000, 1000)
        del without["redis churned"]["as installed"]
        self.assertTrue(any("as installed was not measured" in f for f in memory.check_programs(without)))

    def test_growth(self):
        def threads(last_kib, last_maps, problem=None):
            entry = {"problem": problem, "points": [{"rss_kib": 5000, "maps": 40}, {"rss_kib": last_kib, "maps": last_maps}]}
            return {"threads": {c: entry for c in ("passive", "dram", "pm")}}
        self.assertEqual(memory.check_growth(threads(6024, 48)), [])
        self.assertEqual(len(memory.check_growth(threads(6025, 40))), 3)
        self.assertEqual(len(memory.check_growth(threads(5000, 49))), 3)
        self.assertEqual(len(memory.check_growth(threads(5000, 40, "signal 9"))), 3)


class JournalTest(unittest.TestCase):
    def test_goes_on_after_a_cut_line_and_keeps_campaigns_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "j.jsonl")
            first = lib.Journal(path, "a")
            first.add(number=1)
            with open(path, "a", encoding="utf-8") as f:
                f.write('{"number": 2, "campa')
            again = lib.Journal(path, "a")
            self.assertEqual([r["number"] for r in again.records], [1])
            again.add(number=3)
            self.assertEqual([r["number"] for r in lib.Journal(path, "a").records], [1, 3])
            self.assertEqual(lib.Journal(path, "b").records, [])
            self.assertEqual(lib.Journal(path, "a", fresh=True).records, [])

    def test_fingerprint_sees_a_rebuilt_library(self):
        with tempfile.NamedTemporaryFile() as f:
            before = lib.fingerprint(f.name)
            f.write(b"x")
            f.flush()
            self.assertNotEqual(before, lib.fingerprint(f.name))


class Environment(unittest.TestCase):
    def test_variables_that_would_disturb_are_removed(self):
        os.environ["HYBRID_DRAM"] = "1M"
        os.environ["MALLOC_ARENA_MAX"] = "1"
        try:
            env = lib.clean_env({"X": "y"})
        finally:
            del os.environ["HYBRID_DRAM"], os.environ["MALLOC_ARENA_MAX"]
        self.assertNotIn("HYBRID_DRAM", env)
        self.assertNotIn("MALLOC_ARENA_MAX", env)
        self.assertEqual(env["X"], "y")

    def test_cpu_time_is_the_childs(self):
        result = lib.run([sys.executable, "-c", "sum(range(3000000)); print('x' * 3)"], lib.clean_env())
        self.assertTrue(result.ok)
        self.assertEqual(result.out, "xxx\n")
        self.assertGreater(result.cpu, 0.005)
        self.assertEqual(lib.run(["/bin/sh", "-c", "kill -9 $$"], lib.clean_env()).status, -9)


@unittest.skipUnless(BUILD, "no build folder given")
class RealRuns(unittest.TestCase):
    def bench(self, out, *more):
        return subprocess.run([sys.executable, os.path.join(HERE, "alloc_bench.py"), "--build", BUILD, "--out", out,
                               "--configs", "glibc", "--scale", "0.01", *more],
                              capture_output=True, text=True, check=False, env=lib.clean_env())

    def test_campaign_and_resumption(self):
        with tempfile.TemporaryDirectory() as out:
            first = self.bench(out, "--rounds", "1")
            self.assertEqual(first.returncode, 0, first.stderr)
            journal = os.path.join(out, "alloc_bench.jsonl")
            with open(journal, encoding="utf-8") as f:
                self.assertEqual(len(f.readlines()), 12)
            more = self.bench(out, "--rounds", "2")
            self.assertIn("resuming: 12 of 24", more.stderr)
            with open(journal, encoding="utf-8") as f:
                self.assertEqual(len(f.readlines()), 24)
            with open(os.path.join(out, "alloc_bench.json"), encoding="utf-8") as f:
                cells = json.load(f)["configs"]["glibc"]["cells"]
            self.assertEqual({c["n"] for c in cells.values()}, {2})
            # Only glibc: the claims cannot hold, and the check must say so.
            self.assertEqual(self.bench(out, "--rounds", "2", "--check").returncode, 1)

    def test_a_library_that_does_not_load_is_refused(self):
        with tempfile.TemporaryDirectory() as out:
            bad = os.path.join(out, "libhybrid.so")
            with open(bad, "w", encoding="ascii") as f:
                f.write("no library")
            result = self.bench(out, "--configs", "passive", "--library", bad)
            self.assertEqual(result.returncode, 2)
            self.assertIn("passive", result.stderr)

    def test_checksums_do_not_depend_on_time_or_order(self):
        for name in alloc_bench.BENCHMARKS:
            argv = [os.path.join(BUILD, "bench", "bench-" + name), "2", "5000", "3"]
            outs = {lib.run(argv, lib.clean_env()).out for _ in range(2)}
            self.assertEqual(len(outs), 1)
            self.assertRegex(outs.pop(), rf"^{name} threads=2 ops=\d+ checksum=[0-9a-f]{{16}}\n$")

    def test_every_benchmark_notices_a_wrong_allocator(self):
        wrong = os.path.join(BUILD, "bench", "libbench-wrong.so")
        self.assertTrue(os.path.exists(wrong))
        for name in alloc_bench.BENCHMARKS:
            for threads in "1", "2":
                argv = [os.path.join(BUILD, "bench", "bench-" + name), threads, "20000"]
                result = lib.run(argv, lib.clean_env({"LD_PRELOAD": wrong}))
                self.assertFalse(result.ok, f"{name}, {threads} thread(s)")
                # Broken links of tiny's lists may fault before a product is compared.
                if name != "tiny":
                    self.assertEqual(result.status, 1)
                    self.assertRegex(result.err, "overwritten|wrong|lost|not zero")

    def test_growth_programs_report_ten_times(self):
        for name, count in (("churn", "330000"), ("threads", "80")):
            result = lib.run([os.path.join(BUILD, "bench", "bench-" + name), count], lib.clean_env())
            self.assertEqual(re.findall(r"^at (\d+) rss_kib=\d+ ", result.out, re.M), [str(10 * i) for i in range(1, 11)])


if __name__ == "__main__":
    unittest.main()
