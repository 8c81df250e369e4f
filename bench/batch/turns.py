# SPDX-License-Identifier: BSD-2-Clause
"""Jobs on one emulated machine, so many at a time, in an order that is given: each begins at the virtual
time at which another ends (bench/workloads/turn.h), so that the computer's load changes nothing."""
import json
import os
import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass

import benchlib as lib
from campaign import digest

PATIENCE_S = 600
TRIES = 8  # a busy computer makes runs that are not valid
PM_WRITE_MBS = {"optane": 4600, "pram": 4500, "stt-ram": 32000}
WRITES = 0.25  # HYBRID_CLASS_WRITES: of that bandwidth


@dataclass(frozen=True)
class Job:
    """`place`: HYBRID_EMU_PLACE."""
    name: str
    workload: str
    cls: str
    place: str
    size: int
    rounds: int
    threads: int = 8


@dataclass
class Ended:
    """Virtual ms of the whole program, making and verifying its data included; counts of the timed part."""
    begin: float
    end: float
    counts: dict


class Turns:
    """Runs are kept in OUT/turns.jsonl, so that what was interrupted goes on."""

    def __init__(self, args, preset, cpus):
        self.build, self.out, self.preset, self.cpus = args.build, args.out, preset, cpus
        self.ctl = os.path.join(args.build, "tools", "hybridctl")
        os.makedirs(self.out, exist_ok=True)
        self.journal = lib.Journal(os.path.join(self.out, "turns.jsonl"),
                                   digest(os.path.join(self.build, "emu", "libpmemu.so")), getattr(args, "fresh", False))
        args.fresh = False  # once

    def key(self, jobs, slots, more):
        env = more(jobs[0], "FOLDER")
        return repr([self.preset, self.cpus, slots, jobs, self.env(jobs[0], ""), env,
                     [digest(self.argv(j)[0]) for j in jobs], [digest(env[k]) for k in ("LD_PRELOAD", "HYBRID_PROFILE") if k in env]])

    def argv(self, job):
        return [os.path.join(self.build, "bench", "workloads", "emu-" + job.workload), "--threads", str(job.threads),
                "--size", str(job.size), "--rounds", str(job.rounds), "--time"]

    def env(self, job, folder):
        return {"HYBRID_EMU_PRESET": self.preset, "HYBRID_EMU_CPUS": str(self.cpus), "HYBRID_EMU_PLACE": job.place,
                "HYBRID_EMU_MACHINE": folder + "/machine", "OMP_WAIT_POLICY": "passive"}

    def start(self, job, number, slots, count, folder, more):
        with open(f"{folder}/out-{number}", "wb") as out, open(f"{folder}/err-{number}", "wb") as err:
            return subprocess.Popen(self.argv(job) + ["--turn", f"{folder}/turns,{number},{slots},{count}"], stdout=out,
                                    stderr=err, stdin=subprocess.DEVNULL,
                                    env=lib.clean_env({**self.env(job, folder), **more,
                                                       "HYBRID_EMU_STATS": f"{folder}/emu-{number}.json"}))

    def once(self, jobs, slots, more):
        with tempfile.TemporaryDirectory(prefix="hybrid-turns-", dir="/dev/shm") as folder:
            some = [self.start(j, k, slots, len(jobs), folder, more(j, folder)) for k, j in enumerate(jobs)]
            try:
                status = [p.wait(PATIENCE_S) for p in some]
            except subprocess.TimeoutExpired:
                raise lib.BenchError(f"{', '.join(j.name for j in jobs)}: not done after {PATIENCE_S} s") from None
            finally:
                for p in some:
                    if p.poll() is None:
                        p.kill()
                        p.wait()
            found = {}
            for k, job in enumerate(jobs):
                with open(f"{folder}/out-{k}", encoding="utf-8") as f:
                    text = f.read()
                with open(f"{folder}/emu-{k}.json", encoding="utf-8") as f:
                    told = json.load(f)
                if told.get("valid") != "yes":
                    return f"{job.name}: {told.get('reason')}"
                turn = re.search(r"^turn begin_ns=(\d+) end_ns=(\d+)$", text, re.M)
                if status[k] or not turn or " ok\n" not in text:
                    with open(f"{folder}/err-{k}", encoding="utf-8", errors="replace") as f:
                        raise lib.BenchError(f"{job.name}: status {status[k]}: {text.strip()[:200]} {f.read()[:200]}")
                found[job.name] = Ended(*(int(t) / 1e6 for t in turn.groups()),
                                        {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", text)})
            return found

    def run(self, jobs, slots, more=lambda job, folder: {}):
        """{name: Ended}; `more(job, folder)`: environment besides the machine's."""
        key = self.key(jobs, slots, more)
        for record in self.journal.records:
            if record["key"] == key:
                return {n: Ended(**e) for n, e in record["value"].items()}
        for _ in range(TRIES):
            found = self.once(jobs, slots, more)
            if not isinstance(found, str):
                self.journal.add(key=key, value={n: asdict(e) for n, e in found.items()})
                return found
        raise lib.BenchError(f"{', '.join(j.name for j in jobs)}: the emulated machine calls its result not valid: {found}")

    def profile(self, job, ended):
        """What a run alone tells of it, for hybridctl batch."""
        c, ms = ended.counts, max(ended.end - ended.begin, 1)
        reads, writes = (c[k + "_DRAM"] + c[k + "_PM"] for k in ("LLC_RD", "WB"))
        writing = c["PM_BYTES_WR"] / 1e6 / (c["work_ns"] / 1e9) >= WRITES * PM_WRITE_MBS[self.preset]
        os.makedirs(self.out, exist_ok=True)
        path = os.path.join(self.out, job.name + ".ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[app]\nclass = {job.cls}\nwrite-intensive = {int(writing)}\nfootprint = {job.size}M\n[recorded]\n"
                    f"milliseconds = {round(ms)}\nreads = {reads}\nwrites = {writes}\n")
        return path

    def plan(self, jobs, slots, profiles, *options):
        """Names in the order in which hybridctl batch would start them."""
        path = os.path.join(self.out, "jobs")
        with open(path, "w", encoding="utf-8") as f:
            for j in jobs:
                policy = f"policy={j.place} " if j.place in ("dram", "pm") else ""
                f.write(f"name={j.name} profile={profiles[j.name]} {policy}{' '.join(self.argv(j))}\n")
        env = lib.clean_env({"HYBRID_EMU_PRESET": self.preset, "HYBRID_PM": "emulated"})
        done = subprocess.run([self.ctl, "batch", "--slots", str(slots), "--dry-run", *options, path], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        found = re.findall(r"^ *[0-9.]+ \w+  ([\w.+-]+) ", done.stdout, re.M)
        if done.returncode or sorted(found) != sorted(j.name for j in jobs):
            raise lib.BenchError(f"hybridctl batch --dry-run: {done.stderr.strip() or done.stdout}")
        return found


def whole(found):
    return max(e.end for e in found.values()) - min(e.begin for e in found.values())


def arguments(doc, kind, names, more=lambda parser: None):
    """Of a bench of `names`, all by default; `more` adds its own."""
    p = lib.script_parser(doc, "bench-batch")
    more(p)
    p.add_argument("--check", action="store_true")
    p.add_argument("--fresh", action="store_true", help="forget the runs made so far")
    p.add_argument(kind, nargs="*", help=", ".join(names))
    args = lib.script_folders(p.parse_args())
    asked = getattr(args, kind)
    for name in asked:
        if name not in names:
            p.error(f"there is no {name}")
    setattr(args, kind, [n for n in names if not asked or n in asked])
    return args
