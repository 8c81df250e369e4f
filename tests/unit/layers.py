#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The house: the rooms of shim/ and who may reach whom, checked (shim/README.md); lengths of all code.

layers.py SHIM         check a tree; one line per violation, exit status 1 if any
layers.py --emu EMU    the emulated machine: order of its folders, no circle of files, lengths
layers.py --all ROOT   the repository: lengths of all code, files in a folder
layers.py --self-test  check that every rule finds its violation
"""
import collections
import pathlib
import re
import sys
import tempfile

# From the ground up: a room reaches those before it, so that rooms form no circle.
ROOMS = ['base', 'sys', 'core', 'settings', 'heap', 'classify', 'place', 'threads', 'llc', 'tasks', 'pages',
         'record', 'report', 'process', 'hooks']
# Files that stand in shim/ itself: the front door of a room, or a hook, which may reach all.
FRONT_DOORS = {'classifier': 'classify', 'migrator': 'pages', 'threadcap.h': 'threads',
               'threadcap': 'hooks'}  # threadcap.c has the exported names
# A decision is a file below rules/ of its room: it reaches base/ and other decisions, no more.
RULES = 'rules'
MAX_SOURCE_LINES = 500
MAX_HEADER_LINES = 200
MAX_FUNCTION_LINES = 60  # its braces included
MAX_FILES = 20  # .c files in a folder

# Names of one word that start.ld may take from every file: there is one of each.
EXPORTED = ['malloc', 'free', 'calloc', 'realloc', 'syscall']

# The folders of the repository that have code: C, C++, Python, and what begins with #!.
CODE_FOLDERS = ['bench', 'docs', 'emu', 'profiles', 'scripts', 'shim', 'tests', 'tools']
CODE_SUFFIXES = ('.c', '.cpp', '.h', '.def', '.py', '.sh')
# A file there is a program of its own, and no part of a room.
PROGRAM_FOLDERS = ['bench/workloads', 'tests/preload/victims']

# The folders of emu/, from the ground up (emu/README.md). The two front ends do not know each other.
EMU_FOLDERS = ['model', 'machine', 'pages', 'settings', 'core', 'program', 'instrument', 'qemu',
               'tool']
EMU_FRONT_ENDS = ['instrument', 'qemu']
# Files that make up one thing, whose header they share (core/inside.h): they may call one another.
EMU_ONE = {name: 'core/core' for name in ('core/inside', 'core/kernel', 'core/process',
                                          'core/threads')}
EMU_ONE.update({name: 'machine/clock' for name in ('machine/clock_inside', 'machine/clock_look')})

# What -> the only file where it may be used.
ONE_PLACE = {
    'sys/env.c': ['getenv', 'secure_getenv', 'environ', 'setenv', 'putenv', 'unsetenv'],
    'sys/dl.c': ['dlopen', 'dlmopen', 'dlsym', 'dlvsym', 'dladdr', 'dladdr1', 'dl_iterate_phdr',
                 '_dl_find_object'],
}
# Calls of these belong into sys/. The hooks define some of the names themselves
# and are a few lines each, so there only syscall() is looked for.
KERNEL_CALLS = """open openat open64 creat read write pread pwrite readv writev close mmap mmap64
    munmap mremap madvise mprotect mincore mbind set_mempolicy get_mempolicy move_pages ftruncate
    fallocate fstat stat lstat unlink rename link linkat ioctl fcntl flock poll select nanosleep
    usleep sched_yield prctl kill tgkill getpid gettid getuid geteuid getrlimit setrlimit
    sched_setaffinity sched_getaffinity readlink opendir readdir fork vfork clone pipe socket
    clock_gettime time gettimeofday""".split()
# Not inside a foreign program: they allocate, lock stdio, or end it.
FORBIDDEN = """printf fprintf puts fputs fopen fdopen fclose perror strdup strndup asprintf
    vasprintf strerror abort exit assert system popen""".split()


def strip(text):
    """Without comments and the contents of strings, line numbers kept."""
    def blank(m):
        s = m.group(0)
        if s.startswith('/'):
            return ' ' + '\n' * s.count('\n')
        return s[0] + s[-1]
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def calls(code, names):
    """(line number, name) of every use of a name as a function; members do not count."""
    pattern = re.compile(r'(?<![\w.>])(%s)\s*\(' % '|'.join(map(re.escape, names)))
    for number, line in enumerate(code.split('\n'), 1):
        for m in pattern.finditer(line):
            yield number, m.group(1)


def words(code, names):
    pattern = re.compile(r'(?<![\w.>])(%s)\b' % '|'.join(map(re.escape, names)))
    for number, line in enumerate(code.split('\n'), 1):
        for m in pattern.finditer(line):
            yield number, m.group(1)


def room_of(parts):
    """The room of a file of shim/; None: it stands in none."""
    if len(parts) > 1:
        return parts[0] if parts[0] in ROOMS[:-1] else None
    stem = parts[0].rsplit('.', 1)[0]
    return FRONT_DOORS.get(parts[0]) or FRONT_DOORS.get(
        stem, 'hooks' if stem.endswith('_hook') else None)


def is_pure(parts):
    return parts[0] == 'base' or RULES in parts[:-1]


def long_functions(text):
    """(line, lines) of bodies that are too long; clang-format puts their braces into column 0."""
    begin = 0
    for number, line in enumerate(text.split('\n'), 1):
        if line == '{':
            begin = number
        elif line == '}' and begin:
            if number - begin + 1 > MAX_FUNCTION_LINES:
                yield begin, number - begin + 1
            begin = 0


def wrong_lengths(name, text):
    """(line, sentence) of a file and of functions that are too long."""
    lines = text.count('\n')
    limit = MAX_HEADER_LINES if name.endswith('.h') else MAX_SOURCE_LINES
    if lines > limit:
        yield lines, '%d lines, more than %d' % (lines, limit)
    if name.endswith(('.c', '.cpp', '.h')):
        for number, n in long_functions(text):
            yield number, 'a function of %d lines, more than %d' % (n, MAX_FUNCTION_LINES)


def full_folders(files, root):
    """A sentence of each folder with too many .c files."""
    folders = collections.Counter(p.parent.relative_to(root).as_posix() for p in files
                                  if p.suffix == '.c')
    for folder, n in sorted(folders.items()):
        if n > MAX_FILES and folder not in PROGRAM_FOLDERS:
            yield '%s:1: %d files, more than %d' % (folder, n, MAX_FILES)


def generic_names(script):
    """(line, sentence) of names that a linker script takes from every file, and that any file may
    have: of one word, and not exported."""
    for number, line in enumerate(strip(script).split('\n'), 1):
        if re.match(r'\s*\*\(', line):
            line = re.sub(r'\.text\.(startup|unlikely|exit)\.', '.text.', line)  # the compiler's
            line = re.sub(r'\.data\.rel\.ro(\.local)?', '', line)
            for name in re.findall(r'\.(?:text|rodata|data\*?|bss)\.([a-z0-9]+)(?=[.\s)])', line):
                if name not in EXPORTED and not re.fullmatch(r'cst|str1', name):
                    yield number, '"%s" may stand in several files: name the one that is meant' % name


def check_include(target, parts, tell):
    """A quoted include of a file of ours."""
    to = target.split('/')
    room, other = room_of(parts), room_of(to)
    if other is None:
        tell('includes "%s", which does not name its room' % target)
    elif ROOMS.index(other) > ROOMS.index(room):
        tell('%s includes "%s" of a room above' % (room, target))
    elif is_pure(parts) and not is_pure(to):
        tell('a decision includes "%s", which is none' % target)


def check(shim):
    """Violations of the tree as 'file:line: sentence'."""
    shim = pathlib.Path(shim)
    files = sorted(p for p in shim.rglob('*') if p.suffix in ('.c', '.h', '.def'))
    found = list(full_folders(files, shim))
    memkind_users = []
    for path in files:
        name = path.relative_to(shim).as_posix()
        parts = name.split('/')
        room = room_of(parts)
        text = path.read_text()
        code = strip(text)

        def tell(line, sentence, name=name):
            found.append('%s:%d: %s' % (name, line, sentence))

        if room is None:
            tell(1, 'stands in no room (%s)' % ', '.join(ROOMS))
            continue
        for number, sentence in wrong_lengths(name, text):
            tell(number, sentence)
        for number, line in enumerate(text.split('\n'), 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^">]+)[">]', line)
            if not m:
                continue
            target = m.group(2)
            if target == 'memkind.h' or target.startswith('memkind/'):
                memkind_users.append((name, number))
            if m.group(1) == '"' and target != 'config.h':
                check_include(target, parts, lambda s, n=number: tell(n, s))
        for place, names in ONE_PLACE.items():
            if name != place:
                for number, word in words(code, names):
                    tell(number, '%s belongs into %s' % (word, place))
        if room != 'sys':
            for number, word in calls(code, ['syscall']):
                tell(number, 'system call outside sys/')
        # The hooks define some of these names themselves, and are a few lines each.
        if room not in ('sys', 'hooks'):
            for number, word in calls(code, KERNEL_CALLS):
                tell(number, '%s() asks the kernel: that belongs into sys/' % word)
        # What the hooks define under such a name is no call of it.
        for number, word in calls(re.sub(r'(?m)^HY_EXPORT .*', '', code), FORBIDDEN):
            tell(number, '%s() must not run inside a foreign program' % word)
    for path in sorted(shim.glob('*.ld')):
        found += ['%s:%d: %s' % (path.name, *wrong) for wrong in generic_names(path.read_text())]
    for name, number in memkind_users[1:]:
        found.append('%s:%d: memkind.h is already used by %s' % (name, number, memkind_users[0][0]))
    return found


def circle_of(includes):
    """Names that reach one another in a circle, or None. includes: name -> names."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        path.append(name)
        for other in sorted(includes.get(name, ())):
            found = visit(other)
            if found:
                return found
        path.pop()
        done.add(name)
        return None

    return next(filter(None, map(visit, sorted(includes))), None)


