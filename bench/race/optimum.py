# SPDX-License-Identifier: BSD-2-Clause
"""The static placements that are tried for the optimum. Pure."""
from dataclasses import dataclass
from itertools import product

# More than this many large objects are not tried one by one: the smaller ones stay on DRAM.
MOST_OBJECTS = 12
# Of more sets than this, those that hold the most traffic by bench-place.so's counts.
MOST_TRIED = 40
# A line written back to PM costs more than one read from it.
WRITE_WEIGHT = 3


@dataclass(frozen=True)
class Object:
    number: int
    bytes: int
    traffic: int = 0


def parse_objects(text):
    """HYBRID_PLACE_LIST: a line 'number bytes tier reads writebacks ...' for each object,
    # begins a comment."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            traffic = int(words[3]) + WRITE_WEIGHT * int(words[4]) if len(words) > 4 else 0
            found.append(Object(int(words[0]), int(words[1]), traffic))
    return found


def of_group(programs):
    """Which programs may use DRAM ('d'): all combinations."""
    return ["".join(p) for p in product("dp", repeat=len(programs))]


def pages(size):
    return (size + 4095) // 4096 * 4096


def fitting_sets(tried, free):
    """All sets of objects that fit into `free` bytes and to which none can be added."""
    for choice in product((False, True), repeat=len(tried)):
        used = sum(pages(o.bytes) for o, on in zip(tried, choice) if on)
        rest = [pages(o.bytes) for o, on in zip(tried, choice) if not on]
        if used <= free and all(used + r > free for r in rest):
            yield frozenset(o for o, on in zip(tried, choice) if on)


def of_objects(objects, room):
    """(digits for bench-place.so to be tried, how many there are in all). A digit by
    allocation number, 0 DRAM, 1 PM; the last one repeats. The sets that fill `room` bytes of
    DRAM; each with one object more, of which part gets the room that is left, or takes it from
    the others, as pages are touched; and everything for DRAM, which is Linux' order. Fewer
    objects on DRAM can only be worse for a program that is alone."""
    tried = sorted(objects, key=lambda o: -o.bytes)[:MOST_OBJECTS]
    small = [o for o in objects if o not in tried]
    fitting = set(fitting_sets(tried, room - sum(pages(o.bytes) for o in small)))
    sets = fitting | {s | {o} for s in fitting for o in tried if o not in s}
    order = sorted(sets, key=lambda s: (-promise(s, room), sorted(o.number for o in s)))
    chosen = [frozenset(tried), *(s for s in order if len(s) < len(tried))][:MOST_TRIED]
    count = max((o.number for o in objects), default=-1) + 1
    on_dram = [{o.number for o in s} | {o.number for o in small} for s in chosen]
    return ["".join("0" if n in on else "1" for n in range(count)) + "1" for on in on_dram], \
        len(sets | {frozenset(tried)})


def promise(some, room):
    """Traffic that DRAM takes, were it spread evenly over each object."""
    size = sum(pages(o.bytes) for o in some)
    return sum(o.traffic for o in some) * min(1, room / max(size, 1))
