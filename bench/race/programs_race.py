# SPDX-License-Identifier: BSD-2-Clause
"""race.py --programs: programs of others, alone or in company, beside Linux' first touch."""
import os
import sys
import threading
from collections import namedtuple
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace

import benchlib as lib
import programs
from campaign import Campaign
from contenders import OPTIMUM, Everything, Run
from experiments import Experiment
from programs_run import ProgramsRunner, contender
from results import LEAST_GAIN, gain_text
from runner import RunError

BASE = "linux"
FREE = ("all-dram", "all-pm")  # whatever DRAM there is
# Slower than this against first touch is marked.
NEVER_ABOVE = 1.01
DEFAULTS = {"shares": "1/2,1/5,1/10", "threads": "8",
            "contenders": "all-dram,all-pm,memtier-ratio,hyb,hybraw"}

# One machine with programs on it, under one contender; `share` of their data is DRAM.
Cell = namedtuple("Cell", "preset threads names share contender repeat")


def add_arguments(parser):
    group = parser.add_argument_group(
        "programs of others", "Times are of the whole program, over Linux' first touch; output is "
        "compared with the plain build's. " + programs.FORMAT)
    group.add_argument("--programs", metavar="DIR", help="race the programs of DIR/programs.json "
                       "(or of that file) instead; --only takes names of them")
    group.add_argument("--executables", metavar="DIR",
                       help="where wl-NAME and emu-NAME are (default: beside the list)")
    group.add_argument("--without", metavar="NAME,...", help="leave these programs out")
    group.add_argument("--company", action="append", metavar="NAME,...",
                       help="these together on one machine, in this order; may be repeated")
    group.add_argument("--shares", metavar="1/2,...",
                       help=f"DRAM, of what the programs use ({DEFAULTS['shares']})")
    group.add_argument("--threads", metavar="N,...", help=f"({DEFAULTS['threads']})")
    group.add_argument("--contenders", metavar="NAME,...",
                       help="linux, all-dram, all-pm, memtier-ratio, memtier-threshold; optimum: "
                       "the best static placement, by trying up to 40; hyb: just "
                       "preloaded, with START=0 and short intervals; hybraw: true defaults; both "
                       "with +prof (recorded before), +noth (THREADS=off), +off, +lazy, +eager "
                       f"(MIGRATE), +NAME=VALUE ({DEFAULTS['contenders']})")
    group.add_argument("--timeout", type=float, default=600, metavar="S", help="for a run (600)")
    group.add_argument("-j", type=int, default=2, metavar="N", help="runs at once (2)")


def check_arguments(parser, args):
    if not args.programs:
        for name in ("executables", "without", "company", *DEFAULTS):
            if getattr(args, name) is not None:
                parser.error(f"--{name} goes with --programs")
        return
    for name, value in DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.j < 1:
        parser.error("-j wants 1 or more")


def numbers(text):
    found = [w.strip() for w in text.split(",")]
    if not all(w.isdigit() and int(w) > 0 for w in found):
        raise lib.BenchError(f"--threads wants numbers, not '{text}'")
    return [int(w) for w in found]


