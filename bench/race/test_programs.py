# SPDX-License-Identifier: BSD-2-Clause
"""Tests of race.py --programs. test_programs.py [BUILD]: with a build folder, a short real race."""
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import benchlib as lib
import campaign
import programs
import programs_race
import race
from contenders import Run, Setup
from experiments import Experiment
from programs_run import contender
from runner import SCRATCH, scratch_parent

BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
SETUP = Setup("/build", "/lib/libhybrid.so", "/lib/libmemtier.so.0", "",
              frozenset({"START", "INTERVAL", "CLASS_PERIOD"}))
HALF, FIFTH = Fraction(1, 2), Fraction(1, 5)


class Lists(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, programs.LIST)

    def read(self, value):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        return programs.read_list(programs.find_list(self.folder.name))

    def test_members_and_what_stands_for_them(self):
        found = self.read({"a": {"exe": "b", "args": ["-f", "{data}/x{y}", "{threads}"],
                                 "what": "W", "cwd": "sub"}, "c": {}})
        a, c = (programs.make(self.path, found, n, "/out", 4) for n in "ac")
        self.assertEqual(a.arguments(), ["-f", "/out/data/x{y}", "4"])
        self.assertEqual((a.binary("emu"), a.cwd), ("/out/emu-b", self.folder.name + "/sub"))
        self.assertEqual((c.binary("wl"), c.cwd, c.arguments()), ("/out/wl-c", "/out", []))

    def test_a_list_is_found_by_its_folder_and_by_its_name(self):
        self.read({"a": {}})
        self.assertEqual(programs.find_list(self.path), programs.find_list(self.folder.name))

    def test_no_list_is_one_line_that_names_it(self):
        with self.assertRaisesRegex(lib.BenchError, "programs.json is not there"):
            programs.find_list(self.folder.name)

    def test_lists_that_are_wrong_say_where(self):
        for value, why in (("{", "line 1"), ("[]", "an object"), ("{}", "an object"),
                           ({"a": []}, "a: is not an object"),
                           ({"a": {"arg": []}}, "a: has 'arg'"),
                           ({"a": {"args": "-f"}}, "a: 'args' is of the wrong kind"),
                           ({"a": {"args": [1]}}, "a: 'args' must be strings")):
            with self.assertRaisesRegex(lib.BenchError, why):
                self.read(value)

    def test_names_must_be_in_the_list(self):
        self.assertEqual(programs.choose({"a": 1, "b": 2}, "b, a", "--only"), ["b", "a"])
        with self.assertRaisesRegex(lib.BenchError, "--only: the list has no 'c', but a"):
            programs.choose({"a": 1}, "a,c", "--only")

    def test_shares(self):
        self.assertEqual(programs.shares("1/2, 0.2"), [HALF, FIFTH])
        for text in ("", "0", "1/0", "2", "x", "1/2,"):
            with self.assertRaises(lib.BenchError):
                programs.shares(text)


class Outputs(unittest.TestCase):
    def differ(self, a, b, **more):
        return programs.difference(a, b, **more) is not None

    def test_what_no_two_runs_have_alike_is_left_out(self):
        for a, b in (("Time in seconds = 1.5", "Time in seconds = 2"), ("FOM = 1.0", "FOM = 2.0"),
                     ("Mop/s total = 3", "Mop/s total = 4"), ("rate 1 z/s", "rate 2 z/s"),
                     ("Compile date = 1", "Compile date = 2"), ("", "\n \n"),
                     ("Trial Time: 1", "")):
            self.assertFalse(self.differ(a + "\nresult 7", b + "\nresult  7"), (a, b))

    def test_sums_may_be_added_in_another_order(self):
        self.assertFalse(self.differ("E = 2.02507500e+05", "E = 2.02507501e+05"))
        self.assertFalse(self.differ("diff=6.5e-11", "diff=2.1e-09"))
        self.assertTrue(self.differ("E = 2.025e+05", "E = 2.026e+05"))
        self.assertTrue(self.differ("diff=6.5e-11", "diff=2.1e-03"))

    def test_whole_numbers_and_words_are_exact(self):
        for a, b in (("nodes 1000000", "nodes 1000001"), ("SUCCESSFUL", "FAILED"), ("a b", "a"),
                     ("x=1.0s", "y=1.0s"), ("1\n2", "2\n1")):
            self.assertTrue(self.differ(a, b), (a, b))

    def test_lines_that_are_missing_are_told_unless_the_end_may_be_cut(self):
        self.assertIn("(no line)", programs.difference("a\n", "a\nb\n"))
        self.assertIn("'b'", programs.difference("a\nb\n", "a\n"))
        self.assertIsNone(programs.difference("a\n", "a\nb\n", cut=True))
        self.assertTrue(self.differ("c\n", "a\nb\n", cut=True))


