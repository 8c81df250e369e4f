#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program that divides DRAM with others (HYBRID_WEIGHT=1), beside one that lies about what DRAM brings it.

    bench/company/liar.py [--build DIR] [--check]

gups (8 MiB, all of it alike) on the emulated machine (preset optane), just preloaded. Rows: alone with 8 MiB of
DRAM, and with 4; beside bench/company/liar.c, which wants 64 GiB, and which wants 8 MiB of the 8. Whole program,
virtual time.
--check: 64 GiB cost at most 1.1 of the time alone, since it cannot be that much better off by each of them; 8 MiB
cost no more than an equal part: 1.3 of the time with 4 MiB, which differs by a tenth from run to run; a thousand
pages are moved as well."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent)]
import benchlib as lib  # noqa: E402: found by the path above

MIB = 1 << 20
ROWS = {"alone, 8 MiB": (8, 0), "alone, 4 MiB": (4, 0), "64 GiB wanted": (8, 64 << 30), "8 MiB wanted": (8, 8 * MIB)}
LIMITS = (("64 GiB wanted", "alone, 8 MiB", 1.1), ("8 MiB wanted", "alone, 4 MiB", 1.3))


def run(args, dram, wants):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        registry, stats, liar = folder + "/registry", folder + "/emu.json", None
        env = {"OMP_WAIT_POLICY": "passive", "HYBRID_EMU_PRESET": "optane", "HYBRID_EMU_MACHINE": folder + "/machine",
               "HYBRID_EMU_STATS": stats, "HYBRID_EMU_PLACE": "first-touch", "HYBRID_EMU_DRAM": f"{dram}M",
               "LD_PRELOAD": os.path.join(args.build, "shim/libhybrid.so"), "HYBRID_STRICT": "1",
               "HYBRID_PM": "emulated", "HYBRID_DRAM_SHARED": f"{dram}M", "HYBRID_START": "0",
               "HYBRID_REGISTRY": registry, "HYBRID_INTERVAL": "1ms", "HYBRID_CLASS_PERIOD": "1ms",
               "HYBRID_WEIGHT": "1"}
        try:
            if wants:
                liar = subprocess.Popen([os.path.join(args.build, "bench/company/liar"), registry, str(dram * MIB), str(wants)],
                                        stdout=subprocess.PIPE, text=True)
                if liar.stdout.readline() != "joined\n":
                    raise lib.BenchError("the liar could not join")
            subprocess.run([os.path.join(args.build, "bench/workloads/emu-gups"), "--threads", "8", "--size", "8",
                            "--rounds", "20"], env=lib.clean_env(env), stdout=subprocess.DEVNULL, check=True,
                           timeout=300)
        finally:
            if liar:
                liar.kill()
                liar.wait()
                liar.stdout.close()
        with open(stats, encoding="utf-8") as f:
            return json.load(f)["virtual_ms"]


def main():
    p = lib.script_parser(__doc__, "bench-liar")
    p.add_argument("--check", action="store_true")
    args = lib.script_folders(p.parse_args())
    ms = {row: run(args, *how) for row, how in ROWS.items()}
    print(lib.table(["", "ms"], [[row, f"{t:.1f}"] for row, t in ms.items()]))
    bad = [f"{row}: {ms[row] / ms[base]:.2f} of '{base}' (limit {most})" for row, base, most in LIMITS
           if ms[row] > most * ms[base]]
    for line in bad:
        print(line)
    return 1 if args.check and bad else 0


if __name__ == "__main__":
    lib.main_guard(main)
