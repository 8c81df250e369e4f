#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What watching pages costs where there is nothing to move: real time, real kernel.

    bench/pages/overhead.py [--build DIR] [--quick] [--check] [--json FILE]

Two cases run under libhybrid with HYBRID_MIGRATE=off and lazy in turns: a program whose memory
all lies on DRAM, where nobody looks, and one that has most of it on PM and leaves it alone, so
that each pass looks and finds nothing. HYBRID_INTERVAL is 100 ms, a tenth of the
default. Given, as the worst of the runs:
  looking   processor time of libhybrid's thread over the program's, as it counts it itself
  cost      that, and 0.8 us (bench of the unit tests, track_cost) for each fault more than off
            has: what watching takes of the program's own time
and the processor time of lazy over off, which other work on the computer spoils by a percent or
two. --check: looking and cost below 1 %, passes were made where there is something to look
at, and less than 2 % of the memory went to PM."""
import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

BOUND = 0.01
FAULT_S = 0.8e-6
# Of the memory, to PM: nothing shall be exchanged.
MOVED = 0.02
MIB = 1 << 20
# Name, workload, MiB, rounds (few with --quick), settings, does it look?
CASES = (
    ("all on DRAM", "hotset", 64, (60, 120), {}, False),
    ("on PM, nothing to move", "mining", 64, (2, 6), {"HYBRID_DRAM": "8M"}, True),
)


def run(build, case, rounds, mode, report):
    _, name, size, _, settings, _ = case
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HYBRID_", "LD_PRELOAD"))}
    env.update({"LD_PRELOAD": str(build / "shim/libhybrid.so"), "HYBRID_PM": "emulated",
                "HYBRID_START": "0", "HYBRID_REGISTRY": "none", "HYBRID_MIGRATE": mode,
                "HYBRID_COUNTERS": "off", "HYBRID_POLICY": "first-fit", "HYBRID_INTERVAL": "100ms",
                "HYBRID_STATS": report, **settings})
    command = [str(build / f"bench/workloads/wl-{name}"), "--size", str(size), "--rounds",
               str(rounds), "--threads", "1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or done.stderr or not re.search(" ok$", done.stdout):
        sys.exit(f"{command[0]}: {done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    moves = json.loads(pathlib.Path(report).read_text())["migration"]
    return cpu, after.ru_minflt - before.ru_minflt, moves


def measure(args, case, times, report):
    """One case's figures, and what does not hold."""
    name, _, size, rounds, _, looks = case
    least, faults, share, last = {}, {}, 0.0, None
    for _ in range(times):
        for mode in ("off", "lazy"):
            cpu, n, m = run(args.build, case, rounds[not args.quick], mode, report)
            least[mode] = min(cpu, least.get(mode, cpu))
            faults[mode] = max(n, faults.get(mode, n)) if mode == "lazy" else \
                min(n, faults.get(mode, n))
            if mode == "lazy":
                if m["state"] != "on":
                    sys.exit(f"pages are not watched here: {m['why']}")
                share, last = max(share, m["look_ns"] * 1e-9 / cpu), m
    more, down = least["lazy"] / least["off"] - 1, last["down_bytes"] / (size * MIB)
    cost = share + max(faults["lazy"] - faults["off"], 0) * FAULT_S / least["off"]
    print(f"{name}: looking {share:.3%}, cost {cost:.3%} ({last['passes']} passes, "
          f"{faults['lazy'] - faults['off']:+d} faults, {down:.2%} of the memory went to PM); "
          f"processor time {least['off']:.3f} s off, {least['lazy']:.3f} s lazy ({more:+.1%})")
    wrong = [text for bad, text in (
        (share > BOUND, f"looking {share:.2%}, more than {BOUND:.0%}"),
        (cost > BOUND, f"cost {cost:.2%}, more than {BOUND:.0%}"),
        (looks and last["passes"] < 1, "nobody looked"),
        (down > MOVED, f"{down:.2%} of the memory went to PM, more than {MOVED:.0%}")) if bad]
    return {"cpu_s": least, "more": more, "looking": share, "cost": cost, "faults": faults,
            "passes": last["passes"]}, wrong


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--quick", action="store_true", help="two short runs of each")
    parser.add_argument("--check", action="store_true", help="status 1 if a bound does not hold")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    times, rows, wrong = (2 if args.quick else 4), {}, []
    with tempfile.TemporaryDirectory(prefix="hybrid-pages-") as folder:
        for case in CASES:
            rows[case[0]], bad = measure(args, case, times, folder + "/report.json")
            wrong += [f"{case[0]}: {text}" for text in bad]
    for line in wrong:
        print(f"WRONG {line}")
    if args.json:
        args.json.write_text(json.dumps(rows) + "\n")
    return 1 if args.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
