# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others: the list of them (FORMAT; bench/README.md), and whether one printed what
it must. Pure but for reading the list."""
import json
import os
import re
from dataclasses import dataclass
from fractions import Fraction

import benchlib as lib

LIST = "programs.json"
FORMAT = """programs.json is an object with a member for each program, as
"NAME": {"exe": "EXE", "args": ["-f", "{data}/file", "{threads}"], "what": "TEXT", "cwd": "DIR"}.
Its executables are wl-EXE, built plain, and emu-EXE, for the emulated machine (default: NAME);
{data} is the folder data beside them, {threads} the number of threads, which OMP_NUM_THREADS tells,
too; cwd, relative to the list, is where it runs (default: beside the executables)."""
MEMBERS = {"exe": str, "args": list, "what": str, "cwd": str}
KIB = 1024
# Numbers that sums in another order may change.
TOLERANCE, NOTHING = 1e-4, 1e-6
# What a line tells that no two runs have alike: time, speed, when and how it was built.
VOLATILE = re.compile(r"\b(?:times?|timer|elapsed|seconds?|secs?|ms|us|rates?|fom|[mgk]?flops?|"
                      r"mop/s|grind|speed|bandwidth|dates?|compiler|compiled?)\b|/s\b", re.I)
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?", re.I)


@dataclass(frozen=True)
class Listed:
    """A program of the list, to be run with so many threads."""
    workload: str
    exe: str
    args: tuple
    folder: str  # of the executables
    cwd: str
    threads: int

    def arguments(self):
        words = {"{data}": os.path.join(self.folder, "data"), "{threads}": str(self.threads)}
        return [re.sub(r"\{data\}|\{threads\}", lambda m: words[m[0]], a) for a in self.args]

    def binary(self, kind):
        return os.path.join(self.folder, f"{kind}-{self.exe}")


@dataclass(frozen=True)
class Share:
    """As experiments.Case, in KiB: programs on one machine with DRAM for a part of their data."""
    name: str
    programs: tuple
    dram: int = 0
    data: int = 0

    def footprint(self):
        return self.data

    def dram_option(self):
        return f"{self.dram}K"

    def dram_bytes(self):
        return self.dram * KIB

    def parts(self):
        """Whole numbers that libmemtier can count with."""
        dram = max(self.dram // 64, 1)
        return dram, max(self.data // 64 - dram, 1)


def find_list(where):
    """`where`: the folder that the list is in, or the list itself."""
    path = os.path.join(where, LIST) if os.path.isdir(where) else where
    if not os.path.isfile(path):
        raise lib.BenchError(f"{path} is not there: a list of programs is wanted (--help)")
    return os.path.abspath(path)


def wrong_with(entry):
    """What is wrong with a member of the list, or ''."""
    if not isinstance(entry, dict):
        return "is not an object"
    for name, value in entry.items():
        if name not in MEMBERS:
            return f"has '{name}', which is none of {', '.join(MEMBERS)}"
        if not isinstance(value, MEMBERS[name]):
            return f"'{name}' is of the wrong kind"
    if not all(isinstance(a, str) for a in entry.get("args", [])):
        return "'args' must be strings"
    return ""


def read_list(path):
    try:
        with open(path, encoding="utf-8") as f:
            found = json.load(f)
    except (OSError, ValueError) as error:
        raise lib.BenchError(f"{path}: {error}") from None
    if not isinstance(found, dict) or not found:
        raise lib.BenchError(f"{path}: an object with a member for each program is wanted")
    for name, entry in found.items():
        why = wrong_with(entry)
        if why:
            raise lib.BenchError(f"{path}: {name}: {why}")
    return found


def make(path, entries, name, folder, threads):
    """The program of that name; `entries` of the list at `path`."""
    entry = entries[name]
    cwd = os.path.join(os.path.dirname(path), entry["cwd"]) if "cwd" in entry else folder
    return Listed(name, entry.get("exe", name), tuple(entry.get("args", ())), folder, cwd, threads)


def choose(entries, text, option):
    names = [n.strip() for n in text.split(",") if n.strip()]
    for name in names:
        if name not in entries:
            raise lib.BenchError(f"{option}: the list has no '{name}', but {', '.join(entries)}")
    if not names:
        raise lib.BenchError(f"{option} wants names")
    return names


def shares(text):
    """'1/2,0.2' as fractions, in the order given."""
    found = []
    for word in text.split(","):
        try:
            share = Fraction(word.strip())
        except (ValueError, ZeroDivisionError):
            share = Fraction(0)
        if not 0 < share <= 1:
            raise lib.BenchError(f"--shares wants numbers such as 1/2, not '{word}'")
        found.append(share)
    return found


# --- output ------------------------------------------------------------------------

def lasting(text):
    """The lines of an output that every right run prints, as words."""
    return [line.split() for line in text.splitlines()
            if line.strip() and not VOLATILE.search(line)]


def same_word(a, b):
    if a == b:
        return True
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    return all(same_number(x, y) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)))


def same_number(a, b):
    """Whole numbers exactly; others within what the order of a sum makes of them."""
    if a == b:
        return True
    if not re.search(r"[.e]", a + b, re.I):
        return False
    x, y = float(a), float(b)
    return abs(x - y) <= TOLERANCE * max(abs(x), abs(y)) or max(abs(x), abs(y)) < NOTHING


def difference(output, plain, cut=False):
    """The first line that is not as the plain program's, or None; `cut`: the end may be missing."""
    ours, theirs = lasting(output), lasting(plain)
    for i in range(len(ours) if cut else max(len(ours), len(theirs))):
        a, b = (lines[i] if i < len(lines) else ["(no line)"] for lines in (ours, theirs))
        if len(a) != len(b) or not all(map(same_word, a, b)):
            return f"'{' '.join(a)[:80]}', the plain one has '{' '.join(b)[:80]}'"
    return None
