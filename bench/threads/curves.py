#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How programs scale on each memory, and whether libhybrid finds the right number of threads.

    bench/threads/curves.py [--build DIR] [--quick] [--check] [--fresh] [--out DIR] [NAME ...]

On the emulated machine with 20 CPUs (preset optane), each workload:
  curves   1 to 20 threads, all data on DRAM and all on PM: the time of each
  offline  the number that 'hybridctl tune' would choose from these times (its own rule on the
           same runs), against the best of them all
  online   without a profile: started with 20 threads, all data on PM, libhybrid searches while
           the program runs. The whole run, search included, against the same run without search
           (HYBRID_THREADS=off), and against the best number from the start. Long enough for
           trials: LENGTH_MS of virtual time with the best number, as many windows of counts. One
           that cannot be made half as long (cg has found its solution) is shown as short.
Virtual times repeat whatever else the computer does. Runs are kept in OUT/runs.jsonl: what was
interrupted goes on. --check: status 1 where a limit does not hold (LIMITS)."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "workloads"), str(HERE.parent), str(HERE.parent.parent / "tools")]
import benchlib as lib  # noqa: E402: found by the path above
import tune  # noqa: E402
from calibrate import read_table  # noqa: E402
from emulated import Bench, Failure  # noqa: E402
from misses import WORKLOADS  # noqa: E402

CPUS = 20
PRESET = "optane"
TIERS = ("dram", "pm")
DEFAULT = ("pricing", "mining", "lu", "stream", "fft", "ocean", "radix", "cg", "cluster", "kv")
QUICK = ("mining", "stream")
QUICK_COUNTS = (1, 4, 10, 20)  # on DRAM; all on PM
LENGTH_MS, QUICK_MS = 1500, 1000
WINDOW = "1ms"

LIMITS = {
    "offline": (1.05, "issue 'threads': within 5 % of the best time found by trying all"),
    "online": (1.01, "a search never costs more than its purse, 1 % of the time without one"),
    "cpu_scales": (0.8, "CPU-bound: speed-up with 20 threads on PM over that on DRAM; the paper's "
                        "freqmine scales alike on both (004, figure 5), with 8 threads as here"),
    "cpu_speed": (10, "CPU-bound: speed-up with 20 threads on either"),
    "pm_full": (8, "bandwidth-bound: the most threads that are worth it on PM; the paper has 4 for "
                   "FT and 'hardly' any gain for LU"),
}


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]


def work_ms(out):
    return int(re.search(r"clock=virtual .*work_ns=(\d+)", out)[1]) / 1e6


class Measure:
    def __init__(self, args, progress):
        self.build = pathlib.Path(args.build)
        self.bench = Bench(self.build, progress)
        self.progress = progress
        self.table = read_table()
        out = lib.out_folder(args)
        machine = digest(self.build / "emu" / "libpmemu.so")
        self.journal = lib.Journal(os.path.join(out, "runs.jsonl"), f"{PRESET} {machine}",
                                   args.fresh)
        self.known = {r["key"]: r["value"] for r in self.journal.records}

    def once(self, name, key, make):
        key = f"{name} {digest(self.build / 'bench' / 'workloads' / f'emu-{name}')} {key}"
        if key not in self.known:
            self.known[key] = make()
            self.journal.add(key=key, value=self.known[key])
        else:
            self.progress.total -= 1
        return self.known[key]

    def rounds(self, name, factor):
        return max(1, round(self.table[name][1] * factor))

    def static(self, name, tier, threads, factor=1):
        """Virtual ms with so many threads, and `factor` times the usual rounds."""
        rounds = self.rounds(name, factor)

        def run():
            out, _ = self.bench.run(self.command(name, threads, rounds), PRESET=PRESET, PLACE=tier,
                                    CPUS=CPUS)
            return work_ms(out)
        return self.once(name, f"static {tier} {threads} {rounds}", run)

    def command(self, name, threads, rounds):
        return [str(self.bench.folder / f"emu-{name}"), "--threads", str(threads), "--emulated",
                "--rounds", str(rounds), "--time"]

    def online(self, name, factor, search):
        """The same under libhybrid, which finds the number, or does not search; its report as well."""
        rounds = self.rounds(name, factor)
        library = self.build / "shim" / "libhybrid.so"
        setting = "auto" if search else "off"
        return self.once(name, f"online {setting} {rounds} {digest(library)}", lambda: self.search(
            name, rounds, library, setting))

    def search(self, name, rounds, library, setting):
        with tempfile.TemporaryDirectory() as folder:
            env = lib.clean_env({
                "LD_PRELOAD": str(library), "HYBRID_PM": "emulated", "HYBRID_START": "0",
                "HYBRID_POLICY": "pm", "HYBRID_REGISTRY": "none", "HYBRID_CLASS_PERIOD": WINDOW,
                "HYBRID_INTERVAL": WINDOW, "HYBRID_THREADS": setting, "HYBRID_STATS": folder + "/stats",
                "HYBRID_EMU_PRESET": PRESET, "HYBRID_EMU_CPUS": str(CPUS)})
            argv = self.command(name, CPUS, rounds)
            done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
            self.progress.step(name)
            if done.returncode or " ok\n" not in done.stdout or done.stderr.strip():
                raise Failure(f"{' '.join(argv)} under libhybrid: status {done.returncode}\n"
                              f"{done.stdout}{done.stderr}")
            with open(folder + "/stats", encoding="utf-8") as f:
                report = json.load(f)
        return {"ms": work_ms(done.stdout), "threads": report["threads"], "class": report["class"]}


