#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How fast pages move, on each backend, beside a copy of as many bytes by one thread.

    bench/pages/moverate.py [--build DIR] [--size MIB] [--times N] [--folder DIR]
                            [--quick] [--check] [--json FILE] [WAY ...]

  numa      move_pages between nodes 0 and 1 of this computer; left out where there is one
  emulated  the emulated machine's moves, in its time: the same on every computer
  file      pages in use do not move; memory that is freed goes back to the file system of
            --folder (/dev/shm), and comes again: reserved and touched

A row for each batch of pages in one call: pages a second, MB/s and the share of the copy's rate.
--check, status 1 where a limit does not hold, in batches of 64 and more. On the emulated machine:
half of the copy's rate both ways. Of the others, whose figures vary with the computer and its
load: a twentieth (numa; the paper has 3 us a page), a hundredth (file). Needs: ninja
bench/pages/bench-moverate bench/pages/emu-moverate."""
import argparse
import json
import os
import subprocess
import sys

PROGRAMS = {"numa": "bench-moverate", "emulated": "emu-moverate", "file": "bench-moverate"}
LIMITS = {"numa": 0.05, "emulated": 0.5, "file": 0.01}
LABELS = {"numa": ("to PM", "to DRAM"), "emulated": ("to PM", "to DRAM"),
          "file": ("given back", "again")}
LARGE = 64
PAGE = 4096
TIMEOUT_S = 600


class Failure(Exception):
    """A program that did not do what every figure rests on."""


def measure(build, way, size, times, folder):
    """Rows of one way, or the reason why it cannot be had here."""
    program = os.path.join(build, "bench", "pages", PROGRAMS[way])
    if not os.access(program, os.X_OK):
        raise Failure(f"{program} is missing: ninja -C {build} bench/pages/{PROGRAMS[way]}")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HYBRID_", "LD_"))}
    done = subprocess.run([program, way, str(size), str(times), folder], env=env, text=True,
                          capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode == 77:
        return done.stderr.strip().removeprefix("moverate: ")
    if done.returncode:
        raise Failure(f"{way}: status {done.returncode}: {done.stderr.strip()}")
    rows = []
    for line in done.stdout.splitlines():
        r = json.loads(line)
        rows.append({"batch": r["batch"], "pages": r["pages"]} | {
            direction: {"pages_s": r["pages"] / r[f"{direction}_ns"] * 1e9,
                        "mb_s": r["pages"] * PAGE / r[f"{direction}_ns"] * 1e3,
                        "share": r[f"copy_{direction}_ns"] / r[f"{direction}_ns"]}
            for direction in ("down", "up")})
    return rows


def show(way, rows):
    """One table."""
    first, second = LABELS[way]
    print(f"{way:<9}{'batch':>6}{first + ', pages/s':>24}{'MB/s':>8}{'of copy':>9}"
          f"{second + ', pages/s':>24}{'MB/s':>8}{'of copy':>9}")
    for r in rows:
        print(f"{'':9}{r['batch']:>6}" + "".join(
            f"{r[d]['pages_s']:>24.0f}{r[d]['mb_s']:>8.0f}{r[d]['share']:>9.1%}"
            for d in ("down", "up")))


def check(way, rows):
    """Limits that do not hold."""
    bad = []
    for r in rows:
        for direction, label in zip(("down", "up"), LABELS[way]):
            if r["batch"] >= LARGE and r[direction]["share"] < LIMITS[way]:
                bad.append(f"{way}, {label}, batches of {r['batch']}: "
                           f"{r[direction]['share']:.1%} of the copy, at least "
                           f"{LIMITS[way]:.0%} wanted")
    return bad


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--size", type=int, metavar="MIB", help="memory that moves (default: 64)")
    parser.add_argument("--times", type=int, metavar="N", help="the best of so many (default: 5)")
    parser.add_argument("--folder", default="/dev/shm", help="for file (default: /dev/shm)")
    parser.add_argument("--quick", action="store_true", help="4 MiB, twice")
    parser.add_argument("--check", action="store_true", help="status 1 where a limit does not hold")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    parser.add_argument("way", nargs="*", metavar="WAY", help=", ".join(PROGRAMS))
    args = parser.parse_args()
    for way in args.way:
        if way not in PROGRAMS:
            parser.error(f"unknown way '{way}'; known: {', '.join(PROGRAMS)}")
    for name, quick, full in (("size", 4, 64), ("times", 2, 5)):
        if getattr(args, name) is None:
            setattr(args, name, quick if args.quick else full)
        elif getattr(args, name) < 1:
            parser.error(f"--{name}: at least 1")
    return args


def main():
    args = parse()
    results, bad = {}, []
    for way in args.way or PROGRAMS:
        rows = measure(args.build, way, args.size, args.times, args.folder)
        if isinstance(rows, str):
            print(f"{way:<9}left out: {rows}")
            results[way] = {"left_out": rows}
            continue
        show(way, rows)
        results[way] = rows
        bad += check(way, rows)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
            f.write("\n")
    if args.check:
        for line in bad:
            print("NOT MET: " + line)
        return 1 if bad else 0
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"moverate.py: {error}")
