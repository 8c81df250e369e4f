#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Is a run with moves the same on a busy computer? (emulated machine)

    bench/pages/lockstep.py [--build DIR] [--check]

A program with a hot set, once alone and once beside four busy loops: its virtual time, how many
passes the pages' thread made, and how many pages it moved. --check, status 1 where they differ by
more than the luck of sampling, which decides on doubtful exchanges: 3 % of the time, a half of the
pages. (Threads that come late in virtual time: up to 8 % of the time, and five times as many pages.)
Passes are told and not judged: those that judge an exchange are short, and their number is luck."""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

import pages

NAME, DRAM, BUSY = "hotset", 2 * pages.MIB, 4
MOST = {"ms": 0.03, "moved": 0.5}  # of the larger


@contextlib.contextmanager
def busy(n):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for p in loops:
            p.kill()
            p.wait()


def run(bench, folder, loops):
    stats = pathlib.Path(folder) / f"stats.{loops}"
    pages.SETTINGS["HYBRID_STATS"] = str(stats)
    with busy(loops):
        r = bench.hybrid(NAME, DRAM, "lazy").record()
    m = json.loads(stats.read_text())["migration"]
    return {"ms": r["ms"], "passes": m["passes"], "moved": r["up"] + r["down"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    bench = pages.Bench(args.build, pages.Progress(2))
    with tempfile.TemporaryDirectory(prefix="hybrid-lockstep-") as folder:
        alone, beside = (run(bench, folder, n) for n in (0, BUSY))
    wrong = []
    for key in alone:
        print(f"{key:8}{alone[key]:10.2f} alone {beside[key]:10.2f} beside {BUSY} busy loops")
        if abs(alone[key] - beside[key]) > MOST.get(key, 1) * max(alone[key], beside[key]):
            wrong.append(f"{key} differ")
    for line in wrong:
        print(f"WRONG {line}")
    return 1 if args.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
