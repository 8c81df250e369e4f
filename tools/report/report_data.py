# SPDX-License-Identifier: BSD-2-Clause
"""What a page shows of a run, computed from its trace: series over time, maps of pages,
and sums. Predictions are the library's own (its slowdown model), here they are only
subtracted and divided."""
from report_trace import number, section

POINTS = 240  # along a curve
BUCKETS = 80  # of a rate
COLUMNS = 360  # of a map of pages
ROWS = 192
LINE = 64  # bytes
OFTEN, SOMETIMES = 11, 6  # of 15: 3/4 and 3/8 of the last passes in the write domain (paper 002)
COLD, READ, AT_TIMES, WRITTEN, WRITTEN_OFTEN = range(5)


def thin(items, most):
    """At most so many of them, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    step = (len(items) - 1) / (most - 1)
    return [items[round(i * step)] for i in range(most)]


def curve(run, value):
    """[(seconds, value of the tick)]"""
    return [(t.ns / 1e9, value(t)) for t in thin(run.ticks, POINTS)]


def known_curve(run, value):
    """The same from the first sample on that knows it; 0: not known."""
    ticks = run.ticks
    first = next((i for i, t in enumerate(ticks) if value(t)), len(ticks))
    return [(t.ns / 1e9, value(t)) for t in thin(ticks[first:], POINTS)]


def buckets(run, total):
    """[(begin, end, growth per second)] of a running total, at equal times."""
    ticks = run.ticks
    if len(ticks) < 2 or ticks[-1].ns <= ticks[0].ns:
        return []
    n = min(BUCKETS, len(ticks) - 1)
    begin, span = ticks[0].ns, ticks[-1].ns - ticks[0].ns
    marks, at = [], 0
    for i in range(n + 1):
        when = begin + span * i // n
        while at + 1 < len(ticks) and ticks[at + 1].ns <= when:
            at += 1
        marks.append(ticks[at])
    out = []
    for a, b in zip(marks, marks[1:]):
        if b.ns > a.ns:
            out.append((a.ns / 1e9, b.ns / 1e9, max(0, total(b) - total(a)) * 1e9 / (b.ns - a.ns)))
    return out


def ratio_curve(run, over, under):
    """Growth of one total over that of another, between samples."""
    out = []
    ticks = thin(run.ticks, POINTS)
    for a, b in zip(ticks, ticks[1:]):
        d = under(b) - under(a)
        if d > 0 and over(b) >= over(a):
            out.append((b.ns / 1e9, (over(b) - over(a)) / d))
    return out


def traffic(tick, what, tier):
    """Bytes of last-level misses ('reads') or write-backs ('writes') so far."""
    pm = tick.sums.get(what + '-pm', 0)
    return LINE * (pm if tier == 'pm' else max(0, tick.sums.get(what, 0) - pm))


def share_on_dram(run, *whats):
    """Of the lines read or written in the whole run, None if they were not counted."""
    t = run.last
    if t is None:
        return None
    whole = sum(traffic(t, w, 'dram') + traffic(t, w, 'pm') for w in whats)
    if not whole or not all(w + '-pm' in t.sums for w in whats):
        return None
    return sum(traffic(t, w, 'dram') for w in whats) / whole


def phases(run):
    """[(begin, end, class)] as it was acted on."""
    out = []
    for t in run.ticks:
        if out and out[-1][2] == t.cls:
            out[-1][1] = t.ns / 1e9
            continue
        if out:
            out[-1][1] = t.ns / 1e9
        out.append([t.ns / 1e9, t.ns / 1e9, t.cls])
    if out:
        out[-1][1] = max(out[-1][1], run.end_ns / 1e9)
    # A program that changes class all the time: the drawing is bounded.
    return [tuple(p) for p in thin(out, POINTS)]


def main_class(run):
    """(class, share of the time): the one that was acted on longest; (None, 0) without samples."""
    lengths = {}
    for begin, end, cls in phases(run):
        lengths[cls] = lengths.get(cls, 0) + end - begin
    if not lengths:
        return None, 0
    cls = max(lengths, key=lengths.get)
    whole = sum(lengths.values())
    return cls, lengths[cls] / whole if whole > 0 else 1


class Gain:
    """The model's times for the work of all judged windows."""
    def __init__(self, run):
        told = section(run.stats, 'gain')
        times = run.last.predicted if run.last else [
            number(told, k) for k in ('all_dram_ns', 'as_placed_ns', 'all_pm_ns')
        ]
        self.dram, self.placed, self.pm = (v / 1e9 for v in times)
        self.known = self.dram > 0 and self.placed > 0 and self.pm > 0

    @property
    def of_pm(self):
        """How much of the time that all on PM would take was spared."""
        return 1 - self.placed / self.pm

    @property
    def of_possible(self):
        """How much of what DRAM can bring at all."""
        return (self.pm - self.placed) / (self.pm -
                                          self.dram) if self.pm > self.dram * 1.02 else None


