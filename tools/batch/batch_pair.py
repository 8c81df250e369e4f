# SPDX-License-Identifier: BSD-2-Clause
"""Memory-bound jobs beside compute-bound ones, and when a lower clock pays: paper 001. Pure.

There a kernel sorts the run queues of its cores, on even ones the most memory-bound first and on odd
ones last, and runs through each once in an epoch of time slices. A batch does not stop what runs: it
takes its jobs from both ends of the sorted list, so that at any time those that run ask for as much of the
memory as all jobs do in the mean.

The clock: 001 goes by the use of the memory bus, EDP x(1.4 - 0.8 x) for the share x, fitted to its programs. Here
it follows from how long threads were seen to wait, and from how much longer they wait beside each other: waiting
takes as long at any clock, computing 1.5 times as long at two thirds of it. At both ends that is 001's line."""
import batch_order

# Power of a core at the lower clock over that at the full one: 45 of 70 W, which 001 calls typical. Its Table 1
# measured 0.78, its line fitted to programs (EDP x1.4 - 0.8 x) ends where this one does.
POWER = 45 / 70
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


def bus(facts):
    """The share of the memory bus that it needs: of the lines counted, else as 001 tells it from the bandwidth."""
    return demand(facts) if facts.bus is None else facts.bus


def computing(facts):
    """The part of a job's time that goes with the clock; where nobody measured it, what it leaves of the bus."""
    return 1.0 - bus(facts) if facts.compute is None else facts.compute


def times(running, clock):
    """Of Facts side by side at that clock (1: the full one), each over its time alone at the full one. Computing
    goes with the clock. Memory is waited for as long at any clock, and longer where all together would need more
    than there is: so many times longer that it suffices."""
    parts = [(computing(f) / clock, 1 - computing(f), bus(f)) for f in running]

    def with_wait(q):
        return [max(c + w * q, 1e-9) for c, w, _ in parts]

    def too_much(q):
        return sum(d / t for (_, w, d), t in zip(parts, with_wait(q)) if w > 0) > 1

    low, high = 1.0, 1.0
    while too_much(high) and high < 1e6:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if too_much(middle) else (low, middle)
    return with_wait(high)


def edp_factors(running, power=POWER):
    """The energy-delay product of each at the lower clock over that at the full one."""
    return [power * (low / full) ** 2 for low, full in zip(times(running, LOW), times(running, 1.0))]


def low_clock(running):
    """Shall the clock be lower while these Facts run? If the mean of their EDP gets less by it (001)."""
    return bool(running) and mean(edp_factors(running)) < 1 - 1e-9