class Contenders(unittest.TestCase):
    def env(self, name, profiles=()):
        made = programs.Listed("a", "a", (), "/out", "/out", 8)
        case = programs.Share("a", (made,), 1000, 4000)
        run = Run(Experiment("x", "", (), "optane"), case, contender(name, SETUP),
                  profiles=profiles)
        return run.contender.env(run, 0, "/s")

    def test_defaults_are_those_of_a_user_but_for_a_short_run(self):
        hyb, raw = self.env("hyb"), self.env("hybraw")
        self.assertEqual({k: v for k, v in hyb.items() if k not in raw},
                         {"HYBRID_START": "0", "HYBRID_INTERVAL": "1ms",
                          "HYBRID_CLASS_PERIOD": "1ms"})
        self.assertEqual(raw["HYBRID_DRAM_SHARED"], "1000K")
        self.assertEqual(raw["HYBRID_EMU_DRAM"], "1000K")

    def test_modifiers(self):
        env = self.env("hyb+noth+eager+POLICY=first-fit+prof", ("text",))
        self.assertEqual((env["HYBRID_THREADS"], env["HYBRID_MIGRATE"], env["HYBRID_POLICY"],
                          env["HYBRID_PROFILE"]), ("off", "eager", "first-fit", "/s/profile-0.ini"))
        self.assertTrue(contender("hyb+prof", SETUP).profiled)

    def test_peers(self):
        # 15 and 47 parts of 64 KiB.
        self.assertIn("DRAM,RATIO:15;KIND:FS_DAX,PATH:/s/pm,RATIO:47;",
                      self.env("memtier-ratio")["MEMKIND_MEM_TIERS"])
        self.assertNotIn("MEMKIND_MEM_TIERING_LOG_LEVEL", self.env("memtier-threshold"))
        self.assertEqual(self.env("all-pm"), {"HYBRID_EMU_PLACE": "pm"})

    def test_names_that_are_not_known_are_told(self):
        for name in ("hybrid", "hyb+x", "linux+noth", "memtier-", "hyb+=1"):
            with self.assertRaisesRegex(lib.BenchError, "none of"):
                contender(name, SETUP)
        with self.assertRaisesRegex(lib.BenchError, "not built"):
            contender("hyb", Setup("/b"))


class Tables(unittest.TestCase):
    NAMES = ["linux", "all-pm", "hyb"]

    def rows(self, **hyb):
        rows = {}
        for group, times in hyb.items():
            cell = programs_race.Cell("optane", 8, (group,), 0, "linux", 0)
            made = ((HALF, "linux", 10), (FIFTH, "linux", 20), (0, "all-pm", 40),
                    (HALF, "hyb", times[0]), (FIFTH, "hyb", times[1]))
            found = {cell._replace(share=s, contender=c): {"total_ms": t} for s, c, t in made if t}
            rows[group] = programs_race.ratios(found, cell, [HALF, FIFTH], self.NAMES, 1)
        return rows

    def lines(self, **hyb):
        return programs_race.table(self.rows(**hyb), [HALF, FIFTH], self.NAMES).splitlines()

    def test_a_mark_stands_where_it_is_slower(self):
        text = self.lines(a=(10.1, 20.22), b=(9, 5))
        self.assertEqual(text[2].split(), ["a", "1/2", "10.00", "4.000!", "1.010"])
        self.assertEqual(text[3].split(), ["a", "1/5", "20.00", "2.000!", "1.011!"])
        self.assertEqual(text[4].split()[-1], "0.900")

    def test_geometric_mean_and_worst_of_each_share(self):
        text = self.lines(a=(20, 5), b=(5, 80))
        self.assertEqual(text[-4].split(), ["geometric", "mean", "1/2", "4.000!", "1.000"])
        self.assertEqual(text[-3].split(), ["worst", "1/2", "4.000!", "2.000!"])
        self.assertEqual(text[-2].split(), ["geometric", "mean", "1/5", "2.000!", "1.000"])

    def test_what_has_no_figure_is_no_part_of_the_mean(self):
        text = self.lines(a=(None, 5), b=(5, 80))
        self.assertEqual(text[2].split()[-1], "FAILED")
        self.assertEqual(text[-4].split()[-1], "0.500")

    def test_a_group_without_first_touch_has_no_ratio(self):
        cell = programs_race.Cell("optane", 8, ("a",), 0, "linux", 0)
        rows = programs_race.ratios({}, cell, [HALF], self.NAMES, 1)
        text = programs_race.table({"a": rows}, [HALF], self.NAMES)
        self.assertEqual(text.splitlines()[2].split(), ["a", "1/2", "-", "FAILED", "FAILED"])

    def test_check_names_what_is_above(self):
        self.assertEqual(len(programs_race.above(self.rows(a=(10.2, 5), b=(10.1, 30)), "hyb")), 2)


