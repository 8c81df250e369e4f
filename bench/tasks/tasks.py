#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The data of the next OpenMP task on DRAM (HYBRID_TASKS=on), on the emulated machine.

    bench/tasks/tasks.py [NAME ...] [--build DIR] [--machine NAME ...] [--ratio N ...]
                         [--threads N ...] [--recorded] [--model] [--clang] [--runs N]
                         [--json FILE] [--check]

For each machine, workload, ratio of data to DRAM and number of threads:
  first touch  no library: what is touched first gets DRAM until it is full (the kernel's way, the
               'unmanaged' of paper 003)
  pages        libhybrid, pages move by their histories, HYBRID_TASKS=off: placement that follows
               the program's phases, page by page (stands for Unimem)
  tasks        the same with HYBRID_TASKS=on
and with --recorded
  recorded     static placement of call sites by a profile of the same run, whose tasks and pages
               nobody watches: stands for X-Mem (003, Fig. 4 and 5)
  known        tasks, with a profile of the same run that has its types of tasks
With --clang the programs are those that clang built, in QEMU: libomp's tasks tell of their data in
another way than libgomp's. Virtual time of the timed part, the middle one of --runs. The mean is
geometric; the paper (Figs. 4 and 5) has -21 % at a quarter of the bandwidth and -26 % at four times
the latency, with its programs.

With --model the error of equation 4 instead, as in table III of the paper: the time with every
other page on PM, from the times on DRAM and on PM and the share of the lines that PM served.