def check_emu(emu):
    """As check(), of the emulated machine."""
    emu = pathlib.Path(emu)
    found = []
    includes = collections.defaultdict(set)
    for path in sorted(p for p in emu.glob('*/*.[ch]') if p.parent.name != 'test'):
        name = path.relative_to(emu).as_posix()
        folder = path.parent.name
        text = path.read_text()
        found += ['%s:%d: %s' % (name, *wrong) for wrong in wrong_lengths(name, text)]
        if folder not in EMU_FOLDERS:
            found.append('%s:1: stands in no folder of %s' % (name, ', '.join(EMU_FOLDERS)))
            continue
        module = name[:-2]
        module = EMU_ONE.get(module, module)
        for number, line in enumerate(text.split('\n'), 1):
            m = re.match(r'\s*#\s*include\s*"([^/"]+)/([^"]+)\.(?:h|def)"', line)
            if not m:
                continue
            to = m.group(1)
            if to not in EMU_FOLDERS or EMU_FOLDERS.index(to) > EMU_FOLDERS.index(folder) or (
                    to != folder and {to, folder} == set(EMU_FRONT_ENDS)):
                found.append('%s:%d: %s/ includes "%s/%s" of a folder above' %
                             (name, number, folder, to, m.group(2)))
            other = '%s/%s' % m.group(1, 2)
            other = EMU_ONE.get(other, other)
            if other != module:
                includes[module].add(other)
    circle = circle_of(includes)
    if circle:
        found.append('%s.c:1: a circle: %s' % (circle[0], ' -> '.join(circle)))
    return found


