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
                   program's EDP follows from its speed over an epoch. The clock that hybridctl batch --clock
                   would take (batch_pair.low_clock) and a fixed low one, over the full one; paper: 0.918, 0.930
Energy is that of the cores while they run: 17.5 W each at 2.4 GHz; at 1.6 GHz 11.25 W (001's 'typical', 45 of
70 W) and, in brackets and for --check of the second experiment, 13.5 W (its Table 1: 0.77 of the power). Virtual
times. --check: status 1 where EDP is not as much less as in the paper."""
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


class Bench:
    def __init__(self, args):
        self.args = args
        self.known = {}

    def together(self, programs, mhz, scratch):
        """Side by side, each over and over until all have been once: [(ns of a run, share of the bus, ns that
        its core ran)]. The first run of each counts, in which all others run as well."""
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
                found.append((t["work_ns"], min(1.0, t["DRAM_BUSY_NS"] / t["work_ns"]), busy))
        self.known[key] = found
        return found


def apart_or_mixed(bench, scratch):
    """EDP of all eight programs, one four after the other, in three scenarios over the first."""
    def edp(parts, watts):
        """[(runs of four, mhz)]: the time of all, and the energy of the cores while they run."""
        seconds = sum(max(ns for ns, _, _ in runs) for runs, _ in parts)
        return seconds * sum(busy * watts[mhz] for runs, mhz in parts for _, _, busy in runs)

    heavy = {m: bench.together([HEAVY] * 4, m, scratch) for m in (FULL, LOW)}
    light = bench.together([LIGHT] * 4, FULL, scratch)
    mixed = {m: bench.together([HEAVY, HEAVY, LIGHT, LIGHT], m, scratch) for m in (FULL, LOW)}
    out = {}
    for name, watts in WATTS.items():
        apart = min(edp([(heavy[m], m), (light, FULL)], watts) for m in (FULL, LOW))
        out[name] = {"apart": 1.0, "mixed, full": edp([(mixed[FULL], FULL)] * 2, watts) / apart,
                     "mixed, low": edp([(mixed[LOW], LOW)] * 2, watts) / apart}
    return out


def clocks(bench, scratch):
    """Mean EDP of eight programs over that at the full clock."""
    alone = {p: bench.together([p], FULL, scratch)[0] for p in VARYING}
    demand = {p: alone[p][1] for p in VARYING}
    parts = epochs.epoch(epochs.queues(demand, CORES))
    speed = {}  # part, mhz: {program: of its speed alone at the full clock}
    for i, (_, running) in enumerate(parts):
        for mhz in (FULL, LOW):
            speed[i, mhz] = {p: alone[p][0] / found[0]
                             for p, found in zip(running, bench.together(running, mhz, scratch))}
    low = {i: batch_pair.low_clock([Facts(ebw_d=demand[p]) for p in running])
           for i, (_, running) in enumerate(parts)}

    def edps(clock_of, watts):
        out = {}
        for p in VARYING:
            mine = [(i, length) for i, (length, running) in enumerate(parts) if p in running]
            progress = sum(length * speed[i, clock_of(i)][p] for i, length in mine)
            joules = sum(length * watts[clock_of(i)] for i, length in mine)
            out[p] = joules / progress ** 2  # energy of a unit of work times its time
        return out

    result = {"demand": {p[0]: demand[p] for p in VARYING}, "share_low": sum(
        length for i, (length, _) in enumerate(parts) if low[i])}
    for name, watts in WATTS.items():
        full = edps(lambda i: FULL, watts)
        for what, clock in (("clock", lambda i: LOW if low[i] else FULL), ("low", lambda i: LOW)):
            got = edps(clock, watts)
            result[f"{what}, {name}"] = sum(got[p] / full[p] for p in VARYING) / len(VARYING)
    return result


def show(first, second):
    rows = [["apart, each at its best clock", "1", *("1.000" for _ in WATTS)],
            ["mixed, 2.4 GHz", f"{PAPER['mixed']}", *(f"{first[w]['mixed, full']:.3f}" for w in WATTS)],
            ["mixed, 1.6 GHz", "1", *(f"{first[w]['mixed, low']:.3f}" for w in WATTS)]]
    lines = ["EDP of four memory-bound and four compute-bound programs (001, section 3.2)",
             lib.table(["", "paper", *(f"here, {w}" for w in WATTS)], rows), "",
             "EDP of one compute-bound and seven memory-bound programs over that at 2.4 GHz (001, section 5)",
             lib.table(["", "paper", *(f"here, {w}" for w in WATTS)],
                       [["clock by those that run", f"{PAPER['clock']}",
                         *(f"{second[f'clock, {w}']:.3f}" for w in WATTS)],
                        ["1.6 GHz, fixed", f"{PAPER['low']}", *(f"{second[f'low, {w}']:.3f}" for w in WATTS)]]),
             "share of the bus alone: " + ", ".join(f"{n} {v:.2f}" for n, v in second["demand"].items()),
             f"low clock for {100 * second['share_low']:.0f} % of an epoch"]
    return "\n".join(lines)


def draw(first, second, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, (a, b) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for axes, names, values in (
            (a, ("apart", "mixed 2.4", "mixed 1.6"),
             {"paper": (1, PAPER["mixed"], 1), **{w: tuple(first[w].values()) for w in WATTS}}),
            (b, ("by those that run", "1.6 GHz fixed"),
             {"paper": (PAPER["clock"], PAPER["low"]),
              **{w: (second[f"clock, {w}"], second[f"low, {w}"]) for w in WATTS}})):
        for k, (label, ys) in enumerate(values.items()):
            axes.bar([i + 0.27 * (k - 1) for i in range(len(ys))], ys, 0.25, label=label)
        axes.set_xticks(range(len(names)), names, fontsize=7)
        axes.set_ylabel("EDP, normalised", fontsize=7)
        axes.legend(fontsize=6)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def wrong(first, second):
    limits = {"mixed": first["typical"]["mixed, full"], "clock": second["clock, Table 1"]}
    bad = [f"{name}: EDP x{got:.3f}, in the paper {PAPER[name]}" for name, got in limits.items()
           if got > PAPER[name]]
    if second["clock, Table 1"] > second["low, Table 1"]:
        bad.append("the clock by those that run is no better than a fixed low one")
    return bad


def main():
    p = lib.script_parser(__doc__, "bench-pairing")
    p.add_argument("--check", action="store_true", help="status 1 where EDP is not as much less")
    args = lib.script_folders(p.parse_args())
    os.makedirs(args.out, exist_ok=True)
    bench = Bench(args)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="hybrid-pairing-") as scratch:
        first, second = apart_or_mixed(bench, scratch), clocks(bench, scratch)
    text = show(first, second)
    print(text)
    with open(args.out + "/pairing.txt", "w", encoding="utf-8") as f:
        f.write(text + "\n")
    with open(args.out + "/pairing.json", "w", encoding="utf-8") as f:
        json.dump({"machine": lib.machine(), "mixed": first, "clock": second}, f, indent=1)
    try:
        draw(first, second, args.out + "/pairing.png")
        print(f"picture: {args.out}/pairing.png")
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    return lib.verdict(wrong(first, second)) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
