#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Groups of programs that share CPUs: an even split of 8 threads each against libhybrid.

    bench/threads/groups.py [--build DIR] [--quick] [--check] [--fresh] [--out DIR]

After paper 004, section IV-C and figure 6. On the emulated machine (preset optane), each group
has 8 CPUs for each program. The memory of each program is fixed, as there; it is the threads
that differ:
  even       8 threads each, no libhybrid
  libhybrid  every program makes as many threads as it is told that there are CPUs, as pools
             do. A profile has its best number on its memory (measured here first, by the rule of
             'hybridctl tune'); those on PM are confined to it, the others are told of the CPUs
             that are left.
  no profile only libhybrid's search while they run: what programs on PM leave is not known when
             the others start, so these make a thread for each CPU
  best       in group 3, without libhybrid: the number from 1 to 8 of threads on PM that ends the
             whole group first, found by trying all
The time of a group is from the common start to the end of the last program; in group 3 to that of
the last of those that keep 8 threads, as in the paper ("the overall execution time of two 8-thread
running applications"). The whole group and the sum of all times are given beside it. Virtual times;
runs are kept in OUT/groups.jsonl.
--check: status 1 where a group gains less than in the paper."""
import os
import pathlib
import re
import sys
from dataclasses import dataclass, replace

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "race"), str(HERE.parent), str(HERE.parent.parent / "tools")]
import benchlib as lib  # noqa: E402: found by the path above
import tune  # noqa: E402
from campaign import digest  # noqa: E402
from contenders import Contender, Run, Setup  # noqa: E402
from experiments import Case, Experiment, Program  # noqa: E402
from learn import profile  # noqa: E402
from runner import NotValid, RunError, Runner, sweep  # noqa: E402

PRESET = "optane"
SPLIT = 8
WINDOW = "1ms"
TRIES = 4


@dataclass(frozen=True)
class Group:
    """`places`: d or p for each program, in the order of launch: those on PM come first, so
    that the others know what is left when they size their pools."""
    name: str
    programs: tuple
    places: str
    paper: float  # the total time is less by so many percent
    note: str
    checked: bool = True
    only_pm: bool = False  # the others keep their 8 threads, as the paper says of group 3


def program(workload, cls, size, rounds, stands_for):
    return Program(workload, cls, SPLIT, size, rounds, stands_for)


# Rounds: with 8 threads each those that gain by the others' cap are the longest, as they must have
# been in the paper: its times could not have fallen otherwise. In group 3 all are about as long.
GROUPS = (
    Group("group 1", (program("fft", "bandwidth", 8, 1, "NPB/FT"),
                      program("mining", "cpu", 6, 4, "freqmine")), "pd", 36.5,
          "members and memories as in the paper: FT on PM, freqmine on DRAM"),
    Group("group 2", (program("stream", "bandwidth", 8, 5, "NPB/LU"),
                      program("pricing", "cpu", 6, 5, "swaptions")), "pd", 37.7,
          "'in a similar way'; the members are only drawn: another pair of the same classes"),
    Group("group 3", (program("radix", "bandwidth", 8, 5, "lu_cb"),
                      program("ocean", "bandwidth", 8, 10, "ocean_cp"),
                      program("cluster", "bandwidth", 8, 40, "streamcluster")), "pdd", 23.9,
          "lu_cb on PM, write-intensive and best with 4 threads, beside two of 8 threads on DRAM "
          "(which ones is only drawn). Here radix is what lu_cb is there: see group 3, lu",
          only_pm=True),
    Group("group 3, lu", (program("lu", "cpu", 6, 2, "lu_cb"),
                          program("ocean", "bandwidth", 8, 40, "ocean_cp"),
                          program("cluster", "bandwidth", 8, 120, "streamcluster")), "pdd", 23.9,
          "not checked: on this PM our lu is 3.5 times as fast with 4 threads as with one, 5.9 "
          "times with 16 (curves.py), so its best number is no smaller than 8",
          checked=False, only_pm=True),
)


class Even(Contender):
    """So many threads as the programs are given, each on its memory; no libhybrid."""
    name, label = "even", f"even, {SPLIT} threads each"

    def __init__(self, cpus):
        self.cpus = {"HYBRID_EMU_CPUS": str(cpus)}

    def env(self, run, index, scratch):
        return {**self.cpus, "HYBRID_EMU_PLACE": {"d": "dram", "p": "pm"}[run.placement[index]]}


class Shared(Contender):
    """libhybrid caps and offers."""

    def __init__(self, cpus, setup, profiles):
        self.cpus = {"HYBRID_EMU_CPUS": str(cpus)}
        self.preload = setup.libhybrid
        self.name = "libhybrid" if profiles else "no profile"
        self.label = self.name

    def env(self, run, index, scratch):
        env = {**self.cpus, "LD_PRELOAD": self.preload, "HYBRID_STRICT": "1",
               "HYBRID_PM": "emulated", "HYBRID_START": "0",
               "HYBRID_POLICY": {"d": "dram", "p": "pm"}[run.placement[index]],
               "HYBRID_REGISTRY": scratch + "/registry", "HYBRID_INTERVAL": WINDOW,
               "HYBRID_CLASS_PERIOD": WINDOW, "HYBRID_STATS": f"{scratch}/hybrid-{index}.json"}
        if run.profiles:
            env["HYBRID_PROFILE"] = f"{scratch}/profile-{index}.ini"
        return env

    def problems(self, run, index, result):
        if result.hybrid is None:
            return ["no report of libhybrid: it was not loaded"]
        if result.hybrid.get("state") != "steering":
            return [f"libhybrid was '{result.hybrid.get('state')}'"]
        return []


class ThreadRunner(Runner):
    def comparable(self, line):
        """The number of threads is what differs."""
        return re.sub(r"^(\w+) \d+", r"\1", line)

    def expected(self, one):
        return super().expected(replace(one, threads=2))

    def collect(self, run, index, scratch, expected):
        result = super().collect(run, index, scratch, expected)
        self.made = getattr(self, "made", {})
        self.made[index] = int(result.line.split()[1])
        if result.hybrid:
            self.reports = getattr(self, "reports", {})
            self.reports[index] = result.hybrid["threads"]
        return result

    def execute(self, run):
        self.made, self.reports = {}, {}
        record = super().execute(run)
        begin = min(p["begin_ns"] for p in record["programs"])
        return {"total_ms": record["total_ms"],
                "each_ms": [(p["end_ns"] - begin) / 1e6 for p in record["programs"]],
                "threads": [self.made[i] for i in sorted(self.made)],
                "reports": [self.reports[i] for i in sorted(self.reports)]}


class Campaign:
    def __init__(self, args, setup, progress):
        self.setup, self.runner, self.progress = setup, ThreadRunner(setup), progress
        machine = digest(os.path.join(args.build, "emu", "libpmemu.so"))
        self.journal = lib.Journal(os.path.join(lib.out_folder(args), "groups.jsonl"),
                                   f"{PRESET} {machine}", args.fresh)
        self.known = {r["key"]: r["value"] for r in self.journal.records}

    def run(self, programs, places, contender, profiles=()):
        key = repr([programs, places, contender.name, contender.cpus, profiles,
                    digest(contender.preload) if contender.preload else "",
                    [digest(self.runner.binary("emu", p)) for p in programs]])
        if key in self.known:
            self.progress.total -= 1
            return self.known[key]
        case = Case("threads", tuple(programs), 1)
        run = Run(Experiment("threads", "", (case,), PRESET), case, contender, places,
                  tuple(profiles))
        for left in reversed(range(TRIES)):
            try:
                value = self.runner.execute(run)
                break
            except NotValid as error:
                if left == 0:
                    raise RunError(f"not valid in {TRIES} runs: {error}") from None
        self.progress.step(f"{contender.name}: {', '.join(p.workload for p in programs)}")
        self.known[key] = value
        self.journal.add(key=key, value=value)
        return value

    def best_count(self, one, place, most):
        """As hybridctl tune finds it, of the program alone."""
        times = {}
        while (n := tune.next_count(times, most)) is not None:
            times[n] = self.run((replace(one, threads=n),), place, Even(most))["total_ms"]
        return tune.choose(times)

    def best_beside(self, group, most):
        """The best time of the whole group with any number of threads on PM, no libhybrid."""
        tried = (self.run([replace(one, threads=n) if p == "p" else one
                           for one, p in zip(group.programs, group.places)], group.places, Even(most))
                 for n in range(1, SPLIT + 1))
        return min(tried, key=lambda row: row["total_ms"])

    def group(self, group):
        most = SPLIT * len(group.programs)
        tiers = [{"d": "dram", "p": "pm"}[p] for p in group.places]
        best = [SPLIT if group.only_pm and p == "d" else self.best_count(one, p, most)
                for one, p in zip(group.programs, group.places)]
        texts = [profile(one.workload, threads={t: n})
                 for one, t, n in zip(group.programs, tiers, best)]
        asking = [one if group.only_pm and p == "d" else replace(one, threads="all")
                  for one, p in zip(group.programs, group.places)]
        found = {"even": self.run(group.programs, group.places, Even(most)),
                 "libhybrid": self.run(asking, group.places, Shared(most, self.setup, True), texts),
                 "no profile": self.run(asking, group.places, Shared(most, self.setup, False))}
        if group.only_pm:
            found["best"] = self.best_beside(group, most)
        for row in found.values():
            row["counted_ms"] = max(ms for ms, p in zip(row["each_ms"], group.places)
                                    if p == "d" or not group.only_pm)
        even = found["even"]
        for row in found.values():
            row["gain"] = 100 * (1 - row["counted_ms"] / even["counted_ms"])
            row["all_gain"] = 100 * (1 - row["total_ms"] / even["total_ms"])
            row["sum_gain"] = 100 * (1 - sum(row["each_ms"]) / sum(even["each_ms"]))
        return {"name": group.name, "note": group.note, "paper": group.paper,
                "checked": group.checked, "best": best, "places": tiers,
                "programs": [vars(p) for p in group.programs], "runs": found}


def show(found):
    lines = []
    for g in found:
        names = [f"{p['workload']} ({p['stands_for']}, {t.upper()}, {n} wanted)"
                 for p, t, n in zip(g["programs"], g["places"], g["best"])]
        lines += [f"{g['name']}: {'; '.join(names)}. Paper: -{g['paper']} %", f"  {g['note']}"]
        rows = [[name, "+".join(map(str, r["threads"])), *(f"{ms:.1f}" for ms in r["each_ms"]),
                 f"{r['counted_ms']:.1f}", f"{r['gain']:.1f} %", f"{r['all_gain']:.1f} %",
                 f"{r['sum_gain']:.1f} %"]
                for name, r in g["runs"].items()]
        head = ["", "threads", *(p["workload"] + " ms" for p in g["programs"]), "time ms",
                "less by", "all", "sum"]
        lines += ["  " + line for line in lib.table(head, rows).splitlines()] + [""]
    return "\n".join(lines).rstrip()


def draw(found, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, grid = plt.subplots(1, len(found), figsize=(3.2 * len(found), 3), layout="constrained",
                                squeeze=False)
    for axes, g in zip(grid.flat, found):
        for i, row in enumerate(g["runs"].values()):
            for k, (p, ms) in enumerate(zip(g["programs"], row["each_ms"])):
                at = i + 0.25 * (k - 1)
                axes.bar(at, ms, 0.23, color=f"C{k}", label=None if i else p["workload"])
                axes.text(at, ms, str(row["threads"][k]), ha="center", va="bottom", fontsize=7)
        gain = g["runs"]["libhybrid"]["gain"]
        axes.set_title(f"{g['name']}: {gain:.1f} % less (paper {g['paper']} %)", fontsize=8)
        axes.set_xticks(range(len(g["runs"])), g["runs"], fontsize=7)
        axes.margins(y=0.3)
        axes.legend(fontsize=7, loc="upper right", ncols=len(g["programs"]))
        axes.grid(axis="y", alpha=0.3)
    grid.flat[0].set_ylabel("virtual ms; on the bars: threads", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def arguments():
    p = lib.script_parser(__doc__, "bench-threads")
    p.add_argument("--quick", action="store_true", help="group 1 only: about two minutes")
    p.add_argument("--check", action="store_true",
                   help="status 1 where a group gains less than in the paper")
    p.add_argument("--fresh", action="store_true", help="forget the runs made so far")
    return lib.script_folders(p.parse_args())


def main():
    args = arguments()
    library = os.path.join(args.build, "shim", "libhybrid.so")
    groups = GROUPS[:1] if args.quick else GROUPS
    for path in [library] + [os.path.join(args.build, "bench", "workloads", f"{k}-{p.workload}")
                             for g in groups for p in g.programs for k in ("emu", "wl")]:
        if not os.path.exists(path):
            raise lib.BenchError(f"{path} is missing: build first (ninja -C {args.build})")
    sweep()
    # A search for the best number takes about ten runs.
    progress = lib.Progress(sum(10 * len(g.programs) + 3 + SPLIT * g.only_pm for g in groups))
    campaign = Campaign(args, Setup(args.build, libhybrid=library), progress)
    try:
        found = [campaign.group(g) for g in groups]
    except RunError as error:
        raise lib.BenchError(str(error)) from None
    progress.end()
    text = show(found)
    print(text)
    with open(os.path.join(args.out, "groups.txt"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    lib.write_json(os.path.join(args.out, "groups.json"),
                   {"machine": lib.machine(), "preset": PRESET, "groups": found})
    try:
        draw(found, os.path.join(args.out, "groups.png"))
        print(f"picture: {args.out}/groups.png")
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    wrong = [f"{g['name']}: the time is {g['runs']['libhybrid']['gain']:.1f} % less, in the paper "
             f"{g['paper']} %" for g in found
             if g["checked"] and g["runs"]["libhybrid"]["gain"] < g["paper"]]
    return lib.verdict(wrong) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
