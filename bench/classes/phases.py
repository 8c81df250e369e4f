#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does the class follow a program that changes it? Bandwidth, computing, latency, bandwidth.

    bench/classes/phases.py [--build DIR] [--quick] [--check] [--json FILE]

For each change: how many windows until the new class is told, the one that holds the change
included. --check: status 1 if it takes more than three, or the class changes once more within
the phase. --quick: two settings, some seconds."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from runs import PATIENCE_S, Failure, Job, ended, environment, verdict  # noqa: E402

WITHIN = 3 # issue: windows until a change is seen
SETTINGS = [(preset, threads, pm) for preset in ("pram", "optane", "cxl")
            for threads in (1, 2, 4) for pm in (0, 100)]
QUICK = [("pram", 1, 0), ("optane", 1, 100)]


def run(build, preset, threads, pm):
    """[kind, end of the phase in ns] and the classifier's windows."""
    program, judge = (build / "bench" / "classes" / n for n in ("emu-phases", "classes-judge"))
    job = Job("phases", preset, threads, pm, 8, 1)
    with tempfile.TemporaryDirectory(prefix="hybrid-phases-") as work:
        env = environment(build / "shim" / "libhybrid.so", job, work, "1ms")
        env["WL_PHASES"] = f"{work}/phases"
        done = subprocess.run([str(program), "--emulated", "--threads", str(threads)], env=env,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise Failure(f"{program}: status {done.returncode}\n{done.stdout}{done.stderr}")
        ends = [line.split() for line in pathlib.Path(work, "phases").read_text().splitlines()]
        with open(f"{work}/run.rec", encoding="ascii") as recording:
            told = subprocess.run([str(judge), preset, "0", "1e18"], stdin=recording, text=True,
                                  capture_output=True, check=True)
    return [(kind, int(end)) for kind, end in ends], json.loads(told.stdout)["windows"]


def look(phases, windows):
    """For each phase: its kind, its windows, how many until it was seen, changes afterwards."""
    rows, begin = [], 0
    for kind, end in phases:
        classes = [w[1] for w in windows if begin < w[0] <= end]
        seen = next((i + 1 for i, c in enumerate(classes) if c == kind), None)
        later = classes[seen:] if seen else []
        rows.append({"kind": kind, "windows": len(classes), "seen": seen,
                     "wrong_later": sum(c != kind for c in later)})
        begin = end
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build")
    parser.add_argument("--quick", action="store_true", help="two settings")
    parser.add_argument("--check", action="store_true", help="status 1 if a limit does not hold")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    if not os.access(args.build / "bench" / "classes" / "emu-phases", os.X_OK):
        parser.error(f"{args.build} has no bench/classes/emu-phases (--build)")
    found, wrong, looked = [], [], 0
    print(f"{'setting':24} phases: class, windows until it was seen, of how many")
    for setting in QUICK if args.quick else SETTINGS:
        title = f"{setting[0]}, {setting[1]} thr., {'PM' if setting[2] else 'DRAM'}"
        rows = look(*run(args.build, *setting))
        found.append({"setting": title, "phases": rows})
        told = (f"{r['kind']} {r['seen']} of {r['windows']}" for r in rows)
        print(f"{title:24} " + ", ".join(told))
        for r in rows[1:]: # the first begins with the making of the data
            if r["windows"] <= WITHIN:
                print(f"{'':24} {r['kind']}: left out, the busy computer let the library take "
                      f"{r['windows']} windows only")
                continue
            looked += 1
            if not r["seen"] or r["seen"] > WITHIN or r["wrong_later"]:
                wrong.append(f"{title}: {r['kind']} seen at window {r['seen']}, "
                             f"{r['wrong_later']} wrong later")
    if not looked:
        wrong.append("no phase had windows enough")
    return verdict(args, found, wrong)


if __name__ == "__main__":
    sys.exit(ended("phases.py", main))
