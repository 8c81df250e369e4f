#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Resident memory of redis and python under every allocator as a ratio to glibc's, and
growth: a churning program and a million short threads, early against late."""
import argparse
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time

import benchlib as lib

LIMIT = 1.10            # of glibc
CHECKED = ("dram", "pm", "dram-late", "pm-late")
CONFIGS = ("glibc", "jemalloc", "mimalloc", "passive", *CHECKED, "file")
# After deletions of random sizes no allocator with size classes comes near glibc's
# (jemalloc 1.13): there the comparison is with what redis brings along, jemalloc.
BASE = {"redis churned": "as installed"}
PEERS = ("glibc", "jemalloc", "mimalloc", "tcmalloc", "memtier1", "memtier2")
GROWTH_CONFIGS = ("glibc", "passive", "dram", "pm", "file")
CHURN_SHARE = 1.10      # resident at 100% over resident at 10%: what fragmentation may do
CHURN_SLACK_KIB = 1024  # and for the page that happens to be touched late
THREADS_SLACK_KIB = 1024  # 900,000 more threads: more than 1 byte each is a leak
MAPS_SLACK = 8

# What the interpreter holds at the end, after some of it has come and gone.
PYTHON = {
    "objects": """
rows = [{'id': i, 'name': 'name %d' % i, 'tags': [i, str(i), (i, i + 1)]} for i in range(120000)]
index = {r['name']: r for r in rows}
for i in range(0, 120000, 3):
    del index[rows[i]['name']]
    rows[i] = None
rows += [{'id': i, 'text': 'x' * (i % 300)} for i in range(60000)]
""",
    "buffers": """
import json
kept, state = [], 12345
for i in range(6000):
    state = (state * 1103515245 + 12345) % 2147483648
    kept.append(bytes([i % 256]) * (1000 + state % 40000))
    if len(kept) > 2500:
        kept.pop(state % 2500)
text = json.dumps(list(range(300000)))
numbers = json.loads(text)
""",
}
PYTHON_END = """
for line in open('/proc/self/status'):
    if line.startswith(('VmRSS', 'VmHWM')):
        print(line.split()[0].rstrip(':'), line.split()[1])
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    lib.add_common_arguments(parser)
    parser.add_argument("--part", choices=("all", "programs", "growth"), default="all")
    parser.add_argument("--rounds", type=int, help="of the programs (default 3, with --quick 1)")
    parser.add_argument("--threads", type=int, help="threads created and joined (default 1000000; --quick 50000)")
    parser.add_argument("--churn", type=int, help="operations of churn (default 12000000; --quick 2000000)")
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.threads = args.threads or (50000 if args.quick else 1000000)
    args.churn = args.churn or (2000000 if args.quick else 12000000)
    return args


def status_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        text = f.read()
    return {key: int(re.search(rf"^{key}:\s*(\d+)", text, re.M).group(1)) for key in ("VmRSS", "VmHWM")}


# --- redis --------------------------------------------------------------------

class Redis:
    """A server on a socket of its own, without persistence, and a client that speaks
    just enough of the protocol."""

    def __init__(self, folder, env):
        self.path = os.path.join(folder, "redis.sock")
        self.process = subprocess.Popen(
            [shutil.which("redis-server"), "--port", "0", "--unixsocket", self.path, "--save", "",
             "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning", "--dir", folder],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.client = None
        deadline = time.monotonic() + 30
        while self.client is None:
            if self.process.poll() is not None:
                raise lib.BenchError("redis-server ended: " + self.process.stderr.read().decode("utf-8", "replace")[-300:])
            try:
                self.client = socket.socket(socket.AF_UNIX)
                self.client.connect(self.path)
            except OSError:
                self.client.close()
                self.client = None
                if time.monotonic() > deadline:
                    self.close()
                    raise lib.BenchError("redis-server does not answer") from None
                time.sleep(0.05)

    def commands(self, commands):
        """Send in portions and read as many replies; all of ours are one line each."""
        for begin in range(0, len(commands), 500):
            portion = commands[begin:begin + 500]
            self.client.sendall(b"".join(
                b"*%d\r\n" % len(c) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in c) for c in portion))
            left, replies = len(portion), b""
            while replies.count(b"\r\n") < left:
                more = self.client.recv(1 << 16)
                if not more:
                    raise lib.BenchError("redis-server closed the connection")
                replies += more
            if b"-ERR" in replies or b"-OOM" in replies:
                raise lib.BenchError(f"redis-server: {replies[:200]!r}")

    def close(self):
        if self.client:
            self.client.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()