def in_order(pool, function, items):
    """pool.map's results. A signal that comes just before the main thread begins to wait is seen only
    when it wakes, so it wakes now and then: a race that is told to end must not go on."""
    futures = [pool.submit(function, item) for item in items]
    left = futures
    while left:
        done, left = wait(left, timeout=0.5, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
    return [f.result() for f in futures]


class ProgramsRace:
    def __init__(self, args, setup):
        self.path = programs.find_list(args.programs)
        self.entries = programs.read_list(self.path)
        self.folder = os.path.abspath(args.executables or os.path.dirname(self.path))
        self.args, self.setup = args, setup
        self.groups = self.choose_groups(args)
        self.shares = programs.shares(args.shares)
        self.threads = numbers(args.threads)
        self.presets = (args.preset or "optane").split(",")
        self.names = list(dict.fromkeys([BASE, *(c.strip() for c in args.contenders.split(","))]))
        self.contenders = {n: contender(n, setup) for n in self.names}
        self.runner = ProgramsRunner(setup, args.timeout)
        self.sizes = {}  # KiB by preset, threads, program
        self.silent = set()  # of whose output nothing is compared
        self.failures, self.lock = {}, threading.Lock()
        self.campaign = None

    def choose_groups(self, args):
        if args.company:
            return [tuple(programs.choose(self.entries, c, "--company")) for c in args.company]
        names = list(self.entries)
        if args.only:
            names = programs.choose(self.entries, args.only, "--only")
        gone = programs.choose(self.entries, args.without, "--without") if args.without else []
        return [(n,) for n in names if n not in gone]

    def check_built(self):
        ctl = os.path.join(self.setup.build, "tools", "hybridctl")
        if any(c.profiled for c in self.contenders.values()) and not os.access(ctl, os.X_OK):
            raise lib.BenchError(f"{ctl} is not there: +prof records with it")
        for name in {n for group in self.groups for n in group}:
            for kind in ("wl", "emu"):
                path = self.program(name, 1).binary(kind)
                if not os.access(path, os.X_OK):
                    raise lib.BenchError(f"{path} is not there: built for --executables?")

    def program(self, name, threads):
        return programs.make(self.path, self.entries, name, self.folder, threads)

    def cells(self):
        """Each once: what does not depend on the share has none."""
        found = (Cell(p, t, g, 0 if c in FREE else s, c, r) for p in self.presets
                 for t in self.threads for g in self.groups for s in self.shares for c in self.names
                 for r in range(self.args.repeats))
        return list(dict.fromkeys(found))

    # --- runs ------------------------------------------------------------------------

    def measure(self, key):
        """How much a program uses that has the machine to itself: all other runs depend on it."""
        preset, threads, name = key
        case = programs.Share(name, (self.program(name, threads),))
        run = Run(Experiment(f"{preset} {threads}x", "", (), preset), case, Everything("dram"))
        try:
            record = self.campaign.execute(run)
            self.sizes[key] = record["programs"][0]["bytes"] // programs.KIB
            if not record["programs"][0]["lines"]:
                self.silent.add(name)
        except RunError as error:
            with self.lock:
                self.failures[f"{name}, {preset}, {threads} threads"] = str(error)

    def profile(self, preset, threads, name):
        return self.campaign.recorded.text(self.program(name, threads),
                                           Experiment("", "", (), preset))

    def run(self, cell):
        """The record of a cell, or None: then it is among the failures."""
        keys = [(cell.preset, cell.threads, n) for n in cell.names]
        if not all(key in self.sizes for key in keys):
            self.campaign.progress.total -= 1
            return None
        some = tuple(self.program(n, cell.threads) for n in cell.names)
        data, racer = sum(self.sizes[key] for key in keys), self.contenders[cell.contender]
        case = programs.Share(f"{','.join(cell.names)} {cell.share or ''}".rstrip(), some,
                              int(data * cell.share), data if cell.share else 0)
        experiment = Experiment(f"{cell.preset} {cell.threads}x", "", (), cell.preset)
        try:
            texts = tuple(self.profile(*key) for key in keys) if racer.profiled else ()
            made = Run(experiment, case, racer, profiles=texts)
            if cell.contender == OPTIMUM:
                return self.best_static(made, cell.repeat)
            return self.campaign.execute(made, cell.repeat)
        except RunError as error:
            with self.lock:
                self.failures[f"{case.name}, {cell.contender}, {experiment.name}"] = str(error)
            return None

    def best_static(self, run, repeat):
        """The record of the static placement that takes least."""
        tried = self.campaign.all_placements(run.experiment, run.case, run.contender)
        records = [self.campaign.execute(replace(run, placement=p), repeat) for p in tried]
        return min(records, key=lambda r: r["total_ms"])

    def all_runs(self):
        cells = self.cells()
        os.makedirs(self.args.out, exist_ok=True)
        journal = lib.Journal(os.path.join(self.args.out, "runs.jsonl"), "programs-2",
                              self.args.fresh)
        keys = list(dict.fromkeys((c.preset, c.threads, n) for c in cells for n in c.names))
        alone = {Cell(p, t, (n,), 0, "all-dram", 0) for p, t, n in keys}
        progress = lib.Progress(len(alone.union(cells)))
        self.campaign = Campaign(self.setup, self.runner, journal, self.args.repeats, progress)
        pool = ThreadPoolExecutor(self.args.j)
        try:
            in_order(pool, self.measure, keys)
            found = dict(zip(cells, in_order(pool, self.run, cells)))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self.runner.stop()
            raise
        progress.end()
        return found


# --- figures -----------------------------------------------------------------------

def median_ms(found, cell, repeats):
    """Of all repeats that have a record, or None."""
    made = [found.get(cell._replace(repeat=r)) for r in range(repeats)]
    times = [record["total_ms"] for record in made if record]
    return lib.quantile(times, 0.5) if len(times) == repeats else None


def ratios(found, cell, shares, names, repeats):
    """{share: (ms under first touch, {contender: over that or None})} of a group."""
    rows = {}
    for share in shares:
        base = median_ms(found, cell._replace(share=share, contender=BASE), repeats)
        times = {n: median_ms(found, cell._replace(share=0 if n in FREE else share, contender=n),
                              repeats) for n in names if n != BASE}
        rows[share] = base, {n: t / base if t and base else None for n, t in times.items()}
    return rows


def cell_text(ratio):
    if ratio is None:
        return "FAILED "
    return f"{ratio:.3f}" + ("!" if ratio > NEVER_ABOVE else " ")


def mean_row(rows, share, names):
    """Geometric mean and worst, of those that have a figure."""
    some = {n: [r[share][1][n] for r in rows.values() if r[share][1][n]] for n in names}
    return [("geometric mean", f"{share}", "", *(cell_text(lib.geomean(v)) if v else "- "
                                                 for v in some.values())),
            ("worst", f"{share}", "", *(cell_text(max(v)) if v else "- " for v in some.values()))]


def table(rows, shares, names):
    """rows: {name of the group: ratios(...)}"""
    shown = [n for n in names if n != BASE]
    lines = []
    for group, by_share in rows.items():
        for share in shares:
            base, values = by_share[share]
            lines.append((group, f"{share}", f"{base:.2f}" if base else "-",
                          *(cell_text(values[n]) for n in shown)))
    for share in shares:
        lines += mean_row(rows, share, shown)
    return lib.table(["program", "DRAM", "linux ms", *(n + " " for n in shown)],
                     [list(line) for line in lines])


def gains(rows, names):
    """What of the best static placement's gain over first touch each of ours reaches; '' where it
    was not tried, '-' where there is hardly anything to gain."""
    ours = [n for n in names if n.startswith("hyb")]
    if OPTIMUM not in names or not ours:
        return ""
    lines = []
    for group, by_share in rows.items():
        for share, (_, values) in by_share.items():
            best = 1 - (values[OPTIMUM] or 1)
            lines.append([group, f"{share}", *(
                gain_text((1 - values[n]) / best if values[n] and best >= LEAST_GAIN else None)
                for n in ours)])
    return "\n\nOf what the best static placement gains:\n\n" \
        + lib.table(["program", "DRAM", *ours], lines)


def above(rows, name):
    """Where this contender is slower than first touch."""
    return [f"{group}, DRAM {share}: {name} takes {values[name]:.3f} of first touch"
            for group, by_share in rows.items() for share, (_, values) in by_share.items()
            if values.get(name) and values[name] > NEVER_ABOVE]


def evaluate(race, found):
    """A dict for results.json, with the text of each table."""
    tables = []
    for preset in race.presets:
        for threads in race.threads:
            rows = {",".join(g): ratios(found, Cell(preset, threads, g, 0, BASE, 0), race.shares,
                                        race.names, race.args.repeats) for g in race.groups}
            tables.append({"preset": preset, "threads": threads, "rows": rows,
                           "text": f"{preset}, {threads} threads each\n\n"
                                   + table(rows, race.shares, race.names)
                                   + gains(rows, race.names)})
    return tables


def plain_rows(rows):
    return {g: {str(s): {"linux_ms": base, **values} for s, (base, values) in by.items()}
            for g, by in rows.items()}


def show_list(race):
    for name, entry in race.entries.items():
        print(f"  {name:16} {entry.get('what', '')}")


def main(args, setup):
    race = ProgramsRace(args, setup)
    if args.list:
        show_list(race)
        return 0
    race.check_built()
    found = race.all_runs()
    tables = evaluate(race, found)
    failures = [f"FAILED: {where}: {why}" for where, why in race.failures.items()]
    text = "\n\n".join([*(t["text"] for t in tables),
                        "Time of the whole program over Linux' first touch, of a group that of "
                        f"the last to end; ! above {NEVER_ABOVE}.",
                        *(f"{name} prints nothing that could be compared: only its exit status was"
                          for name in sorted(race.silent)), *failures]) + "\n"
    lib.write_json(os.path.join(args.out, "results.json"), {
        "machine": lib.machine(), "repeats": args.repeats, "failures": failures,
        "tables": [{**t, "rows": plain_rows(t["rows"])} for t in tables]})
    with open(os.path.join(args.out, "table.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    print(text, end="")
    print(f"results: {args.out}/results.json, table.txt", file=sys.stderr)
    if args.check:
        slow = [line for t in tables for n in race.names if n.startswith("hyb")
                for line in above(t["rows"], n)]
        return lib.verdict(failures + slow)
    return 1 if failures else 0
