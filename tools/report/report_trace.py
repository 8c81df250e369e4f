# SPDX-License-Identifier: BSD-2-Clause
"""Traces (HYBRID_TRACE) and exit reports (HYBRID_STATS) as hybridctl report reads them.

What is in them came from a program that may have any name, and the end may be missing: nothing is
believed but numbers within limits and text, and what cannot be read is counted.
"""
import json
import os

VERSION = 1
MAX_BYTES = 64 << 20
MAX_NUMBER = 1 << 62
MAX_TEXT = 300
BINS = 256
BANDS = 6
TIERS = ('dram', 'pm')
CLASSES = ('unknown', 'cpu', 'bandwidth', 'latency')


class Unreadable(Exception):
    """Not a trace and not an exit report."""


def number(d, key, default=0):
    v = d.get(key, default) if isinstance(d, dict) else default
    if isinstance(v, bool) or not isinstance(v, int) or not 0 <= v <= MAX_NUMBER:
        return default
    return v


def numbers(d, key, count):
    v = d.get(key) if isinstance(d, dict) else None
    if not isinstance(v, list) or len(v) != count:
        return [0] * count
    return [number({'x': x}, 'x') for x in v]


def text(d, key):
    v = d.get(key, '') if isinstance(d, dict) else ''
    if not isinstance(v, str):
        return ''
    # A lone surrogate cannot be written as UTF-8.
    return v.encode('utf-8', 'replace').decode('utf-8')[:MAX_TEXT]


def section(d, key):
    v = d.get(key) if isinstance(d, dict) else None
    return v if isinstance(v, dict) else {}


def levels(line, key, count):
    """One of 0 to 15 for each bin, None where nothing was looked at."""
    row = text(line, key)
    if len(row) != count:
        return [None] * count
    return [int(c, 16) if c in '0123456789abcdef' else None for c in row]


class Tick:
    """A sample of running totals and of what is so at the moment."""
    def __init__(self, line):
        self.ns = number(line, 'ns')
        self.used = numbers(line, 'used', 2)
        self.limit = numbers(line, 'limit', 2)
        self.refused = numbers(line, 'refused', 2)
        for name in ('claimed', 'shared', 'wish', 'asked', 'threads', 'running', 'cap', 'held',
                     'cpus', 'up', 'down', 'refused_pages', 'regretted_pages', 'found_pages',
                     'undone_pages', 'truces', 'tasks', 'task_stages', 'task_hits', 'task_staged',
                     'look_ns', 'move_ns', 'class_ns', 'trace_ns',
                     'confidence', 'weak', 'write_intensive', 'phases'):
            setattr(self, name, number(line, name))
        self.cls = text(line, 'class') if text(line, 'class') in CLASSES else 'unknown'
        self.found = text(line, 'found') if text(line, 'found') in CLASSES else 'unknown'
        self.slowdown = numbers(line, 'slowdown', 3)
        self.predicted = numbers(line, 'predicted_ns', 3)
        sums = section(line, 'sums')
        self.sums = {k: number(sums, k) for k in list(sums)[:40] if isinstance(k, str)}


class Pass:
    """What one look at the pages found."""
    def __init__(self, line):
        self.ns = number(line, 'ns')
        self.interval_ns = number(line, 'interval_ns')
        self.on = numbers(line, 'on', 2)
        self.bands = [numbers(line, 'bands_' + t, BANDS) for t in TIERS]
        for name in ('number', 'tracked', 'written', 'observed', 'right', 'wanted', 'paused'):
            setattr(self, name, number(line, name))
        self.predicted = numbers(line, 'predicted', 3)
        n = min(number(line, 'bins'), BINS)
        self.heat = levels(line, 'heat', n)
        self.writes = levels(line, 'writes', n)
        self.will_write = levels(line, 'will_write', n)
        self.on_pm = levels(line, 'on_pm', n)
        self.bins = self.places(line, n)

    @staticmethod
    def places(line, n):
        """[(first page, pages)] of each bin."""
        at = line.get('at')
        runs = [numbers({'x': r}, 'x', 3) for r in at[:BINS]] if isinstance(at, list) else []
        bins = []
        for i, (first, base, pages) in enumerate(runs):
            end = runs[i + 1][0] if i + 1 < len(runs) else n
            if first != len(bins) or not 0 < pages < 1 << 40:
                break
            bins += [((base >> 12) + k * pages, pages) for k in range(max(0, min(end, n) - first))]
        return bins


