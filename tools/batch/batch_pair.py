# SPDX-License-Identifier: BSD-2-Clause
"""Memory-bound jobs beside compute-bound ones, and when a lower clock pays: paper 001. Pure.

There a kernel sorts the run queues of its cores, on even ones the most memory-bound first and on odd
ones last, and runs through each once in an epoch of time slices. A batch does not stop what runs: it
takes its jobs from both ends of the sorted list, so that at any time those that run ask for as much of the
memory as all jobs do in the mean.

The clock: 001 goes by the use of the memory bus, EDP x(1.4 - 0.8 x) for the share x, fitted to its programs. Here
it follows from how long the threads were seen to wait: waiting takes as long at any clock, computing 1.5 times as
long at two thirds of it. At both ends that is 001's line."""
import batch_order

# Power of a core at the lower clock over that at the full one, as 001 measured it (Table 1: energy x1.16 in
# x1.49 of the time). It calls 45 of 70 W typical, by which the lower clock gains sooner.
POWER = 1.16 / 1.49
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


def computing(facts):
    """The part of a job's time that goes with the clock. Where nobody measured it, what it leaves of the
    memory bus: a single thread that uses half of that may wait nearly all the time, so this is the most."""
    return 1.0 - demand(facts) if facts.compute is None else facts.compute


def stretch(facts):
    """Its time at the lower clock over that at the full one: memory does not get slower."""
    return 1.0 + computing(facts) * (1.0 / LOW - 1.0)


def edp_factor(facts, power=POWER):
    """Its energy-delay product at the lower clock over that at the full one."""
    return power * stretch(facts) ** 2


def low_clock(running):
    """Shall the clock be lower while these Facts run? If the mean of their EDP gets less by it (001)."""
    return bool(running) and mean([edp_factor(f) for f in running]) < 1 - 1e-9
