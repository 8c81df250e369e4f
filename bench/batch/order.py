#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who runs beside whom: hybridctl batch against the order of the file, and against all orders.

    bench/batch/order.py [--build DIR] [--quick] [--out DIR]

After paper 004, section V-C and figure 8, group 1: lu_cb on PM hinders ocean_cp on DRAM; freqmine
suffers little. Three jobs, two slots, 8 threads each, on the emulated machine (preset optane, 16
CPUs). The time is that from the first begin to the last end, in virtual time. Rows:
  file       the order of the job file: lu and ocean first, then mining
  batch      what hybridctl batch chooses, which knows class, writes and bandwidth from profiles that
             are made here from a run alone
  best       the best of all orders (with two slots: which two come first)
Every job here runs as hybridctl batch starts it. Control: the same orders with lu on DRAM, where
there is no conflict: what they differ by is packing alone."""
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import benchlib as lib  # noqa: E402: found by the path above

PRESET = "optane"
PAPER = -34.8  # percent
# workload: class, place, size, rounds for as long a time alone that the start of a process, during which
# the others' virtual time goes on, is a small part of it
JOBS = {"lu": ("latency", "pm", 6, 2), "ocean": ("bandwidth", "dram", 8, 30), "mining": ("cpu", "dram", 6, 3)}


class Bench:
    def __init__(self, args):
        self.build, self.out, self.quick = args.build, args.out, args.quick
        self.ctl = os.path.join(args.build, "tools", "hybridctl")

    def line(self, name, place, options=""):
        cls, _, size, rounds = JOBS[name]
        binary = os.path.join(self.build, "bench", "workloads", "emu-" + name)
        return (f"name={name} {options} HYBRID_EMU_PLACE={place} {binary} --threads 8 --size {size} --rounds "
                f"{1 if self.quick else rounds} --time\n")

    def batch(self, name, text, *options):
        """Runs a job file; {job: (begin, end, counts)} in virtual ns."""
        folder = os.path.join(self.out, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with open(folder + "/jobs", "w", encoding="utf-8") as f:
            f.write(text)
        env = lib.clean_env({"HYBRID_POLICY": "off", "HYBRID_EMU_PRESET": PRESET, "HYBRID_EMU_CPUS": "16",
                             "HYBRID_EMU_MACHINE": folder + "/machine", "OMP_WAIT_POLICY": "passive"})
        p = subprocess.run([self.ctl, "batch", "--slots", "2", *options, "-o", folder + "/out", folder + "/jobs"],
                           env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if p.returncode:
            raise lib.BenchError(f"{name}: {p.stderr.strip()}")
        if "--dry-run" in options:
            return re.findall(r"^ *[0-9.]+ \w+  (\w+) ", p.stdout, re.M)
        found = {}
        for file in os.listdir(folder + "/out"):
            m = re.fullmatch(r"\d+-(\w+)\.out", file)
            if m:
                with open(f"{folder}/out/{file}", encoding="utf-8") as f:
                    counts = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", f.read())}
                found[m.group(1)] = counts
        return found

    def profile(self, name, counts):
        cls, place, size, _ = JOBS[name]
        reads = counts["LLC_RD_DRAM"] + counts["LLC_RD_PM"]
        writes = counts["WB_DRAM"] + counts["WB_PM"]
        ms = counts["work_ns"] / 1e6
        path = os.path.join(self.out, name + ".ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[app]\nclass = {cls}\nwrite-intensive = {int(name == 'lu')}\nfootprint = {size}M\n[recorded]\n"
                    f"milliseconds = {max(1, round(ms))}\nreads = {reads}\nwrites = {writes}\n")
        return path


def whole_ms(found):
    return (max(c["end_ns"] for c in found.values()) - min(c["begin_ns"] for c in found.values())) / 1e6


def first_two(order):
    return "+".join(sorted(order[:2]))


def main():
    p = lib.script_parser(__doc__, "bench-batch")
    p.add_argument("--quick", action="store_true", help="one round each: tells whether it works, not how much it gains")
    args = lib.script_folders(p.parse_args())
    bench = Bench(args)
    alone = {n: bench.batch("alone-" + n, bench.line(n, JOBS[n][1]))[n] for n in JOBS}
    profiles = {n: bench.profile(n, c) for n, c in alone.items()}
    text = "".join(bench.line(n, JOBS[n][1], f"profile={profiles[n]} policy={JOBS[n][1]}") for n in JOBS)
    chosen = first_two(bench.batch("plan", text, "--dry-run"))
    pairs = [first_two(pair) for pair in itertools.combinations(JOBS, 2)]
    times = {}
    for place in ("pm", "dram"):
        for pair in pairs:
            order = pair.split("+") + [n for n in JOBS if n not in pair.split("+")]
            found = bench.batch(f"{place}-{pair}", "".join(
                bench.line(n, place if n == "lu" else JOBS[n][1]) for n in order))
            times[place, pair] = {"whole_ms": whole_ms(found), "each_ms": {n: c["work_ns"] / 1e6 for n, c in found.items()}}
    rows, result = [], {"paper": PAPER, "chosen": chosen, "alone_ms": {n: c["work_ns"] / 1e6 for n, c in alone.items()}, "rows": {}}
    best = min(pairs, key=lambda q: times["pm", q]["whole_ms"])
    for label, pair in (("file", "lu+ocean"), ("batch", chosen), ("best", best)):
        row = [label, pair.replace("+", " + ") + " first"]
        for place in ("pm", "dram"):
            t, base = times[place, pair], times[place, "lu+ocean"]
            gain = 100 * (t["whole_ms"] / base["whole_ms"] - 1)
            row += [f"{t['whole_ms']:.1f}", f"{gain:+.1f} %"]
            result["rows"][f"{label} {place}"] = dict(t, pair=pair, gain=gain)
        rows.append(row)
    print(lib.table(["", "order", "lu on PM, ms", "", "control: lu on DRAM, ms", ""], rows))
    print("alone: " + ", ".join(f"{n} {ms:.1f} ms" for n, ms in result["alone_ms"].items()) + f"; paper: {PAPER} %")
    lib.write_json(os.path.join(args.out, "order.json"), {"machine": lib.machine(), "preset": PRESET, **result})
    return 0


if __name__ == "__main__":
    lib.main_guard(main)
