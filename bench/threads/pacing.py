#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pacing: lu with its data on PM beside ocean with its data on DRAM, 8 threads each, 16 CPUs.

    bench/threads/pacing.py [--build DIR] [--out DIR] [--fresh] [--rounds LU,OCEAN]

On the emulated machine (preset optane), without libhybrid, with HYBRID_PACE=off, and with
HYBRID_PACE=auto; no profiles. Virtual times from the common start to the end of each program. Trials
cost 1 % of the run at most, so with few rounds (--rounds) nothing is found."""
import sys

sys.dont_write_bytecode = True
import groups  # noqa: E402: beside this file
from groups import SPLIT, Campaign, Even, Setup, Shared, lib, program  # noqa: E402


class Pace(Shared):
    def __init__(self, cpus, setup, pace):
        super().__init__(cpus, setup, False)
        self.cpus = {**self.cpus, "HYBRID_PACE": pace}
        self.name = self.label = f"HYBRID_PACE={pace}"


def main():
    p = lib.script_parser(__doc__, "bench-pacing")
    p.add_argument("--rounds", default="24,100", help="of lu and of ocean (24,100: ten minutes)")
    p.add_argument("--fresh", action="store_true", help="forget the runs made so far")
    args = lib.script_folders(p.parse_args())
    lu, ocean = map(int, args.rounds.split(","))
    setup = Setup(args.build, libhybrid=f"{args.build}/shim/libhybrid.so")
    progress = lib.Progress(3)
    campaign = Campaign(args, setup, progress)
    programs = (program("lu", "cpu", 6, lu, ""), program("ocean", "bandwidth", 8, ocean, ""))
    groups.sweep()
    rows = []
    for c in (Even(2 * SPLIT), Pace(2 * SPLIT, setup, "off"), Pace(2 * SPLIT, setup, "auto")):
        found = campaign.run(programs, "pd", c)
        rows.append([c.label, *(f"{ms:.1f}" for ms in found["each_ms"])])
    progress.end()
    print(lib.table(["", "lu on PM, ms", "ocean on DRAM, ms"], rows))
    return 0


if __name__ == "__main__":
    lib.main_guard(main)
