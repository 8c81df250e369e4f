# SPDX-License-Identifier: BSD-2-Clause
"""The job file of hybridctl batch: one command a line, options in front of it.

  # a comment
  [option=value]... [VARIABLE=value]... [--] PROGRAM [ARGUMENT]...

Words are those of a shell: '...' as it is, "..." with \\ before " \\ $ and `, \\ before any character
outside; a \\ at the end of a line goes on in the next one. Nothing else of a shell is known: pipes,
redirections, variables and patterns are refused, with the way to have them (sh -c '...')."""
import functools
import os
import re
import shlex

OPTIONS = {  # name: (what is allowed, for messages; the variable that it becomes, if that is all)
    'name': ('letters, digits and . _ + - (at most 40)', None),
    'threads': ('a number from 1 to 4096', None),
    'profile': ('a profile: NAME or FILE', 'HYBRID_PROFILE'),
    'class': ('none, cpu, bandwidth or latency', 'HYBRID_CLASS'),
    'dram': ('a size (512M, 8G) or a percentage', 'HYBRID_DRAM'),
    'policy': ('auto, dram, pm, first-fit or off', 'HYBRID_POLICY'),
    'dir': ('a directory', None),
    'stdin': ('a file', None),
    'after': ('names of earlier jobs, with commas between them', None),
}
OF_LIBRARY = ('class', 'dram', 'policy')  # checked here, so that a line is told at once
CHECKS = {
    'class': r'none|cpu|bandwidth|latency',
    'policy': r'auto|dram|pm|first-fit|off',
    'dram': r'[0-9]+[KMGT]?|[0-9]{1,2}%|100%',
    'name': r'[A-Za-z0-9._+-]{1,40}',
    'threads': r'[1-9][0-9]{0,3}',
    'profile': r'.+', 'dir': r'.+', 'stdin': r'.+', 'after': r'.+',
}
SHELL = ('|', '||', '&', '&&', ';', '<', '>', '>>', '2>', '2>&1', '<<', '&>')
MOST_THREADS = 4096


class BadJobs(Exception):
    """What is wrong, with file and line."""


class Job:
    """One line: what is run, and how it shall be."""

    def __init__(self, index, line):
        self.index, self.line = index, line
        self.name, self.argv, self.env, self.options = '', [], {}, {}
        self.after = []  # indices of jobs

    @functools.cached_property
    def key(self):
        """The same work has the same key: what was learnt of it serves again."""
        options = {k: v for k, v in self.options.items() if k not in ('name', 'after')}
        return shlex.join(self.argv) + '\n' + repr(sorted(options.items())) + repr(sorted(self.env.items()))


def words(text):
    """The words of a line as (word, was it quoted at all); ValueError says what is wrong."""
    out, i, n = [], 0, len(text)
    while i < n:
        if text[i] in ' \t':
            i += 1
            continue
        if text[i] == '#':
            break
        word, quoted = [], False
        while i < n and text[i] not in ' \t':
            c = text[i]
            if c == "'":
                end = text.find("'", i + 1)
                if end < 0:
                    raise ValueError("a ' has no end")
                word.append(text[i + 1:end])
                quoted, i = True, end + 1
            elif c == '"':
                i, quoted = i + 1, True
                while i < n and text[i] != '"':
                    if text[i] == '\\' and i + 1 < n and text[i + 1] in '"\\$`':
                        i += 1
                    elif text[i] in '$`':
                        raise ValueError('%r in "...": there are no variables and no commands here; '
                                         "sh -c '...' has them" % text[i])
                    word.append(text[i])
                    i += 1
                if i >= n:
                    raise ValueError('a " has no end')
                i += 1
            elif c == '\\':
                if i + 1 >= n:
                    raise ValueError('a \\ at the end of the file')
                word.append(text[i + 1])
                quoted, i = True, i + 2
            else:
                if c in '$`|;<>&*?(':
                    raise ValueError("%r is a shell's: quote it, or give the line to sh -c '...'" % c)
                word.append(c)
                i += 1
        out.append((''.join(word), quoted))
    return out


def lines(text):
    """(number of the first line, logical line): a \\ at the end goes on in the next one."""
    held, first = '', 0
    for number, line in enumerate(text.split('\n'), 1):
        line = line.rstrip('\r')
        first = first or number
        slashes = len(line) - len(line.rstrip('\\'))
        if slashes % 2 and not held.lstrip().startswith('#') and not (not held and line.lstrip().startswith('#')):
            held += line[:-1] + ' '
            continue
        yield first, held + line
        held, first = '', 0
    if held:
        yield first, held + '\\'


def check(name, value):
    allowed = OPTIONS[name][0]
    if not re.fullmatch(CHECKS[name], value) or '\0' in value or (name == 'threads' and int(value) > MOST_THREADS):
        raise ValueError('%s=%s: allowed is %s' % (name, value, allowed))


def read_line(job, text):
    """Fills `job`; ValueError."""
    found, at = words(text), 0
    for at, (word, _) in enumerate(found):
        m = re.match(r'([A-Za-z_][A-Za-z0-9_]*)=(.*)', word, re.S)
        if word == '--' or not m:
            break
        name, value = m.groups()
        if name.isupper() or '_' in name:
            if name == 'LD_PRELOAD':
                raise ValueError('LD_PRELOAD=%s: hybridctl batch sets it; env(1) in the command may add to it' % value)
            job.env[name] = value
            continue
        if name not in OPTIONS:
            raise ValueError('%s=: there is no such option; allowed are %s, and variables in capitals' % (
                name, ', '.join(sorted(OPTIONS))))
        if name in job.options:
            raise ValueError('%s= is there twice' % name)
        check(name, value)
        job.options[name] = value
    else:
        at = len(found)
    if at < len(found) and found[at][0] == '--' and not found[at][1]:
        at += 1
    job.argv = [w for w, _ in found[at:]]
    if not job.argv or not job.argv[0]:
        raise ValueError('there is no command')
    if any('\0' in w for w in job.argv):
        raise ValueError('a word has a NUL byte')


def default_name(job, taken):
    base = re.sub(r'[^A-Za-z0-9._+-]', '-', os.path.basename(job.argv[0])).strip('-.')[:32] or 'job'
    name, k = base, 1
    while name in taken:
        k += 1
        name = '%s-%d' % (base, k)
    return name


def parse(text, file):
    """The jobs of a job file; BadJobs tells all that is wrong, a line each."""
    jobs, errors, named = [], [], {}

    def wrong(number, why):
        errors.append('%s:%d: %s' % (file, number, why))

    for number, line in lines(text):
        if not line.strip() or line.lstrip().startswith('#'):
            continue
        job = Job(len(jobs), number)
        try:
            read_line(job, line)
            if job.options.get('name') in named:
                raise ValueError('name=%s: line %d has it already' % (
                    job.options['name'], jobs[named[job.options['name']]].line))
        except ValueError as e:
            wrong(number, e)
            continue
        if 'name' in job.options:
            named[job.options['name']] = job.index
        jobs.append(job)
    for job in jobs:
        job.name = job.options.get('name') or default_name(job, named)
        named[job.name] = job.index
        for name in job.options.get('after', '').split(',') if 'after' in job.options else []:
            if named.get(name, job.index) >= job.index:
                wrong(job.line, 'after=%s: no job of that name stands before this line' % name)
            else:
                job.after.append(named[name])
    if not jobs and not errors:
        errors.append('%s: there is no job in it' % file)
    if errors:
        raise BadJobs('\n'.join(errors))
    return jobs
