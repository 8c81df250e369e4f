# SPDX-License-Identifier: BSD-2-Clause
"""Profiles from measured runs: what a user learns of a program before the race. Pure; the
runs themselves are race.py's."""
from itertools import combinations

# Slower than this on PM is not CPU-bound (papers/004: the CPU-bound ones stay below).
CPU_BOUND = 1.5
THREAD_SLACK = 0.05


def program_facts(dram_ms, pm_ms, gets_dram):
    """Of a whole program: how much slower it is on PM, and whether it leaves DRAM to others.
    Lines of [app] and of [options]."""
    slowdown = pm_ms / dram_ms
    cls = "cpu" if slowdown < CPU_BOUND else "bandwidth"
    return ([f"class = {cls}", f"slowdown = {slowdown:.2f}"],
            [] if gets_dram else ["policy = pm"])


def thread_counts(most):
    return [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 20) if n < most] + [most]


def fewest_threads(times):
    """{count: time}: the fewest that are as fast as any, but for THREAD_SLACK."""
    best = min(times.values())
    return min(n for n, t in times.items() if t <= best * (1 + THREAD_SLACK))


def profile(workload, app=(), options=(), threads=None, recorded=""):
    """The text; `threads` by tier; `recorded`: what `hybridctl record` wrote, which has its own
    [app]."""
    parts = [recorded.rstrip()] if recorded else \
        ["\n".join(["[app]", f"exe = emu-{workload}", *app])]
    if options:
        parts.append("\n".join(["[options]", *options]))
    if threads:
        parts.append("\n".join(["[threads]", *(f"{t} = {n}" for t, n in threads.items())]))
    return "\n\n".join(parts) + "\n"


def choose(sizes, benefit, room):
    """The names whose sum of benefits is largest within `room`: exact, they are few. Both
    are dicts by name; what gains nothing is not chosen."""
    names = sorted(n for n in sizes if benefit[n] > 0)
    best, chosen = 0.0, frozenset()
    for count in range(1, len(names) + 1):
        for some in combinations(names, count):
            value = sum(benefit[n] for n in some)
            if value > best and sum(sizes[n] for n in some) <= room:
                best, chosen = value, frozenset(some)
    return chosen