# --- decisions: pure --------------------------------------------------------------------

def tuned(times):
    """What hybridctl tune chooses, and the runs that it needs for it."""
    seen = {}
    while (n := tune.next_count(seen, CPUS)) is not None:
        if n not in times:  # a quick run has not measured all
            return None, 0
        seen[n] = times[n]
    return tune.choose(seen), len(seen)


def judge(name, found, wrong):
    """Which limits the workload does not keep."""
    def limit(which, bad, what):
        if bad:
            wrong.append(f"{name}: {what} (limit {LIMITS[which][0]}: {LIMITS[which][1]})")

    kind = WORKLOADS[name]
    speed = {t: found[t]["speed_up"] for t in TIERS}
    for t in TIERS:
        over = found[t]["offline_over_best"] or 1
        limit("offline", over > LIMITS["offline"][0],
              f"{found[t]['offline']} threads on {t} take {over:.3f} of the best time")
    if kind == "cpu":
        limit("cpu_scales", speed["pm"][CPUS] < LIMITS["cpu_scales"][0] * speed["dram"][CPUS],
              f"speed-up {speed['pm'][CPUS]:.1f} on PM, {speed['dram'][CPUS]:.1f} on DRAM")
        limit("cpu_speed", min(s[CPUS] for s in speed.values()) < LIMITS["cpu_speed"][0],
              f"speed-up {speed['pm'][CPUS]:.1f} on PM, {speed['dram'][CPUS]:.1f} on DRAM")
    if kind == "bandwidth":
        limit("pm_full", found["pm"]["offline"] > LIMITS["pm_full"][0],
              f"{found['pm']['offline']} threads are worth it on PM")
    if "online" in found:
        ratio = found["online"]["over_off"]
        limit("online", ratio > LIMITS["online"][0],
              f"with a search it takes {ratio:.3f} of the time without one")


# --- runs ------------------------------------------------------------------------------

def curves(measure, names, counts, pool):
    """`counts` by tier."""
    jobs = [(n, t, c) for n in names for t in TIERS for c in counts[t]]
    times = dict(zip(jobs, pool.map(lambda j: measure.static(*j), jobs)))
    found = {}
    for name in names:
        found[name] = {"class": WORKLOADS[name]}
        for tier in TIERS:
            ms = {c: times[name, tier, c] for c in counts[tier]}
            chosen, runs = tuned(ms)
            best = min(ms.values())
            found[name][tier] = {
                "ms": ms, "speed_up": {c: ms[1] / v for c, v in ms.items()}, "offline": chosen,
                "offline_runs": runs, "offline_over_best": chosen and ms[chosen] / best,
                "best": min(c for c in ms if ms[c] == best)}
    return found


def online(measure, found, length_ms, pool):
    def one(name):
        pm = found[name]["pm"]
        factor = length_ms / pm["ms"][pm["best"]]
        best = measure.static(name, "pm", pm["best"], factor)
        off = measure.online(name, factor, False)["ms"]
        run = measure.online(name, factor, True)
        t = run["threads"]
        return {"ms": run["ms"], "short": best < length_ms / 2, "best_ms": best,
                "off_ms": off, "over_off": run["ms"] / off, "over_best": run["ms"] / best,
                "class": run["class"], "searches": t["searches"],
                "chosen": t["chosen"] if t["searches"] else 0, "knee": t["knee"],
                "tried": t["tried"]}

    for name, row in zip(found, pool.map(one, found)):
        found[name]["online"] = row


# --- what comes out ----------------------------------------------------------------------

