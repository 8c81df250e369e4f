#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Last-level misses per 1000 instructions of every workload, from cachegrind.

    bench/workloads/misses.py [--build DIR] [--size MIB] [--check] [--write-backs] [NAME ...]

Two runs that differ in rounds only: the difference is the part that is timed, without
making the data and verifying the result. Prints a table in Markdown. --check: status 1
when a class does not hold (below 0.5 for CPU-bound, above 10 for memory-bound).
--write-backs: a column more, of dirty lines that had to leave, from callgrind."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LAST_LEVEL = "2097152,16,64"
CPU_MOST, MEMORY_LEAST = 0.5, 10
# The class as README's table has it.
WORKLOADS = {
    "stream": "bandwidth", "gups": "bandwidth", "chase": "latency", "heat": "bandwidth",
    "ocean": "bandwidth", "lu": "intermediate", "fft": "bandwidth", "cg": "bandwidth",
    "bfs": "bandwidth", "pagerank": "bandwidth", "radix": "bandwidth", "kv": "latency",
    "cluster": "bandwidth", "pricing": "cpu", "mining": "cpu", "strassen": "intermediate",
}
CACHEGRIND = (["--tool=cachegrind"], "cachegrind", ["Ir", "DLmr", "DLmw"])
# I1 misses can also push a dirty line out: all three are needed.
CALLGRIND = (["--tool=callgrind", "--simulate-wb=yes"], "callgrind", ["ILdmr", "DLdmr", "DLdmw"])


def count(program, size, rounds, tool):
    """The tool's events over a whole run."""
    options, prefix, wanted = tool
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run(
            ["valgrind", *options, "--cache-sim=yes", f"--LL={LAST_LEVEL}",
             f"--{prefix}-out-file={out.name}", str(program), "--size", str(size),
             "--rounds", str(rounds)], capture_output=True, text=True)
        text = pathlib.Path(out.name).read_text()
    if done.returncode != 0 or " ok\n" not in done.stdout:
        sys.exit(f"{program.name}: status {done.returncode}\n{done.stdout}{done.stderr}")
    events = re.search(r"^events: (.*)$", text, re.M)[1].split()
    # callgrind leaves trailing zeros out
    sums = dict.fromkeys(events, 0)
    sums.update(zip(events, map(int, re.search(r"^summary: (.*)$", text, re.M)[1].split())))
    return [sums[event] for event in wanted]


def measure(build, name, size, write_backs):
    """instructions of a round; per 1000 of them read misses, write misses, write-backs (or
    None); misses per 1000 of a whole run with one round"""
    program = build / "bench" / "workloads" / f"wl-{name}"
    short, long = (count(program, size, rounds, CACHEGRIND) for rounds in (1, 2))
    work, reads, writes = (b - a for a, b in zip(short, long))
    dirty = None
    if write_backs:
        one, two = (sum(count(program, size, rounds, CALLGRIND)) for rounds in (1, 2))
        dirty = 1000 * (two - one) / work
    return work, 1000 * reads / work, 1000 * writes / work, dirty, 1000 * sum(short[1:]) / short[0]


def fits(kind, misses):
    if kind == "cpu":
        return misses < CPU_MOST
    return kind == "intermediate" or misses > MEMORY_LEAST


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--size", type=int, default=8, help="MiB of footprint (8)")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write-backs", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(WORKLOADS))
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}")
    wrong = []
    print("| workload | class | million instructions a round | misses per 1000: reads | writes "
          "| all | write-backs | all, whole program |\n|---|---|---|---|---|---|---|---|")
    with ThreadPoolExecutor(2) as pool:
        rows = pool.map(lambda name: measure(args.build, name, args.size, args.write_backs),
                        args.names)
        for name, (work, reads, writes, dirty, whole) in zip(args.names, rows):
            kind = WORKLOADS[name]
            shown = "" if dirty is None else f"{abs(dirty):.2f}"
            print(f"| {name} | {kind} | {work / 1e6:.1f} | {abs(reads):.2f} | {abs(writes):.2f} "
                  f"| {reads + writes:.2f} | {shown} | {whole:.2f} |", flush=True)
            if not fits(kind, reads + writes):
                wrong.append(f"{name}: {reads + writes:.2f} does not fit class {kind}")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if args.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
