# SPDX-License-Identifier: BSD-2-Clause
"""Who runs next, beside whom: the order of HMMSched (paper 000, section V.A.2) and the two methods
against interference (paper 004, section V.B). Pure: no clock, no process."""
import math

import batch_ahead

ALPHA = 0.1     # of the EBW of all: the light ones below are latency-sensitive (000 leaves it open)
STARVED = 10    # latency-sensitive ones go first while their time is below a tenth of the others'
TURNS = ('largest EBW_D', 'smallest EBW_NV', 'largest EBW_NV', 'smallest EBW_D')


class Facts:
    """What is known of a job. EBW: effective bandwidth, the part of its time for which it keeps a
    memory busy (000, equations 6 and 7); bytes: at most, on each memory."""

    def __init__(self, ebw_d=0.0, ebw_nv=0.0, cls='unknown', writes=False, dram=0, pm=0, seconds=None, source='',
                 counted=True, compute=None, bus=None, pm_only=False):
        self.ebw_d, self.ebw_nv, self.cls, self.writes = ebw_d, ebw_nv, cls, writes
        self.dram, self.pm, self.seconds, self.source = dram, pm, seconds, source
        self.counted = counted  # else the EBW is a guess by the class
        self.pm_only = pm_only  # policy=pm
        self.compute = compute  # the part of its threads' time that they do not wait for memory; None: not known
        self.bus = bus  # the part of its time for which the busier memory moves its lines; None: not known

    @property
    def ebw(self):
        return self.ebw_d + self.ebw_nv

    @property
    def needs(self):
        """Bytes that would be on DRAM if it had room; what was told to lie on PM stays there."""
        return 0 if self.pm_only else self.dram + self.pm

    @property
    def on_pm(self):
        """Most of its data lie there."""
        return self.pm > self.dram


def latency_sensitive(facts, alpha=ALPHA):
    """The keys of {key: Facts} that are latency-sensitive: sorted by EBW, the first K whose sum is
    below alpha times that of all."""
    total, some, out = sum(f.ebw for f in facts.values()), 0.0, []
    for key in sorted(facts, key=lambda k: (facts[k].ebw, k)):
        some += facts[key].ebw
        if some >= alpha * total and (some > 0 or total > 0):
            break
        out.append(key)
    return out


def latency_first(light_seconds, heavy_seconds):
    """May a latency-sensitive one go before the others? Not if their time has reached a tenth of
    the others' time; where nobody has run yet, it may."""
    return light_seconds * STARVED < heavy_seconds or (light_seconds == 0 and heavy_seconds == 0)


def conflict(a, b):
    """004, V.B: a write-intensive one on PM beside one that it holds up?"""
    return batch_ahead.at_odds(batch_ahead.kind(a), batch_ahead.kind(b))


class Choice:
    def __init__(self, key, why, heavy=None, beside=False):
        self.key, self.why = key, why
        self.heavy = heavy    # bandwidth-sensitive: the turn goes on; None: not known
        self.beside = beside  # a conflict that could not be avoided


def turns(facts, keys, turn):
    """`keys` in the order in which they are taken: by turns the largest EBW_D, the smallest EBW_NV, the
    largest EBW_NV, the smallest EBW_D of those that are left; the first of equals."""
    medium = [lambda k: facts[k].ebw_d, lambda k: facts[k].ebw_nv]
    keys = list(keys)
    lines = [sorted(keys, key=lambda k, m=medium[m], sign=sign: (sign * m(k), k), reverse=True)
             for m, sign in ((0, -1), (1, 1), (1, -1), (0, 1))]
    taken, out = set(), []
    while len(out) < len(keys):
        line = lines[turn % 4]
        while line and line[-1] in taken:
            line.pop()
        key = line.pop()
        taken.add(key)
        out.append(key)
        turn += 1
    return out


def ranking(known, turn, light_seconds, heavy_seconds, alpha=ALPHA):
    """All of {key: Facts} in HMMSched's order: [Choice]."""
    light = latency_sensitive(known, alpha)
    of_light = set(light)
    first = [Choice(k, 'latency-sensitive, EBW %.3g' % known[k].ebw, heavy=False) for k in light]
    then = []
    for key in turns(known, [k for k in known if k not in of_light], turn):
        f = known[key]
        then.append(Choice(key, TURNS[turn % 4] + (' (%.3g + %.3g)' % (f.ebw_d, f.ebw_nv) if f.counted else
                                                   ', guessed by its class as there were no counters'), heavy=True))
        turn += 1
    return first + then if latency_first(light_seconds, heavy_seconds) or not then else then + first


def choose(unknown, ranked, known, running, slots=1, left=None, dram=math.inf):
    """The next to be started. `unknown`: keys of jobs of which nothing is known, in their order: they
    are learnt first; `ranked`: [Choice] of the others; `known`, `running`: {key: Facts}; `left`: {key:
    seconds that one still runs}; `dram`: bytes that there are. None: nobody is ready."""
    if unknown:
        return Choice(unknown[0], 'not known yet: learnt first')
    if not ranked:
        return None
    beside = {k: batch_ahead.kind(f) for k, f in running.items()}

    def without_conflict(size):
        those = batch_ahead.Beside(beside.values(), size)
        return [c for c in ranked if not those.hinders(batch_ahead.kind(known[c.key]))]
    fit = without_conflict(dram)
    may = fit or without_conflict(math.inf) or ranked
    c = may[0]
    if left is not None and slots > 1:
        c = batch_ahead.foresight(may, ranked, known, [(k, left.get(key, 0.0)) for key, k in beside.items()], slots, dram)
    if may is ranked and not fit:
        c.why += '; in spite of a conflict (004): nobody else is there'
        c.beside = True
    elif not fit:
        c.why += '; DRAM does not suffice for it and those beside it'
    elif c is not may[0]:
        c.why += '; before others that would have to run in a conflict later (004)'
    elif c is not ranked[0]:
        c.why += '; before others that would disturb, or be disturbed (004)'
    return c


