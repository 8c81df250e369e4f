# SPDX-License-Identifier: BSD-2-Clause
"""From what hybrid-measure measured to the figures of a machine file: pure.

A request is (loop, tier, threads[, loop, tier beside it]); `points` has the median of each, in MB/s
or ns, and what derived() adds."""

TIERS = ('dram', 'pm')
# Loop, name in the file, what people call it.
KINDS = (('read', 'seq-read', 'sequential read'), ('write', 'seq-write', 'sequential store'),
         ('rread', 'random-read', 'random read'), ('rwrite', 'random-write', 'random store'))
KNEE = 0.90          # a medium is full where this share of its most is reached
SPREAD = 0.25        # quartiles further apart than this share of the median: not believed
GROWING = 0.75       # of what as many threads would do if none were in another's way
BUSY = 0.90          # a round in which others took more of the CPUs than the rest is repeated
WRITE_OVERLAP = 20   # write-backs under way at a time (machine_figures.h, write-ns)
MOST_WRITE = 4       # a medium is not said to write faster than so many times its reads
LINE_MBS_NS = 64e3   # over MB/s: ns for a line; times lines a ns: MB/s


def quantile(values, q):
    v = sorted(values)
    at = q * (len(v) - 1)
    low = int(at)
    high = min(low + 1, len(v) - 1)
    return v[low] + (v[high] - v[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def spread(values):
    """Distance of the quartiles over the median."""
    middle = median(values)
    return (quantile(values, 0.75) - quantile(values, 0.25)) / middle if middle > 0 else 1.0


def thread_counts(most, quick):
    """1, 2, 3, 4, then by steps of about a third; quick: by doubling."""
    counts, n = [], 1
    while n < most:
        counts.append(n)
        n = n * 2 if quick else n + max(1, n // 3)
    return counts + [most]


def level(bandwidths):
    """Of a full medium, from a curve {threads: bandwidth}: the middle of the points near the
    highest, which alone would be the luckiest."""
    aim = KNEE * max(bandwidths.values())
    return median([v for v in bandwidths.values() if v >= aim])


def knee(bandwidths):
    """Threads, with a fraction, with which a curve first reaches KNEE of its level."""
    aim = KNEE * level(bandwidths)
    before = (0, 0.0)
    for n in sorted(bandwidths):
        v = bandwidths[n]
        if v >= aim:
            part = (aim - before[1]) / (v - before[1])
            return max(1.0, before[0] + part * (n - before[0]))
        before = (n, v)
    return float(max(bandwidths))


def write_alone(stores, reads):
    """Bandwidth of write-backs alone. A store reads its line and writes it back later, and what
    libhybrid computes with is time = read / reads + written / writes."""
    if stores >= reads:
        return MOST_WRITE * reads
    return min(1 / (1 / stores - 1 / reads), MOST_WRITE * reads)


def derived(values, points, half):
    """What comes of several requests."""
    more = {('added', tier): added_by_writes(values, tier) for tier in TIERS}
    for _, kind, tier, _ in INTERFERENCE if half else ():
        more['half', kind, tier] = points[kind, tier, half]
    return more


def at_random(random, sequential):
    """What a medium can do of random traffic: the most that was measured; but where more threads
    would have made more of it, it is not the medium that ends it."""
    last = max(random)
    if random[last] > GROWING * last * random[1]:
        return sequential
    return min(level(random), sequential)


def added_by_writes(values, tier):
    """ns that a written line adds to a chain of loads, less what the store itself takes in a
    cache; round by round. None: less than the rounds differ by."""
    cache = [u - c for u, c in zip(values['update', 'cache', 1], values['chase', 'cache', 1])]
    here = [u - c for u, c in zip(values['update', tier, 1], values['chase', tier, 1])]
    added = [h - c for h, c in zip(here, cache)]
    middle = median(added)
    return middle if middle > quantile(added, 0.75) - quantile(added, 0.25) else None


def write_latency(added, read_ns):
    """libhybrid counts 1 / WRITE_OVERLAP of it. Not to be told: as a load."""
    return read_ns if added is None else min(max(WRITE_OVERLAP * added, 1.0), 10 * read_ns)


def figures(points, of):
    """The numbers of the machine file by section. `points`: {request: median}, and what
    derived() adds."""
    f = {'machine': dict(of), 'dram': {}, 'pm': {}, 'interference': {}}
    for tier in TIERS:
        curves = {name: curve(points, kind, tier) for kind, name, _ in KINDS}
        most = {name: level(c) for name, c in curves.items()}
        read_ns = points['chase', tier, 1]
        reads = at_random(curves['random-read'], most['seq-read'])
        writes = write_alone(most['seq-write'], most['seq-read'])
        scattered = at_random(curves['random-write'], most['seq-write'])
        alone = {k: LINE_MBS_NS / points['read', k, 1] for k in (tier, 'core')}
        f[tier] = {
            'read-ns': read_ns,
            'write-ns': write_latency(points['added', tier], read_ns),
            'seq-read-mbs': most['seq-read'],
            'seq-write-mbs': writes,
            'random-read-mbs': reads,
            'random-write-mbs': min(write_alone(scattered, reads), writes),
            'read-knee': knee(curves['seq-read']), 'write-knee': knee(curves['seq-write']),
            'stream-ns': max(alone[tier] - alone['core'], 0.1)}
    for name, kind, tier, other in INTERFERENCE:
        both = [k for k in points if k[:2] == (kind, tier) and k[3:] == other]
        if both:
            alone = points['half', kind, tier]
            f['interference'][name] = min(100.0, 100 * points[both[0]] / alone)
    return f


# Figure, who is measured, beside what (004 section V: reads beside reads, writes beside random
# writes).
INTERFERENCE = (('dram-read-left', 'read', 'dram', ('read', 'pm')),
                ('dram-write-left', 'write', 'dram', ('rwrite', 'pm')),
                ('pm-left', 'read', 'pm', ('read', 'dram')))


def curve(points, kind, tier):
    """{threads: MB/s}"""
    return {k[2]: v for k, v in points.items() if k[:2] == (kind, tier) and len(k) == 3}


def doubts(f, noisy, disturbed, total):
    """Why the figures should not be believed."""
    wrong = []
    if noisy:
        worst = max(noisy, key=noisy.get)
        wrong.append('%d of the points that count are not repeatable; the worst, %s, differs by '
                     '%.0f %% from round to round' % (len(noisy), worst, 100 * noisy[worst]))
    if disturbed > total / 4:
        wrong.append('other programs took the CPUs in %d of %d rounds' % (disturbed, total))
    dram, pm = f['dram'], f['pm']
    if pm['read-ns'] < 1.1 * dram['read-ns'] and all(
            pm[k] > 0.9 * dram[k] for k in ('seq-read-mbs', 'seq-write-mbs')):
        wrong.append('PM is as fast as DRAM (%.0f and %.0f ns, %.1f and %.1f GB/s): it is no '
                     'second kind of memory' % (pm['read-ns'], dram['read-ns'],
                                               pm['seq-read-mbs'] / 1e3,
                                               dram['seq-read-mbs'] / 1e3))
    return wrong


def requests(most, half, quick, virtual):
    """Everything that is asked for, in this order: (loop, tier, threads[, loop, tier])."""
    keys = [] if virtual else [('cycle', 'core', 1)]
    keys += [(kind, tier, 1) for tier in ('cache',) + TIERS for kind in ('chase', 'update')]
    keys += [('read', 'core', 1)]
    counts = thread_counts(most, quick)
    for tier in TIERS:
        keys += [(kind, tier, n) for kind, _, _ in KINDS for n in counts]
    if half:
        alone = dict.fromkeys((kind, tier, half) for _, kind, tier, _ in INTERFERENCE)
        keys += [k for k in alone if k not in keys]
        keys += [(kind, tier, half, *other) for _, kind, tier, other in INTERFERENCE]
    return keys


def keys_that_count(values, points):
    """Those from which a figure comes: latencies, the best of each curve, interference."""
    keys = [k for k in points if len(k) > 3 or k[0] in ('chase', 'update') and k[1] != 'cache']
    for tier in TIERS:
        for kind, _, _ in KINDS:
            c = curve(points, kind, tier)
            keys.append((kind, tier, max(c, key=c.get)))
    return [k for k in keys if k in values]
