# SPDX-License-Identifier: BSD-2-Clause
"""What a choice means for those that come later: conflicts that are only put off, and how long the whole
batch takes. Pure: no clock, no process."""
import heapq
import math
from collections import deque

SAME = 1 + 1e-9  # of sums of times
FORESEEN, LOOKED_AT = 64, 4  # jobs: bound the work of a choice


def kind(f):
    """What 004, V.B asks of a job: (does it write much to PM, is it held up by such writes, the bytes that it
    needs on DRAM). Who writes to PM is held up by others that do: it has one bandwidth for all. CPU-bound
    ones leave DRAM to others without a loss (004, algorithm 1)."""
    writes = f.writes and f.on_pm
    return writes, writes or f.cls == 'bandwidth', 0 if f.cls == 'cpu' else f.needs


def at_odds(a, b):
    """004, V.B: does one write much to PM and hold up the other?"""
    return (a[0] and b[1]) or (b[0] and a[1])


class Beside:
    """Jobs of those kinds side by side. `dram`: bytes that there are. Who needs more than there
    is by itself counts as all."""

    def __init__(self, kinds, dram):
        kinds = list(kinds)
        self.dram, self.writers, self.held = dram, sum(k[0] for k in kinds), sum(k[1] for k in kinds)
        self.both = sum(k[0] and k[1] for k in kinds)
        self.bytes = sum(min(k[2], dram) for k in kinds)

    def hinders(self, k):
        """May one of kind `k` not begin beside them?"""
        return bool((k[0] and self.held) or (k[1] and self.writers) or
                    (k[2] and self.bytes and self.bytes + min(k[2], self.dram) > self.dram))

    def conflict(self):
        """Are two of them in one?"""
        return self.writers * self.held > self.both or self.bytes > self.dram


def conflict_seconds(order, running, slots, dram=math.inf):
    """For how long jobs would run in a conflict. `order`: [(kind, seconds)] of those that wait, of which the first
    without a conflict is started whenever a slot is free, else the first; `running`: the same of those that
    run, with the seconds that are left."""
    running, total, lines = list(running), 0.0, {}
    for number, (k, seconds) in enumerate(order):
        lines.setdefault(k, deque()).append((number, seconds))
    while True:
        while lines and len(running) < slots:
            beside = Beside((r for r, _ in running), dram)
            first = min(lines, key=lambda k: (beside.hinders(k), lines[k][0][0]))
            running.append((first, lines[first].popleft()[1]))
            if not lines[first]:
                del lines[first]
        if not running:
            return total
        step = min(s for _, s in running)
        if Beside((k for k, _ in running), dram).conflict():
            total += step
        running = [(k, s - step) for k, s in running if s > step]


def foresight(may, ranked, known, running, slots, dram=math.inf):
    """Of [Choice] `may` the one after which conflicts last the shortest: who avoids one now may be left with those
    that must not run together. `ranked`: of all that wait; `running`: [(kind, seconds)]. The first of equals. The
    first of each kind are looked at and some more, at what follows within FORESEEN jobs; of those whose time
    is not known nothing is foreseen."""
    if len(may) < 2 or not all(known[c.key].seconds for c in ranked):
        return may[0]
    order = [(c, (kind(known[c.key]), known[c.key].seconds)) for c in ranked[:FORESEEN]]
    begun = [(k, s) for k, s in running if s > 0]
    kinds = {}
    for c in may:
        kinds.setdefault(kind(known[c.key])[:2], c)

    def cost(c):
        new = (kind(known[c.key]), known[c.key].seconds)
        return conflict_seconds([one for o, one in order if o is not c], begun + [new], slots, dram)
    return min(may[:LOOKED_AT] + [c for c in kinds.values() if c not in may[:LOOKED_AT]], key=cost)


def whole(ends, times):
    """When all is over, if the longest goes first whenever a slot is free. `ends`: seconds until each slot is."""
    heap = list(ends)
    heapq.heapify(heap)
    for s in sorted(times, reverse=True):
        heapq.heappush(heap, heap[0] + s)
        heapq.heappop(heap)
    return max(heap)


def length(seconds):
    """Jobs of one length: their times are never known better than this."""
    return math.frexp(seconds)[1] if seconds > 0 else 0


def short_first(ranked, seconds, others, ends, paths):
    """[Choice] again, with the short ones first, as each job's waiting counts by its own time (the highest response
    ratio: all have waited alike). In front of these comes the shortest that may be taken without the whole
    taking longer, as a long one that begins last ends last. `seconds`: {key: of each}; `others`: of those
    that wait and cannot be taken yet; `ends`: of each slot, the free one with 0; `paths`: {key: seconds of it and
    of the longest that comes after it}. Those of one length stay as they were."""
    order = sorted(ranked, key=lambda c: length(seconds[c.key]))
    times = list(others) + [seconds[c.key] for c in ranked]
    longest, second = (sorted(order, key=lambda c: paths[c.key]) * 2)[-1:-3:-1]

    def all_over(c):
        left, began = list(times), sorted(ends)
        left.remove(seconds[c.key])
        after = paths[(second if c is longest else longest).key] if len(order) > 1 else 0.0
        began[0] += seconds[c.key]
        return max(whole(began, left), paths[c.key], min(began) + after)

    limit = all_over(longest) * SAME
    low, high = 0, len(order) - 1
    if all_over(order[0]) <= limit:
        high = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if all_over(order[middle]) <= limit else (middle + 1, high)
    first = order[high] if all_over(order[high]) <= limit else longest
    return [first] + [c for c in order if c is not first]
