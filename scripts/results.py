#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What meson's records of test runs say.

  results.py again FILE   the tests of a run that may be run again, a name a line
  results.py close DIR    the closing lines for all runs; status 1 when a test failed

A program's moves, shares and threads depend on when its threads get a CPU, so a test of them may fail
on a computer that is busy enough. Such a test is run again alone, once, and told as unsteady if it
passes then. Nothing that a sanitizer, valgrind, a fuzzer or a stress test found is run again, and no
program that crashed: such faults are rare by nature. Nor is anything when more than MANY failed: that is no accident.

Runs are NAME.json, what was run again NAME-again.json (meson's --logbase).
"""
import json
import pathlib
import re
import sys

MANY = 5
FINAL_SUITES = {"stress", "fuzz"}
FINDING = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:|^==\d+=="
                     r"|write \d+ is lost|status: -\d|SIGSEGV|SIGABRT|Segmentation fault", re.M)
PASSED = {"OK", "EXPECTEDFAIL"}
TAIL_LINES = 40


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def output(record):
    return record.get("stdout", "") + record.get("stderr", "")


def failed(record):
    return record["result"] not in PASSED and record["result"] != "SKIP"


def split(record):
    """(suites, name) of a record: meson writes "project:suite+suite / name"."""
    where, _, name = record["name"].rpartition(" / ")
    return set(where.partition(":")[2].split("+")), name


def again(of_run):
    """The names of the failed tests of a run that may be run again."""
    bad = [r for r in of_run if failed(r)]
    if len(bad) > MANY:
        return []
    return [split(r)[1] for r in bad
            if not split(r)[0] & FINAL_SUITES and not FINDING.search(output(r))]


def close(runs):
    """(lines to print, whether all passed) of {name of the run: its records}."""
    count = {"passed": 0, "failed": 0, "skipped": 0}
    unsteady, lines = [], []
    for run in sorted(n for n in runs if not n.endswith("-again")):
        second = {r["name"]: r for r in runs.get(run + "-again", [])}
        for record in runs[run]:
            last = second.get(record["name"], record)
            if failed(last):
                count["failed"] += 1
                lines += ["", f"== failed: {run}, {split(record)[1]} ({last['result']}, {last['duration']:.0f} s)"]
                lines += output(last).splitlines()[-TAIL_LINES:]
            elif record["result"] == "SKIP":
                count["skipped"] += 1
            else:
                count["passed"] += 1
                if last is not record:
                    unsteady.append(f"{run}, {split(record)[1]}")
    if unsteady:
        lines += ["", "unsteady, passed when run again alone: " + "; ".join(unsteady)]
    lines += ["", "{passed} passed, {failed} failed, {skipped} skipped".format(**count)]
    return lines, bool(count["passed"]) and not count["failed"]


def main(args):
    if len(args) != 2 or args[0] not in ("again", "close"):
        print(__doc__, file=sys.stderr)
        return 2
    if args[0] == "again":
        for name in again(records(pathlib.Path(args[1]))):
            print(name)
        return 0
    # valgrind's run is named NAME-valgrind: meson adds the wrapper
    lines, good = close({p.stem: records(p) for p in pathlib.Path(args[1]).glob("*.json")})
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