class Run:
    """One process: what its trace says, what its exit report says, or both."""
    def __init__(self, path):
        self.files = [path]
        self.ticks, self.passes, self.settings, self.warnings = [], [], [], []
        self.counters, self.migration, self.facts, self.stats = {}, {}, {}, {}
        self.has_trace = self.complete = False
        self.bad_lines = 0
        self.end_ns = 0

    @property
    def pid(self):
        return number(self.facts, 'pid') or number(self.stats, 'pid')

    @property
    def exe(self):
        return text(self.facts, 'exe') or text(self.stats, 'exe')

    @property
    def name(self):
        return os.path.basename(self.exe) or 'program'

    @property
    def last(self):
        return self.ticks[-1] if self.ticks else None

    def add_line(self, line):
        kind = line.get('line')
        if 'tick' in line:
            self.ticks.append(Tick(line))
        elif 'pass' in line:
            self.passes.append(Pass(line))
        elif kind == 'run':
            self.facts = line
        elif kind == 'setting':
            self.settings.append((text(line, 'name'), text(line, 'value'), text(line, 'from')))
        elif kind == 'counters':
            self.counters = line
        elif kind == 'migration':
            self.migration = line
        elif kind == 'warning':
            self.warnings.append((number(line, 'ns'), text(line, 'text')))
        elif kind == 'end':
            self.complete = True
            self.end_ns = number(line, 'ns')
        else:
            self.bad_lines += 1

    def finish(self):
        """Time goes forwards, whatever the file says."""
        self.ticks.sort(key=lambda t: t.ns)
        self.passes.sort(key=lambda p: p.ns)
        times = [t.ns for t in self.ticks[-1:]] + [p.ns for p in self.passes[-1:]]
        self.end_ns = max([self.end_ns] + times)
        self.settings = self.settings[:200]
        self.warnings = self.warnings[:100]


def parse(data):
    """A line or a whole file as JSON object, None if it is none."""
    try:
        v = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return v if isinstance(v, dict) else None


def read(path):
    """A Run; OSError, or Unreadable with the reason."""
    if os.path.getsize(path) > MAX_BYTES:
        raise Unreadable('larger than %d MiB, which no trace is' % (MAX_BYTES >> 20))
    with open(path, 'rb') as f:
        data = f.read(MAX_BYTES).decode('utf-8', 'replace')
    run = Run(path)
    lines = data.split('\n')
    first = parse(lines[0])
    if first is not None and first.get('line') == 'run':
        if number(first, 'version') != VERSION:
            raise Unreadable('a trace of version %d; this program reads version %d' %
                             (number(first, 'version'), VERSION))
        run.has_trace = True
        for i, line in enumerate(lines):
            d = parse(line) if line.strip() else {}
            if d:
                run.add_line(d)
            elif d is None and i + 1 < len(lines):  # the last one may be torn
                run.bad_lines += 1
        run.finish()
        return run
    whole = parse(data)
    if whole is None or 'libhybrid' not in whole or 'tiers' not in whole:
        raise Unreadable(
            'neither a trace (HYBRID_TRACE=FILE) nor an exit report (HYBRID_STATS=FILE)')
    run.stats = whole
    run.complete = True
    return run


def pair(runs):
    """An exit report joins the trace of the same process."""
    out = []
    for run in runs:
        other = next((r for r in out if r.pid == run.pid and r.exe == run.exe
                      and bool(r.stats) != bool(run.stats) and r.has_trace != run.has_trace), None)
        if other is None:
            out.append(run)
            continue
        traced, told = (other, run) if other.has_trace else (run, other)
        traced.stats = told.stats
        traced.files = other.files + run.files
        out[out.index(other)] = traced
    return out
