#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the race. test_race.py [BUILD]: with a build folder, short real races as well."""
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import benchlib as lib
import campaign
import contenders
import race
import results
from contenders import Setup
from experiments import EXPERIMENTS, GROUPS, MIB, Experiment
from race_fixtures import ALL, SETUP, ALONE, PAIR, record, contender, run_of
from runner import (SCRATCH, NotValid, Result, RunError, invalid, parse_output, scratch_parent,
                    summarise, uninterrupted)

BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


class Contenders(unittest.TestCase):
    def result(self, stderr="", hybrid=None, objects=None, **counts):
        return Result("", {"begin_ns": 0, "end_ns": 1}, counts, stderr, hybrid, objects)

    def test_what_is_not_built_is_left_out_by_name(self):
        missing = {c.name: c.missing for c in contenders.all_contenders(SETUP)}
        self.assertIn("HYBRID_MIGRATE", missing["hybrid-migrate"])
        self.assertIsNone(missing["hybrid-class"])
        self.assertIsNone(missing["hybrid-all"])
        everything = contenders.all_contenders(Setup("/b", "/l", "/m", "/p", ALL))
        self.assertEqual([c.name for c in everything if c.missing], [])

    def test_peers_that_are_not_installed_are_left_out(self):
        missing = [c.name for c in contenders.all_contenders(Setup("/b")) if c.missing]
        self.assertIn("memtier-ratio", missing)
        self.assertIn("hybrid-class", missing)
        self.assertNotIn("linux", missing)

    def test_all_strategies_are_those_that_are_built(self):
        names = [s.name for s in contender("hybrid-all").strategies]
        self.assertEqual(names, ["class", "profile"])

    def test_everyone_has_the_same_dram(self):
        for name in "linux", "memtier-ratio", "memtier-threshold", "hybrid-class", "hybrid-all":
            env = run_of(name).contender.env(run_of(name), 0, "/s")
            self.assertEqual(env["HYBRID_EMU_DRAM"], "2M", name)
        self.assertEqual(env["HYBRID_DRAM_SHARED"], "2M")

    def test_memtier_ratio_is_that_of_the_memories(self):
        env = run_of("memtier-ratio").contender.env(run_of("memtier-ratio"), 0, "/s")
        self.assertEqual(env["MEMKIND_MEM_TIERS"], "KIND:DRAM,RATIO:1;KIND:FS_DAX,PATH:/s/pm,"
                                                   "RATIO:4;POLICY:STATIC_RATIO")

    def test_a_strategy_alone_has_the_others_off(self):
        setup = Setup("/b", "/l", "/m", "/p", ALL)
        run = run_of("hybrid-class", setup=setup)
        env = run.contender.env(run, 0, "/s")
        self.assertEqual((env["HYBRID_THREADS"], env["HYBRID_MIGRATE"]), ("off", "off"))
        run = run_of("hybrid-threads", setup=setup)
        env = run.contender.env(run, 0, "/s")
        self.assertEqual((env["HYBRID_THREADS"], env["HYBRID_MIGRATE"]), ("auto", "off"))
        self.assertNotIn("HYBRID_CLASS", env)
        run = run_of("hybrid-class")
        self.assertNotIn("HYBRID_THREADS", run.contender.env(run, 0, "/s"))

    def test_just_preloaded_is_told_nothing(self):
        setup = Setup("/b", "/l", "/m", "/p", ALL | {"INTERVAL", "CLASS_PERIOD"})
        run = run_of("hybrid-default", setup=setup)
        self.assertEqual(run.contender.learns, ())
        env = run.contender.env(run, 0, "/s")
        self.assertEqual(env.keys() & {"HYBRID_CLASS", "HYBRID_THREADS", "HYBRID_MIGRATE",
                                       "HYBRID_PROFILE", "HYBRID_POLICY"}, set())
        self.assertEqual((env["HYBRID_INTERVAL"], env["HYBRID_CLASS_PERIOD"]), ("1ms", "1ms"))

    def test_each_program_of_a_group_has_its_class(self):
        run = run_of("hybrid-class", PAIR)
        self.assertEqual([run.contender.env(run, i, "/s")["HYBRID_CLASS"] for i in (0, 1)],
                         ["cpu", "bandwidth"])

    def problems(self, name, case=ALONE, more=None, **facts):
        run = run_of(name, case, **(more or {}))
        return run.contender.problems(run, 0, self.result(**facts))

    def test_reads_from_the_wrong_memory_are_a_failure(self):
        self.assertTrue(self.problems("all-pm", llc_reads_dram=50, llc_reads_pm=1000))
        self.assertTrue(self.problems("all-dram", llc_reads_dram=1000, llc_reads_pm=50))
        self.assertEqual(self.problems("all-pm", llc_reads_dram=1, llc_reads_pm=1000), [])
        self.assertTrue(self.problems("optimum", PAIR, {"placement": "pd"},
                                      llc_reads_dram=50, llc_reads_pm=1000))

    def test_counts_of_the_timed_part_go_before_those_of_all(self):
        result = Result("", {"LLC_RD_PM": 0}, {"llc_reads_pm": 9}, "")
        self.assertEqual(result.reads("pm"), 0)

    def test_a_preload_that_did_not_load_is_a_failure(self):
        self.assertTrue(self.problems("memtier-ratio"))
        self.assertEqual(self.problems("memtier-ratio", stderr="MEMKIND_MEM_TIERING_LOG_INFO: "
                                       "Memkind memtier lib loaded!\n"), [])
        self.assertTrue(self.problems("hybrid-class"))
        self.assertTrue(self.problems("optimum"))
        self.assertEqual(self.problems("optimum", objects="0 70000\n"), [])

    REPORT = {"state": "steering", "class": "bandwidth", "registry": {"joined": True},
              "profile": "", "tiers": {"pm": {"peak": 8 * MIB}}}

    def test_libhybrid_must_do_what_is_asked(self):
        good = {"llc_reads_pm": 1000}
        self.assertEqual(self.problems("hybrid-class", hybrid=self.REPORT, **good), [])
        used = {"tiers": {"dram": {"peak": MIB}}, "registry": {"joined": False}}
        for change in ({"state": "passive"}, used, {"class": "cpu"}):
            self.assertTrue(self.problems("hybrid-class", hybrid={**self.REPORT, **change}, **good))
        self.assertTrue(self.problems("hybrid-profile", more={"profiles": ("[app]",)},
                                      hybrid=self.REPORT, **good))

    def test_memory_that_libhybrid_calls_pm_must_be_pm(self):
        self.assertTrue(self.problems("hybrid-class", hybrid=self.REPORT, llc_reads_dram=1000))
        for moved, wrong in ((8 * MIB, False), (6 * MIB, True)):
            report = {**self.REPORT, "migration": {"down_bytes": moved}}
            self.assertEqual(bool(self.problems("hybrid-class", hybrid=report,
                                                llc_reads_dram=1000)), wrong)

    def test_nothing_may_be_said_but_what_is_known(self):
        memtier = contender("memtier-ratio")
        self.assertEqual(memtier.said_too_much("MEMKIND_MEM_TIERING_LOG_INFO: x\n"), "")
        self.assertEqual(memtier.said_too_much("ERROR: ld.so\n"), "ERROR: ld.so")
        self.assertTrue(contender("linux").said_too_much("anything\n"))


