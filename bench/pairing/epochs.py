# SPDX-License-Identifier: BSD-2-Clause
"""The scheduler of paper 001, section 4.1: sorted run queues and epochs. Pure.

hybridctl batch does without epochs, as it does not stop what runs (tools/batch/batch_pair.py)."""
import dataclasses


@dataclasses.dataclass
class Core:
    """A run queue of 001: tasks in the order in which an epoch runs through them."""
    tasks: list
    shift: float  # of the epoch's length, by which its epoch begins later


def queues(demands, cores):
    """Run queues for `demands` {task: share of the bus}: balanced, so that each core has tasks of all kinds,
    sorted down on even cores and up on odd ones, later pairs of cores shifted within the epoch."""
    ordered = sorted(demands, key=lambda t: (-demands[t], t))
    out = [[] for _ in range(cores)]
    for i, task in enumerate(ordered):  # dealt out there and back
        lap, at = divmod(i, cores)
        out[at if lap % 2 == 0 else cores - 1 - at].append(task)
    pairs = (cores + 1) // 2
    return [Core(sorted(q, key=lambda t: (-demands[t] if c % 2 == 0 else demands[t], t)), (c // 2) / pairs /
                 max(1, max(map(len, out)))) for c, q in enumerate(out)]


def epoch(cores):
    """[(length, [task of each core, None: idle])] of one epoch of length 1: each core runs through its queue
    once, each task for as long."""
    points = {0.0, 1.0}
    for c in cores:
        for i in range(len(c.tasks)):
            points.add(round((c.shift + i / len(c.tasks)) % 1.0, 9))
    points = sorted(points)
    out = []
    for begin, end in zip(points, points[1:]):
        if end - begin > 1e-6:
            middle = (begin + end) / 2
            out.append((end - begin, [c.tasks[int((middle - c.shift) % 1.0 * len(c.tasks))] if c.tasks else None
                                      for c in cores]))
    return out
