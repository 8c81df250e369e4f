#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What libhybrid adds to pthread_create.

    bench/threads/cost.py [--build DIR] [--quick] [--check] [--out DIR]

100,000 threads, made and joined one after the other, without the library and with it: user-mode
instructions for each (callgrind, the difference of two runs, so without the program's start), and
CPU time of whole runs, in turns, as the median of the ratios of neighbours, the program's start
included. --check: status 1 where a limit does not hold: time (TIME_LIMIT; a quick run, in which the
start weighs more: QUICK_LIMIT) and instructions added to a thread (INSTRUCTIONS), which repeat
exactly. Nearly all of a thread's time is the kernel's: the ratio of instructions means little."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import benchlib as lib  # noqa: E402: found by the path above

TIME_LIMIT = 1.05   # issue 'threads': thread creation at most 5 % slower
QUICK_LIMIT = 1.15
INSTRUCTIONS = 650  # about 0.2 us, 2 % of a thread
BASE = {"HYBRID_PM": "emulated", "HYBRID_START": "0", "HYBRID_REGISTRY": "none"}
CONFIGS = (
    ("passive", "nothing to do (HYBRID_PM=none)", {"HYBRID_PM": "none"}, True),
    ("no cap", "placing memory, no cap", {**BASE, "HYBRID_POLICY": "dram"}, True),
    ("search", "PM, a search is possible", {**BASE, "HYBRID_POLICY": "pm"}, True),
    ("capped", "capped to one CPU", {**BASE, "HYBRID_POLICY": "pm", "HYBRID_THREADS": "1"}, False),
)


def arguments():
    p = lib.script_parser(__doc__, "bench-threads")
    p.add_argument("--quick", action="store_true",
                   help="10,000 threads, fewer runs: below a minute")
    p.add_argument("--check", action="store_true", help="status 1 where a limit does not hold")
    return lib.script_folders(p.parse_args())


def main():
    args = arguments()
    program = os.path.join(args.build, "bench", "threads", "bench-create")
    library = os.path.join(args.build, "shim", "libhybrid.so")
    for path in (program, library):
        if not os.path.exists(path):
            raise lib.BenchError(f"{path} is missing: build first (ninja -C {args.build})")
    count, repeats = (10000, 5) if args.quick else (100000, 9)
    progress = lib.Progress((len(CONFIGS) + 1) * 2 + repeats * (len(CONFIGS) + 1))
    plain = lib.clean_env()
    env = {name: lib.clean_env({**extra, "LD_PRELOAD": library}) for name, _, extra, _ in CONFIGS}

    def instructions(name, e):
        few, many = (lib.callgrind([program, str(n)], e) for n in (500, 1500))
        for _ in range(2):
            progress.step(name)
        return (many - few) / 1000

    ins = {"plain": instructions("plain", plain), **{n: instructions(n, e) for n, e in env.items()}}
    ratios, times = {n: [] for n in env}, {n: [] for n in ("plain", *env)}
    for _ in range(repeats):
        for name, e in (("plain", plain), *env.items()):
            done = lib.run([program, str(count)], e)
            if not done.ok or done.err.strip():
                raise lib.BenchError(f"{name}: {done.problem()}")
            times[name].append(done.cpu)
            if name != "plain":
                ratios[name].append(done.cpu / times["plain"][-1])
            progress.step(name)
    progress.end()
    us = {name: lib.quantile(v, .5) / count * 1e6 for name, v in times.items()}
    rows, found, wrong = [["plain", f"{ins['plain']:.0f}", "", f"{us['plain']:.2f}", ""]], {}, []
    for name, label, _, checked in CONFIGS:
        r = {"instructions": ins[name], "instruction_ratio": ins[name] / ins["plain"],
             "cpu_us": us[name], "cpu_ratio": lib.quantile(ratios[name], .5)}
        found[name] = r
        rows.append([label, f"{r['instructions']:.0f}", f"{r['instruction_ratio']:.3f}",
                     f"{r['cpu_us']:.2f}", f"{r['cpu_ratio']:.3f}"])
        added, most = ins[name] - ins["plain"], QUICK_LIMIT if args.quick else TIME_LIMIT
        if added > INSTRUCTIONS:
            wrong.append(f"{label}: {added:.0f} instructions more for each thread "
                         f"(limit {INSTRUCTIONS})")
        if checked and r["cpu_ratio"] > most:
            wrong.append(f"{label}: {r['cpu_ratio']:.3f} times the CPU time (limit {most})")
    print(f"{count} threads, for each: user-mode instructions, CPU us")
    print(lib.table(["", "instructions", "ratio", "CPU us", "ratio"], rows))
    lib.write_json(os.path.join(lib.out_folder(args), "cost.json"),
                   {"machine": lib.machine(), "threads": count, "plain": ins["plain"],
                    "configs": found})
    return lib.verdict(wrong) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
