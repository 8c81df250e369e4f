#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pages that move, on the emulated machine, against an oracle that knows the future.

    bench/pages/pages.py [--build DIR] [--quick] [--check] [--json FILE] [--picture FILE]
                         [--ratio N ...] [NAME ...]

For each workload and each ratio of footprint to DRAM (10, 5, 2 to 1):
  off      libhybrid, first-fit, HYBRID_MIGRATE=off
  lazy, eager   the same with HYBRID_MIGRATE=lazy, eager
  oracle   exact counts of each page in each phase of the program, from an earlier run; when a
           phase begins the pages with most lines come to DRAM, at the machine's cost of moves;
           the better of that and of the best set for the whole run
and the share of lines written and of all lines that DRAM served, energy, bytes written to PM.
Then how often the predictor is right on the page histories of these runs.

--check, status 1 where a bound does not hold: time within 10 % of the oracle's and at most 2 %
above off, energy of PM at most 50 % above off (lazy); where the oracle reaches them, 83 % of writes
and 85 % of all lines on DRAM (what 002 reports). Virtual times repeat to about 1 %, whatever else
the computer does.
--quick: two workloads, one ratio, 20 seconds; shares may be three points lower, as they run a
fraction of the time and learn as long. Needs: ninja pages."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from benchlib import Progress  # noqa: E402

MIB = 1 << 20
THREADS = 2
# What each stands for, and how long it runs: 0.3 to 0.9 s on PM.
WORKLOADS = {
    "hotset": ("static hot set", 16, 36),
    "hotmove": ("moving hot set", 16, 72),
    "stream": ("streaming", 16, 24),
    "kv": ("key-value store, Zipf keys", 16, 24),
    "kvshift": ("the same, keys that shift", 16, 32),
    "heat": ("stencil", 16, 60),
    "bfs": ("graph search", 16, 6),
}
# Finding a hot set takes some ms: of a run, or a phase, of 0.1 s that is 1.5 points of the share. So
# these two run for longer (not --quick); a phase of hotmove then stands for 100 s at the default of
# HYBRID_INTERVAL (002 looks every 20 s).
LONGER = {"hotset": 5, "hotmove": 10}
RATIOS = (10, 5, 2)
QUICK = ({"hotset", "hotmove"}, (5,))
MODES = ("lazy", "eager")
# The LLC is as much smaller as the programs are: else it holds their hot sets. Programs of 0.1 s
# stand for some of minutes, so a pass is 1 ms and a mover may use all of its core.
MACHINE = {"HYBRID_EMU_SET": "llc_kb=256"}
SETTINGS = {"HYBRID_PM": "emulated", "HYBRID_START": "0", "HYBRID_REGISTRY": "none",
            "HYBRID_POLICY": "first-fit", "HYBRID_THREADS": "off", "HYBRID_INTERVAL": "1ms",
            "HYBRID_CLASS_PERIOD": "1ms"}
MOVING = {"HYBRID_MIGRATE_INTERVAL": "8ms", "HYBRID_MIGRATE_CORE": "100"}
WRITES, ACCESSES = 0.83, 0.85      # 002: 83.2 and 85.4 %
LEARNING = 0.03                    # of them, in short runs
OVER_ORACLE, OVER_OFF = 1.10, 1.02
# Energy of PM over off's: moves are writes to PM, which short runs do not earn back. Keys that shift
# cost most: 1.26 to 1.40 in several runs.
PM_ENERGY = 1.5
# Of the oracle: a line written back costs PM more than one read; pages change places when that
# saves more than it costs to move both (3 us each, 160 ns a line).
WRITE_WEIGHT, WORTH = 3, 40
PATIENCE_S = 900


class Failure(Exception):
    pass


