# SPDX-License-Identifier: BSD-2-Clause
"""What the measuring scripts share: configurations, runs, statistics, journal."""
import argparse
import contextlib
import hashlib
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# Variables that would change what is measured.
FOREIGN = re.compile(r"^(HYBRID_|MEMKIND_|JEMK_|MALLOC_|MIMALLOC_|TCMALLOC_|GLIBC_TUNABLES$|"
                     r"LD_|PYTHON|PERL|GIT_|MESON_|NINJA|VALGRIND)")


class BenchError(Exception):
    """Something to be told to the user in one line."""


def add_common_arguments(parser, journal=None):
    parser.add_argument("--build", default=os.environ.get("HYBRID_BUILD", os.path.join(ROOT, "build")),
                        help="build folder with bench/ and shim/ (default: %(default)s)")
    parser.add_argument("--library", help="libhybrid.so to measure (default: BUILD/shim/libhybrid.so)")
    parser.add_argument("--out", help="folder for results (default: BUILD/bench-results)")
    parser.add_argument("--configs", help="only these configurations, comma separated")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs: a rough look")
    parser.add_argument("--check", action="store_true", help="compare with the limits; exit 1 and name what fails")
    if journal:
        parser.add_argument("--fresh", action="store_true", help="forget earlier, unfinished runs")


def script_parser(doc, folder):
    """For scripts with a folder of results of their own below the build; see script_folders."""
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("HYBRID_BUILD",
                                                          os.path.join(ROOT, "build")))
    parser.add_argument("--out", help=f"folder for results (default: BUILD/{folder})")
    parser.set_defaults(folder=folder)
    return parser


def script_folders(args):
    """Both as absolute paths."""
    args.build = os.path.abspath(args.build)
    args.out = os.path.abspath(args.out or os.path.join(args.build, args.folder))
    return args


def out_folder(args):
    folder = args.out or os.path.join(args.build, "bench-results")
    os.makedirs(folder, exist_ok=True)
    return folder


def program(args, name):
    path = os.path.join(args.build, "bench", "bench-" + name)
    if not os.access(path, os.X_OK):
        raise BenchError(f"{path} is missing: build first (ninja -C {args.build})")
    return path


def clean_env(extra=None):
    env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    env["LC_ALL"] = "C"
    env.update(extra or {})
    return env


# --- configurations -----------------------------------------------------------

class Config:
    """One way to run a program: a preloaded library and variables."""

    def __init__(self, name, label, library=None, env=None, hybrid=False, missing=None):
        self.name, self.label, self.library, self.hybrid = name, label, library, hybrid
        self.vars = dict(env or {})
        self.missing = missing  # why it cannot be measured here
        if library:
            self.vars["LD_PRELOAD"] = library

    def env(self, extra=None):
        return clean_env({**self.vars, **(extra or {})})


_ldconfig_text = None


def library_path(soname):
    """Full path of a shared library: a preload that is not found is only a
    warning of the loader, and plain glibc would be measured in its place."""
    global _ldconfig_text
    if _ldconfig_text is None:
        tool = shutil.which("ldconfig") or "/sbin/ldconfig"
        _ldconfig_text = subprocess.run([tool, "-p"], capture_output=True, text=True).stdout
    found = re.search(r"^\s*%s \(.*x86-64.*\) => (\S+)$" % re.escape(soname), _ldconfig_text, re.M)
    return found.group(1) if found else None


