#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who runs beside whom: hybridctl batch against the order of the file, and against all orders.

    bench/batch/order.py [--build DIR] [--quick] [--check] [--fresh] [--out DIR] [GROUP]...

After paper 004, section V-C and figure 8. Three jobs, two slots, 8 threads each, on the emulated machine
(preset optane, 16 CPUs). The time is that from the first begin to the last end, in virtual time. Rows:
  file       the order of the job file, which has the two first that hold each other up
  batch      what hybridctl batch chooses, which knows writes and bandwidth from profiles that are made
             here from a run alone, and the classes from us, as the paper's scheduler knows them
  best       the best of all orders (with two slots: which two come first)
Control: the same orders with the one that writes to PM on DRAM, where there is no conflict: what they
differ by is packing alone.
--check: status 1 where batch saves less than the paper and is not within 5 % of the best order (of group 4,
which the paper has not, only the latter)."""
import itertools
import os
import pathlib
import sys
from dataclasses import dataclass, replace

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "race"), str(HERE.parent)]
import benchlib as lib  # noqa: E402: found by the path above
from turns import Job, Turns, arguments, whole  # noqa: E402

SLOTS, CPUS, PRESET = 2, 16, "optane"
NEAR = 1.05  # of the best order


@dataclass(frozen=True)
class Group:
    """`jobs` in the order of the file: the first writes to PM, the second is held up by it."""
    jobs: tuple
    paper: float  # percent; None: it has no such group
    note: str


GROUPS = {
    "group 1": Group((Job("lu", "lu", "latency", "pm", 6, 2), Job("ocean", "ocean", "bandwidth", "dram", 8, 30),
                      Job("mining", "mining", "cpu", "dram", 6, 3)), -34.8,
                     "members and memories as in the paper; method 1"),
    "group 2": Group((Job("fft", "fft", "bandwidth", "pm", 8, 2), Job("multigrid", "multigrid", "bandwidth", "dram", 8, 24),
                      Job("mining", "mining", "cpu", "dram", 6, 3)), -13.2,
                     "members as in the paper (FT holds up MG more than freqmine); method 1"),
    "group 3": Group((Job("radix", "radix", "bandwidth", "pm", 8, 3), Job("cluster", "cluster", "bandwidth", "dram", 8, 120),
                      Job("pricing", "pricing", "cpu", "pm", 6, 3)), -15.8,
                     "members chosen here: pricing writes little to PM; method 2"),
    "group 4": Group((Job("radix", "radix", "bandwidth", "pm", 8, 3), Job("cluster", "cluster", "bandwidth", "dram", 8, 120),
                      Job("pagerank", "pagerank", "bandwidth", "pm", 10, 3)), None,
                     "not in the paper: two fill PM, so that any order but one has them side by side"),
}


def first_two(order):
    return "+".join(sorted(order[:2]))


def measure(bench, name, group, progress):
    def run(jobs):
        found = bench.run(jobs, SLOTS)
        progress.step(f"{name}: {', '.join(j.name for j in jobs)}")
        return found
    alone = {j.name: run([j])[j.name] for j in group.jobs}
    profiles = {j.name: bench.profile(j, alone[j.name]) for j in group.jobs}
    chosen = first_two(bench.plan(group.jobs, SLOTS, profiles))
    times, each = {}, {}
    writer = group.jobs[0].name
    for place in ("pm", "dram"):
        jobs = {j.name: replace(j, place=place) if j.name == writer else j for j in group.jobs}
        for pair in itertools.combinations(jobs, 2):
            found = run([jobs[n] for n in (*pair, *(n for n in jobs if n not in pair))])
            times[place, first_two(pair)] = whole(found)
            each[f"{place} {first_two(pair)}"] = {n: [e.begin, e.end] for n, e in found.items()}
    by_file = first_two([j.name for j in group.jobs])
    best = min((p for place, p in times if place == "pm"), key=lambda p: times["pm", p])
    rows = {}
    for label, pair in (("file", by_file), ("batch", chosen), ("best", best)):
        rows[label] = {"first": pair, **{place: {"ms": times[place, pair],
                                                 "gain": 100 * (times[place, pair] / times[place, by_file] - 1)}
                                         for place in ("pm", "dram")}}
    return {"paper": group.paper, "note": group.note, "rows": rows, "each_ms": each,
            "alone_ms": {n: e.end - e.begin for n, e in alone.items()}, "jobs": [vars(j) for j in group.jobs]}


def show(found):
    lines = []
    for name, g in found.items():
        lines += [f"{name}: {', '.join(j['name'] + ' on ' + j['place'].upper() for j in g['jobs'])}" + (
                      f"; paper {g['paper']} %" if g["paper"] else ""),
                  f"  {g['note']}; alone: " + ", ".join(f"{n} {ms:.0f} ms" for n, ms in g["alone_ms"].items())]
        rows = [[label, r["first"].replace("+", ", "), *(t for place in ("pm", "dram") for t in
                                                          (f"{r[place]['ms']:.1f}", f"{r[place]['gain']:+.1f} %"))]
                for label, r in g["rows"].items()]
        table = lib.table(["", "first two", "ms", "", "control, ms", ""], rows)
        lines += ["  " + line for line in table.splitlines()] + [""]
    return "\n".join(lines).rstrip()


def draw(found, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for i, g in enumerate(found.values()):
        bars = [("paper", g["paper"] or 0)] + [(label, g["rows"][label]["pm"]["gain"]) for label in ("batch", "best")]
        for k, (label, gain) in enumerate(bars):
            axes.bar(i + 0.27 * (k - 1), -gain, 0.25, color=f"C{k}", label=None if i else label)
            axes.text(i + 0.27 * (k - 1), -gain, f"{-gain:.0f}", ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(len(found)), found)
    axes.set_ylabel("% less than in the order of the file", fontsize=8)
    axes.set_title("004, figure 8", fontsize=9)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    args = arguments(__doc__, "group", GROUPS, lambda p: p.add_argument(
        "--quick", action="store_true", help="few rounds: tells whether it works, not how much it gains"))
    groups = {n: GROUPS[n] for n in args.group}
    if args.quick:
        groups = {n: replace(g, jobs=tuple(replace(j, rounds=max(1, j.rounds // 8)) for j in g.jobs)) for n, g in groups.items()}
    progress = lib.Progress(9 * len(groups))
    bench = Turns(args, PRESET, CPUS)
    found = {n: measure(bench, n, g, progress) for n, g in groups.items()}
    progress.end()
    print(show(found))
    lib.write_json(os.path.join(args.out, "order.json"), {"machine": lib.machine(), "preset": PRESET, "quick": args.quick,
                                                           "groups": found})
    try:
        draw(found, os.path.join(args.out, "order.png"))
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    wrong = []
    for name, g in found.items():
        batch, best = g["rows"]["batch"]["pm"], g["rows"]["best"]["pm"]
        if batch["ms"] > NEAR * best["ms"] and (g["paper"] is None or batch["gain"] > g["paper"]):
            paper = f"paper {g['paper']} %" if g["paper"] else "not in the paper"
            wrong.append(f"{name}: {batch['gain']:+.1f} %, {paper}, best order {best['gain']:+.1f} %")
    return lib.verdict(wrong) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
