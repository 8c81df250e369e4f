#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who runs beside whom, and at which clock: energy-delay products (EDP) after paper 001.

    bench/pairing/pairing.py [--build DIR] [--out DIR] [--check]

On the emulated machine: four cores at 2.4 or 1.6 GHz on a bus of 8.5 GB/s, as the Core 2 Quad of 001; a
program is one thread. Two experiments:
  apart or mixed   001, section 3.2: four memory-bound and four compute-bound programs on four cores.
                   1: like with like, each at its best clock; 2: two and two at 2.4 GHz; 3: the same at 1.6.
                   EDP over that of 1; paper: 3/4 for 2, and 3 no better than 1
  clock            001, section 5: one compute-bound program and seven that are memory-bound to varying
                   degrees share the cores by sorted run queues and epochs (epochs.py, pure). How fast each is
                   beside which others is measured for every four that run together, at both clocks; a
                   program's EDP follows from its speed over an epoch. Over the full clock: the one that
                   hybridctl batch --clock takes, by how long each waited alone (batch_pair.low_clock), the one by
                   001's rule, from the share of the bus, and a fixed low one; paper: 0.918, 0.930. Then the
                   same with two memory-bound programs and six that compute
Energy is that of the cores while they run: 17.5 W each at 2.4 GHz; at 1.6 GHz 11.25 W (001's 'typical', 45 of
70 W) and, in brackets and for --check of the second experiment, 13.5 W (its Table 1: 0.77 of the power). Virtual
times. --check: status 1 where EDP is not as much less as in the paper."""
import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + "/..", HERE + "/../../tools/batch"]
import benchlib as lib  # noqa: E402: found by the path above
import batch_pair  # noqa: E402
import epochs  # noqa: E402
from batch_order import Facts  # noqa: E402

BUS_MBS, CORES = 8533, 4
FULL, LOW = 2400, 1600
WATTS = {"typical": {FULL: 17.5, LOW: 11.25}, "Table 1": {FULL: 17.5, LOW: 13.5}}
PAPER = {"mixed": 0.75, "clock": 0.918, "low": 0.930}
# Rounds: about 60 ms alone, with one thread, so that all are there for most of a run. The seven are those of
# bench/workloads that use most of this bus alone: 0.46 to 0.77 of it. Mixed, HEAVY and LIGHT last about as long.
HEAVY, LIGHT = ("stream", 8, 10), ("pricing", 1, 3)
VARYING = (("stream", 8, 10), ("heat", 8, 25), ("fft", 8, 3), ("ocean", 8, 4), ("lateuse", 8, 40),
           ("hydro", 8, 6), ("radix", 8, 3), LIGHT)
COMPUTING = (("stream", 8, 10), ("fft", 8, 3), ("pricing", 1, 3), ("pricing", 2, 2), ("pricing", 3, 1),
             ("mining", 6, 1), ("lu", 6, 1), ("strassen", 8, 1))


@dataclasses.dataclass
class Run:
    ns: int
    bus: float      # share of the time for which it kept the bus busy
    busy: int       # ns that its core ran
    compute: float  # of that, the part in which it did not wait for memory


def clock_of_001(running):
    """Lower by the rule that 001 found best: EDP x(1.4 - 0.8 x), x being the share of the bus."""
    return sum(1.4 - 0.8 * r.bus for r in running) < len(running)


def clock_of_batch(running):
    return batch_pair.low_clock([Facts(bus=r.bus, compute=r.compute) for r in running])


class Bench:
    def __init__(self, args):
        self.args = args
        self.known = {}

    def together(self, programs, mhz, scratch):
        """Side by side, each over and over until all have been once: [Run]. The first run of each counts, in which all others run as well."""
        key = (tuple(programs), mhz)
        if key in self.known:
            return self.known[key]
        with tempfile.TemporaryDirectory(dir=scratch) as d:
            children = []
            for i, (name, size, rounds) in enumerate(programs):
                env = lib.clean_env({"HYBRID_EMU_PRESET": "custom", "HYBRID_EMU_CPUS": str(CORES),
                                     "HYBRID_EMU_SET": f"dram_read_mbs={BUS_MBS},dram_write_mbs={BUS_MBS}",
                                     "HYBRID_EMU_MACHINE": d + "/machine", "HYBRID_EMU_MHZ": str(mhz),
                                     "HYBRID_EMU_AFFINITY": str(i)})
                children.append(subprocess.Popen(
                    [f"{self.args.build}/bench/workloads/emu-{name}", "--threads", "1", "--size", str(size),
                     "--rounds", str(rounds), "--time", "--gate", f"{d}/gate,{len(programs)}"],
                    env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            found = []
            for child, (name, *_) in zip(children, programs):
                out, err = child.communicate(timeout=600)
                if child.returncode:
                    raise lib.BenchError(f"{name}: {err.strip()}")
                t = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", out)}
                busy = t["COMPUTE_NS"] + t["STALL_NS"] + t["WAIT_NS"]
                found.append(Run(t["work_ns"], min(1.0, t["DRAM_BUSY_NS"] / t["work_ns"]), busy,
                                 (t["COMPUTE_NS"] + t["CACHE_NS"]) / busy))
        self.known[key] = found
        return found


def apart_or_mixed(bench, scratch):
    """EDP of all eight programs, one four after the other, in three scenarios over the first."""
    def edp(parts, watts):
        """[(runs of four, mhz)]: the time of all, and the energy of the cores while they run."""
        seconds = sum(max(r.ns for r in runs) for runs, _ in parts)
        return seconds * sum(r.busy * watts[mhz] for runs, mhz in parts for r in runs)

    heavy = {m: bench.together([HEAVY] * 4, m, scratch) for m in (FULL, LOW)}
    light = bench.together([LIGHT] * 4, FULL, scratch)
    mixed = {m: bench.together([HEAVY, HEAVY, LIGHT, LIGHT], m, scratch) for m in (FULL, LOW)}
    out = {}
    for name, watts in WATTS.items():
        apart = min(edp([(heavy[m], m), (light, FULL)], watts) for m in (FULL, LOW))
        out[name] = {"apart": 1.0, "mixed, full": edp([(mixed[FULL], FULL)] * 2, watts) / apart,
                     "mixed, low": edp([(mixed[LOW], LOW)] * 2, watts) / apart}
    return out


def clocks(bench, programs, scratch):
    """Mean EDP of eight programs over that at the full clock, by each rule."""
    alone = {p: bench.together([p], FULL, scratch)[0] for p in programs}
    parts = epochs.epoch(epochs.queues({p: r.bus for p, r in alone.items()}, CORES))
    speed = {}  # part, mhz: {program: of its speed alone at the full clock}
    for i, (_, running) in enumerate(parts):
        for mhz in (FULL, LOW):
            speed[i, mhz] = {p: alone[p].ns / found.ns
                             for p, found in zip(running, bench.together(running, mhz, scratch))}
    rules = {"batch": clock_of_batch, "001": clock_of_001, "low": lambda _: True, "full": lambda _: False}
    lower = {rule: [choose([alone[p] for p in running]) for _, running in parts] for rule, choose in rules.items()}

    def edps(low, watts):
        out = {}
        for p in programs:
            mine = [(LOW if low[i] else FULL, i, length) for i, (length, running) in enumerate(parts) if p in running]
            progress = sum(length * speed[i, mhz][p] for mhz, i, length in mine)
            joules = sum(length * watts[mhz] for mhz, _, length in mine)
            out[p] = joules / progress ** 2  # energy of a unit of work times its time
        return out

    low_alone = {p: bench.together([p], LOW, scratch)[0] for p in programs}
    result = {"programs": [{"name": p[0], "bus": r.bus, "compute": r.compute,
                            "predicted": batch_pair.times([Facts(bus=r.bus, compute=r.compute)], batch_pair.LOW)[0],
                            "measured": low_alone[p].ns / r.ns} for p, r in alone.items()]}
    for rule, low in lower.items():
        result[rule] = {"share_low": sum(length for (length, _), yes in zip(parts, low) if yes)}
        for name, watts in WATTS.items():
            full, got = edps(lower["full"], watts), edps(low, watts)
            result[rule][name] = sum(got[p] / full[p] for p in programs) / len(programs)
    # Whatever anybody could choose: all clocks of all parts.
    result["best"] = {name: min(sum(edps(low, watts)[p] / full[p] for p in programs) / len(programs)
                                for low in itertools.product((False, True), repeat=len(parts)))
                      for name, watts in WATTS.items() for full in (edps(lower["full"], watts),)}
    return result


RULES = (("batch", "by hybridctl batch, how long each waits", "clock"), ("001", "by 001's rule, share of the bus", "clock"),
         ("low", "1.6 GHz, fixed", "low"), ("best", "best of all choices", None))


def show_clocks(title, found):
    rows = [[label, PAPER.get(paper, ""), *(f"{found[rule][w]:.3f}" for w in WATTS),
             f"{100 * found[rule]['share_low']:.0f} %" if "share_low" in found[rule] else ""]
            for rule, label, paper in RULES]
    each = [[p["name"], f"{p['bus']:.2f}", f"{1 - p['compute']:.2f}", f"{p['predicted']:.2f}", f"{p['measured']:.2f}"]
            for p in found["programs"]]
    return [title, lib.table(["", "paper", *(f"here, {w}" for w in WATTS), "of an epoch low"], rows), "",
            lib.table(["alone", "of the bus", "waits", "time at 1.6 GHz, predicted", "measured"], each), ""]


def show(first, second, third):
    rows = [["apart, each at its best clock", "1", *("1.000" for _ in WATTS)],
            ["mixed, 2.4 GHz", f"{PAPER['mixed']}", *(f"{first[w]['mixed, full']:.3f}" for w in WATTS)],
            ["mixed, 1.6 GHz", "1", *(f"{first[w]['mixed, low']:.3f}" for w in WATTS)]]
    lines = ["EDP of four memory-bound and four compute-bound programs (001, section 3.2)",
             lib.table(["", "paper", *(f"here, {w}" for w in WATTS)], rows), "",
             *show_clocks("EDP of one compute-bound and seven memory-bound programs over that at 2.4 GHz (001, section 5)",
                          second),
             *show_clocks("The same of two memory-bound and six that compute; not in the paper", third)]
    return "\n".join(lines).rstrip()


def draw(first, second, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, (a, b) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for axes, names, values in (
            (a, ("apart", "mixed 2.4", "mixed 1.6"),
             {"paper": (1, PAPER["mixed"], 1), **{w: tuple(first[w].values()) for w in WATTS}}),
            (b, ("by waiting", "by the bus", "1.6 GHz fixed"),
             {"paper": (PAPER["clock"], PAPER["clock"], PAPER["low"]),
              **{w: [second[rule][w] for rule in ("batch", "001", "low")] for w in WATTS}})):
        for k, (label, ys) in enumerate(values.items()):
            axes.bar([i + 0.27 * (k - 1) for i in range(len(ys))], ys, 0.25, label=label)
        axes.set_xticks(range(len(names)), names, fontsize=7)
        axes.set_ylabel("EDP, normalised", fontsize=7)
        axes.legend(fontsize=6)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def wrong(first, second, third):
    limits = {"mixed": first["typical"]["mixed, full"], "clock": second["batch"]["Table 1"]}
    bad = [f"{name}: EDP x{got:.3f}, in the paper {PAPER[name]}" for name, got in limits.items()
           if got > PAPER[name]]
    for name, found in (("seven memory-bound", second), ("six that compute", third)):
        for rule in ("001", "low", "full"):
            if found["batch"]["Table 1"] > found[rule]["Table 1"] + 0.0005:
                bad.append(f"{name}: by how long each waits EDP x{found['batch']['Table 1']:.3f}, "
                           f"{rule} x{found[rule]['Table 1']:.3f}")
    return bad


def main():
    p = lib.script_parser(__doc__, "bench-pairing")
    p.add_argument("--check", action="store_true", help="status 1 where EDP is not as much less")
    args = lib.script_folders(p.parse_args())
    os.makedirs(args.out, exist_ok=True)
    bench = Bench(args)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="hybrid-pairing-") as scratch:
        first = apart_or_mixed(bench, scratch)
        second, third = (clocks(bench, p, scratch) for p in (VARYING, COMPUTING))
    text = show(first, second, third)
    print(text)
    with open(args.out + "/pairing.txt", "w", encoding="utf-8") as f:
        f.write(text + "\n")
    with open(args.out + "/pairing.json", "w", encoding="utf-8") as f:
        json.dump({"machine": lib.machine(), "mixed": first, "clock": second, "computing": third}, f, indent=1)
    try:
        draw(first, second, args.out + "/pairing.png")
        print(f"picture: {args.out}/pairing.png")
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    return lib.verdict(wrong(first, second, third)) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