class Output(unittest.TestCase):
    def test_line_and_time(self):
        line, times = parse_output("cg 1 2 3: result 00 ok\ntime clock=virtual begin_ns=5 "
                                   "end_ns=9 work_ns=4 LLC_RD_PM=7\n")
        self.assertEqual(line, "cg 1 2 3: result 00 ok")
        self.assertEqual((times["begin_ns"], times["end_ns"], times["LLC_RD_PM"]), (5, 9, 7))

    def test_no_time_is_no_result(self):
        for text in "", "cg: ok\n", "cg: ok\ntime begin_ns=5\n":
            with self.assertRaises(RunError):
                parse_output(text)

    def test_the_machine_may_call_a_run_not_valid(self):
        self.assertTrue(invalid({"lost_threads": 2}, ""))
        self.assertTrue(invalid({"valid": False}, ""))
        self.assertEqual(invalid({"valid": "no", "reason": "too slow"}, ""), "too slow")
        self.assertTrue(invalid({}, "pmemu[3]: not valid: too slow\n"))
        self.assertEqual(invalid({"lost_threads": 0, "valid": True}, "x\n"), "")

    def test_a_group_lasts_until_its_last_program_ends(self):
        made = [Result("", {"begin_ns": b, "end_ns": e}, {"virtual_ms": v}, "")
                for b, e, v in ((1000000, 3000000, 9.5), (1000000, 6000000, 8))]
        summary = summarise(made, 1)
        self.assertEqual((summary["total_ms"], summary["mean_ms"]), (5.0, 3.5))
        self.assertEqual(summary["whole_ms"], 9.5)
        self.assertEqual([p["whole_ms"] for p in summary["programs"]], [9.5, 8])

    def test_programs_that_do_not_start_together_are_no_group(self):
        made = [Result("", {"begin_ns": b, "end_ns": 9000000}, {}, "") for b in (0, 300000)]
        with self.assertRaises(RunError):
            summarise(made, 1)


class Signals(unittest.TestCase):
    def test_an_interrupt_waits_until_the_program_is_known(self):
        done = []
        with self.assertRaises(KeyboardInterrupt):
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
                done.append("started")
        self.assertEqual(done, ["started"])


