#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl record: runs a program so that it leaves a profile, names its call sites, and
writes those that matter.

Started by hybridctl, which passes --library and --tool (itself). The library writes a profile
for each process into a temporary folder (HYBRID_RECORD); record_profile.py makes one of them.
"""
import argparse
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of what is not begun
import cachegrind  # noqa: E402
import outfile  # noqa: E402
import tune  # noqa: E402
from record_profile import (  # noqa: E402
    Failure, as_bytes, collect, merge, say, summary, with_names, write)

NO_PROFILE = 125
MOST_CACHE = 32 << 20  # of the emulated machine
SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)
PRESETS = ('optane', 'cxl', 'stt-ram', 'pram', 'remote-numa')


class Interrupted(Exception):
    pass


def interrupt(number, _):
    raise Interrupted(number)


def show(text):
    try:
        tune.progress(text)
    except OSError:
        pass


# --- runs -------------------------------------------------------------------------------

def cpu_seconds(pid):
    try:
        with open('/proc/%d/stat' % pid, encoding='ascii', errors='replace') as f:
            fields = f.read().rpartition(')')[2].split()
        ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
        return ticks / os.sysconf('SC_CLK_TCK'), pages * os.sysconf('SC_PAGE_SIZE') >> 20
    except (OSError, IndexError, ValueError):
        return 0, 0


def run(command, env, slow=None):
    """Status of the program as its parent sees it, and its pid. Interrupts are the program's: it
    gets those of the terminal itself, SIGTERM and SIGHUP from here. `slow`: a name for the line of
    progress."""
    child, early = None, []

    def on_signal(number, _):
        if not child:
            early.append(number)  # it may have been lost in the child before its exec
        elif number in (signal.SIGTERM, signal.SIGHUP):
            child.send_signal(number)

    # Handlers, as they end at exec: what is ignored here the program would ignore, too.
    old = {s: signal.signal(s, on_signal) for s in SIGNALS if signal.getsignal(s) != signal.SIG_IGN}
    begin, told = time.monotonic(), 0.0
    try:
        try:
            child = subprocess.Popen(command, env=env)
        except OSError as e:
            raise Failure('%s: %s' % (command[0], e.strerror)) from None
        for number in early:
            child.send_signal(number)
        while True:
            try:
                return child.wait(0.5 if slow else None), child.pid
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                # On a terminal the line stays up to date; else a line now and then is enough.
                if now - told >= (0.4 if sys.stderr.isatty() else 10):
                    told = now
                    cpu, mib = cpu_seconds(child.pid)
                    show('%s: %.0f s, %.0f s of CPU time, %d MiB' % (slow, now - begin, cpu, mib))
    finally:
        if slow and sys.stderr.isatty():
            show('')
        for s, handler in old.items():
            signal.signal(s, handler)


def as_status(code):
    return 128 - code if code < 0 else code


def recording_environment(o, folder):
    env = dict(os.environ)
    env.pop('HYBRID_PROFILE', None)
    env.update(HYBRID_RECORD=folder + '/%p.ini', HYBRID_START='0', HYBRID_THREADS='off')
    # All on DRAM, undisturbed, and more samples of small blocks than a user would pay for.
    for name, value in (('POLICY', 'dram'), ('MIGRATE', 'off'), ('SITE_SAMPLE', '64K'),
                        ('TASKS', 'on')):
        env.setdefault('HYBRID_' + name, value)
    if o.sample:
        env['HYBRID_SITE_SAMPLE'] = o.sample
    if o.period:
        env['HYBRID_CLASS_PERIOD'] = o.period
    if o.machine:
        env['HYBRID_MACHINE'] = o.machine
    return env


def record_here(o, folder):
    env = recording_environment(o, folder)
    env['LD_PRELOAD'] = ' '.join([o.library] + env.get('LD_PRELOAD', '').split())
    emulated = tune.is_emulated(o.program[0])
    if emulated:
        env.setdefault('HYBRID_CLASS_PERIOD', '1ms')
    if 'HYBRID_PM' not in env:
        got = subprocess.run([o.tool, 'doctor', '--json'], stdout=subprocess.PIPE, check=False,
                             stderr=subprocess.DEVNULL, env={**env, 'LD_PRELOAD': ''})
        if emulated or not got.stdout or not json.loads(got.stdout).get('can_steer'):
            env['HYBRID_PM'] = 'emulated'
    return run(o.program, env)


def find_emulator(tool):
    for path in (os.path.join(os.path.dirname(tool), '../emu/tool/hybrid-emu'),
                 os.path.join(os.path.dirname(tool), 'hybrid-emu'), shutil.which('hybrid-emu')):
        if path and os.access(path, os.X_OK) and shutil.which('qemu-x86_64'):
            return path
    return None


def record_emulated(o, emulator, llc, folder):
    env = recording_environment(o, folder)
    env.setdefault('HYBRID_CLASS_PERIOD', '1ms')
    env['HYBRID_PM'] = 'emulated'
    env.pop('LD_PRELOAD', None)
    preset = o.machine if o.machine in PRESETS else 'optane'
    return run([emulator, 'run', '--preset', preset, '--set', 'llc_kb=%d' % (llc >> 10),
                '--preload', o.library, '--', *o.program], env, 'emulated machine')


# --- --offline ------------------------------------------------------------------------------

def first_input():
    """Where standard input is, as both runs shall read the same; None: it cannot go back."""
    try:
        mode = os.fstat(0).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            say('what the first run reads of standard input the second does not get, as it is a '
                'pipe; give a file (< FILE) to a program that reads it')
        return os.lseek(0, 0, os.SEEK_CUR) if stat.S_ISREG(mode) else None
    except OSError:
        return None


def offline(o, folder):
    """(status, pid, the emulator if it was used, comments, counts)."""
    if not shutil.which('valgrind'):
        raise Failure('--offline needs valgrind (Debian: valgrind)')
    llc = cachegrind.cache_bytes(min(o.llc or cachegrind.machine_cache() or 2 << 20, MOST_CACHE))
    tool = 'callgrind' if o.write_backs else 'cachegrind'
    emulator = find_emulator(o.tool)
    say('runs the program twice, under %s (20 to 100 times slower) and %s; last-level cache '
        '%d KiB' % (tool, 'on the emulated machine (as slow)' if emulator else 'as it is',
                    llc >> 10))
    start = first_input()
    env = dict(os.environ, LD_PRELOAD='')
    status, pid = run(cachegrind.command(folder, llc, o.write_backs, o.program), env, tool)
    counts = cachegrind.read_all(folder)
    if not counts:
        raise Failure('%s left no counts (status %d)' % (tool, as_status(status)))
    if len(counts) > 1 and o.exe:
        counts = [c for c in counts if os.path.basename(c.command.split(' ')[0]) == o.exe] or counts
    facts = ['%s, last-level cache of %d KiB: %d instructions, lines read %d, written %d' % (
        tool, llc >> 10, counts[0].instructions, counts[0].reads, counts[0].writes)]
    say(facts[0])
    if status:
        raise Failure('%s ended by status %d under %s; nothing is written' % (
            o.program[0], as_status(status), tool), status)
    if start is not None:
        os.lseek(0, start, os.SEEK_SET)
    if emulator:
        status, pid = record_emulated(o, emulator, llc, folder)
        if status == NO_PROFILE and not glob.glob(folder + '/*.ini'):
            emulator = None  # its own message has said why
    if not emulator:
        status, pid = record_here(o, folder)
    if emulator:
        facts.append('emulated machine, as large a cache: class, slowdown, and the sites\' lines')
    else:
        facts.append('hybrid-emu is not installed: the sites\' reads and writes are not known')
    return status, pid, emulator, facts, counts[0]


def compare(text, counts):
    """Two simulations of one program: what the emulated machine saw at the call sites, and
    what valgrind counted in the whole program."""
    reads = sum(int(n) for n in re.findall(r'^\[site (?:.*\n)+?reads = (\d+)', text, re.M))
    if counts.reads:
        say('lines read: %d at these call sites, %d in the whole program by valgrind' % (
            reads, counts.reads))


# --- the command ------------------------------------------------------------------------------

def percent(text):
    m = re.fullmatch(r'(\d+(?:\.\d+)?)%?', text)
    if not m or float(m[1]) > 100:
        raise argparse.ArgumentTypeError('%r: a percentage from 0 to 100 is allowed' % text)
    return float(m[1])


def check_settings(o):
    """By the tool, which knows what the library takes; before a long run, not after it."""
    words = []
    for option, value in (('class-period', o.period), ('site-sample', o.sample)):
        if value is not None:
            words += ['--' + option, value]
    commands = [['run', '--check', '-q', *words, '--', '/bin/true']] if words else []
    if o.machine:  # explain looks at it first, and into the file
        commands.append(['explain', '--machine', o.machine, '/dev/null'])
    for command in commands:
        got = subprocess.run([o.tool, *command], stdout=subprocess.DEVNULL, check=False,
                             stderr=subprocess.PIPE, text=True,
                             env={**os.environ, 'LD_PRELOAD': '', 'HYBRID_PROFILE': 'none'})
        if got.returncode == 2:
            sys.stderr.write(got.stderr)
            sys.exit(2)


def arguments(argv):
    p = argparse.ArgumentParser(
        prog='hybridctl record', usage='hybridctl record [OPTION]... [--] PROGRAM [ARGUMENT]...',
        description='Runs PROGRAM and writes what it tells of itself to a profile. '
                    'hybridctl help record has all options.', add_help=False)
    p.add_argument('-o', '--output')
    p.add_argument('--offline', action='store_true')
    p.add_argument('--write-backs', action='store_true')
    p.add_argument('--llc', metavar='SIZE')
    p.add_argument('--machine')
    p.add_argument('--keep', type=percent, default=0.1)
    p.add_argument('--exe')
    p.add_argument('--sample', metavar='SIZE')
    p.add_argument('--period', metavar='TIME')
    p.add_argument('--no-names', action='store_true')
    p.add_argument('--note', metavar='TEXT')
    p.add_argument('--spdx', action='store_true', help=argparse.SUPPRESS)
    p.add_argument('--library', help=argparse.SUPPRESS)
    p.add_argument('--tool', help=argparse.SUPPRESS)
    o = tune.with_program(p, argv)
    if o.llc is not None:
        known = re.fullmatch(r'\d{1,12}[KMG]?', o.llc)
        if not known or not 64 << 10 <= as_bytes(o.llc) <= MOST_CACHE:
            p.error('--llc=%s: a size from 64K to 32M is allowed' % o.llc)
        o.llc = as_bytes(o.llc)
    if (o.llc or o.write_backs) and not o.offline:
        p.error('--llc and --write-backs are for --offline')
    if not o.library or not os.path.exists(o.library):
        p.error('no libhybrid.so')
    o.shown = shown(argv, o.program)
    if o.machine and '/' in o.machine:
        o.machine = os.path.abspath(o.machine)
    if o.machine or o.period or o.sample:
        check_settings(o)
    return o


def shown(argv, program):
    """The command as the user wrote it; the note stands below it."""
    own, skip = argv[:len(argv) - len(program)], False
    out = []
    for word in own:
        if skip:
            skip = False
        elif word in ('--library', '--tool', '--note'):
            skip = True
        elif word != '--spdx' and not word.startswith('--note='):
            out.append(word)
    return out + program


def make_folder():
    """For what the processes leave."""
    try:
        return tempfile.mkdtemp(prefix='hybrid-record-')
    except OSError as e:
        raise Failure('no folder for the recording can be made in %s: %s' % (
            os.environ.get('TMPDIR', '/tmp'), e.strerror)) from None


def check_variables(o):
    """What is set stays in force; with these nothing would come of the run."""
    for name, value in (('HYBRID_POLICY', 'off'), ('HYBRID_PM', 'none')):
        if os.environ.get(name) == value and not (o.offline and name == 'HYBRID_PM'):
            raise Failure('%s=%s is set: libhybrid would do nothing, and record nothing' % (
                name, value))


def check_output(path):
    """Before a long run, not after it."""
    folder = os.path.dirname(path) or '.'
    try:
        target = path if outfile.in_place(path) else folder
    except OSError as e:
        raise Failure('%s cannot be written: %s' % (path, e.strerror)) from None
    if not os.path.isdir(folder):
        raise Failure('%s cannot be written: there is no folder %s' % (path, folder))
    if not os.access(target, os.W_OK):
        raise Failure('%s cannot be written: %s' % (path, 'permission denied'))


def main(argv):
    o = arguments(argv)
    output = (o.output or os.path.basename(o.program[0]) + '.ini').replace('%p', str(os.getpid()))
    for s in SIGNALS:
        if signal.getsignal(s) != signal.SIG_IGN:  # as nohup asks for
            signal.signal(s, interrupt)
    folder, status = None, 0
    try:
        # What was made must be known before an interrupt is heard, or nobody removes it.
        old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            folder = make_folder()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
        check_output(output)
        check_variables(o)
        facts, emulator, counts = [], None, None
        if o.offline:
            status, pid, emulator, facts, counts = offline(o, folder)
        else:
            status, pid = record_here(o, folder)
        if status:
            end = 'the program ended by %s %d' % ('signal' if status < 0 else 'status', abs(status))
            say(end)
            facts.append(end)
        chosen = [p.path for p in collect(o, folder, pid)]
        if counts and not emulator:
            with open(folder + '/counts.rec', 'w', encoding='ascii') as f:
                f.write(counts.recording())
            chosen.append(folder + '/counts.rec')
        text = merge(o, chosen, folder + '/merged', facts)
        if not o.no_names:
            text = with_names(text)
        write(output, text)
        say('%s: %s%s' % (output, 'until then ' if status else '', summary(text)))
        if emulator:
            compare(text, counts)
    except Failure as e:
        say(str(e))
        return as_status(status or e.status) or NO_PROFILE
    except Interrupted as e:
        say('interrupted; no profile is written')
        return 128 + e.args[0]
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    return as_status(status)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