def is_code(path):
    if path.suffix in CODE_SUFFIXES:
        return True
    with path.open('rb') as f:
        return f.read(2) == b'#!'


def check_all(root):
    """Lengths of all code, and files in a folder. Where a file may stand is not looked at."""
    root = pathlib.Path(root)
    files = [p for folder in CODE_FOLDERS for p in sorted((root / folder).rglob('*'))
             if p.is_file() and not p.is_symlink() and '__pycache__' not in p.parts and is_code(p)]
    found = list(full_folders(files, root))
    for path in files:
        name = path.relative_to(root).as_posix()
        found += ['%s:%d: %s' % (name, *wrong)
                  for wrong in wrong_lengths(name, path.read_text(errors='replace'))]
    return found


# Rule -> a file that breaks it and a part of the sentence that must come.
VIOLATIONS = {
    'upward include': ('sys/a.c', '#include "heap/one.h"\n', 'of a room above'),
    'below the decisions': ('sys/a.h', '#include "place/rules/x.h"\n', 'of a room above'),
    'relative include': ('heap/one.c', '#include "one.h"\n', 'does not name its room'),
    'front door': ('heap/one.c', '#include "migrator.h"\n', 'of a room above'),
    'decision to kernel': ('place/rules/x.c', '#include "sys/os.h"\n', 'a decision includes'),
    'decision to its room': ('place/rules/x.c', '#include "place/a.h"\n', 'a decision includes'),
    'decision upwards': ('heap/rules/x.c', '#include "place/rules/x.h"\n', 'of a room above'),
    'memkind twice': ('place/two.c', '#include <memkind.h>\n', 'already used by heap/one.c'),
    'getenv': ('core/a.c', 'char *f(void) { return getenv("X"); }\n', 'belongs into sys/env.c'),
    'environ': ('sys/os.c', 'char **f(void) { return environ; }\n', 'belongs into sys/env.c'),
    'dlsym': ('a_hook.c', 'void *f(void) { return dlsym(0, "x"); }\n', 'belongs into sys/dl.c'),
    'dlopen': ('sys/os.c', 'void *f(void) { return dlopen("x", 1); }\n', 'belongs into sys/dl.c'),
    'syscall': ('heap/two.c', 'long f(void) { return syscall(1); }\n', 'system call outside'),
    'kernel call': ('place/a.c', 'int f(void) { return open("x", 0); }\n', 'asks the kernel'),
    'abort': ('base/a.c', 'void f(void) { abort(); }\n', 'foreign program'),
    'long source': ('a_hook.c', '\n' * (MAX_SOURCE_LINES + 1), 'lines, more than'),
    'long function': ('a_hook.c', 'void f(void)\n{\n%s}\n' % ('    g();\n' * 59),
                      'a function of'),
    'long header': ('a_hook.h', '\n' * (MAX_HEADER_LINES + 1), 'lines, more than'),
    'generic name': ('start.ld', '*(.bss.has_begun)\n*(.text.begin)\n', '"begin" may stand'),
    'no room': ('extra/a.c', '\n', 'stands in no room'),
    'no front door': ('extra.c', '\n', 'stands in no room'),
}
CLEAN = {
    'base/t.h': '/* getenv( and dlsym( in a comment, */\n',
    'sys/env.c': '#include "base/t.h"\nchar *f(const char *n) { return getenv(n); }\n',
    'sys/dl.c': 'void *g(void *h) { return dlsym(h, "open("); }\n',
    'sys/os.c': 'long k(void) { return syscall(1); }\n',
    'place/rules/x.h': '#include "base/t.h"\n',
    'pages/rules/y.h': '#include "place/rules/x.h"\n',
    'heap/one.h': '#include "sys/os.h"\n',
    'place/two.h': '#include "heap/one.h"\n',
    'heap/one.c': '#include <memkind.h>\n#include "heap/one.h"\n'
                  'void c(struct s *p) { p->read(1); os_open(2); p->ops.close(3); }\n',
    'sys/walk/a.c': '#include "sys/os.h"\n',
    'migrator.c': '#include "migrator.h"\n#include "pages/rules/y.h"\n',
    'process/a.c': '#include "migrator.h"\n#include "heap/one.h"\n',
    'a_hook.c': '#include "process/a.h"\nint mmap(int x) { return x; }\n',
    'start.ld': '*(.text.malloc)\n*a.c.o(.bss.count)\n*(.rodata.cst*)\n*crt.o(.data*)\n*(.bss.one_name.*)\n',
}