class FakeRunner:
    """Times by contender and placement, with troubles to order."""

    def __init__(self, not_valid=(), broken=()):
        self.made, self.not_valid, self.broken = [], list(not_valid), broken

    def binary(self, kind, program):
        return f"/{kind}-{program.workload}"

    def execute(self, run):
        name = run.contender.name
        if name in self.not_valid:
            self.not_valid.remove(name)
            raise NotValid("threads were not emulated")
        if name in self.broken:
            raise RunError("it broke")
        self.made.append((name, run.placement))
        return record({"linux": 4, "all-pm": 8}.get(name, 3 - run.placement.count("d")), 2)


class Campaigns(unittest.TestCase):
    NAMES = ("all-dram", "all-pm", "linux", "hybrid-class", "optimum")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def race(self, runner, repeats=3, case=PAIR, names=NAMES, setup=SETUP):
        journal = lib.Journal(os.path.join(self.folder.name, "runs.jsonl"), "race-1")
        quiet = io.StringIO()
        with contextlib.redirect_stderr(quiet):
            made = campaign.Campaign(setup, runner, journal, repeats, lib.Progress(100))
            experiment = Experiment("test", "Test", (case,))
            return made.case(experiment, case, [contender(n, setup) for n in names])

    def test_rounds_are_interleaved(self):
        runner = FakeRunner()
        self.race(runner, names=("all-dram", "all-pm", "linux"))
        names = [n for n, _ in runner.made]
        for r in range(3):
            self.assertEqual(sorted(names[3 * r:3 * r + 3]), ["all-dram", "all-pm", "linux"])

    def test_all_placements_once_then_the_best_of_them(self):
        runner = FakeRunner()
        records, _, _, tried, best = self.race(runner)
        placements = [p for n, p in runner.made if n == "optimum"]
        self.assertEqual(sorted(placements[:4]), ["dd", "dp", "pd", "pp"])
        self.assertEqual(len(placements), 4 + 2 * campaign.FINALISTS)
        self.assertEqual((tried, best, len(records["optimum"])), (4, "dd", 3))

    def test_an_interrupted_race_goes_on(self):
        runner = FakeRunner()
        runner.execute, real = self.stop_after(runner, 5), runner.execute
        with self.assertRaises(KeyboardInterrupt):
            self.race(runner)
        self.assertEqual(len(runner.made), 5)
        runner.execute = real
        self.race(runner)
        again = FakeRunner()
        self.race(again)
        self.assertEqual(again.made, [])
        whole = FakeRunner()
        os.unlink(os.path.join(self.folder.name, "runs.jsonl"))
        self.race(whole)
        self.assertEqual(sorted(runner.made), sorted(whole.made))

    @staticmethod
    def stop_after(runner, count):
        real = runner.execute

        def execute(run):
            if len(runner.made) == count:
                raise KeyboardInterrupt
            return real(run)
        return execute

    def test_more_rounds_make_only_the_new_ones(self):
        self.race(FakeRunner(), 2, names=("linux",))
        runner = FakeRunner()
        self.race(runner, 3, names=("linux",))
        self.assertEqual(len(runner.made), 1)

    def test_other_binaries_are_another_race(self):
        path = os.path.join(self.folder.name, "libhybrid.so")
        for text in "one", "two":
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            campaign.digest.__defaults__[0].clear()
            runner = FakeRunner()
            self.race(runner, 1, names=("linux", "hybrid-class"),
                      setup=Setup("/build", path, "", "", SETUP.options))
            expected = ["hybrid-class", "linux"] if text == "one" else ["hybrid-class"]
            self.assertEqual(sorted(n for n, _ in runner.made), expected)

    def test_runs_that_are_not_valid_are_repeated_and_counted(self):
        runner = FakeRunner(not_valid=["linux", "linux"])
        records, failures, repeated, _, _ = self.race(runner, names=("linux",))
        self.assertEqual((len(records["linux"]), failures, repeated), (3, {}, {"linux": 2}))

    def test_never_valid_is_a_failure(self):
        runner = FakeRunner(not_valid=["linux"] * campaign.TRIES)
        _, failures, _, _, _ = self.race(runner, names=("linux",))
        self.assertIn("not valid", failures["linux"])

    def test_one_that_fails_does_not_stop_the_others(self):
        runner = FakeRunner(broken=("hybrid-class",))
        records, failures, _, _, _ = self.race(runner)
        self.assertEqual(failures, {"hybrid-class": "it broke"})
        self.assertEqual(len(records["linux"]), 3)

    def test_failures_are_tried_again_next_time(self):
        self.race(FakeRunner(broken=("linux",)), names=("linux",))
        runner = FakeRunner()
        _, failures, _, _, _ = self.race(runner, names=("linux",))
        self.assertEqual((len(runner.made), failures), (3, {}))


