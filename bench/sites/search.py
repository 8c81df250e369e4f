# SPDX-License-Identifier: BSD-2-Clause
"""The sets of objects that are tried."""
import os
from dataclasses import replace
from itertools import islice

from optimum import fitting_sets, pages

HERE = os.path.dirname(os.path.abspath(__file__))
# What a line written is worth of one read, from 'waits for reads' to 'full of writes'. Sets are
# ranked by each, as the machine's true answer is not known before they are run.
WEIGHTS = (0.2, 1, 3, 8)
# More objects than this are not combined one by one: the smallest of them stay where they gain.
MOST_OBJECTS = 14
MOST_SETS = 200000


def with_counts(objects, text):
    """Objects with the lines read and written that bench-place.so counted."""
    counts = {}
    for line in text.splitlines():
        words = line.split()
        if words and not words[0].startswith("#") and len(words) > 4:
            counts[int(words[0])] = (int(words[3]), int(words[4]))
    return [replace(o, traffic=counts.get(o.number, (0, 0))) for o in objects]


def worth(chosen, weight):
    return sum(o.traffic[0] + weight * o.traffic[1] for o in chosen)


def candidates(objects, room, most):
    """(sets to be run, how many fill `room`). All of them where they are few, else the best by
    each of WEIGHTS by turns."""
    large = sorted(objects, key=lambda o: -worth([o], 1))[:MOST_OBJECTS]
    fitting = list(islice(fitting_sets(large, room), MOST_SETS))
    if len(fitting) <= most:
        return fitting, len(fitting)
    ranked = [sorted(fitting, key=lambda s: (-worth(s, w), sorted(o.number for o in s)))
              for w in WEIGHTS]
    chosen = []
    for row in zip(*ranked):
        for s in row:
            if s not in chosen and len(chosen) < most:
                chosen.append(s)
        if len(chosen) >= most:
            break
    return chosen, len(fitting)


def digits(chosen, objects):
    """HYBRID_PLACE: 0 DRAM, 1 PM by number; the last one goes for the rest."""
    on_dram = {o.number for o in chosen}
    last = max((o.number for o in objects), default=-1)
    return "".join("0" if n in on_dram else "1" for n in range(last + 1)) + "1"


def default_size(name):
    with open(os.path.join(os.path.dirname(HERE), "workloads", "emulated.txt"),
              encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.split()[:1] == [name])
