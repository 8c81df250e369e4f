#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The twelve shapes of mimalloc-bench under glibc, libhybrid's two heaps, mimalloc and tcmalloc:
instructions (callgrind) and CPU time, each as a ratio to glibc's.

Instructions do not depend on the load of the machine, and leave out the kernel and what threads
wait for each other's cache lines. CPU time is paired within a round, as in alloc_bench.py."""
import argparse
import os
from concurrent.futures import ThreadPoolExecutor

import benchlib as lib

CONFIGS = ("glibc", "mimalloc", "tcmalloc", "dram", "pm")
PEERS = ("mimalloc", "tcmalloc")
OURS = ("dram", "pm")
# shape: program, operations per thread. The last figure of the name is the number of threads.
SHAPES = {"cfrac 1": ("cfrac", 6000000), "espresso 1": ("espresso", 4000000), "barnes 1": ("barnes", 80000),
          "larson 1": ("server", 2000000), "larson 2": ("server", 2000000),
          "mstress 1": ("mstress", 3000000), "mstress 2": ("mstress", 3000000),
          "xmalloc-test 2": ("xmalloc", 4000000),
          "sh6bench 1": ("sh6bench", 6000000), "sh6bench 2": ("sh6bench", 6000000),
          "sh8bench 1": ("sh8bench", 6000000), "sh8bench 2": ("sh8bench", 6000000),
          "alloc-test 1": ("alloc-test", 4000000), "alloc-test 2": ("alloc-test", 4000000),
          "glibc-simple 1": ("glibc-simple", 12000000), "glibc-thread 2": ("glibc-thread", 3000000),
          "cache-scratch 1": ("cache-scratch", 60000), "cache-scratch 2": ("cache-scratch", 60000)}
# Of the operations under callgrind, which is fifty times slower: the difference of two counts, so
# that the start cancels.
COUNTED = (0.004, 0.02)
BEYOND_PEER = 1.05    # geometric mean over that of the better peer
WORST = 1.0           # of glibc, no shape above
NOISE = 0.02          # of the CPU time of a shape that hardly allocates


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    lib.add_common_arguments(parser)
    parser.add_argument("--part", choices=("all", "instructions", "cpu"), default="all")
    parser.add_argument("--rounds", type=int, help="of the CPU time (default 7; with --quick 3)")
    parser.add_argument("--only", help="only these programs, comma separated")
    parser.add_argument("--jobs", type=int, default=2, help="runs of callgrind at a time (default %(default)s)")
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 7)
    args.scale = 0.25 if args.quick else 1.0
    only = args.only.split(",") if args.only else None
    args.shapes = [s for s in SHAPES if not only or SHAPES[s][0] in only]
    if not args.shapes:
        parser.error(f"no such program; known: {', '.join(sorted({p for p, _ in SHAPES.values()}))}")
    return args


def command(args, shape, part):
    name, ops = SHAPES[shape]
    return [lib.program(args, name), shape.split()[-1], str(int(ops * part)), "1"]


def count_instructions(args, configs):
    """{shape: {config: instructions}}"""
    runs = [(s, c) for s in args.shapes for c in configs]
    progress = lib.Progress(len(runs))

    def one(item):
        shape, config = item
        few, many = (lib.callgrind(command(args, shape, part), config.env()) for part in COUNTED)
        progress.step(f"{shape}, {config.name}")
        return shape, config.name, many - few

    table = {}
    with ThreadPoolExecutor(args.jobs) as pool:
        for shape, name, count in pool.map(one, runs):
            table.setdefault(shape, {})[name] = count
    progress.end()
    return {s: {n: v / row["glibc"] for n, v in row.items()} for s, row in table.items()}


def one_group(args, shape, order):
    """All configurations of a shape, one after another: {config: CPU seconds}"""
    took, said = {}, {}
    for config in order:
        result = lib.run(command(args, shape, args.scale), config.env())
        if not result.ok:
            raise lib.BenchError(f"{shape} under {config.name}: {result.problem()}")
        took[config.name], said[config.name] = result.cpu, result.out
    if len(set(said.values())) > 1:
        raise lib.BenchError(f"{shape}: results differ: {said}")
    return took


def measure_cpu(args, configs):
    """{shape: {config: median of the ratios within the rounds}}"""
    ratios = {s: {c.name: [] for c in configs} for s in args.shapes}
    progress = lib.Progress(args.rounds * len(args.shapes))
    for number in range(args.rounds):
        for shape in lib.shuffled(args.shapes, number):
            took = one_group(args, shape, lib.shuffled(configs, number, shape))
            for name, cpu in took.items():
                ratios[shape][name].append(cpu / took["glibc"])
            progress.step(f"round {number + 1}: {shape}")
    progress.end()
    return {s: {n: lib.quantile(v, 0.5) for n, v in row.items()} for s, row in ratios.items()}


def means(table):
    names = next(iter(table.values()))
    return {n: lib.geomean(row[n] for row in table.values()) for n in names}


def show(what, table):
    names = list(next(iter(table.values())))
    rows = [[shape] + [f"{row[n]:.3f}" for n in names] for shape, row in table.items()]
    print(f"{what}, glibc = 1")
    print(lib.table(["", *names], rows + [["geometric mean"] + [f"{means(table)[n]:.3f}" for n in names]]) + "\n")


def judge(what, table, allowance):
    failures, mean = [], means(table)
    peers = [mean[p] for p in PEERS if p in mean]
    for name in OURS:
        if name not in mean or not peers:
            failures.append(f"{what}: {name} or its peers were not measured")
            continue
        if mean[name] > BEYOND_PEER * min(peers):
            failures.append(f"{what}: {name}: geometric mean {mean[name]:.3f}, "
                            f"limit {BEYOND_PEER} of the better peer's {min(peers):.3f}")
        for shape, row in table.items():
            if row[name] > WORST + allowance:
                failures.append(f"{what}: {name}: {shape} takes {row[name]:.2f} of glibc, limit {WORST}")
    return failures


def check(args, result):
    failures = []
    for what, allowance in (("instructions", 0), ("cpu", NOISE)):
        if args.part not in ("all", what):
            continue
        failures += judge(what, result[what], allowance) if result.get(what) else [f"{what}: not measured"]
    if len(args.shapes) < len(SHAPES):
        failures.append("only a part of the shapes was run (--only)")
    return failures


def main():
    args = parse_arguments()
    folder = lib.out_folder(args)
    result = {"machine": lib.machine()}
    with lib.scratch_folder() as scratch:
        known = lib.all_configs(args, scratch)
        configs = lib.choose_configs(args, known, CONFIGS)
        if configs[0].name != "glibc":
            configs.insert(0, known["glibc"])
        for what, measure in (("instructions", count_instructions), ("cpu", measure_cpu)):
            if args.part in ("all", what):
                result[what] = measure(args, configs)
                show(what, result[what])
    lib.write_json(os.path.join(folder, "shapes.json"), result)
    return lib.verdict(check(args, result)) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
