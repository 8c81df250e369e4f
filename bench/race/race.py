#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The race: groups of programs and single programs on the emulated machine, under libhybrid
and its peers. Prints a table, writes results.json, table.txt and a picture for each
experiment. See bench/README.md, 'The race'."""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import benchlib as lib
import figures
import programs_race
import results
from campaign import FINALISTS, Campaign
from contenders import OPTIMUM, STRATEGIES, Setup, all_contenders
from experiments import EXPERIMENTS
from learn import thread_counts
from runner import Runner, sweep


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.environ.get("HYBRID_BUILD",
                                                          os.path.join(lib.ROOT, "build")),
                        help="build folder (default: %(default)s)")
    parser.add_argument("--out", help="folder for results (default: BUILD/race)")
    parser.add_argument("--list", action="store_true", help="experiments and contenders, then end")
    parser.add_argument("--only", metavar="NAME,...",
                        help="only these experiments and contenders (see --list)")
    parser.add_argument("--quick", action="store_true",
                        help="the quick experiment alone, each run twice: below two minutes")
    parser.add_argument("--repeats", type=int, metavar="N",
                        help="rounds (default 3, of programs of others 1)")
    parser.add_argument("--preset", help="another emulated machine for all experiments; with "
                        "--programs one or several (optane)")
    parser.add_argument("--check", action="store_true",
                        help="exit with 1 also if libhybrid takes more than "
                             f"{results.NEVER_WORSE} times as long as everything on PM; with "
                             f"--programs more than {programs_race.NEVER_ABOVE} of first touch")
    parser.add_argument("--fresh", action="store_true", help="forget the runs made so far")
    programs_race.add_arguments(parser)
    args = parser.parse_args(argv)
    programs_race.check_arguments(parser, args)
    if args.repeats is None:
        args.repeats = 1 if args.programs else 2 if args.quick else 3
    if args.repeats < 1:
        parser.error("--repeats wants 1 or more")
    args.build = os.path.abspath(args.build)
    args.out = os.path.abspath(args.out or os.path.join(
        args.build, "race-programs" if args.programs else "race"))
    return args


def find_setup(build):
    """What there is to race with."""
    library = os.path.join(build, "shim", "libhybrid.so")
    placer = os.path.join(build, "bench", "race", "bench-place.so")
    options = frozenset()
    ctl = os.path.join(build, "tools", "hybridctl")
    if os.access(ctl, os.X_OK):
        text = subprocess.run([ctl, "options"], capture_output=True, text=True, check=False).stdout
        options = frozenset(re.findall(r"^HYBRID_([A-Z_]+)", text, re.M))
    return Setup(build, library if os.path.exists(library) else "",
                 lib.library_path("libmemtier.so.0") or "",
                 placer if os.path.exists(placer) else "", options)


def choose(args, setup):
    """(experiments, names of the contenders). Names that are not known are an error."""
    contenders = all_contenders(setup)
    names = [n.strip() for n in args.only.split(",") if n.strip()] if args.only else []
    known = set(EXPERIMENTS) | {c.name for c in contenders}
    for name in names:
        if name not in known:
            raise lib.BenchError(f"--only: '{name}' is neither an experiment nor a contender; "
                                 "--list shows them")
    chosen = [e for e in EXPERIMENTS.values() if e.name in names] or \
        [e for e in EXPERIMENTS.values() if e.quick == args.quick]
    wanted = [c for c in contenders if c.name in names]
    for contender in wanted:
        if contender.missing:
            raise lib.BenchError(f"{contender.name}: {contender.missing}")
    return chosen, [c.name for c in wanted or contenders]


def show_list(setup):
    print("Experiments:")
    for experiment in EXPERIMENTS.values():
        print(f"  {experiment.name:16} {experiment.title}")
        for case in experiment.cases:
            programs = ", ".join(f"{p.workload} {p.threads}x" for p in case.programs)
            print(f"  {'':16}   {case.name}: {programs}; "
                  f"{case.dram} of {case.footprint()} MiB DRAM")
    print("Contenders:")
    for contender in all_contenders(setup):
        print(f"  {contender.name:18} {contender.label}"
              + (f"  [left out: {contender.missing}]" if contender.missing else ""))


def expected_runs(case, contenders, repeats):
    """For the progress line; what is found on the way is added then."""
    programs, first = len(case.programs), case.programs[0]
    kinds = {k for c in contenders for k in c.learns}
    total = repeats * sum(c.name != OPTIMUM for c in contenders)
    if any(c.name == OPTIMUM for c in contenders):
        total += (2 ** programs if programs > 1 else 1) + FINALISTS * (repeats - 1)
    total += 2 * programs * (len(thread_counts(first.threads)) if "threads" in kinds else
                             "place" in kinds)
    return total


def case_result(campaign, experiment, case, contenders):
    records, failures, repeated, tried, best = campaign.case(experiment, case, contenders)
    return {"name": case.name, "note": case.note, "dram_mib": case.dram,
            "footprint_mib": case.footprint(), "placements_tried": tried,
            "placements": campaign.possible, "placement": best,
            "programs": [vars(p) for p in case.programs],
            "contenders": results.evaluate_case([c.name for c in contenders], records, failures,
                                                repeated)}


def left_out(setup, experiments):
    """What is not raced, and why: not built or not installed, or too long for one experiment."""
    found = [{"name": c.name, "label": c.label, "why": c.missing}
             for c in all_contenders(setup) if c.missing]
    gone = {c["name"] for c in found}
    return found + [{"name": c.name, "label": c.label, "why": f"not in '{e.name}'"}
                    for e in experiments for c in all_contenders(setup)
                    if c.name.removeprefix("hybrid-") in e.without and c.name not in gone]


def check_built(runner, experiments):
    for program in {p for e in experiments for c in e.cases for p in c.programs}:
        for kind in "emu", "wl":
            path = runner.binary(kind, program)
            if not os.access(path, os.X_OK):
                raise lib.BenchError(f"{path} is not there; build it: "
                                     f"ninja -C {runner.setup.build} race")


def together(setup, experiment):
    return [s.label for s in STRATEGIES
            if s.option in setup.options and s.name not in experiment.without]


def race(args, setup):
    experiments, names = choose(args, setup)
    experiments = [e.on(args.preset) if args.preset else e for e in experiments]
    racers = {e.name: [c for c in all_contenders(setup, e.without)
                       if c.name in names and not c.missing] for e in experiments}
    runner = Runner(setup)
    check_built(runner, experiments)
    os.makedirs(args.out, exist_ok=True)
    journal = lib.Journal(os.path.join(args.out, "runs.jsonl"), "race-2", args.fresh)
    progress = lib.Progress(sum(expected_runs(c, racers[e.name], args.repeats)
                                for e in experiments for c in e.cases))
    campaign = Campaign(setup, runner, journal, args.repeats, progress)
    found = {"machine": lib.machine(), "repeats": args.repeats,
             "labels": {c.name: c.label for c in all_contenders(setup)},
             "left_out": left_out(setup, experiments), "experiments": []}
    for experiment in experiments:
        cases = [case_result(campaign, experiment, case, racers[experiment.name])
                 for case in experiment.cases]
        found["experiments"].append({"name": experiment.name, "title": experiment.title,
                                     "preset": experiment.preset,
                                     "together": together(setup, experiment),
                                     "cases": cases})
    progress.end()
    return found


def write(found, out):
    lib.write_json(os.path.join(out, "results.json"), found)
    text = results.text(found)
    with open(os.path.join(out, "table.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    return text


def main():
    args = arguments()
    setup = find_setup(args.build)
    if args.list and not args.programs:
        show_list(setup)
        return 0
    # As Ctrl-C, which a race in the background ignores: the programs end with us, and nothing stays
    # in memory.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sweep()
    if args.programs:
        return programs_race.main(args, setup)
    begin = time.monotonic()
    found = race(args, setup)
    print(write(found, args.out))
    try:
        for path in figures.save(found, args.out):
            print(f"picture: {path}")
    except RuntimeError as error:
        print(error, file=sys.stderr)
    print(f"results: {args.out}/results.json, table.txt ({time.monotonic() - begin:.0f} s)")
    if args.check:
        return lib.verdict(results.check(found))
    return 1 if results.failed(found) else 0


if __name__ == "__main__":
    lib.main_guard(main)
