# SPDX-License-Identifier: BSD-2-Clause
"""Runs of the workloads under libhybrid on the emulated machine: where the data shall lie, the
recording of counts, and what the run took in virtual time. A run is kept as a recording with
its own facts in comments, so that predictions can be made anew without running anything."""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PATIENCE_S = 600
TIME = re.compile(r"^time clock=virtual begin_ns=(\d+) end_ns=(\d+) work_ns=(\d+)(.*)$", re.M)


class Failure(Exception):
    """A run without which there is no figure."""


@dataclasses.dataclass(frozen=True)
class Job:
    """`pm`: percent of the footprint on PM: 0 and 100 by policy, others by first-fit with a
    limit of DRAM."""
    name: str
    preset: str
    threads: int
    pm: int
    size: int
    rounds: int
    seed: int = 1

    def file(self):
        return "-".join(str(v) for v in dataclasses.astuple(self)) + ".rec"

    def same(self, **changes):
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass
class Run:
    """`counts`: of the timed part; `said`: the library's report."""
    job: Job
    path: pathlib.Path
    begin_ns: int
    end_ns: int
    counts: dict
    said: dict

    @property
    def work_ns(self):
        return self.end_ns - self.begin_ns


def environment(library, job, work, period):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("HYBRID_", "LD_", "OMP_", "PYTHON"))}
    policy = {0: "dram", 100: "pm"}.get(job.pm, "first-fit")
    env.update(LD_PRELOAD=str(library), HYBRID_EMU_PRESET=job.preset, HYBRID_PM="emulated",
               HYBRID_START="0", HYBRID_REGISTRY="none", HYBRID_POLICY=policy,
               HYBRID_CLASS_PERIOD=period, HYBRID_RECORD=f"{work}/run.rec",
               HYBRID_STATS=f"{work}/run.json")
    if policy == "first-fit":
        env["HYBRID_DRAM"] = str(job.size * (100 - job.pm) * 1024 // 100) + "K"
    return env


class Bench:
    """`keep`: a folder of recordings; what is there is not run again."""

    def __init__(self, build, keep=None, period="1ms"):
        self.build, self.period = pathlib.Path(build), period
        self.library = self.build / "shim" / "libhybrid.so"
        self.scratch = None if keep else tempfile.TemporaryDirectory(prefix="hybrid-classes-")
        self.keep = pathlib.Path(keep or self.scratch.name)
        self.keep.mkdir(parents=True, exist_ok=True)
        self.progress = None

    def program(self, name):
        return self.build / "bench" / "workloads" / f"emu-{name}"

    def run(self, job):
        path = self.keep / job.file()
        if not path.exists():
            self._make(job, path)
        if self.progress:
            self.progress.step(job.name)
        return read_run(job, path)

    def _make(self, job, path):
        with tempfile.TemporaryDirectory(prefix="hybrid-classes-") as work:
            command = [self.program(job.name), "--time", "--threads", job.threads, "--size",
                       job.size, "--rounds", job.rounds, "--seed", job.seed]
            command = [str(word) for word in command]
            try:
                done = subprocess.run(command, env=environment(self.library, job, work,
                                                               self.period),
                                      capture_output=True, text=True, timeout=PATIENCE_S,
                                      stdin=subprocess.DEVNULL, check=False)
            except subprocess.TimeoutExpired:
                raise Failure(f"{' '.join(command)}: no end within {PATIENCE_S} s") from None
            timed = TIME.search(done.stdout)
            if done.returncode != 0 or " ok\n" not in done.stdout or not timed:
                raise Failure(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}"
                              f"{done.stderr}")
            try:
                recorded = pathlib.Path(work, "run.rec").read_text(encoding="ascii")
                said = json.loads(pathlib.Path(work, "run.json").read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise Failure(f"{' '.join(command)}: {error}\n{done.stderr}") from None
        counts = {k: int(v) for k, _, v in (w.partition("=") for w in timed[4].split())}
        facts = {"begin_ns": int(timed[1]), "end_ns": int(timed[2]), "counts": counts,
                 "said": said["classification"]}
        part = path.with_suffix(".part")
        part.write_text(recorded + "# run " + json.dumps(facts) + "\n", encoding="ascii")
        part.replace(path)


def read_run(job, path):
    for line in reversed(path.read_text(encoding="ascii").splitlines()):
        if line.startswith("# run "):
            return Run(job, path, **json.loads(line[len("# run "):]))
    raise Failure(f"{path} is no run of this benchmark")


def windows(run):
    """[window as a dictionary, does it lie wholly in the timed part?]"""
    found = []
    for line in run.path.read_text(encoding="ascii").splitlines():
        if line.startswith("w "):
            w = {k: int(v) for k, _, v in (word.partition("=") for word in line[2:].split())}
            found.append((w, w["end-ns"] <= run.end_ns and
                          w["end-ns"] - w["elapsed-ns"] >= run.begin_ns))
    return found


def verdict(args, found, wrong):
    """What is wrong, and everything in --json; the exit status."""
    for line in wrong:
        print(f"WRONG {line}")
    if args.json:
        args.json.write_text(json.dumps({"found": found, "wrong": wrong}, indent=1) + "\n",
                             encoding="utf-8")
    return 1 if args.check and wrong else 0


def ended(name, main):
    """main's status; a Failure as one line."""
    try:
        return main()
    except Failure as failure:
        return f"{name}: {failure}"
