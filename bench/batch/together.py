#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Placement, threads and order together, after paper 004, section VI and figure 9.

    bench/batch/together.py [--build DIR] [--check] [--fresh] [--out DIR] [GROUP]...

Programs of 8 threads on the emulated machine (preset optane, 20 CPUs) with DRAM for about half of their data;
group 1 has the paper's members (strassen for fluidanimate), those of group 2 are chosen here, as in
bench/race. Whole programs, the making of their data included. Rows:
  Linux      all at once, first touch
  memtier    the same under libmemtier, ratio
  preloaded  the same under libhybrid, of which nothing is told
  batch      hybridctl batch, two at a time, under libhybrid; classes from us, bandwidth and writes from
             profiles that are made here from a run alone
  packing    the order and the slots of `batch` without libhybrid, first touch: what fewer at a time bring alone
  best       the best of one, two and three at a time, in the order of `batch`, of the file, and the longest
             first, under libhybrid
The time of all is from the first begin to the last end, in virtual time.
--check: status 1 where batch saves less than the paper."""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "race"), str(HERE.parent)]
import benchlib as lib  # noqa: E402: found by the path above
from turns import Job, Turns, arguments, whole  # noqa: E402

SLOTS, CPUS, PRESET = 2, 20, "optane"
WINDOW = "1ms"


def job(name, cls, size, rounds):
    return Job(name, name, cls, "first-touch", size, rounds)


# DRAM in MiB, paper, jobs in the order of launch: the CPU-bound ones come first, as in the paper.
GROUPS = {
    "group 1": (17, -62.8, (job("mining", "cpu", 6, 3), job("strassen", "cpu", 6, 4), job("lu", "cpu", 4, 4),
                            job("ocean", "bandwidth", 8, 25), job("cluster", "bandwidth", 8, 120))),
    "group 2": (19, -44.5, (job("pricing", "cpu", 6, 4), job("mining", "cpu", 6, 3), job("fft", "bandwidth", 10, 6),
                            job("ocean", "bandwidth", 8, 25))),
}


class Together(Turns):
    def __init__(self, args, dram):
        super().__init__(args, PRESET, CPUS)
        self.dram = dram

    def env(self, job, folder):
        return {**super().env(job, folder), "HYBRID_EMU_DRAM": f"{self.dram}M"}

    def hybrid(self, told):
        """`told`: what a job's profile says, too."""
        def more(job, folder):
            return {"LD_PRELOAD": os.path.join(self.build, "shim", "libhybrid.so"), "HYBRID_STRICT": "1",
                    "HYBRID_PM": "emulated", "HYBRID_START": "0", "HYBRID_DRAM_SHARED": f"{self.dram}M",
                    "HYBRID_REGISTRY": folder + "/registry", "HYBRID_INTERVAL": WINDOW, "HYBRID_CLASS_PERIOD": WINDOW,
                    **({"HYBRID_PROFILE": told[job.name]} if told else {})}
        return more

    def memtier(self, jobs):
        path = lib.library_path("libmemtier.so.0")
        if not path:
            return None
        rest = max(1, sum(j.size for j in jobs) - self.dram)

        def more(_, folder):
            os.makedirs(folder + "/pm", exist_ok=True)
            return {"LD_PRELOAD": path, "HYBRID_EMU_PM_DIR": folder + "/pm",
                    "MEMKIND_MEM_TIERS": f"KIND:DRAM,RATIO:{self.dram};KIND:FS_DAX,PATH:{folder}/pm,RATIO:{rest};"
                                         "POLICY:STATIC_RATIO"}
        return more


def measure(args, name, progress):
    dram, paper, jobs = GROUPS[name]
    bench = Together(args, dram)
    named = {j.name: j for j in jobs}

    def run(names, slots, more, what):
        found = bench.run([named[n] for n in names], slots, more)
        progress.step(f"{name}: {what}")
        return {"ms": whole(found), "slots": slots, "order": list(names),
                "each_ms": {n: [e.begin, e.end] for n, e in found.items()}}, found

    def plain(job, folder):
        return {}
    file = [j.name for j in jobs]
    alone = {n: run([n], 1, plain, n + " alone")[1][n] for n in file}
    profiles = {n: bench.profile(named[n], alone[n]) for n in file}
    plan = bench.plan(jobs, SLOTS, profiles)
    longest = sorted(file, key=lambda n: alone[n].begin - alone[n].end)
    rows = {"Linux": run(file, len(file), plain, "Linux")[0]}
    memtier = bench.memtier(jobs)
    if memtier:
        rows["memtier"] = run(file, len(file), memtier, "memtier")[0]
    rows["preloaded"] = run(file, len(file), bench.hybrid(None), "preloaded")[0]
    rows["batch"] = run(plan, SLOTS, bench.hybrid(profiles), "batch")[0]
    rows["packing"] = run(plan, SLOTS, plain, "packing")[0]
    tried = [rows["batch"]] + [run(o, s, bench.hybrid(profiles), f"{s} at a time")[0]
                               for s in (1, 2, 3) for o in (plan, file, longest) if (o, s) != (plan, SLOTS)]
    rows["best"] = min(tried, key=lambda r: r["ms"])
    for r in rows.values():
        r["gain"] = 100 * (r["ms"] / rows["Linux"]["ms"] - 1)
    return {"paper": paper, "dram": dram, "rows": rows, "alone_ms": {n: e.end - e.begin for n, e in alone.items()}}


def show(found):
    rows = []
    for name, g in found.items():
        for label, r in g["rows"].items():
            rows.append([name if label == "Linux" else "", label, str(r["slots"]), f"{r['ms']:.1f}", f"{r['gain']:+.1f} %",
                         ", ".join(r["order"])])
        rows.append(["", "paper", "", "", f"{g['paper']:+.1f} %", ""])
    return lib.table(["", "", "at a time", "ms", "", "order"], rows)


def draw(found, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, grid = plt.subplots(1, len(found), figsize=(4 * len(found), 3), layout="constrained", squeeze=False)
    for axes, (name, g) in zip(grid.flat, found.items()):
        bars = {**{label: r["gain"] + 100 for label, r in g["rows"].items()}, "paper": g["paper"] + 100}
        for i, (label, part) in enumerate(bars.items()):
            axes.bar(i, part, 0.7, color="grey" if label == "paper" else "C0")
            axes.text(i, part, f"{part:.0f}", ha="center", va="bottom", fontsize=7)
        axes.set_xticks(range(len(bars)), bars, fontsize=6)
        axes.set_title(name, fontsize=9)
    grid.flat[0].set_ylabel("% of Linux' time", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    args = arguments(__doc__, "group", GROUPS)
    progress = lib.Progress(sum(len(GROUPS[n][2]) + 13 for n in args.group))
    found = {n: measure(args, n, progress) for n in args.group}
    progress.end()
    print(show(found))
    lib.write_json(os.path.join(args.out, "together.json"), {"machine": lib.machine(), "preset": PRESET, "groups": found})
    try:
        draw(found, os.path.join(args.out, "together.png"))
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    wrong = [f"{n}: {g['rows']['batch']['gain']:+.1f} %, paper {g['paper']} %" for n, g in found.items()
             if g["rows"]["batch"]["gain"] > g["paper"]]
    return lib.verdict(wrong) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
