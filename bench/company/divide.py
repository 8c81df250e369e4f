#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""DRAM by benefit: two memory-bound programs, of which one uses a twelfth of its data.

    bench/company/divide.py [--build DIR] [--quick] [--check] [--out DIR]

hotset (12 MiB, most accesses to 1 MiB) and gups (8 MiB, all of it alike) on the emulated machine
(preset optane) with 8 MiB of DRAM, started together, in both orders. Rows: first touch; libhybrid where
no program tells what DRAM brings it (each has a registry of its own); HYBRID_WEIGHT=1; the same with
HYBRID_WEIGHT=8 for hotset; all on DRAM. Whole programs, virtual time.
--check: never above 1.01 of first touch, and the longest at least 10 % below libhybrid apart."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent)]
import benchlib as lib  # noqa: E402: found by the path above

DRAM_KIB = 8192
PROGRAMS = {"hotset": (12, 60), "gups": (8, 20)}  # MiB, rounds
NEVER_ABOVE, GAIN = 1.01, 0.9


def command(args, name):
    size, rounds = PROGRAMS[name]
    rounds = rounds // 4 if args.quick else rounds
    return [os.path.join(args.build, "bench/workloads/emu-" + name), "--threads", "8", "--size", str(size), "--rounds",
            str(rounds)]


def env(args, folder, i, name, row):
    e = {"OMP_WAIT_POLICY": "passive", "HYBRID_EMU_PRESET": "optane", "HYBRID_EMU_MACHINE": folder + "/machine",
         "HYBRID_EMU_STATS": f"{folder}/emu-{i}.json"}
    if row == "all on DRAM":
        return {**e, "HYBRID_EMU_PLACE": "dram"}
    e.update({"HYBRID_EMU_PLACE": "first-touch", "HYBRID_EMU_DRAM": f"{DRAM_KIB}K"})
    if row == "first touch":
        return e
    registry = f"registry-{i}" if row == "apart" else "registry"
    e.update({"LD_PRELOAD": os.path.join(args.build, "shim/libhybrid.so"), "HYBRID_STRICT": "1",
              "HYBRID_PM": "emulated", "HYBRID_DRAM_SHARED": f"{DRAM_KIB}K", "HYBRID_START": "0",
              "HYBRID_REGISTRY": f"{folder}/{registry}", "HYBRID_INTERVAL": "1ms", "HYBRID_CLASS_PERIOD": "1ms"})
    e["HYBRID_WEIGHT"] = "8" if row == "weight" and name == "hotset" else "0" if row == "apart" else "1"
    return e


def run(args, names, row):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        children = [subprocess.Popen(command(args, n), env=lib.clean_env(env(args, folder, i, n, row)),
                                     stdout=subprocess.DEVNULL) for i, n in enumerate(names)]
        if any([c.wait() for c in children]):
            raise lib.BenchError(f"{row}: a program failed")
        ms = {}
        for i, n in enumerate(names):
            with open(f"{folder}/emu-{i}.json", encoding="utf-8") as f:
                ms[n] = json.load(f)["virtual_ms"]
        return ms


def main():
    p = lib.script_parser(__doc__, "bench-divide")
    p.add_argument("--quick", action="store_true", help="a quarter of the rounds")
    p.add_argument("--check", action="store_true")
    args = lib.script_folders(p.parse_args())
    rows, bad, result = [], [], {}
    for names in (("hotset", "gups"), ("gups", "hotset")):
        found = {row: run(args, names, row) for row in ("first touch", "apart", "together", "weight", "all on DRAM")}
        base = max(found["first touch"].values())
        for row, ms in found.items():
            longest = max(ms.values())
            rows.append([", ".join(names), row, *(f"{ms[n]:.0f}" for n in PROGRAMS), f"{longest / base:.2f}"])
            if row in ("together", "weight") and longest > NEVER_ABOVE * base:
                bad.append(f"{names[0]} first, {row}: {longest / base:.2f} of first touch")
        if max(found["together"].values()) > GAIN * max(found["apart"].values()):
            bad.append(f"{names[0]} first: together is no better than apart")
        result[", ".join(names)] = found
    print(lib.table(["started", "", *(n + ", ms" for n in PROGRAMS), "longest / first touch"], rows))
    os.makedirs(args.out, exist_ok=True)
    lib.write_json(os.path.join(args.out, "divide.json"), {"ms": result, "quick": args.quick})
    for line in bad:
        print(line)
    return 1 if args.check and bad else 0


if __name__ == "__main__":
    lib.main_guard(main)
