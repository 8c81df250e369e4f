#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What does classification cost?

    bench/classes/cost.py [--build DIR] [--quick] [--check] [--json FILE]

Of one CPU, with a window each 100 ms (HYBRID_CLASS_PERIOD):
  hardware   a window of a program with 1, 8, 60 threads: from the tests' fake PAPI, and for each
             thread one read of an event of this kernel, which a real PAPI makes
  emulated   a window from the emulated machine's events through the real PAPI
  whole      a program under the library for some seconds: the control thread's CPU time for
             classes over the run's length, with what this machine's counters give
  callgrind  instructions of a window (they do not depend on the load of the machine)

--check: status 1 if a share is above 0.5 %."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from runs import Bench, Failure, Job, ended, environment, verdict  # noqa: E402

LIMIT = 0.005
PERIOD_NS = 100e6
WINDOWS = 300


def run(command, **options):
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=600,
                          check=False, **options)
    if done.returncode == 77:
        return None, done.stdout.strip()
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}"
                      f"{done.stderr}")
    return done, done.stdout


def hardware(build, threads, windows=WINDOWS):
    """CPU ns of a window: counts, kernel's reads, class."""
    folder = build / "bench" / "classes"
    done, text = run([folder / "classes-cost", folder / "fake_papi.so", threads, windows])
    if done is None:
        return None, text
    ns = {k: float(v) for k, v in re.findall(r"(\w+)=(-?\d+)", text)}
    return ns, ""


def instructions(build, threads):
    """Of a window: the difference of two runs."""
    if not shutil.which("valgrind"):
        return None
    counted = []
    folder = build / "bench" / "classes"
    for windows in (50, 150):
        with tempfile.TemporaryDirectory() as work:
            done, text = run(["valgrind", "--tool=callgrind",
                              f"--callgrind-out-file={work}/out", folder / "classes-cost",
                              folder / "fake_papi.so", threads, windows])
            if done is None:
                return None
            counted.append(int(re.search(r"Collected : (\d+)", done.stderr)[1]))
    return (counted[1] - counted[0]) / 100


def emulated(build):
    bench = Bench(build)
    said = bench.run(Job("stream", "pram", 8, 0, 8, 20)).said
    return said["cost_ns"] / max(said["windows"], 1), said["windows"], said["counters"]


def whole(build, seconds):
    """Share of the run that the control thread computed for classes."""
    with tempfile.TemporaryDirectory(prefix="hybrid-cost-") as work:
        env = environment(build / "shim" / "libhybrid.so", Job("x", "pram", 1, 0, 16, 1), work,
                          "100ms")
        env = {k: v for k, v in env.items() if k not in ("HYBRID_EMU_PRESET", "HYBRID_RECORD")}
        env.update(HYBRID_POLICY="auto", HYBRID_COUNTERS="hardware")
        begin, rounds = time.monotonic(), 40
        program = build / "bench" / "workloads" / "wl-stream"
        run([program, "--size", 32, "--rounds", rounds], env=env)
        rounds = max(int(rounds * seconds / (time.monotonic() - begin)), 1)
        begin = time.monotonic()
        run([program, "--size", 32, "--rounds", rounds], env=env)
        spent = time.monotonic() - begin
        said = json.loads(pathlib.Path(work, "run.json").read_text())["classification"]
    return said["cost_ns"] / (spent * 1e9), spent, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build")
    parser.add_argument("--quick", action="store_true", help="some seconds")
    parser.add_argument("--check", action="store_true", help="status 1 if a share is too large")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    if not os.access(args.build / "bench" / "classes" / "classes-cost", os.X_OK):
        parser.error(f"{args.build} has no bench/classes/classes-cost (--build)")
    found, wrong = {}, []

    def add(name, share, text):
        found[name] = share
        print(f"{name:24} {100 * share:7.3f} %   {text}")
        if share > LIMIT:
            wrong.append(f"{name}: {100 * share:.3f} %, at most {100 * LIMIT} %")

    for threads in (1, 8) if args.quick else (1, 8, 60):
        ns, why = hardware(args.build, threads)
        if ns is None:
            print(f"hardware: left out, {why}")
            break
        reads = max(ns["read_ns"], 0) * threads
        add(f"hardware, {threads} threads", (ns["counts_ns"] + ns["class_ns"] + reads) / PERIOD_NS,
            f"{ns['counts_ns'] / 1e3:.0f} us to count, {reads / 1e3:.0f} to read, "
            f"{ns['class_ns'] / 1e3:.0f} to classify")
    ns, windows, what = emulated(args.build)
    add("emulated", ns / PERIOD_NS, f"{ns / 1e3:.0f} us a window, opening included, of {windows} "
        f"windows; {what}")
    share, spent, said = whole(args.build, 2 if args.quick else 10)
    add("whole", share, f"{said['cost_ns'] / 1e6:.2f} ms in {spent:.1f} s; {said['counters']}")
    count = None if args.quick else instructions(args.build, 8)
    if count:
        found["instructions"] = count
        print(f"{'callgrind, 8 threads':24} {count:9.0f} instructions a window")
    return verdict(args, found, wrong)


if __name__ == "__main__":
    sys.exit(ended("cost.py", main))
