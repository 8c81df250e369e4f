#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much time the accesses and basic blocks of an instrumented program stand for.

    bench/workloads/calibrate.py [--build DIR] [--write | --check] [NAME ...]
    bench/workloads/calibrate.py --program PLAIN INSTRUMENTED [--function F] [ARGUMENT ...]

Call-outs count accesses and basic blocks, but a program's time follows its instructions, and
how many of these an access stands for differs (vector instructions, unrolling). callgrind
counts the instructions of the plain program exactly; the instrumented one runs twice, with
estimates that differ by a factor of two, so that the difference of its virtual times is the
estimate, whatever its misses cost. The quotient, in percent, is PMEMU_COMPUTE_PERCENT of
pmemu.h, or HYBRID_EMU_COMPUTE.

Of a workload the timed part counts, with one thread and the size of emulated.txt; --write
puts the figures there, --check has status 1 when one is off by more than --tolerance. With
--program any program: the whole of it, with all its libraries; or, to leave these and the
start out, one function and what it calls, which must not be inlined, and must do nearly all
that the instrumented program does."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TABLE = pathlib.Path(__file__).resolve().parent / "emulated.txt"
INSTRUCTION_PS = 200


def read_table():
    """name: (size, rounds, percent)"""
    rows = (line.split() for line in TABLE.read_text().splitlines() if line[:1] not in ("#", ""))
    return {name: (int(size), int(rounds), float(percent)) for name, size, rounds, percent in rows}


def write_table(found):
    lines = []
    for line in TABLE.read_text().splitlines():
        name = line.split()[0]
        if name in found:
            line = line[:line.rindex(" ") + 1] + f"{found[name]:.1f}"
        lines.append(line)
    TABLE.write_text("\n".join(lines) + "\n")


# libc's memset and memcpy would use one instruction that is counted once a byte.
PLAIN = dict(os.environ, GLIBC_TUNABLES="glibc.cpu.hwcaps=-ERMS,-FSRM")


def run(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def instructions(command, function):
    with tempfile.NamedTemporaryFile() as out:
        part = [f"--toggle-collect={function}"] if function else []
        run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *part,
             *command], PLAIN)
        count = int(re.search(r"^(?:summary|totals): (\d+)", pathlib.Path(out.name).read_text(),
                              re.M)[1])
    if not count:
        sys.exit(f"{command[0]}: function {function} is not called or not to be seen")
    return count


def virtual_ns(command, percent):
    """Of the timed part where the program tells it, else of the whole."""
    with tempfile.NamedTemporaryFile() as stats:
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("HYBRID_EMU")}
        env.update(HYBRID_EMU_COMPUTE=str(percent), HYBRID_EMU_STATS=stats.name,
                   HYBRID_EMU_SET=f"instruction_ps={INSTRUCTION_PS}")
        line = re.search(r"^time .* work_ns=(\d+)", run(command, env), re.M)
        if line:
            return int(line[1])
        report = pathlib.Path(stats.name).read_text()
    if not report:
        sys.exit(f"{command[0]}: no report: is it linked with libpmemu?")
    return 1e6 * json.loads(report)["virtual_ms"]


def percent_of(plain, instrumented, function):
    estimate = virtual_ns(instrumented, 200) - virtual_ns(instrumented, 100)
    return 100 * instructions(plain, function) * INSTRUCTION_PS * 1e-3 / estimate


def workload_percent(build, name, row):
    folder = build / "bench" / "workloads"
    options = ["--size", str(row[0]), "--rounds", str(min(row[1], 2))]
    return percent_of([str(folder / f"wl-{name}"), *options],
                      [str(folder / f"emu-{name}"), *options, "--time"], "run")


def workloads(args):
    table = read_table()
    names = args.names or list(table)
    unknown = [name for name in names if name not in table]
    if unknown:
        sys.exit(f"no workload {', '.join(unknown)}")
    found, wrong = {}, False
    print(f"{'workload':10}{'table':>8}{'now':>8}{'off by':>8}", flush=True)
    with ThreadPoolExecutor(2) as pool:
        rows = pool.map(lambda name: workload_percent(args.build, name, table[name]), names)
        for name, percent in zip(names, rows):
            off = table[name][2] / percent - 1
            found[name] = percent
            wrong |= abs(off) > args.tolerance / 100
            print(f"{name:10}{table[name][2]:8.1f}{percent:8.1f}{off:8.1%}", flush=True)
    if args.write:
        write_table(found)
    return 1 if args.check and wrong else 0


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--write", action="store_true", help="put the figures into emulated.txt")
    parser.add_argument("--check", action="store_true", help="status 1 when one is off")
    parser.add_argument("--tolerance", type=float, default=2, metavar="PERCENT")
    parser.add_argument("--program", nargs=2, metavar=("PLAIN", "INSTRUMENTED"))
    parser.add_argument("--function", help="of the plain program: count its calls only")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="workloads (all); with --program its arguments, after --")
    args = parser.parse_args()
    if not args.program:
        return workloads(args)
    plain, instrumented = ([program, *args.names] for program in args.program)
    print(f"{percent_of(plain, instrumented, args.function):.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