class Maps:
    """Pages by address (rows, the lowest first) and time (columns)."""
    def __init__(self, run):
        self.passes = [p for p in run.passes if p.bins]
        self.spans = self.footprint()
        self.pages = sum(end - first for first, end in self.spans)
        self.rows = min(ROWS, self.pages)
        self.end = max(run.end_ns, self.passes[-1].ns if self.passes else 0)
        self.columns = min(COLUMNS, max(COLUMNS // 3, len(self.passes))) if self.passes else 0
        self.chosen = self.choose()

    def footprint(self):
        """Pages that were ever watched: [(first, end)], sorted, without gaps."""
        spans = sorted({(first, first + pages) for p in self.passes for first, pages in p.bins})
        out = []
        for first, end in spans:
            if out and first <= out[-1][1]:
                out[-1][1] = max(out[-1][1], end)
            else:
                out.append([first, end])
        return [tuple(s) for s in out[:4096]]

    def choose(self):
        """The pass that is shown in each column, the last one up to then; None before the first."""
        out, at = [], 0
        for c in range(self.columns):
            when = self.end * (c + 1) // self.columns
            while at < len(self.passes) and self.passes[at].ns <= when:
                at += 1
            out.append(self.passes[at - 1] if at else None)
        return out

    def row_pages(self):
        """The page that stands for each row."""
        out, at, before = [], 0, 0
        for r in range(self.rows):
            want = (2 * r + 1) * self.pages // (2 * self.rows)
            while at + 1 < len(
                    self.spans) and want - before >= self.spans[at][1] - self.spans[at][0]:
                before += self.spans[at][1] - self.spans[at][0]
                at += 1
            out.append(self.spans[at][0] + want - before)
        return out

    def cells(self, value):
        """columns x rows of value(pass, bin), None where no page was."""
        pages = self.row_pages()
        made, out = {}, []
        for p in self.chosen:
            if id(p) not in made:
                made[id(p)] = self.column(p, pages, value) if p else [None] * self.rows
            out.append(made[id(p)])
        return out

    @staticmethod
    def column(p, pages, value):
        order = sorted(range(len(p.bins)), key=lambda i: p.bins[i][0])
        out, at = [], 0
        for page in pages:
            while at < len(order) and sum(p.bins[order[at]]) <= page:
                at += 1
            inside = at < len(order) and p.bins[order[at]][0] <= page
            out.append(value(p, order[at]) if inside else None)
        return out


def heat(p, i):
    return p.heat[i]


def domain(p, i):
    w, h = p.writes[i], p.heat[i]
    if w is None or h is None:
        return None
    if w > 0:
        return WRITTEN_OFTEN if w >= OFTEN else WRITTEN if w >= SOMETIMES else AT_TIMES
    return READ if h > 0 else COLD


def on_pm(p, i):
    return p.on_pm[i]


HOT_BANDS = (2, 3, 5)  # hot and read, hot and written
WRITTEN_BANDS = (1, 4)  # written, not hot


def band_sum(p, tier, bands):
    return sum(p.bands[tier][b] for b in bands)
