#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One workload at a tiny size: right with any number of threads, and a wrong result is seen.

    test_workload.py PROGRAM
"""
import os
import re
import subprocess
import sys

PROGRAM = sys.argv[1]
LINE = re.compile(r"(\w+) (\d+) (\d+) (\d+): result ([0-9a-f]{16}) (ok|WRONG)\n")
failures = []


def run(*args):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=400)


def check(condition, what, done):
    if not condition:
        failures.append(what)
        print(f"FAIL {what}\n  {' '.join(done.args)}: status {done.returncode}\n"
              f"  stdout {done.stdout!r}\n  stderr {done.stderr!r}")


def result(*args):
    """Checksum of a run that must be right, None when it is not."""
    done = run(*args)
    line = LINE.fullmatch(done.stdout)
    check(done.returncode == 0 and not done.stderr and line and line[6] == "ok",
          f"right with {' '.join(map(str, args))}", done)
    return line and line[5]


def test_threads():
    sums = {n: result("--threads", n, "--size", 1) for n in (1, 3, 8, 64)}
    check(len(set(sums.values())) == 1, f"one result for all thread counts: {sums}",
          run("--size", 1))
    return sums[1]


def test_data_count(base):
    """The checksum follows seed and rounds: it is not a constant of the program."""
    done = run("--size", 1)
    check(result("--size", 1, "--seed", 2) != base, "another seed gives another result", done)
    more = [result("--size", 1, "--threads", 3, "--rounds", n) for n in (1, 2, 5)]
    check(all(more), "right with 1, 2 and 5 rounds", done)
    check(result("--size", 2) != base, "another size gives another result", done)


def test_corrupt(base):
    """One wrong value anywhere, integers by one bit: noticed, told, status 1."""
    for place in range(8):
        done = run("--size", 1, "--threads", 2, "--corrupt", place)
        line = LINE.fullmatch(done.stdout)
        check(done.returncode == 1 and line and line[6] == "WRONG" and line[5] != base,
              f"corruption {place} is noticed", done)


def test_arguments():
    done = run("--help")
    check(done.returncode == 0 and "--threads" in done.stdout and not done.stderr, "--help", done)
    done = run("--size", 1, "--threads", "all")
    count = min(len(os.sched_getaffinity(0)), 64)
    check(done.stdout.split()[1] == str(count), "--threads all", done)
    for args in (["--threads", 0], ["--threads", 65], ["--threads", "2x"], ["--size", 0],
                 ["--size", -1], ["--rounds", ""], ["--seed", "99999999999999999999"]):
        done = run(*args)
        check(done.returncode == 2 and not done.stdout and
              f"{args[0]} wants" in done.stderr and f"'{args[1]}'" in done.stderr,
              f"{args[0]} {args[1]!r} is refused", done)
    for args in (["--nonsense"], ["more"], ["--size"]):
        done = run(*args)
        check(done.returncode == 2 and not done.stdout and "usage:" in done.stderr,
              f"{args} is refused", done)


base_sum = test_threads()
test_data_count(base_sum)
test_corrupt(base_sum)
test_arguments()
sys.exit(1 if failures else 0)