def redis_load():
    """Keys, hashes and lists are made; then a third of the keys is deleted and another
    third overwritten by other lengths. The same every time. (load, churn)"""
    draw = random.Random(11)
    value = b"v" * 2000
    load = [(b"SET", b"key:%d" % i, value[:draw.randrange(20, 900)]) for i in range(120000)]
    load += [(b"HSET", b"hash:%d" % (i % 4000), b"field:%d" % i, value[:draw.randrange(5, 90)]) for i in range(60000)]
    load += [(b"RPUSH", b"list:%d" % (i % 500), value[:draw.randrange(5, 300)]) for i in range(40000)]
    churn = [(b"DEL", b"key:%d" % i) for i in range(0, 120000, 3)]
    churn += [(b"SET", b"key:%d" % i, value[:draw.randrange(20, 1500)]) for i in range(1, 120000, 3)]
    return load, churn


def measure_redis(scratch, env, phases):
    """{"redis loaded": {...}, "redis churned": {...}}"""
    folder = os.path.join(scratch, "redis")
    os.makedirs(folder, exist_ok=True)
    server = Redis(folder, env)
    try:
        result = {}
        for name, commands in zip(("redis loaded", "redis churned"), phases):
            server.commands(commands)
            time.sleep(0.3)
            result[name] = status_kib(server.process.pid)
        return result
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


# --- python -------------------------------------------------------------------

def measure_python(script, env):
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    result = lib.run([python, "-S", "-c", PYTHON[script] + PYTHON_END], env)
    values = dict(re.findall(r"^(VmRSS|VmHWM) (\d+)$", result.out, re.M))
    if not result.ok or len(values) != 2:
        raise lib.BenchError(f"python3: {result.problem()}")
    return {k: int(v) for k, v in values.items()}


def measure_programs(args, configs, scratch):
    """{program: {config: {"VmRSS": [KiB], "VmHWM": [KiB]}}}"""
    cases = []
    for script in PYTHON:
        for name, extra in ((f"python {script}", {}), (f"python {script}, malloc", {"PYTHONMALLOC": "malloc"})):
            cases += [((name,), c.name, lambda c=c, n=name, s=script, e=extra: {n: measure_python(
                s, c.env({"PYTHONHASHSEED": "0", **e}))}) for c in configs]
    if shutil.which("redis-server"):
        phases, names = redis_load(), ("redis loaded", "redis churned")
        libc = lib.Config("glibc", "glibc", lib.library_path("libc.so.6"))
        # Debian's server is linked with jemalloc: glibc has to be preloaded to be compared with.
        cases.append((names, "as installed", lambda: measure_redis(scratch, lib.clean_env(), phases)))
        cases += [(names, c.name, lambda c=c: measure_redis(
            scratch, (libc if c.name == "glibc" else c).env(), phases)) for c in configs]
    else:
        print("left out: redis: redis-server is not installed", file=sys.stderr)
    progress = lib.Progress(len(cases) * args.rounds)
    table = {}
    for number in range(args.rounds):
        for names, config, measure in lib.shuffled(cases, "memory", number):
            entries = {n: table.setdefault(n, {}).setdefault(config, {"VmRSS": [], "VmHWM": []}) for n in names}
            try:
                for name, values in measure().items():
                    for key, value in values.items():
                        entries[name][key].append(value)
            except lib.BenchError as error:
                for entry in entries.values():
                    entry["problem"] = str(error)
            progress.step(f"{names[0]}: {config}")
    progress.end()
    order = {n: i for i, n in enumerate(["as installed"] + [c.name for c in configs])}
    return {p: {c: table[p][c] for c in sorted(table[p], key=order.get)} for p in sorted(table)}


# --- growth -------------------------------------------------------------------

def measure_growth(args, configs):
    """{program: {config: [{"at", "rss_kib", "peak_kib", "vm_kib", "maps"}]}}"""
    # With few blocks alive, an allocator's own tables show sooner than its fragmentation.
    jobs = [("churn", "churn", [args.churn]), ("churn, few blocks", "churn", [args.churn, 256]),
            ("threads", "threads", [args.threads])]
    progress = lib.Progress(len(jobs) * len(configs))
    table = {}
    for name, executable, numbers in jobs:
        for config in configs:
            result = lib.run([lib.program(args, executable), *map(str, numbers)], config.env(), timeout=1800)
            points = [dict(zip(("at", "rss_kib", "peak_kib", "vm_kib", "maps"), map(int, m)))
                      for m in re.findall(r"at (\d+) rss_kib=(\d+) peak_kib=(\d+) vm_kib=(\d+) maps=(\d+)", result.out)]
            table.setdefault(name, {})[config.name] = {
                "points": points, "cpu": result.cpu,
                "problem": None if result.ok and len(points) == 10 else result.problem()}
            progress.step(f"{name}: {config.name}")
    progress.end()
    return table


