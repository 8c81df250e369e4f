# SPDX-License-Identifier: BSD-2-Clause
"""The static placements that are tried for the optimum. Pure."""
from dataclasses import dataclass, replace
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
    also: tuple = ()  # numbers of others that go where it goes

    def numbers(self):
        return {self.number, *self.also}


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


def merged(some):
    """Objects that go together; those that follow each other in time share their bytes."""
    first, *rest = sorted(some, key=lambda o: o.number)
    numbers = first.numbers().union(*(o.numbers() for o in rest)) - {first.number}
    return replace(first, traffic=sum(o.traffic for o in some), also=tuple(sorted(numbers)))


def successors(objects, text):
    """Temporaries of one size and one caller of which one is freed before the next is made are
    one object: they can have the same pages. `text`: the listing, with columns of the lives."""
    rows = {w[0]: w for w in map(str.split, text.splitlines()) if len(w) > 9 and w[0].isdigit()}
    if not all(str(o.number) in rows for o in objects):
        return objects
    chains = {}
    for o in sorted(objects, key=lambda o: int(rows[str(o.number)][8])):
        row = rows[str(o.number)]
        some = chains.setdefault((row[6], pages(o.bytes)), [])
        free = next((c for c in some if 0 < c["died"] < int(row[8])), None)
        if not free:
            free = {"objects": []}
            some.append(free)
        free["objects"].append(o)
        free["died"] = int(row[9])
    return sorted((merged(c["objects"]) for some in chains.values() for c in some),
                  key=lambda o: o.number)


def bundles(objects, most, room):
    """At most so many objects, where those that could not be tried one by one hold too much of
    the room: some that are used alike go together."""
    small = sorted(objects, key=lambda o: -o.bytes)[most:]
    if sum(pages(o.bytes) for o in small) <= room / 2:
        return objects
    part = sum(o.bytes for o in objects) / most
    found, size = {}, 0
    for o in sorted(objects, key=lambda o: -o.traffic / max(o.bytes, 1)):
        found.setdefault((size + o.bytes / 2) // part, []).append(o)
        size += o.bytes
    return [replace(merged(some), bytes=sum(pages(o.bytes) for o in some))
            for some in found.values()]


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
    objects = bundles(objects, MOST_OBJECTS, room)
    tried = sorted(objects, key=lambda o: -o.bytes)[:MOST_OBJECTS]
    small = [o for o in objects if o not in tried]
    fitting = set(fitting_sets(tried, room - sum(pages(o.bytes) for o in small)))
    sets = fitting | {s | {o} for s in fitting for o in tried if o not in s}
    order = sorted(sets, key=lambda s: (-promise(s, room), sorted(o.number for o in s)))
    chosen = [frozenset(tried), *(s for s in order if len(s) < len(tried))][:MOST_TRIED]
    count = max((n for o in objects for n in o.numbers()), default=-1) + 1
    on_dram = [{n for some in (s, small) for o in some for n in o.numbers()} for s in chosen]
    return ["".join("0" if n in on else "1" for n in range(count)) + "1" for on in on_dram], \
        len(sets | {frozenset(tried)})


def promise(some, room):
    """Traffic that DRAM takes, were it spread evenly over each object."""
    size = sum(pages(o.bytes) for o in some)
    return sum(o.traffic for o in some) * min(1, room / max(size, 1))
