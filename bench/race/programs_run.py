# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others: under what they are raced, and one run of them. Nobody here made them: they
know no gate and tell no time line, so it is the whole program that counts."""
import contextlib
import json
import os
import re
import subprocess
import threading

import benchlib as lib
import programs
from contenders import (OPTIMUM, SHORT, Contender, Everything, Linux, Memtier, Optimum,
                        first_touch)
from runner import NotValid, Runner, RunError, invalid, read_json, read_text

PAGE = 4096
MODIFIERS = {"noth": {"HYBRID_THREADS": "off"}, "off": {"HYBRID_MIGRATE": "off"},
             "lazy": {"HYBRID_MIGRATE": "lazy"}, "eager": {"HYBRID_MIGRATE": "eager"}}
NAMES = ("linux", "all-dram", "all-pm", "memtier-ratio", "memtier-threshold", OPTIMUM, "hyb", "hybraw")


class JustPreloaded(Contender):
    """libhybrid with what the name says: hyb or hybraw, then modifiers."""

    def __init__(self, name, setup):
        base, *words = name.split("+")
        self.name = self.label = name
        self.preload = setup.libhybrid
        self.missing = None if setup.libhybrid else "libhybrid.so is not built"
        self.profiled = "prof" in words
        self.settings = {}
        if base == "hyb":
            self.settings = {f"HYBRID_{k}": v for k, v in SHORT.items()
                             if k in setup.options or k == "START"}
        for word in words:
            setting = re.fullmatch(r"([A-Z_]+)=(.+)", word)
            if word in MODIFIERS:
                self.settings.update(MODIFIERS[word])
            elif setting:
                self.settings["HYBRID_" + setting[1]] = setting[2]
            elif word != "prof":
                raise lib.BenchError(f"--contenders: '+{word}' of '{name}' is none of +prof, +"
                                     f"{', +'.join(MODIFIERS)}, +NAME=VALUE")

    def env(self, run, index, scratch):
        return {**first_touch(run), "LD_PRELOAD": self.preload, "HYBRID_STRICT": "1",
                "HYBRID_PM": "emulated", "HYBRID_DRAM_SHARED": run.case.dram_option(),
                "HYBRID_REGISTRY": scratch + "/registry",
                "HYBRID_STATS": f"{scratch}/hybrid-{index}.json", **self.settings,
                **({"HYBRID_PROFILE": f"{scratch}/profile-{index}.ini"} if run.profiles else {})}

    def problems(self, run, index, result):
        if not result.hybrid:
            return ["libhybrid made no report: it was not loaded"]
        if run.profiles and not result.hybrid.get("profile"):
            return ["libhybrid did not use the profile"]
        return []


class QuietMemtier(Memtier):
    """Its log would be output that the plain program has not. It takes the memory of stdio's
    buffers away before they are written; the time is right all the same."""
    loses_output = True

    def env(self, run, index, scratch):
        env = super().env(run, index, scratch)
        del env["MEMKIND_MEM_TIERING_LOG_LEVEL"]
        return env

    def problems(self, run, index, result):
        return []


def contender(name, setup):
    base = name.split("+")[0]
    if base in ("hyb", "hybraw"):
        found = JustPreloaded(name, setup)
    elif name in ("all-dram", "all-pm"):
        found = Everything(name.removeprefix("all-"))
    elif name == "linux":
        found = Linux()
    elif name == OPTIMUM:
        found = Optimum(setup)
        found.missing = None if setup.placer else "bench-place.so is not built"
    elif name.startswith("memtier-") and name in NAMES:
        found = QuietMemtier({"ratio": "STATIC_RATIO", "threshold": "DYNAMIC_THRESHOLD"}
                             [name.removeprefix("memtier-")], name.removeprefix("memtier-"), setup)
    else:
        raise lib.BenchError(f"--contenders: '{name}' is none of {', '.join(NAMES)}")
    if found.missing:
        raise lib.BenchError(f"{name}: {found.missing}")
    return found


class Outcome:
    """What one program told; as runner.Result for contenders."""

    def __init__(self, counts, hybrid, lines, objects):
        self.counts, self.hybrid, self.lines, self.objects = counts, hybrid, lines, objects

    def reads(self, tier):
        return self.counts["llc_reads_" + tier]

    def record(self):
        return {"ms": self.counts["virtual_ms"],
                "bytes": PAGE * (self.counts["dram_pages"] + self.counts["pm_pages"]),
                "reads": {t: self.reads(t) for t in ("dram", "pm")}, "lines": self.lines}


def machine_report(path):
    """Of all processes of a program: the longest time, all that they counted; None without any."""
    found = []
    for line in read_text(path).splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    if not found:
        return None
    total = {k: sum(r[k] for r in found) for k in ("dram_pages", "pm_pages", "llc_reads_dram",
                                                   "llc_reads_pm", "lost_threads")}
    reasons = [r.get("reason", "") for r in found if r.get("valid") != "yes"]
    return {**total, "virtual_ms": max(r["virtual_ms"] for r in found),
            "valid": "no" if reasons else "yes", "reason": "; ".join(reasons)}


def base_env(threads):
    env = {k: v for k, v in lib.clean_env().items() if not k.startswith(("OMP_", "GOMP_"))}
    return {**env, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}


class ProgramsRunner(Runner):
    def __init__(self, setup, patience):
        super().__init__(setup)
        self.patience = patience
        self.live, self.stopped, self.lock = set(), False, threading.Lock()

    def binary(self, kind, program):
        return program.binary(kind)

    def expected(self, program):
        """What the plain build prints."""
        if program not in self.plain:
            done = lib.run([program.binary("wl"), *program.arguments()], base_env(program.threads),
                           timeout=self.patience, cwd=program.cwd)
            if not done.ok:
                raise RunError(f"the plain {program.workload} failed: {done.problem()}")
            self.plain[program] = done.out, done.err
        return self.plain[program]

    def environment(self, run, index, scratch):
        return {**base_env(run.case.programs[index].threads),
                "HYBRID_EMU_PRESET": run.experiment.preset,
                "HYBRID_EMU_MACHINE": scratch + "/machine",
                "HYBRID_EMU_STATS": f"{scratch}/emu-{index}.json",
                **run.contender.env(run, index, scratch)}

    def start(self, run, index, scratch):
        program = run.case.programs[index]
        with open(f"{scratch}/out-{index}", "wb") as out, \
                open(f"{scratch}/err-{index}", "wb") as err, self.lock:
            if self.stopped:
                raise RunError("interrupted")
            child = subprocess.Popen([program.binary("emu"), *program.arguments()], cwd=program.cwd,
                                     env=self.environment(run, index, scratch), stdout=out,
                                     stderr=err, stdin=subprocess.DEVNULL)
            self.live.add(child)
        return child

    def wait_for(self, scratch, count, children, deadline):
        """All begin at once, in the order of the case."""

    def stop(self):
        """Nothing more begins, what runs is killed: from another thread than those that run."""
        with self.lock:
            self.stopped = True
            for child in self.live:
                if child.poll() is None:
                    child.kill()

    def collect(self, run, index, scratch, expected):
        program = run.case.programs[index]
        counts = machine_report(f"{scratch}/emu-{index}.json")
        said = [read_text(f"{scratch}/{kind}-{index}") for kind in ("out", "err")]
        if counts is None:
            raise RunError(f"{program.workload}: no report of the emulated machine: "
                           + said[1].strip())
        why = invalid(counts, said[1])
        if why:
            raise NotValid(f"{program.workload}: {why}")
        for text, plain in zip(said, expected):
            wrong = programs.difference(text, plain, run.contender.loses_output)
            if wrong:
                raise RunError(f"{program.workload}: wrong output: {wrong}")
        return Outcome(counts, read_json(f"{scratch}/hybrid-{index}.json"),
                       sum(len(programs.lasting(text)) for text in expected),
                       read_text(scratch + "/objects"))

    def summary(self, results, real_s):
        """The last to end decides."""
        records = [r.record() for r in results]
        objects = {"objects": r.objects for r in results if r.objects}
        return {"total_ms": max(r["ms"] for r in records), "real_s": round(real_s, 3),
                "programs": records, **objects}

    def record_env(self, program):
        return base_env(program.threads)
