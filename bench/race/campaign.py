# SPDX-License-Identifier: BSD-2-Clause
"""Which runs a race consists of, in which order, and what is remembered of them.

Every run is a line of a journal under a key made of all its settings and of the contents of
all binaries it uses. A race that was interrupted, or is asked for more, makes only the runs
that are not there."""
import contextlib
import hashlib
import os
import sys
import threading
from dataclasses import replace

import benchlib as lib
import learn
import optimum
from contenders import OPTIMUM, Everything, Run
from experiments import Case
from results import best_placement, short
from runner import NotValid, RunError

# How often a run that is not valid is tried again.
TRIES = 4
# So many of the best placements of the first search are repeated like the contenders.
FINALISTS = 3
TIERS = ("dram", "pm")


def digest(path, known={}):
    """Of a file's contents; files do not change while a race runs."""
    if path not in known:
        with contextlib.suppress(OSError):
            with open(path, "rb") as f:
                known[path] = hashlib.sha256(f.read()).hexdigest()[:16]
    return known.get(path, "missing")


class Recorded:
    """Profiles as a user makes them: one for each library, program and machine, in `folder`."""

    def __init__(self, setup, runner, folder):
        self.setup, self.runner, self.folder = setup, runner, folder

    def text(self, program, experiment):
        facts = (program, experiment.preset, experiment.settings, digest(self.setup.libhybrid),
                 digest(self.runner.binary("emu", program)))
        key = hashlib.sha256(repr(facts).encode()).hexdigest()[:12]
        path = os.path.join(self.folder, f"{program.workload}-{key}.ini")
        if not os.path.exists(path):
            os.makedirs(self.folder, exist_ok=True)
            fresh = f"{path}.{threading.get_ident()}"
            self.runner.record_profile(program, experiment, fresh)
            os.replace(fresh, path)
        with open(path, encoding="utf-8") as f:
            return f.read()


