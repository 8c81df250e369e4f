#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a preload adds to the start of a program that does nothing (`true`): CPU and wall
time and page faults as medians of paired differences over interleaved runs, and
instructions. A page fault costs more than 10,000 instructions. With --check the page
faults are at most those of mimalloc."""
import argparse
import os
import shutil

import benchlib as lib

LIMIT_MS = 0.10
LIMIT_INSTRUCTIONS = 60000
CHECKED = ("passive", "auto", "dram", "pm")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    lib.add_common_arguments(parser)
    parser.add_argument("--rounds", type=int, help="interleaved runs (default 200; with --quick 60)")
    parser.add_argument("--no-valgrind", action="store_true", help="leave the instruction counts out")
    args = parser.parse_args()
    args.rounds = args.rounds or (60 if args.quick else 200)
    return args


def settings(args, scratch):
    """Passive and steering with the default START, which touches no registry, so that none is
    named; at once (START=0) and the peers are for information."""
    known = lib.all_configs(args, scratch)
    hybrid = known["passive"]
    registry = {"HYBRID_REGISTRY": hybrid.vars["HYBRID_REGISTRY"]}

    def make(name, label, env):
        return lib.Config(name, label, hybrid.library, env, True, hybrid.missing)

    emulated = {"HYBRID_PM": "emulated"}
    chosen = [known["glibc"], known["passive"],
              make("auto", "hybrid, policy auto", {**emulated, "HYBRID_POLICY": "auto"}),
              make("dram", "hybrid, policy dram", {**emulated, "HYBRID_POLICY": "dram"}),
              make("pm", "hybrid, policy pm", {**emulated, "HYBRID_POLICY": "pm"}),
              make("pm-at-once", "hybrid, policy pm, START=0",
                   {**registry, **emulated, "HYBRID_POLICY": "pm", "HYBRID_START": "0"}),
              known["jemalloc"], known["mimalloc"], known["memtier1"]]
    return {c.name: c for c in chosen}


def measure(args, configs, argv):
    """{config: {"cpu": [ms], "wall": [ms], "faults": [n]}}, index = round."""
    samples = {c.name: {"cpu": [], "wall": [], "faults": []} for c in configs}
    progress = lib.Progress(args.rounds)
    for number in range(args.rounds):
        for config in lib.shuffled(configs, "startup", number):
            result = lib.run(argv, config.env())
            if not result.ok:
                raise lib.BenchError(f"{config.name}: {argv[0]}: {result.problem()}")
            samples[config.name]["cpu"].append(result.cpu * 1000)
            samples[config.name]["wall"].append(result.wall * 1000)
            samples[config.name]["faults"].append(result.faults)
        progress.step("start of true")
    progress.end()
    return samples


def evaluate(configs, samples, argv, with_valgrind):
    result = {}
    base = samples["glibc"]
    instructions = {}
    if with_valgrind:
        if shutil.which("valgrind"):
            instructions = {c.name: lib.callgrind(argv, c.env()) for c in configs}
        else:
            print("no instruction counts: valgrind is not installed")
    for config in configs:
        mine = samples[config.name]
        entry = {"label": config.label, "cpu_ms": lib.summary(mine["cpu"])}
        for kind in ("cpu", "wall"):
            entry[kind + "_added_ms"] = lib.summary([m - b for m, b in zip(mine[kind], base[kind])])
        entry["faults_added"] = lib.summary([m - b for m, b in zip(mine["faults"], base["faults"])])["median"]
        if instructions:
            entry["instructions"] = instructions[config.name]
            entry["instructions_added"] = instructions[config.name] - instructions["glibc"]
        result[config.name] = entry
    return result


def check(result):
    failures = []
    for name in CHECKED:
        entry = result.get(name)
        if entry is None:
            failures.append(f"{name}: not measured")
        elif entry["cpu_added_ms"]["median"] > LIMIT_MS:
            added = entry["cpu_added_ms"]
            failures.append(f"{entry['label']}: {added['median']:.3f} ms of CPU added to the start "
                            f"(quartiles {added['q1']:.3f} to {added['q3']:.3f}), limit {LIMIT_MS}")
        if entry is not None and "mimalloc" in result and entry["faults_added"] > result["mimalloc"]["faults_added"]:
            failures.append(f"{entry['label']}: {entry['faults_added']:g} page faults added to the start, "
                            f"mimalloc {result['mimalloc']['faults_added']:g}")
        if entry is not None and entry.get("instructions_added", 0) > LIMIT_INSTRUCTIONS:
            failures.append(f"{entry['label']}: {entry['instructions_added']} instructions added to the start, "
                            f"limit {LIMIT_INSTRUCTIONS}")
    return failures


def show(result):
    rows = []
    for entry in result.values():
        cpu, wall = entry["cpu_added_ms"], entry["wall_added_ms"]
        rows.append([entry["label"], f"{entry['cpu_ms']['median']:.3f}", f"{cpu['median']:+.3f}",
                     f"{cpu['q1']:+.3f} to {cpu['q3']:+.3f}", f"{wall['median']:+.3f}", f"{entry['faults_added']:+g}",
                     f"{entry['instructions_added']:+d}" if "instructions_added" in entry else ""])
    print(lib.table(["start of true", "CPU ms", "added", "quartiles", "wall added", "page faults", "instructions added"], rows))


def main():
    args = parse_arguments()
    folder = lib.out_folder(args)
    argv = [shutil.which("true", path="/usr/bin:/bin")]
    with lib.scratch_folder() as scratch:
        known = settings(args, scratch)
        configs = lib.choose_configs(args, known, known)
        if configs[0].name != "glibc":
            configs.insert(0, known["glibc"])
        samples = measure(args, configs, argv)
        result = evaluate(configs, samples, argv, not args.no_valgrind)
    show(result)
    lib.write_json(os.path.join(folder, "startup.json"), {"machine": lib.machine(), "rounds": args.rounds, "configs": result})
    return lib.verdict(check(result)) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