--check, status 1 where tasks are more than 1 % slower than pages, or where staging did nothing for
tblocks16 and tblocks64 on pram. Needs: ninja tasks."""
import argparse
import itertools
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

MIB = 1 << 20
PATIENCE_S = 900
# MiB and rounds.
WORKLOADS = {"tblocks1": (16, 16), "tblocks16": (16, 4), "tblocks64": (16, 2), "theat": (16, 16),
             "tgups": (16, 4), "tlu": (16, 1), "tfft": (16, 3), "tcg": (16, 16),
             "tstrassen": (16, 4), "tloop": (16, 4)}
# 003, section IV: one property of PM worse than DRAM's. A core has 5.3 GB/s of DRAM there (eight
# on four channels); so for four threads 21 GB/s here, where the presets' 96 would never be full.
MACHINES = {"quarter": ("custom", "dram_read_mbs=21300,dram_write_mbs=21300,"
                        "pm_read_mbs=5325,pm_write_mbs=5325"),
            "eighth": ("custom", "dram_read_mbs=21300,dram_write_mbs=21300,"
                       "pm_read_mbs=2662,pm_write_mbs=2662"),
            "sixteenth": ("custom", "dram_read_mbs=21300,dram_write_mbs=21300,"
                          "pm_read_mbs=1331,pm_write_mbs=1331"),
            "latency": ("custom", "pm_read_ns=320,pm_write_ns=320"),
            "pram": ("pram", ""), "optane": ("optane", "")}
PAPER = {"quarter": -21, "latency": -26}
# As in bench/pages/pages.py: programs of 0.1 s stand for some of minutes.
SETTINGS = {"HYBRID_PM": "emulated", "HYBRID_START": "0", "HYBRID_REGISTRY": "none",
            "HYBRID_POLICY": "first-fit", "HYBRID_THREADS": "off", "HYBRID_INTERVAL": "1ms",
            "HYBRID_CLASS_PERIOD": "1ms", "HYBRID_MIGRATE_INTERVAL": "8ms",
            "HYBRID_MIGRATE_CORE": "100"}
MODES = ("first touch", "pages", "tasks")
RECORDED = ("recorded", "known")
SLOWER = 1.01
Case = namedtuple("Case", "machine name ratio threads clang")


class Failure(Exception):
    pass


def command_of(build, case, env):
    """Of a workload by clang the machine is QEMU, which does the preloading."""
    if not case.clang:
        return [build / f"bench/workloads/emu-{case.name}"]
    library = env.pop("LD_PRELOAD", None)
    preload = ["--preload", library] if library else []
    return [build / "emu/tool/hybrid-emu", "run", *preload, "--",
            build / f"bench/workloads/wl-{case.name}-clang"]


def once(build, case, changes):
    """Virtual ms of the timed part."""
    size, rounds = WORKLOADS[case.name]
    preset, machine = MACHINES[case.machine]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HYBRID_", "LD_", "OMP_"))}
    env |= {"HYBRID_EMU_PRESET": preset,
            "HYBRID_EMU_SET": ",".join(filter(None, ["llc_kb=256", machine]))} | changes
    command = command_of(build, case, env)
    command += ["--threads", case.threads, "--time", "--size", size, "--rounds", rounds]
    done = subprocess.run([str(c) for c in command], env=env, text=True, capture_output=True,
                          timeout=PATIENCE_S, check=False)
    line = re.search(r"^time clock=virtual .* work_ns=(\d+)", done.stdout, re.M)
    if done.returncode or not line or " ok\n" not in done.stdout:
        raise Failure(f"{case.name}: status {done.returncode}: {done.stdout}{done.stderr}")
    return int(line[1]) * 1e-6


def profiled(build, case, changes, folder):
    """The file that such a run records."""
    profile = pathlib.Path(folder, "recorded.ini")
    once(build, case, changes | {"HYBRID_RECORD": str(profile)})
    if not profile.exists():
        raise Failure(f"{case.name}: nothing was recorded")
    return {"HYBRID_PROFILE": str(profile)}


def run(build, case, mode, runs):
    dram = str(WORKLOADS[case.name][0] * MIB // case.ratio // 4096 * 4096)
    preload = SETTINGS | {"LD_PRELOAD": str(build / "shim/libhybrid.so"), "HYBRID_TASKS": "off"}
    with tempfile.TemporaryDirectory(prefix="hybrid-tasks-") as folder:
        if mode == "first touch":
            env = {"HYBRID_EMU_PLACE": "first-touch", "HYBRID_EMU_DRAM": dram}
        elif mode == "recorded":
            static = preload | {"HYBRID_MIGRATE": "off"}
            env = static | {"HYBRID_POLICY": "auto", "HYBRID_DRAM": dram}
            env |= profiled(build, case, static | {"HYBRID_POLICY": "dram"}, folder)
        else:
            env = preload | {"HYBRID_DRAM": dram,
                             "HYBRID_TASKS": "off" if mode == "pages" else "on"}
            if mode == "known":
                env |= profiled(build, case, env, folder)
        ms = statistics.median(once(build, case, env) for _ in range(runs))
    return case._asdict() | {"mode": mode, "ms": ms}


def change(new, old):
    return 100 * (new / old - 1)


def whole(build, case, place):
    """What the machine counted in the whole run without a library."""
    with tempfile.TemporaryDirectory(prefix="hybrid-tasks-") as folder:
        counts = pathlib.Path(folder, "counts")
        once(build, case, {"HYBRID_EMU_PLACE": place, "HYBRID_EMU_STATS": str(counts)})
        return json.loads(counts.read_text(encoding="utf-8"))


def predicted(build, case):
    """The error of equation 4 where every other page is on PM."""
    dram, pm, half = (whole(build, case, place) for place in ("dram", "pm", "interleave"))
    on = [half[f"llc_reads_{m}"] + half[f"writebacks_{m}"] for m in ("dram", "pm")]
    mixed = dram["virtual_ms"] + (pm["virtual_ms"] - dram["virtual_ms"]) * on[1] / sum(on)
    return case._asdict() | {"half": change(mixed, half["virtual_ms"])}


def predictions(found, machine):
    mine = [f for f in found if f["machine"] == machine]
    mean_error = statistics.fmean(abs(f["half"]) for f in mine)
    return ([f"{machine}: error of equation 4, every other page on PM"] +
            [f"  {f['name']:10} {f['half']:+8.1f} %" for f in mine] + [f"  mean {mean_error:14.1f} %"])


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(found, machine):
    """Lines for one machine, and what does not hold."""
    times = {}
    for f in found:
        if f["machine"] == machine:
            times.setdefault((f["name"], f["ratio"], f["threads"]), {})[f["mode"]] = f["ms"]
    modes = list(next(iter(times.values())))
    others = [m for m in modes if m != "tasks"]
    lines = [f"{machine}: {' '.join(MACHINES[machine]).strip()}",
             f"  {'':10} {'data:DRAM':>9} {'threads':>7}" + "".join(f"{m:>12}" for m in modes) +
             "   ms; tasks over " + ", ".join(others)]
    wrong = []
    for (name, ratio, threads), ms in times.items():
        lines.append(f"  {name:10} {ratio:>7}:1 {threads:>7}" +
                     "".join(f"{ms[m]:12.1f}" for m in modes) + "  " +
                     "".join(f" {change(ms['tasks'], ms[m]):+6.1f} %" for m in others))
        what = f"{machine}, {name}, {ratio}:1, {threads} threads"
        if ms["tasks"] > SLOWER * ms["pages"]:
            wrong.append(f"{what}: {change(ms['tasks'], ms['pages']):.1f} % over pages")
        if (machine == "pram" and name in ("tblocks16", "tblocks64") and
                ms["tasks"] > 0.9 * ms["pages"]):
            wrong.append(f"{what}: staging brought nothing")
    paper = f" (paper: {PAPER[machine]} %)" if machine in PAPER else ""
    for m in others:
        over = change(mean([ms["tasks"] / ms[m] for ms in times.values()]), 1)
        lines.append(f"  mean: tasks over {m} {over:+.1f} %{paper if m == 'first touch' else ''}")
    return lines, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--machine", nargs="+", choices=MACHINES, default=["quarter", "latency"])
    parser.add_argument("--ratio", nargs="+", type=int, default=[5, 10, 15])
    parser.add_argument("--threads", nargs="+", type=int, default=[4])
    parser.add_argument("--recorded", action="store_true", help="opponents with a profile, too")
    parser.add_argument("--model", action="store_true", help="the error of equation 4")
    parser.add_argument("--clang", action="store_true", help="built by clang, in QEMU (ninja all)")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(WORKLOADS))
    args = parser.parse_args()
    names = args.names or list(WORKLOADS)
    if not set(names) <= set(WORKLOADS):
        parser.error(f"NAME is one of {', '.join(WORKLOADS)}")
    build = args.build.resolve()
    cases = itertools.starmap(Case, itertools.product(args.machine, names, args.ratio, args.threads,
                                                      [args.clang]))
    if args.model:
        todo, job = list(cases), lambda case: predicted(build, case)
    else:
        todo = list(itertools.product(cases, MODES + RECORDED if args.recorded else MODES))
        job = lambda t: run(build, *t, args.runs)
    with ThreadPoolExecutor(2) as pool:
        try:
            found = list(pool.map(job, todo))
        except Failure as e:
            sys.exit(f"tasks.py: {e}")
    wrong = []
    for machine in args.machine:
        lines, more = (predictions(found, machine), []) if args.model else table(found, machine)
        print("\n".join(lines))
        wrong += more
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    for line in wrong:
        print("does not hold:", line)
    return args.check and bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
