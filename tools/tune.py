#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl tune: the best number of threads of a program on each medium.

Runs the program with 1, 2, 3 ... threads with its data on a medium and finds the fewest
threads that are as fast as any number (paper 004, Algorithm 2, section IV). Started by
hybridctl, which passes --library and --tool.
"""
import argparse
import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import outfile

VERSION = 1
GAIN = 0.10   # Algorithm 2: one thread more must bring so much
SLACK = 0.02  # and the fewest threads within this of the best are chosen
NOISE = 0.05  # repeats of a point that differ by more are repeated again
MOST_REPEATS = 5


# --- decisions: pure ----------------------------------------------------------------

def median(values):
    v = sorted(values)
    return v[len(v) // 2] if len(v) % 2 else (v[len(v) // 2 - 1] + v[len(v) // 2]) / 2


def is_noisy(values):
    """Two runs agree, or the middle ones of more do."""
    if len(values) < 2:
        return False
    v = sorted(values)
    middle = v[1:-1] if len(v) > 3 else v
    return middle[-1] > middle[0] * (1 + NOISE)


def next_count(times, most):
    """The count to be measured next, or None. `times`: {count: time}.

    The paper's rule stops at the first thread that brings less than 10 %; a program that
    scales perfectly is stopped so at 11. So once it says stop, the rest of the range is
    probed, at its end and halfway, and stepping goes on where a probe is better."""
    n = 1
    while n < most:
        if n not in times:
            return n
        if n + 1 not in times:
            return n + 1
        if (times[n] - times[n + 1]) / times[n + 1] < GAIN:
            break
        n += 1
    else:
        return None if most in times else most
    best = min(times.values())
    for probe in (most, (n + most + 1) // 2):
        if probe not in times:
            return probe
    # A peak may hide between the best one and its neighbours, even if these are alike.
    at = min(k for k, t in times.items() if t <= best * (1 + SLACK))
    known = sorted(times)
    i = known.index(at)
    for low, high in zip(known[max(i - 1, 0):i + 1], known[max(i - 1, 0) + 1:i + 2]):
        if high - low >= 2:
            return (low + high) // 2
    return None


def choose(times):
    """The fewest threads within SLACK of the best."""
    best = min(times.values())
    return min(n for n, t in times.items() if t <= best * (1 + SLACK))


def algorithm2(times):
    """The paper's rule to the letter, on what was measured from 1 without a gap."""
    n = 1
    while n + 1 in times and (times[n] - times[n + 1]) / times[n + 1] >= GAIN:
        n += 1
    return n


# --- runs ------------------------------------------------------------------------------

class Failure(Exception):
    pass


class Runner:
    def __init__(self, options):
        self.o = options
        self.pattern = re.compile(options.metric) if options.metric else None
        self.emulated = is_emulated(options.program[0])

    def most(self):
        if self.o.max:
            return self.o.max
        if self.emulated:
            return int(os.environ.get('HYBRID_EMU_CPUS', '20'))
        return len(os.sched_getaffinity(0))

    def environment(self, medium, count):
        env = dict(os.environ)
        env['LD_PRELOAD'] = ' '.join([self.o.library] + env.get('LD_PRELOAD', '').split())
        env.update(HYBRID_POLICY=medium, HYBRID_THREADS='off', HYBRID_START='0')
        env.setdefault('OMP_DYNAMIC', 'false')
        if not self.placeholder():
            env['OMP_NUM_THREADS'] = str(count)
            if self.emulated:
                env['HYBRID_EMU_AFFINITY'] = '0-%d' % (count - 1)
        return env

    def placeholder(self):
        return any('{threads}' in a for a in self.o.program)

    def confine(self, count):
        if self.placeholder() or self.emulated:
            return None
        cpus = sorted(os.sched_getaffinity(0))[:count]
        return lambda: os.sched_setaffinity(0, cpus)

    def run(self, medium, count):
        """Seconds of one run."""
        command = [a.replace('{threads}', str(count)) for a in self.o.program]
        env = self.environment(medium, count)
        with tempfile.TemporaryDirectory() as d:
            env['HYBRID_STATS'] = d + '/hybrid-%p'
            if self.emulated:
                env['HYBRID_EMU_STATS'] = d + '/stats'
            begin = time.monotonic()
            p = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, text=True, errors='replace',
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=self.confine(count))
            seconds = time.monotonic() - begin
            if p.returncode:
                raise Failure('%s: exit status %d with %d threads on %s\n%s' % (
                    shlex.join(command), p.returncode, count, medium, p.stderr[-2000:]))
            if medium == 'pm':
                check_placed(command, d)
            if self.pattern:
                m = self.pattern.findall(p.stdout + p.stderr)
                if not m:
                    raise Failure('--metric %r: not in the output of %s' % (self.o.metric, shlex.join(command)))
                return float(m[-1])
            if self.emulated:
                with open(d + '/stats', encoding='utf-8') as f:
                    return max(json.loads(line)['virtual_ms'] for line in f) / 1e3
            return seconds