class Bench:
    def __init__(self, build, progress):
        self.build, self.progress = build, progress
        self.place = build / "bench/race/bench-place.so"
        self.oracle = build / "bench/pages/bench-oracle.so"
        self.shim = build / "shim/libhybrid.so"
        self.accuracy = build / "bench/pages/bench-accuracy"

    def run(self, name, **env):
        size, rounds = WORKLOADS[name][1:]
        command = [self.build / f"bench/workloads/emu-{name}", "--threads", THREADS, "--time",
                   "--size", size, "--rounds", rounds]
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("HYBRID_", "LD_PRELOAD"))}
        done = subprocess.run([str(c) for c in command], env={**clean, **MACHINE, **env}, text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False)
        line = re.search(r"^time clock=virtual (.*)$", done.stdout, re.M)
        if done.returncode or not line or " ok\n" not in done.stdout or done.stderr:
            raise Failure(f"{name}: status {done.returncode}: {done.stdout}{done.stderr}")
        self.progress.step(name)
        return Result({k: int(v) for k, v in (w.split("=") for w in line[1].split())})

    def hybrid(self, name, dram, mode):
        return self.run(name, LD_PRELOAD=str(self.shim), HYBRID_DRAM=str(dram), **SETTINGS,
                        HYBRID_MIGRATE=mode, **(MOVING if mode != "off" else {}))

    def placed(self, name, **env):
        return self.run(name, LD_PRELOAD=f"{self.place} {self.oracle}", HYBRID_PLACE="1", **env)


class Result:
    """One run's timed part."""

    def __init__(self, counts):
        self.counts = counts
        self.ns = counts["work_ns"]

    def share(self, *kinds):
        dram, pm = (sum(self.counts[f"{k}_{t}"] for k in kinds) for t in ("DRAM", "PM"))
        return dram / max(dram + pm, 1)

    def record(self):
        c = self.counts
        return {"ms": self.ns * 1e-6, "writes_dram": self.share("WB"),
                "accesses_dram": self.share("LLC_RD", "WB"), "uj": c["DRAM_UJ"] + c["PM_UJ"],
                "pm_uj": c["PM_UJ"], "pm_written": c["PM_BYTES_WR"], "up": c["PAGES_UP"],
                "down": c["PAGES_DOWN"], "move_ms": c["MOVE_NS"] * 1e-6}


# --- the oracle: pure ---------------------------------------------------------------------

def read_counts(text):
    """By phase: {page: value}."""
    phases = {}
    for line in text.splitlines():
        phase, page, reads, writes = map(int, line.split())
        value = reads + WRITE_WEIGHT * writes
        phases.setdefault(phase, {})[page] = value
    return [phases[p] for p in sorted(phases)]


def best(values, room):
    return set(sorted(values, key=lambda p: (-values[p], p))[:room])


def improve(held, values, room):
    """The set for the next phase: what is held stays where a change would not pay."""
    wanted = best(values, room)
    come = sorted(wanted - held, key=lambda p: -values[p])
    go = sorted(held - wanted, key=lambda p: values.get(p, 0))
    free = room - len(held)
    result = set(held) | set(come[:free])
    for new, old in zip(come[free:], go):
        if values[new] - values.get(old, 0) > WORTH:
            result.discard(old)
            result.add(new)
    return result


def moves(phase, before, after):
    """Lines of a plan: down first, neighbours together."""
    lines = []
    for pages, tier in ((before - after, 1), (after - before, 0)):
        run = []
        for page in sorted(pages) + [None]:
            if run and page != run[-1] + 1:
                lines.append(f"{phase} {run[0]} {len(run)} {tier}\n")
                run = []
            if page is not None:
                run.append(page)
    return lines


def plans(phases, room):
    """The plan by phases, and the one that never changes."""
    lines, held = [], set()
    for number, values in enumerate(phases):
        after = improve(held, values, room)
        lines += moves(number, held, after)
        held = after
    whole = {}
    for values in phases:
        for page, value in values.items():
            whole[page] = whole.get(page, 0) + value
    found = {"static": "".join(moves(0, set(), best(whole, room)))}
    if len(phases) > 1:
        found["phases"] = "".join(lines)
    return found


# --- one workload --------------------------------------------------------------------------

