#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The emulated machine beside the papers: columns paper, here, error.

    bench/model/papers.py --build DIR [--quick] [--check] [--out DIR] [TABLE ...]

Tables: latency, bandwidth, interference, scaling, slowdown; all unless told otherwise. Writes
papers.json and a picture for each table. --check: status 1 where a number leaves its bound;
the bounds and their reasons stand in experiments.py. --quick: fewer programs and pairs."""
import argparse
import json
import os
import sys
import textwrap
import time

import experiments
from emulator import Emulator, Failure


class Progress:
    def __init__(self):
        self.done, self.start, self.tty = 0, time.time(), sys.stderr.isatty()

    def step(self, what):
        self.done += 1
        if self.tty:
            print(f"\r{self.done} runs, {time.time() - self.start:.0f} s: {what:<40}", end="",
                  file=sys.stderr, flush=True)
        elif self.done % 25 == 0:
            print(f"{self.done} runs, {time.time() - self.start:.0f} s: {what}", file=sys.stderr)

    def clear(self):
        if self.tty:
            print(f"\r{'':70}\r", end="", file=sys.stderr, flush=True)


def holds(row):
    return row.bound is None or row.bound[0] <= row.here <= row.bound[1]


def number(value):
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def error(row):
    """Of a number against the paper's: relative, or in points where both are percent."""
    if row.paper is None or row.here is None or isinstance(row.paper, str):
        return "-"
    if row.unit.startswith("%"):
        return f"{row.here - row.paper:+.1f} pt"
    return f"{100 * (row.here / row.paper - 1):+.1f} %"


def text_of(title, rows):
    lines = [title, "", f"{'':50} {'paper':>7} {'here':>7} {'error':>9}  "]
    for r in rows:
        what = f"{r.what} [{r.unit}]" if r.unit else r.what
        mark = "" if r.here is None or r.bound is None else "ok" if holds(r) else "OUT"
        lines.append(f"{what:50} {number(r.paper):>7} {number(r.here):>7} {error(r):>9}  {mark}")
        lines += textwrap.wrap(r.why, 94, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def markdown_of(title, rows):
    lines = [f"{title}", "", "| | unit | paper | here | error |", "|---|---|---|---|---|"]
    for r in rows:
        paper = "figure only" if r.paper is None and r.why.startswith("figure") else number(r.paper)
        mark = "" if r.here is None or holds(r) else " (outside its bound)"
        lines.append(f"| {r.what} | {r.unit} | {paper} | {number(r.here)}{mark} | {error(r)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="build folder (%(default)s)")
    parser.add_argument("--out", help="folder for results (BUILD/papers)")
    parser.add_argument("--quick", action="store_true", help="fewer programs and pairs")
    parser.add_argument("--check", action="store_true", help="status 1 where a bound is left")
    parser.add_argument("--markdown", action="store_true", help="the tables as Markdown")
    parser.add_argument("--no-figures", action="store_true", help="text and JSON only")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(experiments.TABLES))
    args = parser.parse_args()
    for name in args.tables:
        if name not in experiments.TABLES:
            parser.error(f"no table '{name}'; there are {', '.join(experiments.TABLES)}")
    out = args.out or os.path.join(args.build, "papers")
    progress, result, bad, missing = Progress(), {}, [], []
    try:
        emulator = Emulator(args.build)
        os.makedirs(out, exist_ok=True)
        for name in args.tables or experiments.TABLES:
            rows, curves = experiments.TABLES[name](emulator, args.quick, progress.step), None
            if isinstance(rows, tuple):
                rows, curves = rows
            title = " ".join(experiments.TABLES[name].__doc__.split())
            progress.clear()
            print((markdown_of if args.markdown else text_of)(title, rows))
            sys.stdout.flush()
            result[name] = {"title": title, "rows": [r._asdict() for r in rows], "curves": curves}
            bad += [f"{name}: {r.what}" for r in rows if r.here is not None and not holds(r)]
            missing += [f"{name}: {r.what}: {r.why}" for r in rows if r.here is None]
            if not args.no_figures and any(r.here is not None for r in rows):
                import figures  # not needed for the text
                figures.draw(os.path.join(out, name + ".png"), name, title, rows, curves)
    except Failure as e:
        progress.clear()
        sys.exit(f"papers.py: {e}")
    with open(os.path.join(out, "papers.json"), "w", encoding="utf-8") as f:
        json.dump({"quick": args.quick, "tables": result}, f, indent=1)
    for m in missing:
        print(f"not measured: {m}")
    for b in bad:
        print(f"outside its bound: {b}")
    print(f"{progress.done} runs in {time.time() - progress.start:.0f} s; in {out}: papers.json"
          f"{'' if args.no_figures else ' and a picture for each table'}")
    if args.check and (bad or missing):
        sys.exit(1)


main()