class CommandLine(unittest.TestCase):
    def test_help_can_be_read(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), self.assertRaises(SystemExit):
            race.arguments(["--help"])
        self.assertIn("more than 1.02 times as long", " ".join(said.getvalue().split()))

    def test_what_is_not_built_is_one_line(self):
        with self.assertRaisesRegex(lib.BenchError, "ninja -C /none race"):
            race.race(race.arguments(["--build", "/none", "--quick"]), Setup("/none"))

    def choose(self, *argv):
        return race.choose(race.arguments(["--build", "/none", *argv]), SETUP)

    def test_quick_is_the_quick_experiment_and_the_rest_is_not(self):
        chosen, names = self.choose("--quick")
        self.assertEqual([e.name for e in chosen], ["quick"])
        self.assertIn("linux", names)
        self.assertNotIn("quick", [e.name for e in self.choose()[0]])

    def test_only_takes_experiments_and_contenders(self):
        chosen, names = self.choose("--only", "groups,linux,all-pm")
        self.assertEqual([e.name for e in chosen], ["groups"])
        self.assertEqual(names, ["all-pm", "linux"])

    def test_names_that_do_not_exist_or_cannot_run_are_errors(self):
        for names in "nonsense", "hybrid-migrate":
            with self.assertRaises(lib.BenchError):
                self.choose("--only", names)

    def test_what_an_experiment_goes_without_is_named(self):
        setup = Setup("/b", "/l", "/m", "/p", ALL)
        quick = EXPERIMENTS["quick"]
        racers = contenders.all_contenders(setup, quick.without)
        self.assertNotIn("hybrid-threads", [c.name for c in racers])
        together = next(c for c in racers if c.name == "hybrid-all")
        self.assertNotIn("threads", [s.name for s in together.strategies])
        self.assertEqual([i["name"] for i in race.left_out(setup, [quick])], ["hybrid-threads"])

    def test_cases_are_possible(self):
        for experiment in EXPERIMENTS.values():
            for case in experiment.cases:
                self.assertLess(case.dram, case.footprint(), (experiment.name, case.name))
        self.assertEqual(GROUPS.on("pram").preset, "pram")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return f.read().split()


@unittest.skipUnless(BUILD, "no build folder given")
class Real(unittest.TestCase):
    """Short races on the emulated machine."""

    def race(self, *argv, build=BUILD):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([sys.executable, os.path.join(HERE, "race.py"), "--build", build,
                                   "--out", out, "--repeats", "1", *argv],
                                  capture_output=True, text=True, timeout=900, check=False)
            path = os.path.join(out, "results.json")
            found = None
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    found = json.load(f)
            return done, found

    def test_media_and_first_touch_differ_as_they_must(self):
        done, found = self.race("--only", "quick,all-dram,all-pm,linux", "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for case in found["experiments"][0]["cases"]:
            time = {n: r["total_ms"]["median"] for n, r in case["contenders"].items()}
            self.assertLess(time["all-dram"] * 1.2, time["all-pm"], case["name"])
            self.assertLess(time["all-dram"] * 0.98, time["linux"], case["name"])
            self.assertLess(time["linux"], time["all-pm"] * 1.02, case["name"])

    def test_a_library_that_does_nothing_fails_the_run(self):
        """libhybrid's place is taken by one that loads and says nothing."""
        with tempfile.TemporaryDirectory() as false:
            os.mkdir(false + "/shim")
            os.symlink(lib.library_path("libm.so.6"), false + "/shim/libhybrid.so")
            for name in "bench", "emu", "tools":
                os.symlink(os.path.join(BUILD, name), os.path.join(false, name))
            done, found = self.race("--only", "quick,linux,hybrid-class", build=false)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for case in found["experiments"][0]["cases"]:
            self.assertTrue(case["contenders"]["hybrid-class"]["failed"])
            self.assertIsNone(case["contenders"]["linux"]["failed"])

    def test_an_interrupted_race_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as out:
            child = subprocess.Popen([sys.executable, os.path.join(HERE, "race.py"), "--build",
                                      BUILD, "--out", out, "--quick"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            mine = f"{SCRATCH}{child.pid}-"
            while child.poll() is None and not any(n.startswith(mine)
                                                   for n in os.listdir(scratch_parent())):
                time.sleep(0.01)
            programs = children_of(child.pid)
            child.terminate()
            self.assertEqual(child.wait(timeout=400), 130)
        self.assertEqual([n for n in os.listdir(scratch_parent()) if n.startswith(mine)], [])
        self.assertEqual([p for p in programs if os.path.exists(f"/proc/{p}")], [])


if __name__ == "__main__":
    unittest.main()