def measure(bench, name, ratios, scratch):
    counts, history = scratch / f"{name}.counts", scratch / f"{name}.history"
    bench.placed(name, HYBRID_EMU_PAGE_COUNTS="1", HYBRID_ORACLE_COUNTS=str(counts),
                 HYBRID_ORACLE_HISTORY=str(history), HYBRID_ORACLE_TICK="5000000")
    phases = read_counts(counts.read_text())
    found = {}
    for ratio in ratios:
        room = WORKLOADS[name][1] * MIB // ratio // 4096
        runs = {mode: bench.hybrid(name, room * 4096, mode) for mode in ("off", *MODES)}
        oracles = {}
        for kind, text in plans(phases, room).items():
            plan = scratch / f"{name}.{ratio}.{kind}"
            plan.write_text(text)
            oracles[kind] = bench.placed(name, HYBRID_ORACLE_PLAN=str(plan))
        kind = min(oracles, key=lambda k: oracles[k].ns)
        found[ratio] = {mode: r.record() for mode, r in runs.items()}
        found[ratio]["oracle"] = {**oracles[kind].record(), "kind": kind}
    return found, accuracy(bench, history)


def accuracy(bench, history):
    out = subprocess.run([str(bench.accuracy), str(history)], text=True, capture_output=True,
                         check=False)
    if out.returncode:
        raise Failure(out.stderr)
    return {f"window {w}": dict(zip(("next", "ten", "changing next", "changing ten"),
                                    map(float, v.split("/"))))
            for w, v in re.findall(r" w(\d+)=(\S+)", out.stdout)}


def judge(name, ratio, row, slack):
    """What does not hold; shares may be lower by slack."""
    wrong, oracle, off = [], row["oracle"], row["off"]
    for mode in MODES:
        r, at = row[mode], f"{name} {ratio}:1 {mode}"
        if r["ms"] > OVER_ORACLE * oracle["ms"]:
            wrong.append(f"{at}: {r['ms'] / oracle['ms']:.3f} of the oracle's time")
        if r["ms"] > OVER_OFF * off["ms"]:
            wrong.append(f"{at}: {r['ms'] / off['ms']:.3f} of the time without moves")
        if mode == "lazy" and r["pm_uj"] > PM_ENERGY * off["pm_uj"]:
            wrong.append(f"{at}: {r['pm_uj'] / off['pm_uj']:.3f} of PM's energy without moves")
        for key, least in (("writes_dram", WRITES), ("accesses_dram", ACCESSES)):
            if oracle[key] >= least > r[key] + slack:
                wrong.append(f"{at}: {key} {r[key]:.1%}, the oracle reaches {oracle[key]:.1%}")
    return wrong


def show(name, found, correct):
    print(f"\n{name}: {WORKLOADS[name][0]}")
    print("   ratio           ms   of off  of oracle  writes  accesses  pages up  down  energy"
          "  PM written")
    for ratio, row in found.items():
        for mode, r in row.items():
            off, oracle = row["off"], row["oracle"]
            print(f"  {ratio:3}:1 {mode:7}{r['ms']:9.2f}{r['ms'] / off['ms']:9.3f}"
                  f"{r['ms'] / oracle['ms']:11.3f}{r['writes_dram']:8.1%}"
                  f"{r['accesses_dram']:10.1%}{r['up']:10}{r['down']:6}"
                  f"{r['uj'] / max(off['uj'], 1):8.2f}"
                  + (f"{r['pm_written'] / off['pm_written']:12.3f}" if off['pm_written'] > MIB
                     else f"{r['pm_written'] / MIB:8.2f} MiB"))
    print("  predictions that held, next tick / most of ten: " + "; ".join(
        f"{w}: {v['next']:.1f} / {v['ten']:.1f} %" for w, v in correct.items()))


