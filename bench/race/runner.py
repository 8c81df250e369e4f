# SPDX-License-Identifier: BSD-2-Clause
"""One run: all programs of a case on one emulated machine, started in the order of their
launch, let through the start gate together, and what they tell at the end."""
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

import benchlib as lib
from contenders import SHORT

# Real time for one run. Virtual time does not depend on it.
PATIENCE_S = 180
SCRATCH = "hybrid-race-"
# Virtual time: a few batches of the emulated machine.
START_TOGETHER_NS = 200000
TIME_LINE = re.compile(r"^time (.*)$", re.M)


class RunError(Exception):
    """The run has no result: what the user should read."""


class NotValid(Exception):
    """The machine itself says that the result does not count; worth repeating."""


class Result:
    """What one program told."""

    def __init__(self, line, times, counts, stderr, hybrid=None, objects=None):
        self.line, self.times, self.counts, self.stderr = line, times, counts, stderr
        self.hybrid, self.objects = hybrid, objects

    def count(self, during, whole):
        """Of the timed part where the program tells it, else of all."""
        return int(self.times.get(during, self.counts.get(whole, 0)))

    def reads(self, tier):
        return self.count("LLC_RD_" + tier.upper(), "llc_reads_" + tier)

    def writebacks(self, tier):
        return self.count("WB_" + tier.upper(), "writebacks_" + tier)

    def whole_ms(self):
        """Virtual time of the program from its start to its end, making and verifying included."""
        return self.counts.get("virtual_ms", 0)

    def record(self):
        return {"begin_ns": self.times["begin_ns"], "end_ns": self.times["end_ns"],
                "whole_ms": self.whole_ms(),
                "reads": {t: self.reads(t) for t in ("dram", "pm")},
                "writebacks": {t: self.writebacks(t) for t in ("dram", "pm")}}


def parse_output(text):
    """The result line without the time line, and the times and counts as numbers."""
    found = TIME_LINE.search(text)
    if not found:
        raise RunError("no time line in the output: " + (text.strip()[:200] or "(nothing)"))
    times = {}
    for item in found.group(1).split():
        name, _, value = item.partition("=")
        with contextlib.suppress(ValueError):
            times[name] = int(value)
    missing = {"begin_ns", "end_ns"} - times.keys()
    if missing:
        raise RunError(f"no {', '.join(sorted(missing))} in the time line")
    return (text[:found.start()] + text[found.end():]).strip(), times


def invalid(counts, stderr):
    """Why the emulated machine says that this run does not count; '' if it does."""
    if counts.get("lost_threads"):
        return f"{counts['lost_threads']} threads were not emulated"
    if counts.get("valid") in (False, 0, "no"):
        return counts.get("reason") or "the machine's report says so"
    found = re.search(r"^pmemu.*not valid.*$", stderr, re.M)
    return found.group(0) if found else ""


def scratch_parent():
    """In memory: the machine's and the peers' files are mapped."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def sweep():
    """What races left that were killed."""
    for name in os.listdir(scratch_parent()):
        found = re.fullmatch(SCRATCH + r"(\d+)-.*", name)
        if found and not os.path.exists("/proc/" + found.group(1)):
            shutil.rmtree(os.path.join(scratch_parent(), name), ignore_errors=True)


@contextlib.contextmanager
def scratch_folder():
    """Gone afterwards."""
    path = tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-", dir=scratch_parent())
    try:
        os.mkdir(path + "/pm")
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def uninterrupted():
    """Ctrl-C and SIGTERM wait: within Popen they would leave a program that nobody knows of. Handlers
    and no mask, which the program would inherit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught = []
    # What is ignored stays so: a handler would end with the program's exec.
    before = {s: signal.signal(s, lambda number, _: caught.append(number))
              for s in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(s))}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in caught[:1]:
            signal.raise_signal(number)


def read_json(path):
    with contextlib.suppress(OSError, ValueError):
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    return None


def read_text(path):
    with contextlib.suppress(OSError):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    return ""


