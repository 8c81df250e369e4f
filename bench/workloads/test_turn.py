#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Turns of a list of programs: as many at a time as there are slots; the next one begins when one has ended,
in virtual time where it is emulated, and finds the memory of that one free; mistakes are told.

    test_turn.py FOLDER emulated|real      (FOLDER: where the workloads are built)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER, KIND = pathlib.Path(sys.argv[1]), sys.argv[2]
PREFIX = "emu-" if KIND == "emulated" else "wl-"
ENV = {k: v for k, v in os.environ.items() if not k.startswith("HYBRID_EMU")}
SHARED = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def start(folder, jobs, slots, **env):
    return [subprocess.Popen([FOLDER / (PREFIX + name), "--size", "2", "--rounds", str(rounds), "--time", "--turn",
                              f"{folder}/a,b,{k},{slots},{len(jobs)}"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=dict(ENV, HYBRID_EMU_MACHINE=folder + "/machine", **env))
            for k, (name, rounds) in enumerate(jobs)]


def turn(program):
    out, err = program.communicate(timeout=400)
    found = re.search(r"^turn begin_ns=(\d+) end_ns=(\d+)$", out, re.M)
    assert program.returncode == 0 and " ok\n" in out and found and not err, (program.args, out, err)
    begin, end = map(int, found.groups())
    assert begin < end
    return begin, end, out


def test_turns():
    """Two at a time: the third begins when the first of the two ends, the fourth when the next one does."""
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        jobs = [("pricing", 6), ("chase", 1), ("stream", 1), ("chase", 1)]
        spans = [turn(p)[:2] for p in start(folder, jobs, 2)]
        print(spans)
        assert spans[0][0] == spans[1][0], spans
        assert sorted(b for b, _ in spans[2:]) == sorted(e for _, e in spans)[:2], spans
        for at in {b for b, _ in spans}:
            assert sum(b <= at < e for b, e in spans) == 2, (at, spans)


def test_memory_is_free():
    """One at a time on a machine with DRAM for one: each finds it, though none gives back what it frees."""
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        for program in start(folder, [("chase", 1)] * 3, 1, HYBRID_EMU_DRAM="3M", HYBRID_EMU_PLACE="first-touch",
                             MALLOC_MMAP_THRESHOLD_=str(1 << 25), MALLOC_TRIM_THRESHOLD_=str(1 << 30)):
            _, _, out = turn(program)
            assert int(re.search(r"LLC_RD_PM=(\d+)", out).group(1)) == 0, out


def test_mistakes():
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        for value, status, word in (("x", 1, "turn"), (f"{folder}/t,0,0,1", 2, "wants"), (f"{folder}/t,1,1,1", 1, "fit"),
                                    ("/nonexistent/t,0,1,1", 1, "No such file")):
            done = subprocess.run([FOLDER / (PREFIX + "chase"), "--turn", value], env=ENV, capture_output=True, text=True,
                                  timeout=400, check=False)
            assert done.returncode == status and word in done.stderr, done


for test in (test_turns, test_memory_is_free if KIND == "emulated" else None, test_mistakes):
    if test:
        print(test.__name__, flush=True)
        test()
