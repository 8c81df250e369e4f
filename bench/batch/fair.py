#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl batch against fair time slices, after paper 000, figure 7.

    bench/batch/fair.py [--build DIR] [--orders N] [--check] [--fresh] [--out DIR] [MIX]...

Eight jobs of one thread, two of each kind, on an emulated machine with four CPUs: mix 1 has four that are
memory-intensive and four that compute, mix 2 six and two; on presets stt-ram (1:1:3) and pram (1:3:8), as
in the paper. Some have their data on DRAM, some on the second memory, some on both. Rows:
  fair       all at once: eight jobs take turns of 20 us on four CPUs, each on one that is free; no cost of
             switching, so this Linux is faster than a true one
  batch      hybridctl batch, four at a time, with profiles made here from a run of each alone
  file       four at a time in the order of the file
  best       the best mean of --orders orders (random ones, and the shortest first), which is no proof that
             there is no better one
A job's time is from the common start to its end, over that under fair time slices; the mean of all eight, and
the job that gains most. One that waits for its slot counts as running. So part of the gain is that jobs do
not wait for each other's slices: `file` tells how much.
--check: status 1 where the mean is above the paper's 0.95, or the best job above 0.81."""
import os
import pathlib
import random
import sys
from dataclasses import replace

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "race"), str(HERE.parent)]
import benchlib as lib  # noqa: E402: found by the path above
from turns import Job, Turns, arguments, whole  # noqa: E402

CPUS = SLOTS = 4
PRESETS = ("stt-ram", "pram")
MEAN, BEST = 0.95, 0.81  # paper 000: -5 % and -19 %
KINDS = {
    "ocean": Job("ocean", "ocean", "bandwidth", "dram", 6, 8, 1),
    "radix": Job("radix", "radix", "bandwidth", "pm", 6, 1, 1),
    "kv": Job("kv", "kv", "latency", "interleave", 6, 3, 1),
    "mining": Job("mining", "mining", "cpu", "dram", 4, 1, 1),
    "pricing": Job("pricing", "pricing", "cpu", "dram", 4, 1, 1),
}
MIXES = {"mix 1": ("ocean", "radix", "mining", "pricing"), "mix 2": ("ocean", "radix", "kv", "pricing")}


def jobs_of(mix):
    """In the order of the file: one of each kind, then the others."""
    return [replace(KINDS[k], name=f"{k}{i}") for i in (1, 2) for k in MIXES[mix]]


def over(found, fair):
    begin, base = (min(e.begin for e in some.values()) for some in (found, fair))
    each = {n: (found[n].end - begin) / (fair[n].end - base) for n in fair}
    least = min(each, key=each.get)
    return {"each": each, "mean": sum(each.values()) / len(each), "gains_most": least, "least": each[least],
            "most": max(each.values()), "whole": whole(found) / whole(fair), "whole_ms": whole(found)}


def orders(jobs, alone, count):
    chance = random.Random(1)
    yield sorted(jobs, key=lambda j: alone[j.name[:-1]])
    for _ in range(count - 1):
        yield chance.sample(jobs, len(jobs))


def measure(args, preset, mix, progress):
    bench, jobs = Turns(args, preset, CPUS), jobs_of(mix)

    def run(some, slots, what):
        found = bench.run(some, slots)
        progress.step(f"{preset}, {mix}: {what}")
        return found
    alone, profiles = {}, {}
    for kind in MIXES[mix]:
        ended = run([KINDS[kind]], 1, kind + " alone")[kind]
        alone[kind] = ended.end - ended.begin
        profiles.update({f"{kind}{i}": bench.profile(KINDS[kind], ended) for i in (1, 2)})
    fair = run(jobs, len(jobs), "fair")
    named = {j.name: j for j in jobs}
    plan = bench.plan(jobs, SLOTS, profiles)
    rows = {"fair": over(fair, fair), "batch": over(run([named[n] for n in plan], SLOTS, "batch"), fair),
            "file": over(run(jobs, SLOTS, "file"), fair)}
    tried = [over(run(some, SLOTS, "an order"), fair) for some in orders(jobs, alone, args.orders)]
    rows["best"] = min([*tried, rows["batch"], rows["file"]], key=lambda r: r["mean"])
    return {"preset": preset, "mix": mix, "alone_ms": alone, "plan": plan, "rows": rows}


def show(found):
    rows = []
    for g in found:
        for label, r in g["rows"].items():
            rows.append([f"{g['preset']}, {g['mix']}" if label == "fair" else "", label, f"{r['mean']:.2f}",
                         f"{r['least']:.2f} {r['gains_most']}" if label != "fair" else "1.00", f"{r['most']:.2f}",
                         f"{r['whole']:.2f}"])
        rows.append(["", "paper", f"{MEAN:.2f}", f"{BEST:.2f}", "", ""])
    return lib.table(["", "", "mean", "gains most", "gains least", "all eight"], rows)


def draw(found, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, grid = plt.subplots(2, 2, figsize=(9, 5), layout="constrained", squeeze=False)
    for axes, g in zip(grid.flat, found):
        names = list(g["rows"]["fair"]["each"])
        for k, label in enumerate(("batch", "best")):
            axes.bar([i + 0.4 * k for i in range(len(names))], [g["rows"][label]["each"][n] for n in names], 0.38, label=label)
        axes.axhline(1, color="grey", linewidth=0.7)
        axes.axhline(MEAN, color="black", linewidth=0.7, linestyle=":", label="paper's mean")
        axes.set_xticks([i + 0.2 for i in range(len(names))], names, fontsize=6)
        axes.set_title(f"{g['preset']}, {g['mix']}: mean {g['rows']['batch']['mean']:.2f}", fontsize=8)
    grid.flat[0].legend(fontsize=7)
    grid.flat[0].set_ylabel("time over fair slices", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def one_or_more(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def main():
    args = arguments(__doc__, "mix", MIXES, lambda p: p.add_argument(
        "--orders", type=one_or_more, default=12, help="how many are tried for the best one (12)"))
    progress = lib.Progress(len(PRESETS) * len(args.mix) * (7 + args.orders))
    found = [measure(args, p, m, progress) for p in PRESETS for m in args.mix]
    progress.end()
    print(show(found))
    lib.write_json(os.path.join(args.out, "fair.json"), {"machine": lib.machine(), "cases": found})
    try:
        draw(found, os.path.join(args.out, "fair.png"))
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    wrong = [f"{g['preset']}, {g['mix']}: mean {g['rows']['batch']['mean']:.2f}, {g['rows']['batch']['gains_most']} "
             f"{g['rows']['batch']['least']:.2f}" for g in found
             if g["rows"]["batch"]["mean"] > MEAN or g["rows"]["batch"]["least"] > BEST]
    return lib.verdict(wrong) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