class Runner:
    patience = PATIENCE_S

    def __init__(self, setup):
        self.setup = setup
        self.plain = {}

    def binary(self, kind, program):
        return os.path.join(self.setup.build, "bench", "workloads", f"{kind}-{program.workload}")

    def expected(self, program):
        """The result line of the plain build."""
        if program not in self.plain:
            done = lib.run([self.binary("wl", program), *program.arguments()], lib.clean_env(),
                           timeout=PATIENCE_S)
            if not done.ok:
                raise RunError(f"the plain {program.workload} failed: {done.problem()}")
            self.plain[program] = done.out.strip()
        return self.plain[program]

    def environment(self, run, index, scratch):
        env = {"HYBRID_EMU_PRESET": run.experiment.preset,
               "HYBRID_EMU_MACHINE": scratch + "/machine",
               "HYBRID_EMU_STATS": f"{scratch}/emu-{index}.json", "OMP_WAIT_POLICY": "passive"}
        if run.experiment.settings:
            env["HYBRID_EMU_SET"] = run.experiment.settings
        return lib.clean_env({**env, **run.contender.env(run, index, scratch)})

    def start(self, run, index, scratch):
        program = run.case.programs[index]
        argv = [self.binary("emu", program), *program.arguments(), "--time",
                "--gate", f"{scratch}/gate,{len(run.case.programs)}"]
        with open(f"{scratch}/out-{index}", "wb") as out, \
                open(f"{scratch}/err-{index}", "wb") as err:
            return subprocess.Popen(argv, env=self.environment(run, index, scratch), stdout=out,
                                    stderr=err, stdin=subprocess.DEVNULL)

    def execute(self, run):
        """The record of a run. Raises RunError or NotValid."""
        expected = [self.expected(p) for p in run.case.programs]
        begin = time.monotonic()
        with scratch_folder() as scratch:
            for i, text in enumerate(run.profiles):
                with open(f"{scratch}/profile-{i}.ini", "w", encoding="utf-8") as f:
                    f.write(text)
            self.launch(run, scratch)
            results = [self.collect(run, i, scratch, expected[i])
                       for i in range(len(run.case.programs))]
        for i, result in enumerate(results):
            for problem in run.contender.problems(run, i, result):
                raise RunError(f"{run.case.programs[i].workload}: {problem}")
        return self.summary(results, time.monotonic() - begin)

    def record_profile(self, program, experiment, path):
        """As a user would, before the race: alone, and all on DRAM."""
        command = [os.path.join(self.setup.build, "tools", "hybridctl"), "record", "-o", path, "--",
                   self.binary("emu", program), *program.arguments()]
        env = {**self.record_env(program), "HYBRID_EMU_PRESET": experiment.preset,
               "HYBRID_PM": "emulated", "HYBRID_REGISTRY": "none",
               **{f"HYBRID_{k}": v for k, v in SHORT.items()}}
        if experiment.settings:
            env["HYBRID_EMU_SET"] = experiment.settings
        begin = time.monotonic()
        done = lib.run(command, env, timeout=self.patience, cwd=getattr(program, "cwd", None))
        if not done.ok or not os.path.exists(path):
            raise RunError(f"{program.workload}: no profile after "
                           f"{time.monotonic() - begin:.0f} s: {done.problem()}")

    def record_env(self, program):
        return lib.clean_env({"OMP_WAIT_POLICY": "passive"})

    def summary(self, results, real_s):
        return summarise(results, real_s)

    def wait_for(self, scratch, count, children, deadline):
        """Until so many programs have made their data."""
        wait_at_gate(scratch + "/gate", count, children, deadline)

    def launch(self, run, scratch):
        """Each program has made its data and waits at the gate before the next one begins:
        so DRAM is given in the order of launch."""
        children = []
        deadline = time.monotonic() + self.patience
        try:
            for i in range(len(run.case.programs)):
                with uninterrupted():
                    children.append(self.start(run, i, scratch))
                if i + 1 < len(run.case.programs):
                    self.wait_for(scratch, i + 1, children, deadline)
            for child in children:
                try:
                    child.wait(timeout=max(deadline - time.monotonic(), 0.1))
                except subprocess.TimeoutExpired:
                    raise RunError(f"not done after {self.patience:.0f} s") from None
                if child.returncode != 0:
                    break
        finally:
            for child in children:
                if child.poll() is None:
                    child.kill()
                child.wait()
        for i, child in enumerate(children):
            # One that was killed here is not the one to blame.
            if child.returncode not in (0, -9):
                said = read_text(f"{scratch}/err-{i}").strip().splitlines()
                raise RunError(f"{run.case.programs[i].workload} ended with {child.returncode}: "
                               + (said[-1] if said else "(it said nothing)"))
        if any(child.returncode for child in children):
            raise RunError("a program was killed")

    def comparable(self, line):
        """Of a result line, what must be that of the plain program."""
        return line

    def collect(self, run, index, scratch, expected):
        program = run.case.programs[index]
        stderr = read_text(f"{scratch}/err-{index}")
        counts = read_json(f"{scratch}/emu-{index}.json")
        if counts is None:
            raise RunError(f"{program.workload}: no report of the emulated machine: "
                           + stderr.strip())
        why = invalid(counts, stderr)
        if why:
            raise NotValid(f"{program.workload}: {why}")
        line, times = parse_output(read_text(f"{scratch}/out-{index}"))
        if self.comparable(line) != self.comparable(expected):
            raise RunError(f"{program.workload}: wrong result '{line}', "
                           f"the plain one is '{expected}'")
        said = run.contender.said_too_much(stderr)
        if said:
            raise RunError(f"{program.workload} said: {said.splitlines()[0]}")
        return Result(line, times, counts, stderr, read_json(f"{scratch}/hybrid-{index}.json"),
                      read_text(scratch + "/objects"))


def wait_at_gate(path, count, children, deadline):
    """Until so many programs stand at the gate (its first word) or one has ended."""
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, struct.error):
            with open(path, "rb") as f:
                if struct.unpack("=Q", f.read(8))[0] >= count:
                    return
        if any(child.poll() is not None for child in children):
            return
        time.sleep(0.002)
    raise RunError(f"not at the gate after {PATIENCE_S} s")


def summarise(results, real_s):
    """The group's time is from the gate to the end of the last program."""
    begin = min(r.times["begin_ns"] for r in results)
    apart = max(r.times["begin_ns"] for r in results) - begin
    if apart > START_TOGETHER_NS:
        raise RunError(f"the programs did not start together but {apart / 1e6:.2f} ms apart")
    ends = [r.times["end_ns"] for r in results]
    record = {"total_ms": (max(ends) - begin) / 1e6, "real_s": round(real_s, 3),
              "mean_ms": sum(e - begin for e in ends) / len(ends) / 1e6,
              "whole_ms": max(r.whole_ms() for r in results),
              "programs": [r.record() for r in results]}
    if record["total_ms"] <= 0:
        raise RunError("no virtual time passed")
    objects = [r.objects for r in results if r.objects]
    return {**record, "objects": objects[0]} if objects else record
