# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the race share: a set-up that nothing is built for, cases, records of runs."""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import contenders
from contenders import Run, Setup
from experiments import Case, Experiment, Program

ALL = frozenset({"CLASS", "PROFILE", "THREADS", "MIGRATE", "ADMISSION"})
SETUP = Setup("/build", "/lib/libhybrid.so", "/lib/libmemtier.so.0", "/lib/place.so",
              frozenset({"CLASS", "PROFILE"}))
ALONE = Case("alone", (Program("cg", "bandwidth", 2, 10, 1),), 2)
PAIR = Case("pair", (Program("mining", "cpu", 2, 8, 1), Program("ocean", "bandwidth", 2, 8, 1)), 8)


def record(total, programs=1, dram=100, pm=0):
    return {"total_ms": total, "mean_ms": total, "whole_ms": 2 * total + 1, "real_s": 0.1,
            "tries": 1,
            "programs": [{"begin_ns": 0, "end_ns": int(total * 1e6),
                          "reads": {"dram": dram, "pm": pm}, "writebacks": {"dram": 0, "pm": 0}}
                         ] * programs}


def contender(name, setup=SETUP):
    return next(c for c in contenders.all_contenders(setup) if c.name == name)


def run_of(name, case=ALONE, setup=SETUP, **more):
    return Run(Experiment("test", "Test", (case,)), case, contender(name, setup), **more)
