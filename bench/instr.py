#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Instructions (callgrind): of one allocation and its free, as the difference of two
loop counts, and of whole programs with call-site accounting on against off.

Counts do not depend on the load of the machine. They leave out the kernel's work."""
import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import benchlib as lib

# name: kind and size for bench-loops
OPERATIONS = {"pair 16": ("pair", 16), "pair 64": ("pair", 64), "batch 64": ("batch", 64),
              "calloc 64": ("calloc", 64), "realloc 64-128": ("realloc", 64), "aligned 64": ("aligned", 64), "mix to 1K": ("mix", 1 << 10),
              "pair 1K": ("pair", 1 << 10), "batch 1K": ("batch", 1 << 10), "pair 16K": ("pair", 1 << 14),
              "batch 16K": ("batch", 1 << 14), "pair 256K": ("pair", 1 << 18)}
CONFIGS = ("glibc", "jemalloc", "mimalloc", "tcmalloc", "passive", "dram", "pm")
PAIR_LIMIT = 50       # instructions of "pair 64" on the DRAM heap and the PM heap
MIX = "mix to 1K"     # at most mimalloc's in the same run
SITES_LIMIT = 1.02    # instructions with call sites over without

PYTHON = """
import json, collections
words = ['w%d' % (i * 7919 % 5003) for i in range(12000)]
count = collections.Counter(words)
table = {w: {'count': n, 'letters': list(w), 'next': None} for w, n in count.items()}
text = json.dumps(table)
for _ in range(2):
    again = json.loads(text)
lines = text.replace('}', '}\\n').split('\\n')
big = [bytearray(100000 + i * 1000) for i in range(40)]
print(len(text), len(again), len(lines), sum(map(len, big)), sorted(words)[0])
"""
PERL = """
my (%h, @rows); my $text = '';
for my $i (1 .. 15000) { my $w = 'w' . ($i * 7919 % 1009); $h{$w}{count}++; push @{$h{$w}{at}}, $i; $text .= "$w "; }
for my $w (sort keys %h) { push @rows, join(',', $w, @{$h{$w}{at}}); }
my $n = 0; while ($text =~ /w(\\d+) /g) { $n += length $1; }
my @copy = map { [split /,/] } @rows; my $long = $text x 20; substr($long, 5, 3) = 'abc';
print scalar(@copy), " $n ", length($long), "\\n";
"""
SQL = """
create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 12000)
  insert into t select i, 'name ' || (i * 7919 % 5003), i * 0.5 from n;
create index byname on t(name);
select count(*), sum(value) from t where name like 'name 1%';
update t set value = value + 1 where id % 3 = 0;
select name, count(*) c from t group by name order by c desc, name limit 5;
select group_concat(name) is not null from (select name from t order by name desc);
delete from t where id % 2 = 0;
select count(*) from t a join t b on a.name = b.name;
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    lib.add_common_arguments(parser)
    parser.add_argument("--part", choices=("all", "operations", "sites"), default="all")
    parser.add_argument("--repeats", type=int, help="of the whole programs (default 3, with --quick 1)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default %(default)s)")
    args = parser.parse_args()
    args.repeats = args.repeats or (1 if args.quick else 3)
    return args


def measure_operations(args, configs):
    """{config: {operation: instructions}}"""
    low, high = (2000, 12000) if args.quick else (10000, 60000)
    runs = [(c, name, count) for c in configs for name in OPERATIONS for count in (low, high)]
    progress = lib.Progress(len(runs))

    def one(item):
        config, name, count = item
        kind, size = OPERATIONS[name]
        total = lib.callgrind([lib.program(args, "loops"), kind, str(size), str(count)], config.env())
        progress.step(f"{config.name}: {name}")
        return (config.name, name, count), total

    with ThreadPoolExecutor(args.jobs) as pool:
        totals = dict(pool.map(one, runs))
    progress.end()
    return {c.name: {n: (totals[c.name, n, high] - totals[c.name, n, low]) / (high - low)
                     for n in OPERATIONS} for c in configs}


def make_repository(folder):
    """A small history that is the same every time."""
    env = lib.clean_env({"HOME": folder, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
                         "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
                         "GIT_COMMITTER_EMAIL": "a@example.org"})
    git = shutil.which("git")

    def call(*words, **more):
        subprocess.run([git, *words], cwd=folder, env={**env, **more}, check=True, stdout=subprocess.DEVNULL)

    call("init", "-q", "-b", "main", ".")
    for commit in range(12):
        for number in range(8):
            with open(os.path.join(folder, f"file{number}.txt"), "w", encoding="ascii") as f:
                for line in range(200):
                    changed = commit if line % 12 == (commit + number) % 12 else 0
                    f.write(f"line {line} of file {number}, {changed * 7919 % 1009}\n")
        call("add", ".")
        date = f"{1600000000 + commit * 1000} +0000"
        call("commit", "-q", "-m", f"change {commit}", GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
    return {"HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}


def programs(scratch):
    """[(name, argv, variables, folder, stdin)] of what is installed."""
    folder = os.path.join(scratch, "repository")
    os.mkdir(folder)
    sql = os.path.join(scratch, "work.sql")
    with open(sql, "w", encoding="ascii") as f:
        f.write(SQL)
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    git_vars = make_repository(folder) if shutil.which("git") else {}
    wanted = [("python3", [python, "-S", "-c", PYTHON], {"PYTHONHASHSEED": "0"}, None, None),
              ("python3, PYTHONMALLOC=malloc", [python, "-S", "-c", PYTHON],
               {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"}, None, None),
              ("sqlite3", ["sqlite3", ":memory:"], {"HOME": scratch}, None, sql),
              ("perl", ["perl", "-e", PERL], {"PERL_HASH_SEED": "0"}, None, None),
              ("git log -p", ["git", "--no-pager", "log", "-p", "--stat"], git_vars, folder, None),
              ("git pack-objects", ["git", "-c", "pack.threads=1", "pack-objects", "--all", "--stdout", "-q",
                                    "--window=60", "--no-reuse-delta", "--no-reuse-object"],
               git_vars, folder, None)]
    found = []
    for name, argv, extra, where, stdin in wanted:
        path = shutil.which(argv[0])
        if path:
            found.append((name, [path, *argv[1:]], extra, where, stdin))
        else:
            print(f"left out: {argv[0]} is not installed", file=sys.stderr)
    return found


def measure_sites(args, base, work):
    """{program: {"plain", "off", "on": [instructions], "ratio"}}. The two settings are
    equally long text: another size of the environment moves the stack."""
    settings = {"plain": None, "off": "off", "on": "on"}
    runs = [(w, s, r) for w in work for s in settings for r in range(args.repeats)]
    progress = lib.Progress(len(runs))

    def one(item):
        (name, argv, extra, where, stdin), setting, _ = item
        if settings[setting] is None:
            env = lib.clean_env(extra)
        else:
            env = base.env({**extra, "HYBRID_SITES": settings[setting], "PADDING": "x" * (4 - len(setting))})
        total = lib.callgrind(argv, env, cwd=where, stdin=stdin)
        progress.step(f"{name}, call sites {setting}")
        return name, setting, total

    with ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(one, runs))
    progress.end()
    table = {}
    for name, setting, total in results:
        table.setdefault(name, {}).setdefault(setting, []).append(total)
    for entry in table.values():
        entry["ratio"] = lib.quantile(entry["on"], 0.5) / lib.quantile(entry["off"], 0.5)
        entry["off_over_plain"] = lib.quantile(entry["off"], 0.5) / lib.quantile(entry["plain"], 0.5)
        entry["spread"] = max((max(entry[s]) - min(entry[s])) / min(entry[s]) for s in ("off", "on"))
    return table


def check(args, result):
    failures = []
    operations, sites = result.get("operations"), result.get("sites")
    if args.part in ("all", "operations"):
        for name in ("dram", "pm"):
            value = (operations or {}).get(name, {}).get("pair 64")
            if value is None:
                failures.append(f"{name}: 64-byte pair not measured")
            elif round(value) > PAIR_LIMIT:
                failures.append(f"{name}: a 64-byte malloc/free pair takes {value:.0f} instructions, limit {PAIR_LIMIT}")
            mix = (operations or {}).get(name, {}).get(MIX)
            peer = (operations or {}).get("mimalloc", {}).get(MIX)
            if mix is not None and peer is not None and mix > peer:
                failures.append(f"{name}: a mix of sizes to 1 KiB takes {mix:.1f} instructions, mimalloc {peer:.1f}")
    if args.part in ("all", "sites"):
        if not sites:
            failures.append("call sites: not measured")
        for name, entry in (sites or {}).items():
            if entry["ratio"] > SITES_LIMIT:
                failures.append(f"call sites: {name} runs {entry['ratio']:.4f} times the instructions, limit {SITES_LIMIT}")
    return failures


def show(result, configs):
    if "operations" in result:
        rows = [[c.label] + [f"{result['operations'][c.name][n]:.0f}" for n in OPERATIONS] for c in configs]
        print("instructions of an allocation and its free")
        print(lib.table(["", *OPERATIONS], rows))
    if "sites" in result:
        rows = [[name, f"{lib.quantile(e['plain'], 0.5) / 1e6:.1f}", f"{e['off_over_plain']:.4f}",
                 f"{e['ratio']:.4f}", f"{e['spread']:.5f}"] for name, e in result["sites"].items()]
        print("\ncall sites: instructions of whole programs")
        print(lib.table(["program", "plain (million)", "preload / plain", "sites on / off", "spread of repeats"], rows))


def main():
    args = parse_arguments()
    folder = lib.out_folder(args)
    result = {"machine": lib.machine()}
    with lib.scratch_folder() as scratch:
        known = lib.all_configs(args, scratch)
        configs = lib.choose_configs(args, known, CONFIGS)
        if args.part in ("all", "operations"):
            result["operations"] = measure_operations(args, configs)
        if args.part in ("all", "sites"):
            if known["dram"].missing:
                print(f"left out: call sites: {known['dram'].missing}", file=sys.stderr)
            else:
                result["sites"] = measure_sites(args, known["dram"], programs(scratch))
    show(result, configs)
    lib.write_json(os.path.join(folder, "instr.json"), result)
    return lib.verdict(check(args, result)) if args.check else 0


if __name__ == "__main__":
    lib.main_guard(main)
