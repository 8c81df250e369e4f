# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl record: one profile of what the processes left. The program meant is chosen, its runs are
merged by `hybridctl record --merge`, and the call sites get names.
"""
import configparser
import glob
import os
import re
import shlex
import subprocess
import sys

import outfile
import symbols

NAME_MAX = 31
# A process with less than this part of the largest one's footprint is a launcher.
LAUNCHER = 0.1


class Failure(Exception):
    def __init__(self, message, status=0):
        super().__init__(message)
        self.status = status


def say(text):
    try:
        print('hybridctl record: ' + text, file=sys.stderr, flush=True)
    except OSError:  # the terminal is gone; the profile is still to be written
        pass


class Left:
    """A profile as a process wrote it."""

    def __init__(self, path):
        self.path = path
        self.pid = int(os.path.basename(path).split('.')[0])
        ini = configparser.ConfigParser(strict=False, interpolation=None, delimiters=('=',),
                                        comment_prefixes=('#', ';'))
        ini.optionxform = str
        ini.read(path, encoding='utf-8')
        self.exe = ini.get('app', 'exe', fallback='?')
        self.build_id = ini.get('app', 'build-id', fallback='')
        self.footprint = as_bytes(ini.get('app', 'footprint', fallback='0'))
        self.ini = ini


def as_bytes(text):
    m = re.match(r'(\d+)([KMGT]?)', text)
    return int(m[1]) << {'': 0, 'K': 10, 'M': 20, 'G': 30, 'T': 40}[m[2]] if m else 0


def choose(left, asked, pid):
    """The profiles of the program meant: of one name, several if it ran several times."""
    if asked:
        chosen = [p for p in left if p.exe == asked]
        if not chosen:
            raise Failure('--exe=%s: no such process was recorded, but %s' % (
                asked, ', '.join(sorted({p.exe for p in left}))))
    else:
        most = max(left, key=lambda p: p.footprint)
        first = next((p for p in left if p.pid == pid), None)
        if first is None or first.footprint < LAUNCHER * most.footprint:
            first = most
        chosen = [p for p in left if (p.exe, p.build_id) == (first.exe, first.build_id)]
        others = {p.exe: max(q.footprint for q in left if q.exe == p.exe) for p in left
                  if p.exe != first.exe}
        if others:
            say('this is the profile of %s; also recorded: %s (--exe NAME chooses)' % (
                first.exe, ', '.join('%s (%d MiB)' % (e, f >> 20) for e, f in sorted(
                    others.items(), key=lambda i: -i[1])[:8])))
    return sorted(chosen, key=lambda p: -p.footprint)


def comment_lines(o, facts):
    shown = ['hybridctl', 'record', *o.shown]
    lines = ['SPDX-License-Identifier: BSD-2-Clause'] if o.spdx else []
    lines.append('Made by: ' + ' '.join(shlex.quote(w) for w in shown))
    lines += ([o.note] if o.note else []) + facts
    return ''.join('# %s\n' % ' '.join(line.split()) for line in lines)


def merge(o, inputs, output, facts):
    """One profile of several files, only what matters of it; the text."""
    with open(inputs[0], encoding='utf-8') as f:
        text = f.read()
    with open(inputs[0], 'w', encoding='utf-8') as f:
        f.write(comment_lines(o, facts) + text)
    machine = ['--machine', o.machine] if o.machine else []
    command = [o.tool, 'record', '--merge', '--keep', '%g%%' % o.keep, *machine, '-o', output]
    got = subprocess.run([*command, *inputs], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         text=True, env={**os.environ, 'LD_PRELOAD': ''}, check=False)
    if got.returncode:
        raise Failure('the profile cannot be put together\n' + got.stderr)
    for line in got.stderr.splitlines():
        say(line.removeprefix('hybridctl record: '))
    with open(output, encoding='utf-8') as f:
        return f.read()


def function_name(start, modules):
    """Of a function's first byte; others know return addresses only."""
    build_id, _, offset = start.partition('+0x')
    found = modules.function('%s+0x%x' % (build_id, int(offset, 16) + 1))
    return found[0] if found else modules.place(start)


def with_names(text):
    """Sites named by what their frames' modules say; a comment has the whole chain."""
    ini = configparser.ConfigParser(strict=False, interpolation=None, delimiters=('=',))
    ini.optionxform = str
    ini.read_string(text)
    modules = symbols.Modules(dict(ini['modules']) if ini.has_section('modules') else {})
    used, out = set(), []
    for line in text.split('\n'):
        m = re.match(r'\[site (.*)\]$', line)
        if m:
            keys = ini['site ' + m[1]]
            frames = [keys['frame%d' % i] for i in range(8) if 'frame%d' % i in keys]
            nth = '#' + keys['nth'] if 'nth' in keys else ''
            short, tail, n = '', nth, 1
            while not short or short in used:
                short = symbols.site_name(frames, modules, NAME_MAX - len(tail)) + tail
                short = re.sub(r'[^!-Z\\^-~]', '_', short)
                n += 1
                tail = '%s~%d' % (nth, n)
            used.add(short)
            chain = ' < '.join(modules.place(f) for f in frames)
            out += ['# ' + chain[:190], '[site %s]' % short]
        else:
            m = re.match(r'task\d+ = (\S+)', line)
            out += ['# ' + function_name(m[1], modules)[:190]] if m else []
            out.append(line)
    return '\n'.join(out)


def write(path, text):
    """Whole or not at all. What is there and no regular file is written to."""
    try:
        outfile.write(path, text.encode('utf-8'))
    except OSError as e:
        raise Failure('%s cannot be written: %s' % (path, e.strerror)) from None


def collect(o, folder, pid):
    left = []
    for path in glob.glob(folder + '/*.ini'):
        try:
            left.append(Left(path))
        except (OSError, ValueError, configparser.Error):
            continue
    if not left:
        raise Failure('%s left no profile: it is static or set-user-id, ended by _exit or a '
                      'signal at once, allocated nothing, or went on in the background; '
                      '`hybridctl run --check -- %s` may tell' % (o.program[0], o.program[0]))
    return choose(left, o.exe, pid)


def summary(text):
    ini = configparser.ConfigParser(strict=False, interpolation=None, delimiters=('=',))
    ini.read_string(text)
    app, rec = ini['app'], ini['recorded']
    sites = sum(s.startswith('site ') for s in ini.sections())
    words = ['class %s' % app.get('class', 'not known')]
    if 'slowdown' in app:
        words.append('slowdown on PM %.2f' % float(app['slowdown']))
    if app.get('write-intensive') == '1':
        words.append('write-intensive')
    words.append('footprint %s' % app.get('footprint', '0'))
    words.append('%d call sites' % sites)
    if ini.has_section('tasks'):
        words.append('%d types of OpenMP tasks' % len(ini['tasks']))
    if 'known' in rec:
        by = ' (%s)' % rec['accesses'] if 'accesses' in rec else ''
        words.append('reads and writes known of %.1f %% of the lines%s' % (float(rec['known']), by))
        if float(rec.get('mapped', 0)) >= 1:
            words.append('%.1f %% are in mappings of no known site' % float(rec['mapped']))
    else:
        words.append('reads and writes of sites not known')
    return ', '.join(words)