def all_configs(args, scratch):
    """Every configuration by name, in the order of the tables. `scratch` is a folder in
    memory for the file backends; the registry is private so that no other process of
    this user has a say in the result."""
    memtier = "KIND:DRAM,RATIO:1;POLICY:STATIC_RATIO"
    memtier2 = f"KIND:DRAM,RATIO:1;KIND:FS_DAX,PATH:{scratch},RATIO:1;POLICY:STATIC_RATIO"
    configs = [Config("glibc", "glibc")]
    for name, label, soname, env in [
            ("jemalloc", "jemalloc", "libjemalloc.so.2", {}),
            ("mimalloc", "mimalloc", "libmimalloc.so.2", {}),
            ("tcmalloc", "tcmalloc", "libtcmalloc_minimal.so.4", {}),
            ("memtier1", "libmemtier, DRAM", "libmemtier.so.0", {"MEMKIND_MEM_TIERS": memtier}),
            ("memtier2", "libmemtier, DRAM + file", "libmemtier.so.0", {"MEMKIND_MEM_TIERS": memtier2})]:
        path = library_path(soname)
        configs.append(Config(name, label, path, env, missing=None if path else f"{soname} is not installed"))
    path = os.path.abspath(args.library or os.path.join(args.build, "shim", "libhybrid.so"))
    missing = None if os.path.exists(path) else f"{path} is not built"
    registry = {"HYBRID_REGISTRY": os.path.join(scratch, "registry")}
    at_once = {**registry, "HYBRID_START": "0"}
    emulated = {**at_once, "HYBRID_PM": "emulated"}
    for name, label, env in [
            ("passive", "hybrid passive", {**registry, "HYBRID_PM": "none"}),
            ("dram", "hybrid DRAM heap", {**emulated, "HYBRID_POLICY": "dram"}),
            ("pm", "hybrid PM heap", {**emulated, "HYBRID_POLICY": "pm"}),
            ("dram-late", "hybrid DRAM heap, default START", {**registry, "HYBRID_PM": "emulated",
                                                              "HYBRID_POLICY": "dram"}),
            ("pm-late", "hybrid PM heap, default START", {**registry, "HYBRID_PM": "emulated",
                                                          "HYBRID_POLICY": "pm"}),
            ("file", "hybrid PM on a file", {**at_once, "HYBRID_POLICY": "pm", "HYBRID_PM": f"file:{scratch}"}),
            ("next", "hybrid, DRAM by next malloc", {**emulated, "HYBRID_POLICY": "dram",
                                                      "HYBRID_DRAM_ALLOCATOR": "next"})]:
        configs.append(Config(name, label, path, env, hybrid=True, missing=missing))
    return {c.name: c for c in configs}


def choose_configs(args, configs, default):
    """The configurations to run; one asked for by name must exist and be there,
    one of the default set that is not installed is left out aloud."""
    wanted = args.configs
    names = [n.strip() for n in wanted.split(",")] if wanted else list(default)
    chosen = []
    for name in names:
        if name not in configs:
            raise BenchError(f"unknown configuration '{name}'; known: {', '.join(configs)}")
        config = configs[name]
        if config.missing:
            if wanted:
                raise BenchError(f"configuration {name}: {config.missing}")
            print(f"left out: {name}: {config.missing}", file=sys.stderr)
            continue
        verify_preload(args, config)
        chosen.append(config)
    return chosen


def verify_preload(args, config):
    """The loader only warns about a bad preload and then runs plain glibc; a bad option
    is one line and then the default. Neither may be measured: nothing may be said.
    (A program of ours, as libmemtier breaks even cat.)"""
    if not config.library:
        return
    result = subprocess.run([program(args, "loops"), "pair", "64", "100"], env=config.env(),
                            capture_output=True, text=True)
    said = result.stderr.strip()
    if result.returncode != 0 or said:
        raise BenchError(f"configuration {config.name}: {said or 'status %d' % result.returncode}")
    if config.hybrid:
        verify_tier(args, config)


def verify_tier(args, config):
    """That blocks lie where the configuration says, by the library's own report."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        # Enough for the default START, which looks at what is resident.
        subprocess.run([program(args, "churn"), "330000"], env=config.env({"HYBRID_STATS": path}),
                       stdout=subprocess.DEVNULL, check=False)
        try:
            with open(path, encoding="utf-8") as f:
                report = json.load(f)
            state, peak = report["state"], {t: v["peak"] for t, v in report["tiers"].items()}
        except (OSError, ValueError, KeyError) as error:
            raise BenchError(f"configuration {config.name}: no usable report of the library: {error}") from None
    policy = config.vars.get("HYBRID_POLICY")
    if config.vars.get("HYBRID_PM") == "none":
        right = state == "passive"
    elif policy in peak:
        other = "pm" if policy == "dram" else "dram"
        # Below HYBRID_START, and while memkind is opened, all is DRAM.
        late = policy == "pm" and config.vars.get("HYBRID_START") != "0"
        right = (state == "steering" and peak[policy] > 1 << 20 and
                 peak[other] < (peak[policy] / 2 if late else 1 << 20))
    else:
        right = state == "steering"
    if not right:
        raise BenchError(f"configuration {config.name}: the library says '{state}', peak bytes {peak}")


@contextlib.contextmanager
def scratch_folder():
    """A folder in memory, removed at the end."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = tempfile.mkdtemp(prefix="hybrid-bench-", dir=parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# --- runs -----------------------------------------------------------------------

class Run:
    def __init__(self, status, cpu, wall, faults, out, err):
        self.status, self.cpu, self.wall, self.faults, self.out, self.err = status, cpu, wall, faults, out, err

    @property
    def ok(self):
        return self.status == 0

    def problem(self):
        said = self.err.strip().splitlines()
        how = f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        return how + (f": {said[-1]}" if said else "")


