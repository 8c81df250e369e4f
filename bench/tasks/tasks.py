#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The data of the next OpenMP task on DRAM (HYBRID_TASKS=on), on the emulated machine.

    bench/tasks/tasks.py [NAME ...] [--build DIR] [--machine NAME ...] [--ratio N ...]
                         [--json FILE] [--check]

For each machine, workload and ratio of data to DRAM:
  first touch  no library: what is touched first gets DRAM until it is full (the kernel's way, the
               'unmanaged' of paper 003)
  pages        libhybrid, pages move by their histories, HYBRID_TASKS=off
  tasks        the same with HYBRID_TASKS=on
Virtual time of the timed part. The mean is geometric; the paper (Figs. 4 and 5) has -21 % at a
quarter of the bandwidth and -26 % at four times the latency, with its programs.

--check, status 1 where tasks are more than 1 % slower than pages, or where staging did nothing for
tblocks16 and tblocks64 on pram. Needs: ninja tasks."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

MIB = 1 << 20
PATIENCE_S = 900
# MiB and rounds.
WORKLOADS = {"tblocks1": (16, 16), "tblocks16": (16, 4), "tblocks64": (16, 2), "theat": (16, 16),
             "tgups": (16, 4), "tlu": (16, 1)}
# 003, section IV: one property of PM worse than DRAM's. A core has 5.3 GB/s of DRAM there (eight
# on four channels); so for four threads 21 GB/s here, where the presets' 96 would never be full.
MACHINES = {"quarter": ("custom", "dram_read_mbs=21300,dram_write_mbs=21300,"
                        "pm_read_mbs=5325,pm_write_mbs=5325"),
            "latency": ("custom", "pm_read_ns=320,pm_write_ns=320"),
            "pram": ("pram", ""), "optane": ("optane", "")}
PAPER = {"quarter": -21, "latency": -26}
# As in bench/pages/pages.py: programs of 0.1 s stand for some of minutes.
SETTINGS = {"HYBRID_PM": "emulated", "HYBRID_START": "0", "HYBRID_REGISTRY": "none",
            "HYBRID_POLICY": "first-fit", "HYBRID_THREADS": "off", "HYBRID_INTERVAL": "1ms",
            "HYBRID_CLASS_PERIOD": "1ms", "HYBRID_MIGRATE_INTERVAL": "8ms",
            "HYBRID_MIGRATE_CORE": "100"}
MODES = ("first touch", "pages", "tasks")
SLOWER = 1.01


class Failure(Exception):
    pass


def run(build, machine, name, ratio, mode, threads):
    size, rounds = WORKLOADS[name]
    preset, changes = MACHINES[machine]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HYBRID_", "LD_", "OMP_"))}
    env |= {"HYBRID_EMU_PRESET": preset,
            "HYBRID_EMU_SET": ",".join(filter(None, ["llc_kb=256", changes]))}
    dram = str(size * MIB // ratio // 4096 * 4096)
    if mode == "first touch":
        env |= {"HYBRID_EMU_PLACE": "first-touch", "HYBRID_EMU_DRAM": dram}
    else:
        env |= SETTINGS | {"HYBRID_DRAM": dram, "LD_PRELOAD": str(build / "shim/libhybrid.so"),
                           "HYBRID_TASKS": "on" if mode == "tasks" else "off"}
    command = [build / f"bench/workloads/emu-{name}", "--threads", threads, "--time",
               "--size", size, "--rounds", rounds]
    done = subprocess.run([str(c) for c in command], env=env, text=True, capture_output=True,
                          timeout=PATIENCE_S, check=False)
    line = re.search(r"^time clock=virtual (.*)$", done.stdout, re.M)
    if done.returncode or not line or " ok\n" not in done.stdout:
        raise Failure(f"{name}: status {done.returncode}: {done.stdout}{done.stderr}")
    counts = {k: int(v) for k, v in (w.split("=") for w in line[1].split())}
    return {"machine": machine, "name": name, "ratio": ratio, "mode": mode,
            "ms": counts["work_ns"] * 1e-6, "up": counts["PAGES_UP"], "down": counts["PAGES_DOWN"]}


def change(new, old):
    return 100 * (new / old - 1)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(found, machine):
    """Lines for one machine, and what does not hold."""
    times = {(f["name"], f["ratio"], f["mode"]): f["ms"] for f in found if f["machine"] == machine}
    lines = [f"{machine}: {' '.join(MACHINES[machine]).strip()}",
             f"  {'':10} {'data:DRAM':>9} {'first touch':>12} {'pages':>9} {'tasks':>9}   ms; tasks over"
             " first touch, over pages"]
    wrong = []
    for name, ratio in sorted({k[:2] for k in times}):
        first, pages, tasks = (times[name, ratio, m] for m in MODES)
        lines.append(f"  {name:10} {ratio:>7}:1 {first:12.1f} {pages:9.1f} {tasks:9.1f}   "
                     f"{change(tasks, first):+6.1f} % {change(tasks, pages):+6.1f} %")
        if tasks > SLOWER * pages:
            wrong.append(f"{machine}, {name}, {ratio}:1: {change(tasks, pages):.1f} % over pages")
        if machine == "pram" and name in ("tblocks16", "tblocks64") and tasks > 0.9 * pages:
            wrong.append(f"{machine}, {name}, {ratio}:1: staging brought nothing")
    over = [mean([times[n, r, "tasks"] / times[n, r, m] for n, r, k in times if k == "tasks"])
            for m in MODES[:2]]
    paper = f" (paper: {PAPER[machine]} %)" if machine in PAPER else ""
    lines.append(f"  mean: tasks over first touch {change(over[0], 1):+.1f} %{paper}, "
                 f"over pages {change(over[1], 1):+.1f} %")
    return lines, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--machine", nargs="+", choices=MACHINES, default=["quarter", "latency"])
    parser.add_argument("--ratio", nargs="+", type=int, default=[5, 10, 15])
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(WORKLOADS))
    args = parser.parse_args()
    names = args.names or list(WORKLOADS)
    if not set(names) <= set(WORKLOADS):
        parser.error(f"NAME is one of {', '.join(WORKLOADS)}")
    build = args.build.resolve()
    todo = [(m, n, r, k) for m in args.machine for n in names for r in args.ratio for k in MODES]
    with ThreadPoolExecutor(2) as pool:
        try:
            found = list(pool.map(lambda t: run(build, *t, args.threads), todo))
        except Failure as e:
            sys.exit(f"tasks.py: {e}")
    wrong = []
    for machine in args.machine:
        lines, more = table(found, machine)
        print("\n".join(lines))
        wrong += more
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    for line in wrong:
        print("does not hold:", line)
    return args.check and bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