def check_placed(command, folder):
    """A time without PM would be taken for one on PM: some process must have placed memory."""
    reports = []
    for name in os.listdir(folder):
        if name.startswith('hybrid-'):
            with open(os.path.join(folder, name), encoding='utf-8') as f:
                reports.append(json.load(f))
    if not reports:
        raise Failure('%s: no word of libhybrid from it: is it a static or 32-bit program, or was it killed? '
                      "'hybridctl run' tells" % command[0])
    if not any(r['state'] == 'steering' for r in reports):
        raise Failure('%s had nothing on PM (%s); HYBRID_PM=node:N or file:DIR names a second memory, '
                      'and --medium dram does without' % (command[0], reports[0]['why']))


def is_emulated(program):
    """Is it linked with the emulated machine? Then its time is the virtual one."""
    path = program if '/' in program else None
    for d in [] if path else os.environ.get('PATH', '').split(':'):
        if os.access(os.path.join(d, program), os.X_OK):
            path = os.path.join(d, program)
            break
    if not path:
        return False
    out = subprocess.run(['ldd', path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return 'libpmemu.so' in out.stdout


class Journal:
    """Every run, one JSON line, so that an interrupted tuning goes on where it was."""

    def __init__(self, path, key):
        self.path, self.key, self.runs = path, key, {}
        if not os.path.exists(path):
            return
        with open(path, encoding='utf-8') as f:
            for line in f:
                try:
                    r = json.loads(line)
                except ValueError:
                    continue  # the last line of a run that was killed
                if r.get('version') == VERSION and r.get('key') == key:
                    self.runs.setdefault((r['medium'], r['threads']), []).append(r['seconds'])

    def add(self, medium, count, seconds):
        self.runs.setdefault((medium, count), []).append(seconds)
        with open(self.path, 'a', encoding='utf-8') as f:
            f.write(json.dumps({'version': VERSION, 'key': self.key, 'medium': medium,
                                'threads': count, 'seconds': seconds}) + '\n')

    def get(self, medium, count):
        return self.runs.get((medium, count), [])

    def times(self, medium):
        return {n: median(v) for (m, n), v in self.runs.items() if m == medium}


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write('\r\033[K' + text)
        sys.stderr.flush()
    elif text:
        print(text, file=sys.stderr, flush=True)


def measure(runner, journal, medium, count, repeats):
    while True:
        runs = journal.get(medium, count)
        if len(runs) >= repeats and (not is_noisy(runs) or len(runs) >= MOST_REPEATS):
            return
        progress('%s: %d threads, run %d' % (medium, count, len(runs) + 1))
        journal.add(medium, count, runner.run(medium, count))


def tune(runner, journal, medium, repeats):
    while True:
        count = next_count(journal.times(medium), runner.most())
        if count is None:
            break
        measure(runner, journal, medium, count, repeats)
    progress('')


# --- what comes out --------------------------------------------------------------------

def table(journal, media, unit):
    lines = []
    for medium in media:
        times = journal.times(medium)
        if not times:
            continue
        best, chosen = min(times.values()), choose(times)
        lines.append('%s: %d threads%s' % (medium, chosen, '' if algorithm2(times) == chosen else
                                           ' (the rule of 10 %% to the letter: %d)' % algorithm2(times)))
        lines.append('  threads %11s   speed-up   runs' % unit)
        for n in sorted(times):
            bar = '#' * max(1, round(30 * best / times[n]))
            lines.append('  %7d %11.4g %10.2f %6d  %s%s' % (
                n, times[n], times[min(times)] / times[n] * min(times), len(journal.get(medium, n)), bar,
                ' <-' if n == chosen else ''))
    return '\n'.join(lines)


def draw(journal, media, path, title):
    try:
        import matplotlib
        matplotlib.use('Agg')
        from matplotlib import pyplot
    except ImportError:
        return 'no picture: python3-matplotlib is not installed'
    figure, axes = pyplot.subplots(figsize=(6, 4), layout='constrained')
    for medium, style in zip(('dram', 'pm'), ('o-', 's--')):
        times = journal.times(medium) if medium in media else {}
        if not times:
            continue
        counts = sorted(times)
        speed = [times[counts[0]] * counts[0] / times[n] for n in counts]
        line, = axes.plot(counts, speed, style, label='data on ' + medium.upper())
        chosen = choose(times)
        axes.axvline(chosen, color=line.get_color(), linewidth=0.8, linestyle=':')
        axes.annotate('%d' % chosen, (chosen, 0), (3, 3), textcoords='offset points', color=line.get_color())
    axes.set(xlabel='threads', ylabel='speed-up', title=title, ylim=(0, None), xlim=(0, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)
    return 'picture: ' + path


def write_profile(path, program, chosen):
    """Sets [threads] and leaves the rest of the file, comments included, as it is."""
    lines = []
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            lines = f.read().split('\n')
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.read(path)
        for medium in ('dram', 'pm'):
            if medium not in chosen and parser.has_option('threads', medium):
                chosen = dict(chosen, **{medium: parser.get('threads', medium)})
        start = next((i for i, t in enumerate(lines) if t.strip().lower().startswith('[threads]')), None)
        if start is not None:
            end = next((i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith('[')), len(lines))
            del lines[start:end]
    else:
        lines = ['# Made by: hybridctl tune', '[app]', 'exe = ' + os.path.basename(program), '']
    while lines and not lines[-1].strip():
        lines.pop()
    lines += ['', '[threads]'] + ['%s = %s' % (m, chosen[m]) for m in ('dram', 'pm') if m in chosen]
    outfile.write(path, ('\n'.join(lines) + '\n').encode('utf-8'))


def with_program(p, argv):
    """Options and, in `program`, the command behind them."""
    p.add_argument('program', nargs=argparse.REMAINDER)
    o = p.parse_args(argv)
    if o.program[:1] == ['--']:
        del o.program[0]
    if not o.program:
        p.error('no program given')
    return o


def arguments(argv):
    p = argparse.ArgumentParser(
        prog='hybridctl tune', usage='hybridctl tune [OPTION]... [--] PROGRAM [ARGUMENT]...',
        description='Finds how many threads PROGRAM should use with its data on each memory: runs it with '
                    '1, 2, 3 ... of them until more do not help. {threads} in an argument becomes the number; '
                    'without it OMP_NUM_THREADS is set and the program is confined to as many CPUs.')
    p.add_argument('--pm', metavar='SPEC', help='which memory is PM, as HYBRID_PM')
    p.add_argument('--medium', choices=('dram', 'pm', 'both'), default='both')
    p.add_argument('-o', '--output', metavar='FILE', help='profile to write, or whose [threads] to change '
                   '(default: PROGRAM.ini here)')
    p.add_argument('--max', type=int, metavar='N', help='most threads to try (default: the CPUs)')
    p.add_argument('--repeats', type=int, default=2, metavar='N', help='runs of each point; noisy ones get up to '
                   '%d (default 2)' % MOST_REPEATS)
    p.add_argument('--metric', metavar='REGEX', help='a time as the program prints it, in any unit: the first group of the '
                   'last match in its output (default: the time of the whole run)')
    p.add_argument('--fresh', action='store_true', help='forget the runs of an earlier, interrupted tuning')
    p.add_argument('--library', help=argparse.SUPPRESS)
    o = with_program(p, argv)
    if o.max is not None and not 1 <= o.max <= 1024:
        p.error('--max=%d: 1 to 1024 are allowed' % o.max)
    if not 1 <= o.repeats <= MOST_REPEATS:
        p.error('--repeats=%d: 1 to %d are allowed' % (o.repeats, MOST_REPEATS))
    try:
        if o.metric and re.compile(o.metric).groups != 1:
            p.error('--metric=%r: needs one group, as in "time ([0-9.]+)"' % o.metric)
    except re.error as e:
        p.error('--metric=%r: %s' % (o.metric, e))
    if not o.library or not os.path.exists(o.library):
        p.error('no libhybrid.so')
    return o


def main(argv):
    o = arguments(argv)
    output = o.output or os.path.basename(o.program[0]) + '.ini'
    media = ('dram', 'pm') if o.medium == 'both' else (o.medium,)
    if o.pm:
        os.environ['HYBRID_PM'] = o.pm
    runner = Runner(o)
    settings = {k: v for k, v in sorted(os.environ.items()) if k.startswith('HYBRID_')}
    key = json.dumps([o.program, o.metric, settings])
    journal_path = output + '.runs'
    if o.fresh and os.path.exists(journal_path):
        os.remove(journal_path)
    journal = Journal(journal_path, key)
    status = 0
    try:
        for medium in media:
            tune(runner, journal, medium, o.repeats)
    except (Failure, OSError) as e:
        progress('')
        print('hybridctl tune: %s' % e, file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        progress('')
        print('hybridctl tune: interrupted; the same command goes on from here (%s)' % journal_path, file=sys.stderr)
        status = 128 + signal.SIGINT
    print(table(journal, media, '--metric' if o.metric else 'seconds'))
    if status:
        return status
    write_profile(output, o.program[0], {m: choose(journal.times(m)) for m in media})
    print('profile: ' + output)
    print(draw(journal, media, os.path.splitext(output)[0] + '.threads.png', os.path.basename(o.program[0])))
    os.remove(journal_path)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