def run(argv, env, timeout=300, cwd=None, stdin=None):
    """Run to the end. CPU time is user + system time as the kernel accounts it to
    exactly this child (wait4), not the machine's."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
            open(stdin or os.devnull, "rb") as source:
        begin = time.perf_counter()
        child = subprocess.Popen(argv, env=env, stdin=source, stdout=out, stderr=err, cwd=cwd)
        killer = threading.Timer(timeout, child.kill)
        killer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            killer.cancel()
        wall = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(1 << 20).decode("utf-8", "replace"))
    return Run(child.returncode, usage.ru_utime + usage.ru_stime, wall, usage.ru_minflt, *texts)


def callgrind(argv, env, cwd=None, stdin=None):
    """Instructions that the program executed in user mode, loader included."""
    tool = shutil.which("valgrind")
    if not tool:
        raise BenchError("valgrind is not installed")
    result = run([tool, "--tool=callgrind", "--callgrind-out-file=/dev/null", *argv], env,
                 timeout=900, cwd=cwd, stdin=stdin)
    found = re.search(r"Collected : (\d+)", result.err)
    if not result.ok or not found:
        raise BenchError(f"callgrind of {argv[0]} failed: {result.problem()}")
    return int(found.group(1))


# --- statistics --------------------------------------------------------------

def quantile(values, q):
    """Linear between the neighbours."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summary(values):
    return {"median": quantile(values, 0.5), "q1": quantile(values, 0.25),
            "q3": quantile(values, 0.75), "n": len(values)}


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def table(head, rows):
    """Aligned text; the first column to the left, the others to the right."""
    lines = [head] + rows
    width = [max(len(str(line[i])) for line in lines) for i in range(len(head))]
    text = []
    for number, line in enumerate(lines):
        cells = [str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(line, width))]
        text.append("  ".join(cells).rstrip())
        if number == 0:
            text.append("  ".join("-" * w for w in width))
    return "\n".join(text)


class Progress:
    """One line that renews itself on a terminal; elsewhere a line every tenth. For several threads."""

    def __init__(self, total):
        self.total, self.done, self.begin, self.told = total, 0, time.monotonic(), -1
        self.tty, self.lock = sys.stderr.isatty(), threading.Lock()

    def step(self, what):
        with self.lock:
            self.done += 1
            self.tell(what)

    def tell(self, what):
        spent = time.monotonic() - self.begin
        left = spent / self.done * max(self.total - self.done, 0)
        line = f"[{self.done}/{self.total}] {what}, about {left:.0f} s left"
        if self.tty:
            print("\r\x1b[K" + line[:110], end="\r", file=sys.stderr, flush=True)
        elif self.done * 10 // self.total > self.told:
            self.told = self.done * 10 // self.total
            print(line, file=sys.stderr, flush=True)

    def end(self):
        if self.tty:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def shuffled(items, *seed):
    """A random order that is the same when an interrupted campaign goes on."""
    items = list(items)
    random.Random(repr(seed)).shuffle(items)
    return items


# --- journal -----------------------------------------------------------------

def fingerprint(*parts):
    """Of what is measured: files by size and time of change, anything else by text."""
    h = hashlib.sha256()
    for part in parts:
        if isinstance(part, str) and os.path.isfile(part):
            st = os.stat(part)
            part = (os.path.realpath(part), st.st_size, st.st_mtime_ns)
        h.update(repr(part).encode() + b"\0")
    return h.hexdigest()[:16]


class Journal:
    """Append-only lines of JSON, one per run. An interrupted campaign goes on where it
    was; lines of another campaign (other libraries, other sizes) are not mixed in."""

    def __init__(self, path, campaign, fresh=False):
        self.path, self.campaign, self.records = path, campaign, []
        if fresh and os.path.exists(path):
            os.unlink(path)
        cut = False
        if os.path.exists(path):
            with open(path, "rb") as f:
                for line in f:
                    cut = not line.endswith(b"\n")
                    try:
                        record = json.loads(line)
                    except ValueError:
                        continue  # a write that was interrupted
                    if isinstance(record, dict) and record.get("campaign") == campaign:
                        self.records.append(record)
        if cut:
            self.write("\n")

    def write(self, text):
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(text)

    def add(self, **record):
        record["campaign"] = self.campaign
        self.write(json.dumps(record) + "\n")
        self.records.append(record)


def write_json(path, value):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


def machine():
    model = ""
    with contextlib.suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            found = re.search(r"model name\s*:\s*(.+)", f.read())
            model = found.group(1) if found else ""
    uname = os.uname()
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": uname.release, "load": os.getloadavg()[0],
            "date": time.strftime("%Y-%m-%d")}


def verdict(failures):
    """Print what fails; the exit status."""
    for failure in failures:
        print("FAIL: " + failure)
    if not failures:
        print("check: all limits hold")
    return 1 if failures else 0


def main_guard(main):
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        sys.exit(130)