class Campaign:
    def __init__(self, setup, runner, journal, repeats, progress):
        self.setup, self.runner, self.journal = setup, runner, journal
        self.recorded = Recorded(setup, runner, os.path.join(os.path.dirname(journal.path), "profiles"))
        self.repeats, self.progress = repeats, progress
        self.lock = threading.Lock()
        self.known = {r["key"]: r["record"] for r in journal.records if "record" in r}
        self.seen = set()
        self.possible = 0  # static placements of this case
        self.repeated = {}  # contender -> runs that were not valid, in this case

    # --- one run -----------------------------------------------------------------

    def key(self, run, repeat):
        programs = run.case.programs
        parts = [run.experiment.preset, run.experiment.settings, run.case.dram, programs,
                 run.contender.name, run.placement, run.profiles, repeat,
                 [sorted(run.contender.env(run, i, "@").items()) for i in range(len(programs))],
                 digest(os.path.join(self.setup.build, "emu", "libpmemu.so")),
                 digest(run.contender.preload) if run.contender.preload else "",
                 digest(self.setup.placer) if run.contender.name == OPTIMUM else "",
                 [digest(self.runner.binary(k, p)) for p in programs for k in ("emu", "wl")]]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

    def execute(self, run, repeat=0):
        """The record of a run, from the journal or made now. RunError: it has none."""
        key = self.key(run, repeat)
        what = f"{run.experiment.name} {run.case.name}: {run.contender.name} {short(run.placement)}"
        try:
            if key not in self.known:
                record = self.try_until_valid(run)
                with self.lock:
                    self.journal.add(key=key, experiment=run.experiment.name, case=run.case.name,
                                     contender=run.contender.name, placement=run.placement,
                                     repeat=repeat, record=record)
                self.known[key] = record
            else:
                self.progress.total -= key not in self.seen
                self.seen.add(key)
        finally:
            self.count(key, what.rstrip())
        record = self.known[key]
        if record.get("tries", 1) > 1:
            name = run.contender.name
            self.repeated[name] = self.repeated.get(name, 0) + record["tries"] - 1
        return record

    def count(self, key, what):
        """Only runs that take time are progress; what is found on the way is added."""
        if key not in self.seen:
            self.seen.add(key)
            self.progress.total = max(self.progress.total, self.progress.done + 1)
            self.progress.step(what)

    def try_until_valid(self, run):
        for tries in range(1, TRIES + 1):
            try:
                return {**self.runner.execute(run), "tries": tries}
            except NotValid as error:
                why = error
        raise RunError(f"not valid in {TRIES} tries: {why}")

    # --- what is learnt before ------------------------------------------------------

    def profiles(self, experiment, case, kinds):
        """The text of a profile for each program, with what `kinds` asks for."""
        return tuple(self.profile(experiment, case, p, kinds) for p in case.programs)

    def profile(self, experiment, case, program, kinds):
        facts = {}
        if "threads" in kinds:
            facts["threads"] = {t: self.threads(experiment, program, t) for t in TIERS}
        if "place" in kinds and len(case.programs) > 1:
            dram, pm = (self.alone(experiment, program, t) for t in TIERS)
            facts["app"], facts["options"] = learn.program_facts(
                dram, pm, program in self.who_gets_dram(experiment, case))
        elif "place" in kinds:
            facts["recorded"] = self.recorded.text(program, experiment)
        return learn.profile(program.workload, **facts)

    def who_gets_dram(self, experiment, case):
        """The programs of a group that lose most on PM, as many as fit."""
        lost = {}
        for program in case.programs:
            dram, pm = (self.alone(experiment, program, t) for t in TIERS)
            lost[program.workload] = pm - dram
        chosen = learn.choose({p.workload: p.size for p in case.programs}, lost, case.dram)
        return [p for p in case.programs if p.workload in chosen]

    def alone(self, experiment, program, tier):
        """Milliseconds of one program that has the machine and one memory to itself."""
        case = Case("alone", (program,), program.size)
        return self.execute(Run(experiment, case, Everything(tier)))["total_ms"]

    def threads(self, experiment, program, tier):
        times = {n: self.alone(experiment, replace(program, threads=n), tier)
                 for n in learn.thread_counts(program.threads)}
        return learn.fewest_threads(times)

    # --- a case ------------------------------------------------------------------------

    def case(self, experiment, case, contenders):
        """(records by contender and repeat, failures, not valid, placements tried, best one).
        The name of the last is '' when none was tried."""
        records, failures, profiles = {}, {}, {}
        self.repeated, self.possible = {}, 0
        racers = [c for c in contenders if c.name != OPTIMUM]
        search = next((c for c in contenders if c.name == OPTIMUM), None)
        for racer in racers:
            records[racer.name] = {}
            if racer.learns:
                with noted(failures, racer.name):
                    profiles[racer.name] = self.profiles(experiment, case, racer.learns)
        placements = {}
        for repeat in range(self.repeats):
            tasks = [(r, Run(experiment, case, r, profiles=profiles.get(r.name, ())))
                     for r in racers if r.name not in failures]
            if search and OPTIMUM not in failures:
                with noted(failures, OPTIMUM):
                    tasks += self.search_tasks(experiment, case, search, placements, repeat)
            for racer, run in lib.shuffled(tasks, experiment.name, case.name, repeat):
                if racer.name in failures:
                    self.progress.total -= 1
                    continue
                with noted(failures, racer.name):
                    record = self.execute(run, repeat)
                    if racer.name == OPTIMUM:
                        placements.setdefault(run.placement, {})[repeat] = record
                    else:
                        records[racer.name][repeat] = record
        best = self.best(placements, records)
        return records, failures, dict(self.repeated), len(placements), best

    def search_tasks(self, experiment, case, search, placements, repeat):
        """All placements in the first round, then the best of them."""
        if repeat == 0:
            some = self.all_placements(experiment, case, search)
        else:
            some = sorted(placements, key=lambda p: placements[p][0]["total_ms"])[:FINALISTS]
        return [(search, replace(Run(experiment, case, search), placement=p)) for p in some]

    def all_placements(self, experiment, case, search):
        if len(case.programs) > 1:
            found = optimum.of_group(case.programs)
            self.possible = len(found)
            return found
        if not self.setup.placer:
            raise RunError("bench-place.so is not built")
        listing = self.execute(Run(experiment, case, search, placement="1"))
        objects = optimum.successors(optimum.parse_objects(listing["objects"]), listing["objects"])
        found, self.possible = optimum.of_objects(objects, case.dram_bytes())
        self.progress.total += len(found)
        return found

    @staticmethod
    def best(placements, records):
        if not placements:
            return ""
        times = {p: {r: e["total_ms"] for r, e in by.items()} for p, by in placements.items()}
        best = best_placement(times)
        records[OPTIMUM] = placements[best]
        return best


@contextlib.contextmanager
def noted(failures, name):
    """A contender that fails is out of this case, aloud, and the others go on."""
    try:
        yield
    except RunError as error:
        failures[name] = str(error)
        print(f"\nFAILED: {name}: {error}", file=sys.stderr)
