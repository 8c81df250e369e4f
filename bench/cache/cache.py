#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shares of the last-level cache: programs that use their data again beside one that streams.

    bench/cache/cache.py [--build DIR] [--out DIR] [--quick] [--check] [--fresh]

After paper 002, sections 7.2 and 7.3: with a sixteenth of the cache for thrashing pages, its LLC
misses are 27.4 % fewer in the mean, and the largest slowdown of a program in a mix is 23.6 % smaller
(that with all else that memos does). On the emulated machine (preset optane, all data on DRAM, 2 MiB of
last-level cache, 8 ways), each mix:
  alone        each program by itself
  Linux        side by side
  off, auto    the same under libhybrid, with HYBRID_CACHE=off and auto
  known        without libhybrid; the stream has one way from its start: what auto could come to, were
               it known before
Misses are those of all programs of a mix, whose work is the same each time; a slowdown is a time over
that alone. Virtual times; runs are kept in OUT. --check: status 1 where auto's means are behind the
paper's, or a program is slower by it."""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "threads")]
import groups  # noqa: E402: beside this folder
from groups import Even, Shared, lib, program  # noqa: E402
from contenders import Setup  # noqa: E402
from runner import Runner, sweep  # noqa: E402
from dataclasses import replace  # noqa: E402

CPUS = 16
PAPER = {"misses": 27.4, "slowdown": 23.6}
SLOWER = 1.01  # the purse of regret
# workload, class, MiB, rounds. One thread streams, others have two; all last about as long.
STREAM = replace(program("stream", "bandwidth", 8, 420, "libquantum"), threads=1)


def reuser(workload, rounds, size=1):
    return replace(program(workload, "latency", size, rounds, ""), threads=2)


MIXES = {
    "gups": (STREAM, reuser("gups", 1500)),
    "heat, pagerank": (STREAM, reuser("heat", 9000), reuser("pagerank", 4800)),
    "gups, heat, cluster": (STREAM, reuser("gups", 1300), reuser("heat", 7500),
                            reuser("cluster", 8000)),
}


class Known(Even):
    name, label = "known", "known from the start"

    def env(self, run, index, scratch):
        one = {"HYBRID_EMU_WAYS": "1"} if run.case.programs[index].workload == "stream" else {}
        return {**super().env(run, index, scratch), **one}


class Share(Shared):
    def __init__(self, setup, cache):
        super().__init__(CPUS, setup, False)
        self.cpus = {**self.cpus, "HYBRID_CACHE": cache}
        self.name = self.label = cache


class CacheRunner(Runner):
    patience = 900

    def collect(self, run, index, scratch, expected):
        result = super().collect(run, index, scratch, expected)
        if result.hybrid:
            self.shares.append({"program": run.case.programs[index].workload,
                                **result.hybrid["cache"]})
        return result

    def execute(self, run):
        self.shares = []
        record = super().execute(run)
        begin = min(p["begin_ns"] for p in record["programs"])
        return {"each_ms": [(p["end_ns"] - begin) / 1e6 for p in record["programs"]],
                "total_ms": record["total_ms"], "shares": self.shares,
                "misses": [sum(p["reads"].values()) for p in record["programs"]]}


class Campaign(groups.Campaign):
    def __init__(self, args, setup, progress):
        super().__init__(args, setup, progress)
        self.runner = CacheRunner(setup)

    def mix(self, name, programs):
        alone = [self.run((p,), "d", Even(CPUS)) for p in programs]
        runs = {c.name: self.run(programs, "d" * len(programs), c)
                for c in (Even(CPUS), Share(self.setup, "off"), Share(self.setup, "auto"),
                          Known(CPUS))}
        linux = runs["even"]
        for row in runs.values():
            row["slowdowns"] = [ms / a["total_ms"] for ms, a in zip(row["each_ms"], alone)]
            row["fewer"] = 100 * (1 - sum(row["misses"]) / sum(linux["misses"]))
            row["better"] = 100 * (1 - max(row["slowdowns"]) / max(linux["slowdowns"]))
        return {"name": name, "programs": [p.workload for p in programs], "runs": runs,
                "alone_ms": [a["total_ms"] for a in alone]}


LABELS = {"even": "Linux", "off": "HYBRID_CACHE=off", "auto": "HYBRID_CACHE=auto",
          "known": "known from the start"}


