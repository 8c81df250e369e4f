# SPDX-License-Identifier: BSD-2-Clause
"""Memory-bound jobs beside compute-bound ones, and when a lower clock pays: paper 001. Pure.

There a kernel sorts the run queues of its cores, on even ones the most memory-bound first and on odd
ones last, and runs through each once in an epoch of time slices. A batch does not stop what runs: it
takes its jobs from both ends of the sorted list, so that at any time those that run ask for as much of the
memory as all jobs do in the mean. Lowering the clock pays only where contention cannot be avoided."""
import batch_order

# EDP at the lower clock (2/3) over that at the full one, for a task that uses the share x of the memory bus:
# as 001 found it best in practice; by its microbenchmarks it is 1.67 - 0.79 x.
PRACTICE, THEORY = (1.4, 0.8), (1.67, 0.79)
LOW = 2 / 3


def demand(facts):
    """The share of the memory bus that a job uses, 0 to 1: the part of its time for which it keeps a memory
    busy (its effective bandwidth, 000)."""
    return min(1.0, facts.ebw)


def mean(values):
    return sum(values) / len(values) if values else 0.0


def ranking(known, running):
    """All of {key: Facts} in the order in which they would be taken beside those of {key: Facts} that
    run: [Choice]."""
    all_of_them = mean([demand(f) for f in [*known.values(), *running.values()]])
    heavy = not running or mean([demand(f) for f in running.values()]) <= all_of_them
    side = 'most' if heavy else 'least'
    keys = sorted(known, key=lambda k: (-known[k].ebw if heavy else known[k].ebw, k))
    return [batch_order.Choice(k, 'the %s memory-bound one, EBW %.3g (001)' % (side, known[k].ebw),
                               heavy=heavy) for k in keys]


def edp_factor(facts, rule=PRACTICE):
    return rule[0] - rule[1] * demand(facts)


def low_clock(running):
    """Shall the clock be lower while these Facts run?"""
    return bool(running) and mean([edp_factor(f) for f in running]) < 1 - 1e-9