# A program whose time is 10 ms on DRAM, 40 on PM, half of each with first touch.
PROGRAM = """#!/bin/sh
echo "result $1"; echo "time $$"
case $0 in */wl-*) exit 0;; esac
echo run >> "$(dirname "$0")/made"
case $HYBRID_EMU_PLACE in dram) ms=10 d=9 p=0;; pm) ms=40 d=0 p=9;; *) ms=25 d=5 p=4;; esac
echo "{\\"virtual_ms\\": $ms, \\"dram_pages\\": 256, \\"pm_pages\\": 256, \\"llc_reads_dram\\": $d," \
  "\\"llc_reads_pm\\": $p, \\"lost_threads\\": 0, \\"valid\\": \\"yes\\"}" >> "$HYBRID_EMU_STATS"
"""


class Races(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.add("good", PROGRAM)
        self.list({"good": {"args": ["7"]}, "second": {"exe": "good"}})

    def add(self, name, text, kinds=("wl", "emu")):
        campaign.digest.__defaults__[0].clear()
        for kind in kinds:
            path = os.path.join(self.folder.name, f"{kind}-{name}")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o755)

    def list(self, value):
        with open(os.path.join(self.folder.name, programs.LIST), "w", encoding="utf-8") as f:
            json.dump(value, f)

    def race(self, *argv, setup=None):
        out = os.path.join(self.folder.name, "out")
        args = race.arguments(["--programs", self.folder.name, "--out", out, "--contenders",
                               "all-dram,all-pm", "--shares", "1/2", *argv])
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            status = programs_race.main(args, setup or Setup("/none"))
        return status, said.getvalue()

    def made(self):
        with open(os.path.join(self.folder.name, "made"), encoding="utf-8") as f:
            return len(f.readlines())

    def test_all_of_the_list_and_results_are_kept(self):
        status, text = self.race()
        self.assertEqual(status, 0, text)
        for name in "good", "second":
            line = next(s for s in text.splitlines() if s.startswith(name))
            self.assertEqual(line.split(), [name, "1/2", "25.00", "0.400", "1.600!"])
        with open(self.folder.name + "/out/results.json", encoding="utf-8") as f:
            found = json.load(f)
        self.assertEqual(found["tables"][0]["rows"]["good"]["1/2"],
                         {"linux_ms": 25, "all-dram": 0.4, "all-pm": 1.6})
        # Of two programs, all on DRAM (which tells their size), all on PM, first touch.
        self.assertEqual(self.made(), 2 * 3)
        self.race()
        self.assertEqual(self.made(), 2 * 3)
        self.race("--shares", "1/2,1/5", "--only", "good")
        self.assertEqual(self.made(), 2 * 3 + 1)
        self.race("--only", "good", "--fresh")
        self.assertEqual(self.made(), 2 * 3 + 1 + 3)

    def test_names_are_chosen_and_left_out(self):
        self.assertNotIn("second", self.race("--without", "second")[1])
        self.assertNotIn("\ngood", self.race("--only", "second")[1])

    def test_company_shares_one_machine(self):
        status, text = self.race("--company", "good,second", "--company", "second,good")
        self.assertEqual(status, 0, text)
        self.assertIn("good,second", text)
        self.assertIn("second,good", text)
        self.assertEqual(self.made(), 2 + 2 * 2 * 3)

    def test_the_best_static_placement_is_found_and_what_of_its_gain_is_reached(self):
        # Two arrays of 500 KiB where 512 KiB of the program's 2 MiB fit: the second one pays.
        objects = r"0 512000 1 1 1 0 f+0x1 1 1 0\n1 512000 1 9 9 0 f+0x2 1 2 0\n"
        self.add("good", PROGRAM.replace(
            "esac\necho \"{", f"esac\n[ -n \"$HYBRID_PLACE_LIST\" ] && "
            f"printf '{objects}' > \"$HYBRID_PLACE_LIST\"\n"
            "case $HYBRID_PLACE in 101) ms=15;; ?*) ms=28;; esac\necho \"{"))
        placer = Setup("/none", placer=lib.library_path("libm.so.6"))
        status, text = self.race("--only", "good", "--shares", "1/4", "--contenders", "optimum",
                                 setup=placer)
        self.assertEqual(status, 0, text)
        line = next(s for s in text.splitlines() if s.startswith("good"))
        self.assertEqual(line.split(), ["good", "1/4", "25.00", "0.600"])
        rows = {"a": {HALF: (10, {"optimum": 0.6, "hyb": 0.7, "hyb+prof": 1.1}),
                      FIFTH: (10, {"optimum": 0.99, "hyb": 0.99, "hyb+prof": None})}}
        lines = programs_race.gains(rows, ["linux", "hyb", "hyb+prof", "optimum"]).splitlines()
        self.assertEqual(lines[-2].split(), ["a", "1/2", "75%", "loss"])
        self.assertEqual(lines[-1].split(), ["a", "1/5", "-", "-"])
        with self.assertRaisesRegex(lib.BenchError, "bench-place.so is not built"):
            self.race("--contenders", "optimum")

    def test_presets_and_threads_have_a_table_each(self):
        _, text = self.race("--only", "good", "--preset", "optane,cxl", "--threads", "1,8")
        for head in "optane, 1 ", "optane, 8 ", "cxl, 1 ", "cxl, 8 ":
            self.assertIn(head + "threads each", text)

    def test_wrong_output_is_a_failure(self):
        self.add("good", PROGRAM.replace("result $1", "result 8"), ("emu",))
        status, text = self.race("--only", "good")
        self.assertEqual(status, 1)
        self.assertIn("good: wrong output: 'result 8', the plain one has 'result 7'", text)

    def test_one_that_fails_does_not_stop_the_others(self):
        self.add("bad", PROGRAM.replace("echo run", "echo sorry >&2; exit 3"))
        self.list({"bad": {}, "good": {"args": ["7"]}})
        status, text = self.race()
        self.assertEqual(status, 1)
        self.assertIn("bad ended with 3: sorry", text)
        self.assertEqual(text.count("FAILED: "), 1)
        line = next(s for s in text.splitlines() if s.startswith("good"))
        self.assertEqual(line.split()[-1], "1.600!")

    def test_a_plain_program_that_fails_is_told(self):
        self.add("good", "#!/bin/sh\nexit 4\n", ("wl",))
        status, text = self.race("--only", "good")
        self.assertEqual((status, "the plain good failed: exit status 4" in text), (1, True))

    def test_one_that_does_not_end_is_ended(self):
        self.add("good", PROGRAM.replace("echo run", "exec sleep 60; echo"))
        status, text = self.race("--only", "good", "--timeout", "0.5")
        self.assertEqual((status, "not done after" in text), (1, True))

    def test_a_signal_that_the_main_thread_does_not_wake_for_is_seen(self):
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        ended = threading.Event()

        def told_to_end(_):
            time.sleep(0.5)  # it waits by then
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            ended.wait(20)

        pool = ThreadPoolExecutor(1)
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            programs_race.in_order(pool, told_to_end, [0])
        ended.set()
        pool.shutdown()
        self.assertLess(time.monotonic() - begin, 10)

    def test_an_interrupted_race_leaves_nothing_behind(self):
        for background in False, True:  # Ctrl-C is ignored there
            with self.subTest(background=background):
                self.interrupt(background)

    def interrupt(self, background):
        self.add("good", PROGRAM.replace("echo run",
                                         "echo $$ > $(dirname $0)/pid; exec sleep 60; echo"))
        pid = os.path.join(self.folder.name, "pid")
        with contextlib.suppress(FileNotFoundError):
            os.remove(pid)
        begin = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"] if background else []
        child = subprocess.Popen([*begin, sys.executable, os.path.join(HERE, "race.py"), "--build",
                                  "/none", "--programs", self.folder.name, "--contenders", "linux",
                                  "--out", self.folder.name + "/out"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and not (os.path.exists(pid) and os.path.getsize(pid)):
            time.sleep(0.01)
        child.terminate()
        self.assertEqual(child.wait(timeout=60), 130)
        with open(pid, encoding="ascii") as f:
            self.assertFalse(os.path.exists("/proc/" + f.read().strip()))
        mine = f"{SCRATCH}{child.pid}-"
        self.assertEqual([n for n in os.listdir(scratch_parent()) if n.startswith(mine)], [])

    def test_a_library_that_is_not_loaded_is_no_figure(self):
        none = os.path.join(self.folder.name, "libhybrid.so")
        os.symlink(lib.library_path("libm.so.6"), none)
        status, text = self.race("--only", "good", "--contenders", "hyb",
                                 setup=Setup("/none", none))
        self.assertEqual((status, "libhybrid made no report" in text), (1, True))

    def test_what_is_not_built_is_one_line(self):
        self.list({"none": {}})
        with self.assertRaisesRegex(lib.BenchError, "wl-none is not there"):
            self.race()
        with self.assertRaisesRegex(lib.BenchError, "hybridctl is not there"):
            self.race("--contenders", "hyb+prof", setup=Setup("/none", "/lib/libhybrid.so"))

    def test_a_program_that_prints_nothing_that_lasts_is_named(self):
        self.assertNotIn("nothing that could be compared", self.race("--only", "good")[1])
        self.add("good", PROGRAM.replace("result $1", "time: $1"))
        for _ in "made", "from the journal":
            status, text = self.race("--only", "good")
            self.assertEqual(status, 0, text)
            self.assertIn("good prints nothing that could be compared", text)

    def test_what_the_programs_use_is_measured_though_nobody_asks_for_all_dram(self):
        status, text = self.race("--only", "good", "--contenders", "all-pm")
        self.assertEqual(status, 0, text)
        self.assertEqual(self.made(), 3)

    def test_check_fails_where_libhybrid_is_above(self):
        rows = {"a": {HALF: (1.0, {"hyb": 1.02})}}
        self.assertEqual(len(programs_race.above(rows, "hyb")), 1)
        self.assertEqual(self.race("--check")[0], 0)  # all-pm is above, but it is none of ours

    def test_options_of_programs_without_them_are_refused(self):
        for argv in (["--contenders", "hyb"], ["--company", "a,b"], ["--shares", "1/2"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                race.arguments(argv)


@unittest.skipUnless(BUILD, "no build folder given")
class Real(unittest.TestCase):
    def test_a_workload_of_ours_as_if_it_were_another_s(self):
        with tempfile.TemporaryDirectory() as out:
            workloads = os.path.join("bench", "workloads")
            args = race.arguments(["--build", BUILD, "--programs", os.path.join(lib.ROOT, workloads),
                                   "--executables", os.path.join(BUILD, workloads),
                                   "--only", "multigrid", "--shares", "1/2", "--out", out,
                                   "--contenders", "all-dram,all-pm,hyb,hybraw,hyb+prof"])
            with contextlib.redirect_stderr(io.StringIO()) as said, \
                    contextlib.redirect_stdout(io.StringIO()):
                status = programs_race.main(args, race.find_setup(args.build))
            with open(out + "/results.json", encoding="utf-8") as f:
                found = json.load(f)
        row = found["tables"][0]["rows"]["multigrid"]["1/2"]
        self.assertEqual(status, 0, (found["failures"], said.getvalue()))
        self.assertLess(row["all-dram"], 0.9)
        self.assertGreater(row["all-pm"], 1.1)
        for name in "hyb", "hybraw", "hyb+prof":
            self.assertGreater(row[name], row["all-dram"] * 0.98, name)
            self.assertLess(row[name], row["all-pm"] * 1.1, name)
        # It writes in bursts: a plan that knows averages only keeps what is read on DRAM (0.87).
        self.assertLess(row["hyb+prof"], 0.8)


if __name__ == "__main__":
    unittest.main()