def show(found):
    lines = []
    for m in found:
        rows = [[LABELS[n], *(f"{s:.3f}" for s in r["slowdowns"]),
                 f"{sum(r['misses']) / 1e6:.1f}", f"{r['fewer']:.1f} %", f"{r['better']:.1f} %"]
                for n, r in m["runs"].items()]
        head = ["", *(p + ", x alone" for p in m["programs"]), "misses, 10^6", "fewer",
                "largest slowdown less by"]
        lines += ["beside a stream: " + m["name"], lib.table(head, rows), ""]
    for name, r in means(found).items():
        lines.append(f"mean, {LABELS[name]}: {r['misses']:.1f} % fewer misses (paper "
                     f"{PAPER['misses']}), largest slowdown {r['slowdown']:.1f} % less (paper "
                     f"{PAPER['slowdown']})")
    return "\n".join(lines)


def means(found):
    def mean(name, what):
        return sum(m["runs"][name][what] for m in found) / len(found)
    return {name: {"misses": mean(name, "fewer"), "slowdown": mean(name, "better")}
            for name in ("auto", "known")}


def wrong(found):
    auto = means(found)["auto"]
    bad = [f"{what}: {auto[what]:.1f} % less, in the paper {paper} %"
           for what, paper in PAPER.items() if auto[what] < paper]
    for m in found:
        for p, on, off in zip(m["programs"], m["runs"]["auto"]["each_ms"],
                              m["runs"]["off"]["each_ms"]):
            if on > SLOWER * off:
                bad.append(f"{m['name']}: {p} takes {on / off:.3f} times as long as with off")
    return bad


def draw(found, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, grid = plt.subplots(1, len(found) + 1, figsize=(3.2 * (len(found) + 1), 3),
                                layout="constrained", squeeze=False)
    for axes, m in zip(grid.flat, found):
        for i, row in enumerate(m["runs"].values()):
            for k, (p, s) in enumerate(zip(m["programs"], row["slowdowns"])):
                axes.bar(i + 0.2 * (k - 1), s, 0.18, color=f"C{k}", label=None if i else p)
        axes.axhline(1, color="black", linewidth=0.5)
        axes.set_title("beside a stream: " + m["name"], fontsize=8)
        axes.set_xticks(range(len(m["runs"])), ["Linux", "off", "auto", "known"], fontsize=7)
        axes.legend(fontsize=6)
        axes.set_ylabel("time over that alone", fontsize=7)
    axes = grid.flat[-1]
    auto = means(found)
    for k, (label, values) in enumerate({"paper": PAPER, "auto": auto["auto"],
                                         "known": auto["known"]}.items()):
        axes.bar([i + 0.25 * (k - 1) for i in range(2)], [values["misses"], values["slowdown"]],
                 0.23, color=f"C{k + 4}", label=label)
    axes.set_xticks(range(2), ["LLC misses", "largest slowdown"], fontsize=7)
    axes.set_title("less by, %, mean", fontsize=8)
    axes.legend(fontsize=6)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    p = lib.script_parser(__doc__, "bench-cache")
    p.add_argument("--quick", action="store_true", help="the first mix only: about three minutes")
    p.add_argument("--check", action="store_true", help="status 1 where a limit does not hold")
    p.add_argument("--fresh", action="store_true", help="forget the runs made so far")
    args = lib.script_folders(p.parse_args())
    os.makedirs(args.out, exist_ok=True)
    mixes = dict(list(MIXES.items())[:1] if args.quick else MIXES)
    setup = Setup(args.build, libhybrid=f"{args.build}/shim/libhybrid.so")
    sweep()
    progress = lib.Progress(sum(len(m) + 4 for m in mixes.values()))
    campaign = Campaign(args, setup, progress)
    found = [campaign.mix(name, programs) for name, programs in mixes.items()]
    progress.end()
    text = show(found)
    print(text)
    with open(os.path.join(args.out, "cache.txt"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    lib.write_json(os.path.join(args.out, "cache.json"),
                   {"machine": lib.machine(), "preset": groups.PRESET, "mixes": found})
    try:
        draw(found, os.path.join(args.out, "cache.png"))
        print(f"picture: {args.out}/cache.png")
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    return lib.verdict(wrong(found)) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
