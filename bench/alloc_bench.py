#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Six allocation benchmarks under every allocator: CPU time as a ratio to glibc's.

Within a round the benchmarks come in random order, and for each the configurations
run one after another in random order, so that what else the machine does hits all of
them alike. The ratio is taken inside the round; told are median and quartiles."""
import argparse
import os
import sys

import benchlib as lib

CONFIGS = ("glibc", "jemalloc", "mimalloc", "tcmalloc", "memtier1", "memtier2",
           "passive", "dram", "pm", "file", "next")
# name: operations per thread; a run takes a few tenths of a second under glibc.
BENCHMARKS = {"sizes": 4000000, "big": 4000, "tiny": 6000000, "server": 4000000,
              "prodcons": 3000000, "pairs": 20000000}
THREADS = (1, 2)
DRAM_GEOMEAN = 0.40
PM_GEOMEAN = 0.45
HEAP_WORST = 0.80     # no benchmark above, on either heap
PASSIVE_GEOMEAN = 1.04


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    lib.add_common_arguments(parser, journal=True)
    parser.add_argument("--rounds", type=int, help="rounds (default 7; with --quick 3)")
    parser.add_argument("--scale", type=float, help="times the usual operations (default 1; with --quick 0.3)")
    parser.add_argument("--only", help="only these benchmarks, comma separated")
    parser.add_argument("--seed", type=int, default=1, help="of the benchmarks and of the order")
    args = parser.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 7)
    args.scale = args.scale or (0.3 if args.quick else 1.0)
    args.benchmarks = list(BENCHMARKS)
    if args.only:
        args.benchmarks = [b.strip() for b in args.only.split(",")]
        for name in args.benchmarks:
            if name not in BENCHMARKS:
                parser.error(f"unknown benchmark '{name}'; known: {', '.join(BENCHMARKS)}")
    return args


def measure(args, configs, journal):
    """Fill the journal: one record per round, benchmark, thread count, configuration.
    A cell (all configurations of one benchmark in one round) that was interrupted is
    run again as a whole: its ratios must come from runs close in time."""
    cells = [(r, b, t) for r in range(args.rounds)
             for b, t in lib.shuffled([(b, t) for b in args.benchmarks for t in THREADS], args.seed, r)]
    names = {c.name for c in configs}
    have = {}
    for record in journal.records:
        have.setdefault((record["round"], record["bench"], record["threads"]), set()).add(record["config"])
    todo = [cell for cell in cells if not names <= have.get(cell, set())]
    if len(todo) < len(cells):
        print(f"resuming: {len(cells) - len(todo)} of {len(cells)} cells are done", file=sys.stderr)
    progress = lib.Progress(len(todo) * len(configs))
    for cell in todo:
        number, bench, threads = cell
        ops = max(1, int(BENCHMARKS[bench] * args.scale))
        argv = [lib.program(args, bench), str(threads), str(ops), str(args.seed)]
        for config in lib.shuffled(configs, args.seed, cell):
            result = lib.run(argv, config.env())
            journal.add(round=number, bench=bench, threads=threads, config=config.name,
                        cpu=result.cpu, wall=result.wall, out=result.out.strip(),
                        problem=None if result.ok else result.problem())
            progress.step(f"round {number + 1}: {bench}, {threads} thread(s), {config.name}")
    progress.end()


def evaluate(args, configs, records):
    """{config: {"cells": {"sizes/1": {...}}, "geomean": x, "worst": ...}}"""
    latest = {(r["round"], r["bench"], r["threads"], r["config"]): r for r in records}
    result = {}
    for config in configs:
        cells, problems = {}, []
        for bench in args.benchmarks:
            for threads in THREADS:
                ratios, cpus = [], []
                for number in range(args.rounds):
                    mine = latest.get((number, bench, threads, config.name))
                    base = latest.get((number, bench, threads, "glibc"))
                    if not mine or not base or base["problem"]:
                        continue
                    problem = mine["problem"]
                    if not problem and mine["out"] != base["out"]:
                        problem = f"other result than glibc: {mine['out']}"
                    if problem:
                        problems.append(f"{bench}/{threads}: {problem}")
                    else:
                        ratios.append(mine["cpu"] / base["cpu"])
                        cpus.append(mine["cpu"])
                cells[f"{bench}/{threads}"] = dict(lib.summary(ratios), cpu=lib.quantile(cpus, 0.5)) if ratios else None
        measured = {k: v for k, v in cells.items() if v}
        result[config.name] = {
            "label": config.label, "cells": cells, "problems": sorted(set(problems)),
            "geomean": lib.geomean(v["median"] for v in measured.values()),
            "geomean_threads": {str(t): lib.geomean(v["median"] for k, v in measured.items()
                                                    if k.endswith(f"/{t}")) for t in THREADS},
            "worst": max(measured, key=lambda k: measured[k]["median"]) if measured else None}
    return result


def show(args, result):
    head = ["CPU time / glibc"] + [f"{b}/{t}" for b in args.benchmarks for t in THREADS] + ["geomean"]
    rows = []
    for entry in result.values():
        row = [entry["label"]]
        for cell in entry["cells"].values():
            row.append("failed" if cell is None else f"{cell['median']:.2f}")
        rows.append(row + [f"{entry['geomean']:.3f}"])
    print(lib.table(head, rows))
    print("\nquartiles (lower-upper)")
    rows = [[e["label"]] + ["failed" if c is None else f"{c['q1']:.2f}-{c['q3']:.2f}" for c in e["cells"].values()]
            for n, e in result.items() if n != "glibc"]
    print(lib.table(head[:-1], rows))
    for name, entry in result.items():
        for problem in entry["problems"]:
            print(f"{name}: {problem}")


def check(args, result):
    failures = []
    for name, limit in (("dram", DRAM_GEOMEAN), ("pm", PM_GEOMEAN), ("passive", PASSIVE_GEOMEAN)):
        entry = result.get(name)
        if entry is None:
            failures.append(f"{name}: not measured")
            continue
        failures += [f"{entry['label']}: {p}" for p in entry["problems"]]
        if any(cell is None for cell in entry["cells"].values()):
            failures.append(f"{entry['label']}: a benchmark has no figure")
        if not entry["geomean"] <= limit:
            failures.append(f"{entry['label']}: geometric mean {entry['geomean']:.3f} of glibc, limit {limit}")
        if name == "passive":
            continue
        for cell, value in entry["cells"].items():
            if value and value["median"] > HEAP_WORST:
                failures.append(f"{entry['label']}: {cell} takes {value['median']:.2f} of glibc "
                                f"(quartiles {value['q1']:.2f}-{value['q3']:.2f}), limit {HEAP_WORST}")
    if set(args.benchmarks) != set(BENCHMARKS):
        failures.append("only a part of the benchmarks was run (--only)")
    return failures


COLOURS = {"jemalloc": "#c9c9c9", "mimalloc": "#9a9a9a", "tcmalloc": "#6b6b6b", "memtier1": "#f2b391",
           "memtier2": "#d9734e", "passive": "#d5e8a0", "dram": "#1f6fb4", "pm": "#0b3c6f",
           "file": "#49a3a0", "next": "#8fbbe0"}


def draw(args, result, path):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        print(f"no picture: {error} (package python3-matplotlib)", file=sys.stderr)
        return
    shown = [n for n in result if n != "glibc" and any(result[n]["cells"].values())]
    if not shown:
        return
    figure, panels = pyplot.subplots(len(THREADS), 1, figsize=(15, 9.5), sharey=True)
    width = 0.86 / len(shown)
    for panel, threads in zip(panels, THREADS):
        groups = args.benchmarks + ["geometric mean"]
        for i, name in enumerate(shown):
            entry = result[name]
            cells = [entry["cells"][f"{b}/{threads}"] for b in args.benchmarks]
            mean = entry["geomean_threads"][str(threads)]
            heights = [c["median"] if c else 0 for c in cells] + [mean]
            below = [c["median"] - c["q1"] if c else 0 for c in cells] + [0]
            above = [c["q3"] - c["median"] if c else 0 for c in cells] + [0]
            at = [g + (i - (len(shown) - 1) / 2) * width for g in range(len(groups))]
            panel.bar(at, heights, width * 0.94, color=COLOURS.get(name, "#888888"), label=entry["label"],
                      yerr=[below, above], error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
            for x, y, more in zip(at, heights, above):
                text = f"{y:.2f}" if y else "failed"
                panel.annotate(text, (x, y + more if y else 0.06), rotation=90, ha="center", va="bottom",
                               fontsize=7, xytext=(0, 3), textcoords="offset points")
        panel.axhline(1.0, color="black", linewidth=1)
        panel.axvline(len(groups) - 1.5, color="#bbbbbb", linewidth=0.8)
        panel.set_yscale("log")
        panel.set_ylim(0.05, 12)
        panel.set_yticks([0.1, 0.25, 0.5, 1, 2, 4, 8], ["0.1", "0.25", "0.5", "glibc = 1", "2", "4", "8"])
        panel.minorticks_off()
        panel.grid(axis="y", color="#e5e5e5", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.set_xticks(range(len(groups)), groups)
        panel.set_xlim(-0.5, len(groups) - 0.5)
        panel.set_title(f"{threads} thread" + ("s" if threads > 1 else ""), loc="left", fontsize=11)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    panels[0].legend(ncol=5, loc="lower left", bbox_to_anchor=(0.08, 1.0), fontsize=9, frameon=False)
    figure.supylabel("CPU time as a ratio to glibc (log scale, smaller is better)", fontsize=10)
    figure.text(0.01, 0.005, f"medians and quartiles of paired ratios, {args.rounds} rounds; "
                f"{lib.machine()['cpu']}, {os.cpu_count()} CPUs", fontsize=8, color="#555555")
    figure.tight_layout(rect=(0.01, 0.02, 1, 1))
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def main():
    args = parse_arguments()
    folder = lib.out_folder(args)
    with lib.scratch_folder() as scratch:
        known = lib.all_configs(args, scratch)
        configs = lib.choose_configs(args, known, CONFIGS)
        if configs[0].name != "glibc":
            configs.insert(0, known["glibc"])
        campaign = lib.fingerprint(args.scale, args.seed, *[lib.program(args, b) for b in args.benchmarks],
                                   *[(c.name, {k: v.replace(scratch, "@") for k, v in c.vars.items()})
                                     for c in configs],
                                   *[c.library for c in configs if c.library])
        journal = lib.Journal(os.path.join(folder, "alloc_bench.jsonl"), campaign, args.fresh)
        measure(args, configs, journal)
    result = evaluate(args, configs, journal.records)
    show(args, result)
    lib.write_json(os.path.join(folder, "alloc_bench.json"),
                   {"machine": lib.machine(), "rounds": args.rounds, "scale": args.scale, "configs": result})
    draw(args, result, os.path.join(folder, "alloc_bench.png"))
    return lib.verdict(check(args, result)) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