EMU_VIOLATIONS = {
    'upward include': ('model/a.c', '#include "machine/m.h"\n', 'of a folder above'),
    'front ends apart': ('qemu/a.c', '#include "instrument/a.h"\n', 'of a folder above'),
    'no folder': ('extra/a.c', '\n', 'stands in no folder'),
    'circle': ('pages/watch.c', '#include "pages/counts.h"\n', 'a circle: '),
    'long source': ('model/a.c', '\n' * (MAX_SOURCE_LINES + 1), 'lines, more than'),
    'long function': ('model/a.c', 'void f(void)\n{\n%s}\n' % ('    g();\n' * 59),
                      'a function of'),
}
EMU_CLEAN = {
    'model/a.h': '\n',
    'pages/counts.h': '#include "pages/watch.h"\n',
    'pages/watch.h': '#include "model/a.h"\n',
    'core/core.h': '#include "pages/watch.h"\n',
    'core/threads.c': '#include "core/inside.h"\n',
    'core/inside.h': '#include "core/core.h"\n',
    'core/core.c': '#include "core/inside.h"\n',
    'instrument/a.h': '#include "core/core.h"\n',
    'test/a.c': '#include "tool/a.h"\n',
}


ALL_VIOLATIONS = {
    'long test': ('tests/unit/heap/test_1.c', '\n' * (MAX_SOURCE_LINES + 1), 'lines, more than'),
    'long script': ('tools/a.py', 'x = 1\n' * (MAX_SOURCE_LINES + 1), 'lines, more than'),
    'long command': ('scripts/a', '#!/bin/sh\n' * (MAX_SOURCE_LINES + 1), 'lines, more than'),
    'long test header': ('bench/a.h', '\n' * (MAX_HEADER_LINES + 1), 'lines, more than'),
    'long test function': ('emu/test/a.cpp', 'int main()\n{\n%s}\n' % ('    g();\n' * 59),
                           'a function of'),
    'full folder': ('tests/unit/heap/test_20.c', '\n', 'files, more than'),
}
ALL_CLEAN = {
    'tests/unit/a.c': 'void f(void)\n{\n%s}\n' % ('    g();\n' * 58),
    'tests/fuzz/corpus/text': '\n' * (MAX_SOURCE_LINES + 1),
    'scripts/a': '#!/bin/sh\n',
    'tools/a.py': 'x = 1\n' * MAX_SOURCE_LINES,
    'bench/README.md': '\n' * (MAX_SOURCE_LINES + 1),
}
ALL_CLEAN.update({'tests/unit/heap/test_%d.c' % i: '\n' for i in range(MAX_FILES)})
ALL_CLEAN.update({'bench/workloads/%d.c' % i: '\n' for i in range(MAX_FILES + 1)})


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def self_test():
    bad = rules = 0
    with tempfile.TemporaryDirectory() as tmp:
        for kind, clean, violations, run in (('shim', CLEAN, VIOLATIONS, check),
                                             ('emu', EMU_CLEAN, EMU_VIOLATIONS, check_emu),
                                             ('all', ALL_CLEAN, ALL_VIOLATIONS, check_all)):
            root = pathlib.Path(tmp) / kind / 'clean'
            write_tree(root, clean)
            for line in run(root):
                print('clean tree: unexpected', line)
                bad += 1
            for rule, (name, text, sentence) in violations.items():
                rules += 1
                root = pathlib.Path(tmp) / kind / re.sub(r'\W', '-', rule)
                write_tree(root, clean)
                write_tree(root, {name: text})
                lines = run(root)
                where = lines[0].split(':')[0] if len(lines) == 1 else None
                if where not in (name, name.rpartition('/')[0]) or sentence not in lines[0]:
                    print('%s: expected one line about %s with "%s", got %s' %
                          (rule, name, sentence, lines))
                    bad += 1
    print('self-test: %d rules, %d wrong' % (rules, bad))
    return 1 if bad else 0


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    run = {'--emu': check_emu, '--all': check_all}.get(sys.argv[1] if sys.argv[1:] else '', check)
    if len(sys.argv) != (2 if run is check else 3):
        print(__doc__)
        return 2
    found = run(sys.argv[-1])
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