def show(found, counts):
    shown = [c for c in counts["pm"] if c in (1, 2, 3, 4, 6, 8, 10, 12, 16, 20)]
    rows = []
    for name, tier in [(n, t) for n in found for t in TIERS]:
        row = found[name][tier]
        rows.append([f"{name} {tier}", *(f"{row['speed_up'][c]:.2f}" if c in row["speed_up"] else ""
                                         for c in shown), row["best"], row["offline"] or "-",
                     f"{row['offline_over_best']:.3f}" if row["offline"] else "-"])
    text = [f"Speed-up by threads, preset {PRESET}, {CPUS} CPUs; offline: what tune chooses, its "
            "time over the best",
            lib.table(["workload", *map(str, shown), "best", "offline", "over best"], rows)]
    rows = []
    for name, row in found.items():
        o = row.get("online")
        if o:
            tried = ", ".join(str(t["threads"]) for t in o["tried"]) or "-"
            rows.append([name, f"{o['best_ms']:.0f}", f"{o['off_ms']:.0f}", f"{o['ms']:.0f}",
                         f"{o['over_off']:.3f}", f"{o['over_best']:.3f}" + (" short" if o["short"] else ""),
                         o["chosen"] or "-", tried])
    if rows:
        text += ["", f"Without a profile, data on PM, from {CPUS} threads on: virtual ms with the "
                 "best number, under libhybrid without a search, and with one",
                 lib.table(["workload", "best", "no search", "search", "over none", "over best",
                            "chosen", "tried"], rows)]
    return "\n".join(text)


def draw(found, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    columns = min(5, len(found))
    figure, grid = plt.subplots(-(-len(found) // columns), columns, squeeze=False,
                                figsize=(2.7 * columns, 2.5 * -(-len(found) // columns)),
                                layout="constrained")
    for axes in grid.flat:
        axes.set_visible(False)
    for axes, (name, row) in zip(grid.flat, found.items()):
        axes.set_visible(True)
        for tier, style, colour in (("dram", ".-", "#1f77b4"), ("pm", ".-", "#d62728")):
            speed = row[tier]["speed_up"]
            axes.plot(list(speed), list(speed.values()), style, color=colour, label=tier.upper())
            if row[tier]["offline"]:
                axes.axvline(row[tier]["offline"], color=colour, linewidth=0.8, linestyle=":")
        if row.get("online", {}).get("chosen"):
            n = row["online"]["chosen"]
            axes.plot([n], [0], "^", color="black", clip_on=False, label="found while running")
        axes.set_title(f"{name} ({row['class']})", fontsize=8)
        axes.set(ylim=(0, None), xlim=(0, CPUS + 0.5))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    grid.flat[0].legend(fontsize=7)
    figure.supxlabel("threads; dotted: the number that tune chooses", fontsize=8)
    figure.supylabel("speed-up", fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def arguments():
    p = lib.script_parser(__doc__, "bench-threads")
    p.add_argument("--quick", action="store_true", help=f"{' and '.join(QUICK)} only, "
                   "few counts on DRAM: about two minutes")
    p.add_argument("--check", action="store_true", help="status 1 where a limit does not hold")
    p.add_argument("--fresh", action="store_true", help="forget the runs made so far")
    p.add_argument("--no-online", action="store_true", help="the curves only")
    p.add_argument("names", nargs="*", metavar="NAME",
                   help=f"workloads (default: {' '.join(DEFAULT)})")
    args = lib.script_folders(p.parse_args())
    for name in args.names:
        if name not in WORKLOADS:
            p.error(f"'{name}' is no workload; there are {', '.join(WORKLOADS)}")
    args.names = args.names or (QUICK if args.quick else DEFAULT)
    return args


def main():
    args = arguments()
    for path in [os.path.join(args.build, "bench", "workloads", f"emu-{n}") for n in args.names] + \
            [os.path.join(args.build, "shim", "libhybrid.so")]:
        if not os.path.exists(path):
            raise lib.BenchError(f"{path} is missing: build first (ninja -C {args.build})")
    counts = {"dram": list(QUICK_COUNTS if args.quick else range(1, CPUS + 1)),
              "pm": list(range(1, CPUS + 1))}
    total = len(args.names) * (sum(map(len, counts.values())) + (0 if args.no_online else 3))
    progress = lib.Progress(total)
    measure = Measure(args, progress)
    wrong = []
    try:
        with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
            found = curves(measure, args.names, counts, pool)
            if not args.no_online:
                online(measure, found, QUICK_MS if args.quick else LENGTH_MS, pool)
    except Failure as error:
        raise lib.BenchError(str(error)) from None
    progress.end()
    text = show(found, counts)
    print(text)
    with open(os.path.join(args.out, "curves.txt"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    lib.write_json(os.path.join(args.out, "curves.json"), {
        "machine": lib.machine(), "preset": PRESET, "limits": {k: v[0] for k, v in LIMITS.items()},
        "workloads": found})
    try:
        draw(found, os.path.join(args.out, "curves.png"))
        print(f"picture: {args.out}/curves.png")
    except ImportError:
        print("no picture: python3-matplotlib is not installed")
    for name, row in found.items():
        judge(name, row, wrong)
    return lib.verdict(wrong) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
