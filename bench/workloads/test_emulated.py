#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One workload on the emulated machine: its output is the plain program's, its time virtual.

    test_emulated.py PLAIN INSTRUMENTED
"""
import os
import re
import subprocess
import sys

PLAIN, INSTRUMENTED = sys.argv[1:3]
ENV = {k: v for k, v in os.environ.items() if not k.startswith("HYBRID_EMU")}


def run(program, *args, **settings):
    env = dict(ENV, **{f"HYBRID_EMU_{k}": v for k, v in settings.items()})
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, env=env,
                          timeout=600)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def times(*args, **settings):
    line = run(INSTRUMENTED, "--size", 4, "--rounds", 1, "--time", *args, **settings)
    pairs = dict(word.split("=") for word in line.splitlines()[1].split()[1:])
    assert pairs.pop("clock") == "virtual", line
    return {name: int(value) for name, value in pairs.items()}


for threads in (1, 3, 8, 20):
    plain, emulated = (run(p, "--size", 1, "--threads", threads) for p in (PLAIN, INSTRUMENTED))
    assert plain == emulated and " ok\n" in plain, (threads, plain, emulated)

assert re.fullmatch(r".* ok\ntime clock=real begin_ns=\d+ end_ns=\d+ work_ns=\d+\n",
                    run(PLAIN, "--size", 1, "--time"))

dram, again, pm = times(), times(), times(PLACE="pm")
print("DRAM", dram, "PM", pm, sep="\n")
assert dram["end_ns"] - dram["begin_ns"] == dram["work_ns"] > 0
# The same program on the same machine: addresses differ, hence a few cache conflicts.
assert abs(again["work_ns"] - dram["work_ns"]) < 0.02 * dram["work_ns"], (dram, again)
assert pm["work_ns"] > dram["work_ns"]
# Only what the program works on moves: no line of it is read from the other medium.
assert pm["LLC_RD_PM"] > 100 * pm["LLC_RD_DRAM"] and dram["LLC_RD_PM"] == 0, (dram, pm)