# --- result -------------------------------------------------------------------

def ratio(table, program, config, key, against="glibc"):
    mine, base = table[program][config], table[program].get(against)
    if not base or mine.get("problem") or base.get("problem"):
        return None
    return lib.quantile(mine[key], 0.5) / lib.quantile(base[key], 0.5)


def show(result):
    table = result.get("programs")
    if table:
        rows = []
        for program, entries in table.items():
            for config, entry in entries.items():
                row = [f"{program}: {config}"]
                for key in ("VmRSS", "VmHWM"):
                    r = ratio(table, program, config, key)
                    row += [f"{lib.quantile(entry[key], 0.5) / 1024:.1f}" if entry[key] else "failed",
                            f"{r:.3f}" if r else ""]
                rows.append(row)
        print(lib.table(["resident MiB", "at the end", "/ glibc", "peak", "/ glibc"], rows))
    for name, entries in result.get("growth", {}).items():
        rows = []
        for config, entry in entries.items():
            if entry["problem"]:
                rows.append([config, "failed: " + entry["problem"]] + [""] * 5)
                continue
            first, last = entry["points"][0], entry["points"][-1]
            rows.append([config, first["rss_kib"], last["rss_kib"], first["maps"], last["maps"],
                         f"{(last['vm_kib'] - first['vm_kib']) / 1024:+.1f}", f"{entry['cpu']:.1f}"])
        print()
        print(lib.table([name, "KiB at 10%", "at 100%", "maps at 10%", "at 100%", "address space MiB", "CPU s"], rows))


def check_programs(table):
    failures = []
    if not any("python" in p for p in table) or "redis loaded" not in table:
        failures.append("resident size: redis or python was not measured")
    for program in table:
        against = BASE.get(program, "glibc")
        for config in CHECKED:
            if config not in table[program]:
                failures.append(f"{program}: {config} was not measured")
                continue
            for key, name in (("VmRSS", "resident at the end"), ("VmHWM", "peak")):
                r = ratio(table, program, config, key, against)
                if r is None:
                    problem = table[program][config].get("problem") or f"{against} was not measured"
                    failures.append(f"{program}, {config}: {problem}")
                    break
                if r > LIMIT:
                    failures.append(f"{program}, {config}: {name} {r:.3f} of {against}, limit {LIMIT}")
    return failures


def check_growth(table):
    failures = []
    for name, entries in table.items():
        failures += [f"{name}: {c} was not measured" for c in ("passive", "dram", "pm") if c not in entries]
        for config, entry in entries.items():
            if config in PEERS:
                continue
            if entry["problem"]:
                failures.append(f"{name}, {config}: {entry['problem']}")
                continue
            first, last = entry["points"][0], entry["points"][-1]
            allowed = first["rss_kib"] + THREADS_SLACK_KIB
            if name.startswith("churn"):
                allowed = first["rss_kib"] * CHURN_SHARE + CHURN_SLACK_KIB
            if last["rss_kib"] > allowed:
                failures.append(f"{name}, {config}: resident {first['rss_kib']} KiB at 10%, "
                                f"{last['rss_kib']} KiB at 100%")
            if last["maps"] > first["maps"] + MAPS_SLACK:
                failures.append(f"{name}, {config}: mappings grow from {first['maps']} to {last['maps']}")
    return failures


def main():
    args = parse_arguments()
    folder = lib.out_folder(args)
    result = {"machine": lib.machine()}
    failures = []
    with lib.scratch_folder() as scratch:
        known = lib.all_configs(args, scratch)
        if args.part in ("all", "programs"):
            result["programs"] = measure_programs(args, lib.choose_configs(args, known, CONFIGS), scratch)
            failures += check_programs(result["programs"])
        if args.part in ("all", "growth"):
            result["growth"] = measure_growth(args, lib.choose_configs(args, known, GROWTH_CONFIGS))
            failures += check_growth(result["growth"])
    show(result)
    lib.write_json(os.path.join(folder, "memory.json"), result)
    return lib.verdict(failures) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
