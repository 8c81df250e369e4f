#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl batch: the jobs of a file, a few at a time, in an order that spares the memories.

Who runs beside whom follows papers 000 (section V) and 004 (section V.B), see batch_order.py. Started by
hybridctl, which passes --library and --ctl."""
import os
import signal
import sys

for stream in (0, 1, 2):  # closed: the next file that is opened would be taken for it
    try:
        os.fstat(stream)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
sys.stdout, sys.stderr = (s or open(os.devnull, 'w', encoding='utf-8') for s in (sys.stdout, sys.stderr))
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there is something to be told and kept
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # hybridctl held it back while Python began

import argparse  # noqa: E402: an interrupt while modules are loaded has no traceback
import codecs  # noqa: E402
import re  # noqa: E402
import shlex  # noqa: E402
import time  # noqa: E402

import batch_facts  # noqa: E402
import batch_jobs  # noqa: E402
import batch_journal  # noqa: E402
import batch_order  # noqa: E402
import batch_page  # noqa: E402
import batch_pair  # noqa: E402
import batch_power  # noqa: E402
import batch_run  # noqa: E402
import outfile  # noqa: E402
from report_charts import duration  # noqa: E402

SKIPPED = 125  # the status of a job that was not started


def arguments(argv):
    p = argparse.ArgumentParser(prog='hybridctl batch', usage='hybridctl batch [OPTION]... JOBFILE')
    p.add_argument('--slots', type=int, default=2)
    p.add_argument('-o', '--output', metavar='DIR')
    p.add_argument('--alpha', type=float, default=batch_order.ALPHA)
    p.add_argument('--pair', action='store_true')
    p.add_argument('--clock', action='store_true')
    p.add_argument('--admission', default='wait:30')
    p.add_argument('--dry-run', action='store_true')
    p.add_argument('--resume', action='store_true')
    p.add_argument('--fresh', action='store_true')
    p.add_argument('-q', '--quiet', action='store_true')
    p.add_argument('--sys', default='/sys', help=argparse.SUPPRESS)  # a fake tree in tests
    p.add_argument('--library', help=argparse.SUPPRESS)
    p.add_argument('--ctl', help=argparse.SUPPRESS)
    p.add_argument('jobfile')
    o = p.parse_args(argv)
    if not 1 <= o.slots <= 256:
        p.error('--slots=%d: 1 to 256 are allowed' % o.slots)
    if not 0 <= o.alpha <= 1:
        p.error('--alpha=%g: 0 to 1 is allowed' % o.alpha)
    m = re.fullmatch(r'off|wait:([0-9]{1,5})', o.admission)
    if not m or (m.group(1) and not 1 <= int(m.group(1)) <= 86400):
        p.error('--admission=%s: off, or wait:SECONDS with 1 to 86400, are allowed' % o.admission)
    if o.resume and o.fresh:
        p.error('--resume and --fresh exclude each other')
    if o.jobfile == '-' and not o.output:
        p.error('a job file from standard input needs --output DIR')
    return o


def complain(text):
    for line in str(text).split('\n'):
        outfile.tell('hybridctl batch: %s' % line, error=True)


def status_text(status):
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return 'signal %d' % -status
    return str(status)


def shell_status(status):
    return 128 - status if status < 0 else status


class Batch:
    def __init__(self, o, jobs, folder):
        self.o, self.jobs, self.folder = o, jobs, folder
        self.runner = batch_run.Runner(o, folder)
        self.learnt = batch_facts.Learnt(os.path.join(folder, 'learnt.json'))
        facts = batch_facts.gather(o.ctl, jobs, self.learnt)
        self.planner = batch_order.Planner(jobs, facts, o.slots, o.alpha, batch_pair.ranking if o.pair else None,
                                           batch_facts.dram_of_all(o.ctl))
        self.clock, self.energy = batch_power.Clock(o.sys), batch_power.Energy(o.sys)
        self.progress = batch_run.Progress(o.quiet)
        self.journal, self.past = None, None
        self.running, self.ends, self.broken, self.stopping = {}, {}, set(), 0
        self.spans = []  # (start event, end event), for the page
        self.full = False

    # --- before anything runs ---

    def check(self):
        """Lines about jobs that cannot be run."""
        wrong = []
        for job in self.jobs:
            why = self.runner.check(job)
            if why:
                wrong.append('%s:%d: %s' % (self.o.jobfile, job.line, why))
        return wrong

    def seconds(self, index):
        f = self.planner.facts.get(self.jobs[index].key)
        return f.seconds if f and f.seconds else None

    def dry_run(self):
        known = [s for s in map(self.seconds, range(len(self.jobs))) if s]
        usual = sum(known) / len(known) if known else 1.0
        told = dict(self.planner.facts)
        plan = batch_order.rehearse(self.planner, 0.0, lambda i: self.seconds(i) or usual)
        outfile.tell('%d jobs, %d at a time%s' % (
            len(self.jobs), self.o.slots, '' if known else '; no times are known: each is taken for 1 s'))
        for at, index, why, beside in plan:
            job, f = self.jobs[index], told.get(self.jobs[index].key)
            outfile.tell('%8s  %-16s %s' % (duration(at), job.name, shlex.join(job.argv)))
            outfile.tell('%8s  why: %s' % ('', why))
            if f:
                outfile.tell('%8s  known from %s: %s%s, EBW DRAM %.3g, PM %.3g%s' % (
                    '', f.source, f.cls, ', writes much' if f.writes else '', f.ebw_d, f.ebw_nv,
                    ', ' + duration(f.seconds) if f.seconds else ''))
            if beside:
                outfile.tell('%8s  beside: %s' % ('', ', '.join(self.jobs[k].name for k in beside)))

    def open(self):
        """The journal, and what it tells of an earlier batch. 0 or a status."""
        path = os.path.join(self.folder, 'journal')
        try:
            os.makedirs(self.folder, exist_ok=True)
            self.journal = batch_journal.Journal(path)
        except batch_journal.Busy:
            complain('%s: another batch is at work there' % self.folder)
            return 2
        except OSError as e:
            complain('%s: %s' % (path, e.strerror))
            return 125
        events = batch_journal.read(path)
        try:
            past = batch_journal.Past(events, self.jobs)
        except batch_journal.Stranger:
            past = None
        finished = any(e['event'] == 'finish' for e in events)
        if events and not finished and not self.o.resume and not self.o.fresh:
            complain('%s: there is an interrupted batch; --resume goes on with it, --fresh begins anew' % path)
            return 2
        if self.o.resume and finished:
            complain('%s: the batch has ended; without --resume the jobs are run' % path)
            return 2
        if self.o.resume and not past:
            complain('%s: the interrupted batch had other jobs; --fresh begins anew' % path)
            return 2
        if past:
            for index, event in past.started.items():
                if batch_run.end_left_over(event, self.runner.reports(self.jobs[index])):
                    complain('%s was still running, left by the batch that was killed; it was ended and is '
                             'run again' % self.jobs[index].name)
        if self.o.resume:
            self.take_over(past)
        else:
            self.journal.clear()
            for job in self.jobs:
                self.runner.forget(job)
        self.journal.add('resume' if self.o.resume and events else 'begin', version=batch_journal.VERSION, time=time.time(),
                         jobs=batch_journal.fingerprint(self.jobs))
        return 0

    def take_over(self, past):
        for index, end in past.ended.items():
            self.ends[index] = end['status']
            self.planner.done(index, end['status'] == 0)
        self.spans = list(past.spans)
        if past.ended:
            self.progress.say('%d of %d jobs were done' % (len(past.ended), len(self.jobs)))

    # --- at work ---

    def start(self, choice):
        job = self.jobs[choice.key]
        now = time.time()
        try:
            process = self.runner.start(job, choice.beside)
        except (OSError, ValueError) as e:
            why = getattr(e, 'strerror', None) or str(e)
            self.planner.done(choice.key, False)
            self.over(choice.key, SKIPPED, 'could not be started: ' + why, dict(job=choice.key, time=now), now)
            return
        beside = sorted(self.planner.running)
        self.planner.started(choice, time.monotonic())
        event = dict(job=choice.key, name=job.name, time=now, pid=process.pid, since=batch_run.start_time(process.pid),
                     boot=batch_run.boot(), why=choice.why, beside=beside)
        self.running[choice.key] = (process, time.monotonic(), event)
        self.journal.add('start', **event)
        self.progress.say('%s %s started: %s%s' % (self.count(), job.name, choice.why, '; beside ' + ', '.join(
            self.jobs[k].name for k in beside) if beside else ''))

    def over(self, index, status, why, start, now, **more):
        self.ends[index] = status
        end = dict(job=index, name=self.jobs[index].name, status=status, time=now, **more)
        self.spans.append((start, end))
        self.journal.add('end', **end)
        if status or why:
            self.progress.say('%s %s: %s' % (self.count(), self.jobs[index].name,
                                             why or 'ended with ' + status_text(status)))

    def reap(self):
        for index, (process, since, event) in list(self.running.items()):
            status = process.poll()
            if status is None:
                continue
            del self.running[index]
            seconds = time.monotonic() - since
            self.planner.ended(index, time.monotonic(), status == 0)
            facts, waited = self.runner.learn(self.jobs[index], seconds)
            if self.stopping and status != 0:
                self.broken.add(index)  # --resume runs it again
                continue
            if status == 0:
                self.full |= not self.learnt.add(self.jobs[index].key, facts)
                key = self.jobs[index].key
                self.planner.facts[key] = batch_facts.better(facts, self.planner.facts.get(key))
            self.over(index, status, '', event, time.time(), seconds=seconds, waited=waited)
            if status == 0:
                self.progress.say('%s %s ended after %s' % (self.count(), self.jobs[index].name, duration(seconds)))

    def set_clock(self):
        """By those that run; what is not known of a job does not lower it."""
        self.energy.look()
        running = [self.planner.facts.get(self.jobs[i].key) for i in self.running]
        low = self.o.clock and None not in running and batch_pair.low_clock(running)
        if self.clock.set(low):
            self.progress.say('%s the clock is %s (001)' % (self.count(), 'lowered by a third' if low else 'full again'))

    def count(self):
        return '[%d/%d]' % (len(self.ends), len(self.jobs))

    def line(self):
        now = time.monotonic()
        names = ', '.join('%s %s' % (self.jobs[i].name, duration(int(now - since)))
                          for i, (_, since, _) in self.running.items())
        failed = sum(1 for s in self.ends.values() if s)
        left = batch_order.remaining(
            [self.seconds(i) for i in self.planner.waiting],
            [None if self.seconds(i) is None else max(0.0, self.seconds(i) - (now - since))
             for i, (_, since, _) in self.running.items()], self.o.slots)
        return '%s%s running: %s; %s left' % (self.count(), ' %d failed,' % failed if failed else '', names or 'none',
                                              'not known how long is' if left is None else 'about %s' % duration(int(left)))

    def interrupt(self, number):
        self.stopping += 1
        kill = self.stopping > 1
        for process, _, _ in self.running.values():
            batch_run.signal_group(process.pid, signal.SIGKILL if kill else number)
        self.progress.say('%s: %s' % (signal.Signals(number).name, 'the running jobs are killed' if kill else
                          'no more jobs are started; those that run were told; once more kills them'))

    def run(self):
        signals, first = batch_run.Signals(), 0
        while True:
            while signals.got:
                number = signals.got.pop(0)
                first = first or number
                self.interrupt(number)
            self.reap()
            for index in self.planner.skipped() if not self.stopping else []:
                self.planner.done(index, False)
                now = time.time()
                self.over(index, SKIPPED, 'skipped, as a job that it comes after has failed', dict(job=index, time=now), now)
            choice = None if self.stopping else self.planner.next(time.monotonic())
            if choice:
                self.start(choice)
                continue
            if not self.running and (self.stopping or not self.planner.waiting):
                break
            self.set_clock()
            self.progress.show(self.line())
            signals.wait(1.0 if self.progress.tty else 60.0)
        self.progress.clear()
        if not self.stopping:
            self.journal.add('finish', time=time.time())
        return first

    # --- after ---

    def summary(self):
        row = '%%-%ds %%10s %%10s  %%s' % max(18, *(len(job.name) for job in self.jobs))
        outfile.tell(row % ('job', 'status', 'time', 'output'))
        took = {end['job']: end.get('seconds') for _, end in self.spans}
        for job in self.jobs:
            status = self.ends.get(job.index)
            no_status = 'broken off' if job.index in self.broken else 'not run'
            outfile.tell(row % (
                job.name, no_status if status is None else status_text(status),
                duration(took[job.index]) if took.get(job.index) else '-', self.relative(job)))

    def energy_line(self, seconds):
        if self.energy.usable() and self.energy.look() > 0:
            outfile.tell('energy of the processors: %.1f J in %s, energy-delay product %.1f J s' % (
                self.energy.joules, duration(seconds), self.energy.joules * seconds))

    def relative(self, job):
        path = os.path.relpath(self.runner.path(job, 'out'))
        return path if os.path.exists(path) else '-'

    def page(self):
        path = os.path.join(self.folder, 'batch.html')
        try:
            outfile.write(path, batch_page.page(self.o, self.jobs, self.spans, self.planner.facts).encode('utf-8', 'replace'))
            outfile.tell('page: %s' % os.path.relpath(path))
        except OSError as e:
            complain('%s: %s' % (path, e.strerror))

    def status(self, interrupted):
        if interrupted:
            return 128 + interrupted
        failed = [self.ends[j.index] for j in self.jobs if self.ends.get(j.index)]
        return shell_status(failed[0]) if failed else 0


def main(argv):
    o = arguments(argv)
    try:
        if o.jobfile == '-':
            text = sys.stdin.buffer.read()
        else:
            with open(o.jobfile, 'rb') as f:
                text = f.read()
        jobs = batch_jobs.parse(text.removeprefix(codecs.BOM_UTF8).decode('utf-8', 'surrogateescape'), o.jobfile)
    except OSError as e:
        complain('%s: %s' % (o.jobfile, e.strerror))
        return 2
    except batch_jobs.BadJobs as e:
        complain(e)
        return 2
    batch = Batch(o, jobs, o.output or os.path.basename(o.jobfile) + '.batch')
    wrong = batch.check()
    if wrong:
        complain('\n'.join(wrong))
        return 2
    if o.dry_run:
        batch.dry_run()
        return 0
    status = batch.open()
    if status:
        return status
    if o.clock and not batch.clock.usable():
        complain('--clock: this user may not write to scaling_max_freq of any processor; the clock stays as it is')
    since = time.monotonic()
    try:
        interrupted = batch.run()
    finally:
        batch.clock.set(False)
    batch.summary()
    batch.energy_line(time.monotonic() - since)
    batch.page()
    if batch.full:
        complain('%s: it cannot be kept what was learnt of the jobs' % batch.learnt.path)
    if interrupted:
        complain('interrupted; the same command with --resume goes on')
    return batch.status(interrupted)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