def remaining(left, running, slots):
    """Seconds until all is done: `left`: expected seconds of those not started, None where not known;
    `running`: seconds that each still needs, or None. None: nothing is known of any."""
    told = [s for s in list(left) + list(running) if s is not None]
    if not told:
        return None
    usual = sum(told) / len(told)
    ends = sorted([max(0.0, usual if s is None else s) for s in running] + [0.0] * slots, reverse=True)[:slots]
    for s in sorted((usual if s is None else s for s in left), reverse=True):
        ends[ends.index(min(ends))] += s
    return max(ends)


class Planner:
    """The state that the order needs, moved on by started() and ended(): the batch and --dry-run use it
    alike. `jobs`: [Job]; `facts`: {job.key: Facts}, which grows; `rank`: (known, running) to [Choice] in
    place of the order by length and HMMSched; `dram`: bytes for all."""

    def __init__(self, jobs, facts, slots, alpha, rank=None, dram=math.inf):
        self.jobs, self.facts, self.slots, self.alpha, self.rank, self.dram = jobs, facts, slots, alpha, rank, dram
        self.waiting = {j.index for j in jobs}
        self.running = {}  # index: (since, heavy)
        self.ok = {}       # index: did it end well?
        self.turn, self.light, self.heavy = 0, 0.0, 0.0

    def seconds(self, index):
        f = self.facts.get(self.jobs[index].key)
        return f.seconds if f and f.seconds else None

    def done(self, index, ok):
        self.waiting.discard(index)
        self.ok[index] = ok

    def skipped(self):
        """Jobs whose after= has failed."""
        return [i for i in sorted(self.waiting) if any(self.ok.get(a) is False for a in self.jobs[i].after)]

    def next(self, now):
        """A Choice with an index as its key, or None."""
        if len(self.running) >= self.slots:
            return None
        ready = [i for i in sorted(self.waiting) if all(self.ok.get(a) for a in self.jobs[i].after)]
        busy = {self.jobs[i].key for i in self.running}
        unknown, held, known, seen = [], [], {}, set()
        for i in ready:
            key = self.jobs[i].key
            if key in self.facts:
                known[i] = self.facts[key]
            elif key in busy or key in seen:
                held.append(i)  # the same is being learnt now
            else:
                unknown.append(i)
                seen.add(key)
        if not unknown and not known and not self.running:
            unknown = held
        running = {i: self.facts[self.jobs[i].key] for i in self.running if self.jobs[i].key in self.facts}
        ranked = self.rank(known, running) if self.rank else self.ranked(known, now)
        return choose(unknown, ranked, known, running, self.slots, self.left(running, now), self.dram)

    def left(self, running, now):
        return {i: max(0.0, (self.seconds(i) or 0.0) - (now - self.running[i][0])) for i in running}

    def paths(self, seconds):
        """{index: seconds of it and of the longest that comes after it}, of those that wait."""
        then = {}
        for i in sorted(seconds, reverse=True):  # after= names earlier ones
            for a in self.jobs[i].after:
                then[a] = max(then.get(a, 0.0), seconds[i] + then.get(i, 0.0))
        return {i: s + then.get(i, 0.0) for i, s in seconds.items()}

    def ranked(self, known, now):
        """Those of one length in HMMSched's order, the short ones first."""
        spent = [self.light, self.heavy]
        for i, (since, heavy) in self.running.items():
            if heavy is not None:  # what has begun runs to its end
                spent[heavy] += max(now - since, self.seconds(i) or 0.0)
        ranked = ranking(known, self.turn, *spent, self.alpha)
        told = [s for s in map(self.seconds, self.waiting) if s]
        if not ranked or not told:
            return ranked
        usual = sum(told) / len(told)
        seconds = {i: self.seconds(i) or usual for i in self.waiting}
        ends = list(self.left(self.running, now).values())
        first, *rest = batch_ahead.short_first(ranked, seconds, [s for i, s in seconds.items() if i not in known],
                                               ends + [0.0] * (self.slots - len(ends)), self.paths(seconds))
        if len(rest):
            first.why = '%s; %s' % ('the short ones first' if all(seconds[first.key] <= seconds[c.key] for c in rest) else
                                    'all end later if it waits', first.why)
        return [first] + rest

    def started(self, choice, now):
        self.waiting.discard(choice.key)
        self.running[choice.key] = (now, choice.heavy)
        self.turn += bool(choice.heavy)

    def ended(self, index, now, ok):
        since, heavy = self.running.pop(index)
        if heavy:
            self.heavy += now - since
        elif heavy is False:
            self.light += now - since
        self.ok[index] = ok


def rehearse(planner, start, seconds):
    """--dry-run: [(second, job index, why, indices beside it)], as it would go with `seconds(index)`."""
    out, now, ends, assumed = [], start, {}, set()
    while True:
        c = planner.next(now)
        while c:
            why = 'learnt by then, its place is not known yet' if planner.jobs[c.key].key in assumed else c.why
            out.append((now, c.key, why, sorted(planner.running)))
            planner.started(c, now)
            ends[c.key] = now + seconds(c.key)
            c = planner.next(now)
        if not ends:
            return out
        now = min(ends.values())
        for index in sorted(i for i, end in ends.items() if end == now):
            del ends[index]
            planner.ended(index, now, True)
            key = planner.jobs[index].key
            if key not in planner.facts:
                assumed.add(key)
                planner.facts[key] = Facts()
