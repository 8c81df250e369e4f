#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Per-site placement from a recorded profile beside the best static placement by object, on
the emulated machine: each workload is recorded once, its objects are counted exactly, the sets
of objects that fill the DRAM are searched, and the profile's run is measured beside them. Also
with other sizes than those that were recorded. See bench/README.md, 'Sites'."""
import argparse
import json
import os
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "race")]
import benchlib as lib
import search
from optimum import parse_objects

# Of what the best static placement gains over all-PM (issue: at least 95 %).
LIMIT = 0.95
# With another size than the recorded one: what fits the caches changes, and with it which
# objects are read from memory at all; only the ranking can hold.
LIMIT_RESIZED = 0.65
# Less to be gained than this part of the time on PM is no case: it would be noise.
LEAST_GAIN = 0.02
SHARES = {"1/5": 5, "1/3": 3, "1/2": 2}
# With several objects. The last two are mostly computing.
WORKLOADS = ["cg", "kv", "fft", "radix", "bfs", "pagerank", "ocean", "cluster", "heat", "stream",
             "lu", "mining"]
QUICK = (["cg", "ocean"], ["1/3"])
# Recorded with the size of the workload, run with another: in percent of it.
RESIZED = {"cg": (50, 200), "pagerank": (50, 200), "radix": (50, 200)}
# Memory that is no object (libraries, stacks) and pages that blocks begin in.
SPARE = 1 << 20


class Bench:
    def __init__(self, args):
        self.build, self.preset, self.threads = args.build, args.preset, args.threads
        self.library = os.path.join(args.build, "shim", "libhybrid.so")
        self.placer = os.path.join(args.build, "bench", "race", "bench-place.so")
        self.progress = None
        for path in (self.library, self.placer):
            if not os.path.exists(path):
                raise lib.BenchError(f"{path} is missing: ninja -C {args.build} race")

    def run(self, name, size, env, folder, what):
        """Virtual ms of the whole program."""
        stats = os.path.join(folder, "emu.json")
        argv = [os.path.join(self.build, "bench", "workloads", f"emu-{name}"), "--emulated",
                "--threads", str(self.threads)]
        argv += ["--size", str(size)] if size else []
        done = lib.run(argv, lib.clean_env({"HYBRID_EMU_PRESET": self.preset,
                                            "HYBRID_EMU_MACHINE": os.path.join(folder, "machine"),
                                            "HYBRID_EMU_STATS": stats, **env}))
        if self.progress:
            self.progress.step(f"{name} {what}")
        if not done.ok or " ok\n" not in done.out:
            raise lib.BenchError(f"{name}, {what}: {done.problem()}")
        with open(stats, encoding="utf-8") as f:
            told = json.load(f)
        if told.get("valid") in (False, "no", 0):
            raise lib.BenchError(f"{name}, {what}: the machine says that the run does not count")
        return float(told["virtual_ms"])

    # --- the four kinds of runs -------------------------------------------------------

    def placed(self, name, size, places, room, what, objects=False):
        """Under bench-place.so: a digit for each large block."""
        with tempfile.TemporaryDirectory(prefix="hybrid-sites-") as folder:
            listed = os.path.join(folder, "objects")
            env = {"LD_PRELOAD": self.placer, "HYBRID_PLACE": places, "HYBRID_PLACE_LIST": listed}
            if room:
                env["HYBRID_EMU_DRAM"] = str(room + SPARE)
            if objects:
                env["HYBRID_EMU_PAGE_COUNTS"] = "1"
            ms = self.run(name, size, env, folder, what)
            with open(listed, encoding="utf-8") as f:
                text = f.read()
        return (ms, search.with_counts(parse_objects(text), text)) if objects else ms

    def hybrid(self, name, size, env, what):
        with tempfile.TemporaryDirectory(prefix="hybrid-sites-") as folder:
            return self.run(name, size, {
                "LD_PRELOAD": self.library, "HYBRID_PM": "emulated", "HYBRID_START": "0",
                "HYBRID_REGISTRY": "none", "HYBRID_THREADS": "off",
                "HYBRID_MIGRATE": "off", **env}, folder, what)

    def record(self, name, size, profile):
        return self.hybrid(name, size, {"HYBRID_POLICY": "dram", "HYBRID_CLASS_PERIOD": "1ms",
                                        "HYBRID_RECORD": profile}, "recorded")

    def with_profile(self, name, size, profile, room, what):
        """The middle one of three: the control thread is in no lock-step with the machine, and
        where a placement gains little, 0.1 % of the time are some percent of that."""
        env = {"HYBRID_PROFILE": profile, "HYBRID_DRAM": str(room),
               "HYBRID_EMU_DRAM": str(room + SPARE)}
        return statistics.median(self.hybrid(name, size, env, what) for _ in range(3))


def case(bench, name, size, share, profile, pm_ms, objects, most):
    """One line of the table: the best of the sets that were tried, and the profile's run."""
    room = sum(search.pages(o.bytes) for o in objects) // SHARES[share]
    sets, there_are = search.candidates(objects, room, most)
    best_ms, best = pm_ms, ()
    for chosen in sets:
        ms = bench.placed(name, size, search.digits(chosen, objects), room, f"{share} tried")
        if ms < best_ms:
            best_ms, best = ms, tuple(sorted(o.number for o in chosen))
    if best:  # the middle one of three as well: the least of single runs is a lucky one
        digits = search.digits([o for o in objects if o.number in best], objects)
        best_ms = statistics.median([best_ms] + [
            bench.placed(name, size, digits, room, f"{share} best again") for _ in range(2)])
    got = bench.with_profile(name, size, profile, room, f"{share} by the profile")
    gain = pm_ms - best_ms
    counts = gain >= LEAST_GAIN * pm_ms
    return {"workload": name, "size": size, "share": share, "dram": room, "objects": len(objects),
            "pm_ms": pm_ms, "best_ms": best_ms, "best": best, "profile_ms": got,
            "sets": there_are, "tried": len(sets), "counts": counts,
            "of_gain": (pm_ms - got) / gain if counts else None}