def summary(found):
    rows = [(row["lazy"], row["off"]) for ratios in found.values() for row in ratios.values()]
    wear = [r["pm_written"] / r["ms"] / (off["pm_written"] / off["ms"]) for r, off in rows
            if off["pm_written"] > MIB and r["pm_written"] > 0]
    saved = [1 - r["pm_uj"] / off["pm_uj"] for r, off in rows if off["pm_uj"] > 0]
    faster = [off["ms"] / r["ms"] for r, off in rows]
    mean = lambda v: sum(v) / len(v)  # noqa: E731
    print(f"\nlazy against off, mean of {len(rows)}: writes on DRAM "
          f"{mean([r['writes_dram'] for r, _ in rows]):.1%} (002: 83.2 %), accesses "
          f"{mean([r['accesses_dram'] for r, _ in rows]):.1%} (85.4 %), {mean(faster):.2f} times "
          f"as fast (1.19), energy of PM -{mean(saved):.0%} (-25 to -99 %), life of PM x"
          f"{mean([1 / w for w in wear]):.2f}, best x{max(1 / w for w in wear):.1f} (x40, x500)")


def picture(found, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    cases = [(name, ratio) for name, ratios in found.items() for ratio in ratios]
    fig, (top, low) = plt.subplots(2, 1, figsize=(11, 7), sharex=True)
    for i, mode in enumerate(("off", *MODES, "oracle")):
        at = [x + 0.2 * i for x in range(len(cases))]
        rows = [found[n][r] for n, r in cases]
        top.bar(at, [row[mode]["ms"] / row["off"]["ms"] for row in rows], 0.18, label=mode)
        low.bar(at, [row[mode]["accesses_dram"] for row in rows], 0.18, label=mode)
    top.set_ylabel("run time, off = 1")
    low.set_ylabel("lines served by DRAM")
    low.set_xticks([x + 0.3 for x in range(len(cases))], [f"{n}\n{r}:1" for n, r in cases],
                   fontsize=7)
    top.legend(ncol=4, frameon=False)
    for axis in (top, low):
        axis.grid(axis="y", alpha=0.3)
    fig.tight_layout()
    fig.savefig(path)


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--quick", action="store_true", help="two workloads, one ratio")
    parser.add_argument("--check", action="store_true", help="status 1 if a bound does not hold")
    parser.add_argument("--must-run", action="store_true",
                        help="status 1 if a run fails, whatever its figures")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--picture", type=pathlib.Path, metavar="FILE", help="PNG, PDF or SVG")
    parser.add_argument("--ratio", type=int, action="append", choices=RATIOS)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads (all)")
    args = parser.parse_args()
    for name in args.names:
        if name not in WORKLOADS:
            parser.error(f"no workload {name}; there are {', '.join(WORKLOADS)}")
    for name, times in LONGER.items() if not args.quick else ():
        title, size, rounds = WORKLOADS[name]
        WORKLOADS[name] = (title, size, rounds * times)
    names = args.names or [n for n in WORKLOADS if not args.quick or n in QUICK[0]]
    ratios = args.ratio or (QUICK[1] if args.quick else RATIOS)
    bench = Bench(args.build, Progress(sum(
        1 + len(ratios) * (2 + len(MODES) + (n in ("hotmove", "kvshift"))) for n in names)))
    for needed in (bench.place, bench.oracle, bench.shim, bench.accuracy):
        if not needed.exists():
            parser.error(f"{needed} is not built: ninja -C {args.build} pages")
    found, correct, wrong, failed = {}, {}, [], False
    with tempfile.TemporaryDirectory(prefix="hybrid-pages-") as folder, \
            ThreadPoolExecutor(2) as pool:
        jobs = {n: pool.submit(measure, bench, n, ratios, pathlib.Path(folder)) for n in names}
        for name, job in jobs.items():
            try:
                found[name], correct[name] = job.result()
            except (Failure, subprocess.TimeoutExpired) as e:
                wrong.append(str(e))
                failed = True
                continue
            bench.progress.end()
            show(name, found[name], correct[name])
            for ratio, row in found[name].items():
                wrong += judge(name, ratio, row, LEARNING if args.quick else 0)
    if found:
        summary(found)
    for line in wrong:
        print(f"WRONG {line}")
    if args.json:
        args.json.write_text(json.dumps({"found": found, "accuracy": correct, "wrong": wrong},
                                        indent=1) + "\n")
    if args.picture and found:
        picture(found, args.picture)
    return 1 if (args.check and wrong) or (args.must_run and failed) else 0


if __name__ == "__main__":
    sys.exit(main())
