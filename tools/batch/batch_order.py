# SPDX-License-Identifier: BSD-2-Clause
"""Who runs next, beside whom: the order of HMMSched (paper 000, section V.A.2) and the two methods
against interference (paper 004, section V.B). Pure: no clock, no process."""

ALPHA = 0.1     # of the EBW of all: the light ones below are latency-sensitive (000 leaves it open)
STARVED = 10    # latency-sensitive ones go first while their time is below a tenth of the others'
TURNS = ('largest EBW_D', 'smallest EBW_NV', 'largest EBW_NV', 'smallest EBW_D')


class Facts:
    """What is known of a job. EBW: effective bandwidth, the part of its time for which it keeps a
    memory busy (000, equations 6 and 7); bytes: at most, on each memory."""

    def __init__(self, ebw_d=0.0, ebw_nv=0.0, cls='unknown', writes=False, dram=0, pm=0, seconds=None, source='',
                 counted=True, compute=None, bus=None):
        self.ebw_d, self.ebw_nv, self.cls, self.writes = ebw_d, ebw_nv, cls, writes
        self.dram, self.pm, self.seconds, self.source = dram, pm, seconds, source
        self.counted = counted  # else the EBW is a guess by the class
        self.compute = compute  # the part of its threads' time that they do not wait for memory; None: not known
        self.bus = bus  # the part of its time for which the busier memory moves its lines; None: not known

    @property
    def ebw(self):
        return self.ebw_d + self.ebw_nv

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


def take_turn(facts, keys, turn):
    """The one of `keys` whose turn it is among the bandwidth-sensitive ones; the first of equals."""
    medium = (lambda k: facts[k].ebw_d) if turn % 4 in (0, 3) else (lambda k: facts[k].ebw_nv)
    sign = -1 if turn % 4 in (0, 2) else 1
    return min(keys, key=lambda k: (sign * medium(k), k))


def kind(f):
    """What 004, V.B asks of a job: (does it write much to PM, is it held up by such writes)."""
    return f.writes and f.on_pm, f.cls == 'bandwidth' and not f.on_pm


def conflict(a, b):
    """004, V.B: a write-intensive one on PM beside a bandwidth-sensitive one on DRAM?"""
    return kinds_conflict(kind(a), kind(b))


def kinds_conflict(a, b):
    return (a[0] and b[1]) or (b[0] and a[1])


class Choice:
    def __init__(self, key, why, heavy=None, beside=False):
        self.key, self.why = key, why
        self.heavy = heavy    # bandwidth-sensitive: the turn goes on; None: not known
        self.beside = beside  # a conflict that could not be avoided


def ranking(known, turn, light_seconds, heavy_seconds, alpha=ALPHA):
    """All of {key: Facts} in the order in which they would be taken: [Choice]."""
    light = latency_sensitive(known, alpha)
    heavy = [k for k in known if k not in light]
    first = [Choice(k, 'latency-sensitive, EBW %.3g' % known[k].ebw, heavy=False) for k in light]
    then = []
    while heavy:
        key = take_turn(known, heavy, turn)
        heavy.remove(key)
        f = known[key]
        then.append(Choice(key, TURNS[turn % 4] + (' (%.3g + %.3g)' % (f.ebw_d, f.ebw_nv) if f.counted else
                                                   ', guessed by its class as there were no counters'), heavy=True))
        turn += 1
    return first + then if latency_first(light_seconds, heavy_seconds) or not then else then + first


def conflict_seconds(order, running, slots):
    """For how long jobs would run in a conflict. `order`: [(kind, seconds)] of those that wait, of which the first
    without a conflict is started whenever a slot is free, else the first; `running`: the same of those that
    run, with the seconds that are left."""
    order, running, total = list(order), list(running), 0.0
    while True:
        while order and len(running) < slots:
            fits = [i for i, (k, _) in enumerate(order) if not any(kinds_conflict(k, r) for r, _ in running)]
            running.append(order.pop(fits[0] if fits else 0))
        if not running:
            return total
        step = min(s for _, s in running)
        if any(kinds_conflict(a, b) for i, (a, _) in enumerate(running) for b, _ in running[:i]):
            total += step
        running = [(k, s - step) for k, s in running if s > step]


def foresight(ranked, known, running, slots):
    """Of the first of each kind in [Choice], those without a conflict now, the one after which conflicts last the
    shortest: who avoids one now may be left with those that must not run together. `running`: [(kind, seconds)].
    The first of equals; of jobs whose time is not known nothing is foreseen."""
    kinds, order = {}, []
    for c in ranked:
        f = known[c.key]
        if not f.seconds:
            return ranked[0]
        kinds.setdefault(kind(f), c)
        order.append((c, (kind(f), f.seconds)))
    if len(kinds) == 1:
        return ranked[0]

    def cost(c):
        begun = [(k, s) for k, s in running if s > 0] + [one for o, one in order if o is c]
        return conflict_seconds([one for o, one in order if o is not c], begun, slots)
    return min((c for k, c in kinds.items() if not any(kinds_conflict(k, r) for r, _ in running)),
               key=cost, default=ranked[0])


def choose(unknown, known, running, turn, light_seconds, heavy_seconds, alpha=ALPHA, rank=None, slots=1, left=None):
    """The next to be started. `unknown`: keys of jobs of which nothing is known, in their order: they
    are learnt first; `known`, `running`: {key: Facts}; `rank`: (known, running) to [Choice] in place of
    HMMSched's order; `left`: {key: seconds that one still runs}. None: nobody is ready."""
    if unknown:
        return Choice(unknown[0], 'not known yet: learnt first')
    ranked = rank(known, running) if rank else ranking(known, turn, light_seconds, heavy_seconds, alpha)
    if not ranked:
        return None
    free = [c for c in ranked if not any(conflict(known[c.key], f) for f in running.values())]
    if free:
        c = free[0]
        if left is not None and slots > 1:
            c = foresight(ranked, known, [(kind(f), left.get(k, 0.0)) for k, f in running.items()], slots)
        if c is not free[0]:
            c.why += '; before others that would have to run in a conflict later (004)'
        elif c is not ranked[0]:
            c.why += '; before others that would disturb, or be disturbed (004)'
        return c
    ranked[0].why += '; in spite of a conflict (004): nobody else is there'
    ranked[0].beside = True
    return ranked[0]


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
    alike. `jobs`: [Job]; `facts`: {job.key: Facts}, which grows."""

    def __init__(self, jobs, facts, slots, alpha, rank=None):
        self.jobs, self.facts, self.slots, self.alpha, self.rank = jobs, facts, slots, alpha, rank
        self.waiting = {j.index for j in jobs}
        self.running = {}  # index: (since, heavy)
        self.ok = {}       # index: did it end well?
        self.turn, self.light, self.heavy = 0, 0.0, 0.0

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
        spent = [self.light, self.heavy]
        for since, heavy in self.running.values():
            if heavy is not None:
                spent[heavy] += now - since
        running = {i: self.facts[self.jobs[i].key] for i in self.running if self.jobs[i].key in self.facts}
        left = {i: max(0.0, (running[i].seconds or 0.0) - (now - self.running[i][0])) for i in running}
        return choose(unknown, known, running, self.turn, spent[0], spent[1], self.alpha, self.rank, self.slots, left)

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
        index = min(ends, key=lambda i: (ends[i], i))
        now = ends.pop(index)
        planner.ended(index, now, True)
        key = planner.jobs[index].key
        if key not in planner.facts:
            assumed.add(key)
            planner.facts[key] = Facts()