def workload(bench, name, args):
    shares = args.share or (QUICK[1] if args.quick else list(SHARES))
    sizes = [0]
    if not args.quick and not args.no_resize:
        sizes += [max(1, search.default_size(name) * p // 100) for p in RESIZED.get(name, ())]
    rows = []
    with tempfile.TemporaryDirectory(prefix="hybrid-sites-") as folder:
        profile = os.path.join(folder, f"{name}.ini")
        bench.record(name, 0, profile)
        for size in sizes:
            pm_ms, objects = bench.placed(name, size, "1", 0, "all on PM", objects=True)
            for share in shares if size == 0 else shares[:2]:
                rows.append(case(bench, name, size, share, profile, pm_ms, objects, args.sets))
        if args.keep:
            os.makedirs(args.keep, exist_ok=True)
            with open(profile, encoding="utf-8") as f, \
                    open(os.path.join(args.keep, f"{name}.ini"), "w", encoding="utf-8") as to:
                to.write(f.read())
    return rows


def table(rows):
    head = ["workload", "MiB", "objects", "DRAM", "sets", "tried", "PM ms", "best ms", "profile ms",
            "of gain"]
    lines = []
    for r in rows:
        lines.append([r["workload"], r["size"] or "-", r["objects"], r["share"], r["sets"],
                      r["tried"], f"{r['pm_ms']:.2f}", f"{r['best_ms']:.2f}",
                      f"{r['profile_ms']:.2f}",
                      f"{100 * r['of_gain']:.1f} %" if r["counts"] else "(no gain)"])
    return lib.table(head, lines)


def write(args, rows):
    if args.json:
        lib.write_json(args.json, {"preset": args.preset, "threads": args.threads, "rows": rows})


def failures(rows):
    found = []
    for r in rows:
        what = f"{r['workload']}, {r['size'] or 'recorded'} size, DRAM {r['share']}"
        limit = LIMIT_RESIZED if r["size"] else LIMIT
        if r["counts"] and r["of_gain"] < limit:
            found.append(f"{what}: {100 * r['of_gain']:.1f} % of the best gain, "
                         f"at least {100 * limit:.0f} %")
        elif not r["counts"] and r["profile_ms"] > r["pm_ms"] * (1 + LEAST_GAIN):
            found.append(f"{what}: slower than all on PM")
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.environ.get("HYBRID_BUILD",
                                                          os.path.join(lib.ROOT, "build")))
    parser.add_argument("--preset", default="pram", help="the emulated machine (%(default)s)")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--share", action="append", choices=SHARES)
    parser.add_argument("--sets", type=int, default=16, metavar="N",
                        help="sets of objects to run at most (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="two workloads, one share")
    parser.add_argument("--no-resize", action="store_true", help="only the recorded sizes")
    parser.add_argument("--check", action="store_true",
                        help=f"exit 1 where less than {100 * LIMIT:.0f} %% of the gain is reached, "
                             f"{100 * LIMIT_RESIZED:.0f} %% with other sizes")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--keep", metavar="DIR", help="keep the profiles there")
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    args = parser.parse_args()
    unknown = [n for n in args.names if n not in WORKLOADS]
    if unknown:
        parser.error(f"{', '.join(unknown)}: there are {', '.join(WORKLOADS)}")
    args.build = os.path.abspath(args.build)
    return args


def main():
    args = arguments()
    names = args.names or (QUICK[0] if args.quick else WORKLOADS)
    bench = Bench(args)
    shares = len(args.share or (QUICK[1] if args.quick else SHARES))
    resized = 0 if args.quick or args.no_resize else \
        sum(len(RESIZED.get(n, ())) * (1 + min(shares, 2) * 10) for n in names)
    bench.progress = lib.Progress(len(names) * (2 + shares * 12) + resized)
    rows = []
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda n: workload(bench, n, args), names):
            rows += found
            write(args, rows) # what there is, should somebody interrupt us
    bench.progress.end()
    print(f"{args.preset}, {args.threads} threads; virtual time of the whole program")
    print(table(rows))
    if args.check:
        return lib.verdict(failures(rows))
    return 0


if __name__ == "__main__":
    lib.main_guard(main)
