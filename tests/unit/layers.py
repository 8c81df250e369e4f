#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The structure of shim/, checked (docs/DESIGN.md, "Layers").

layers.py SHIM         check a tree; one line per violation, exit status 1 if any
layers.py --self-test  check that every rule finds its violation
"""
import pathlib
import re
import sys
import tempfile

LAYERS = ['base', 'sys', 'decide', 'service', 'runtime', 'hook']
MAX_SOURCE_LINES = 600
MAX_HEADER_LINES = 200

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


def service_of(parts, services):
    """The service a file below service/ belongs to: its folder, or the longest
    name of a service that its own begins with (registry_file.c: registry)."""
    if len(parts) > 2:
        return parts[1]
    stem = parts[1].rsplit('.', 1)[0]
    owners = [s for s in services if stem == s or stem.startswith(s + '_')]
    return max(owners, key=len) if owners else stem


def check(shim):
    """Violations of the tree as 'file:line: sentence'."""
    shim = pathlib.Path(shim)
    files = sorted(p for p in shim.rglob('*') if p.suffix in ('.c', '.h', '.def'))
    stems = {p.stem for p in (shim / 'service').glob('*.h')} | {
        p.name for p in (shim / 'service').glob('*') if p.is_dir()}
    # registry_file.h beside registry.h is a part, not a service
    services = {s for s in stems if not any(s.startswith(t + '_') for t in stems if t != s)}
    found = []
    memkind_users = []
    for path in files:
        name = path.relative_to(shim).as_posix()
        parts = name.split('/')
        layer = parts[0]
        text = path.read_text()
        code = strip(text)

        def tell(line, sentence, name=name):
            found.append('%s:%d: %s' % (name, line, sentence))

        if layer not in LAYERS or len(parts) < 2:
            tell(1, 'is in no layer (%s)' % ', '.join(LAYERS))
            continue
        lines = text.count('\n')
        limit = MAX_HEADER_LINES if path.suffix == '.h' else MAX_SOURCE_LINES
        if lines > limit:
            tell(lines, '%d lines, more than %d' % (lines, limit))
        for number, line in enumerate(text.split('\n'), 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^">]+)[">]', line)
            if not m:
                continue
            target = m.group(2)
            if target == 'memkind.h' or target.startswith('memkind/'):
                memkind_users.append((name, number))
            if m.group(1) == '<' or target == 'config.h':
                continue
            to = target.split('/')
            if to[0] not in LAYERS or len(to) < 2:
                tell(number, 'includes "%s", which does not name its layer' % target)
            elif LAYERS.index(to[0]) > LAYERS.index(layer):
                tell(number, '%s includes "%s" of the layer above' % (layer, target))
            elif layer == 'service' and to[0] == 'service':
                mine, other = service_of(parts, services), service_of(to, services)
                if mine != other:
                    tell(number, 'service %s includes service %s' % (mine, other))
        for place, names in ONE_PLACE.items():
            if name != place:
                for number, word in words(code, names):
                    tell(number, '%s belongs into %s' % (word, place))
        if layer != 'sys':
            for number, word in calls(code, ['syscall']):
                tell(number, 'system call outside sys/')
        if layer in ('base', 'decide', 'service', 'runtime'):
            for number, word in calls(code, KERNEL_CALLS):
                tell(number, '%s() asks the kernel: that belongs into sys/' % word)
        # What the hooks define under such a name is no call of it.
        for number, word in calls(re.sub(r'(?m)^HY_EXPORT .*', '', code), FORBIDDEN):
            tell(number, '%s() must not run inside a foreign program' % word)
    for name, number in memkind_users[1:]:
        found.append('%s:%d: memkind.h is already used by %s' % (name, number, memkind_users[0][0]))
    return found


# Rule -> a file that breaks it and a part of the sentence that must come.
VIOLATIONS = {
    'upward include': ('sys/a.c', '#include "service/one.h"\n', 'of the layer above'),
    'decide above sys': ('sys/a.h', '#include "decide/x.h"\n', 'of the layer above'),
    'relative include': ('service/one.c', '#include "one.h"\n', 'does not name its layer'),
    'service to service': ('service/one.c', '#include "service/two.h"\n', 'includes service two'),
    'folder service': ('service/deep/a.c', '#include "service/one.h"\n', 'includes service one'),
    'part of a service': ('service/one_file.c', '#include "service/two.h"\n', 'service one includes'),
    'memkind twice': ('service/two.c', '#include <memkind.h>\n', 'already used by service/one.c'),
    'getenv': ('runtime/a.c', 'char *f(void) { return getenv("X"); }\n', 'belongs into sys/env.c'),
    'environ': ('sys/os.c', 'char **f(void) { return environ; }\n', 'belongs into sys/env.c'),
    'dlsym': ('hook/a.c', 'void *f(void) { return dlsym(0, "x"); }\n', 'belongs into sys/dl.c'),
    'dlopen': ('sys/os.c', 'void *f(void) { return dlopen("x", 1); }\n', 'belongs into sys/dl.c'),
    'syscall': ('service/one.c', 'long f(void) { return syscall(1); }\n', 'system call outside'),
    'kernel call': ('decide/a.c', 'int f(void) { return open("x", 0); }\n', 'asks the kernel'),
    'abort': ('base/a.c', 'void f(void) { abort(); }\n', 'foreign program'),
    'long source': ('hook/a.c', '\n' * (MAX_SOURCE_LINES + 1), 'lines, more than'),
    'long header': ('hook/a.h', '\n' * (MAX_HEADER_LINES + 1), 'lines, more than'),
    'no layer': ('extra/a.c', '\n', 'is in no layer'),
}
CLEAN = {
    'base/t.h': '/* getenv( and dlsym( in a comment, */\n',
    'sys/env.c': '#include "base/t.h"\nchar *f(const char *n) { return getenv(n); }\n',
    'sys/dl.c': 'void *g(void *h) { return dlsym(h, "open("); }\n',
    'sys/os.c': 'long k(void) { return syscall(1); }\n',
    'decide/x.h': '#include "base/t.h"\n',
    'service/one.h': '#include "decide/x.h"\n',
    'service/two.h': '#include "sys/os.h"\n',
    'service/one.c': '#include <memkind.h>\n#include "service/one.h"\n'
                     'void c(struct s *p) { p->read(1); os_open(2); p->ops.close(3); }\n',
    'service/one_file.c': '#include "service/one.h"\n',
    'service/deep/a.c': '#include "service/deep/a.h"\n',
    'service/deep/a.h': '\n',
    'runtime/a.c': '#include "service/one.h"\n#include "service/two.h"\n',
    'hook/a.c': '#include "runtime/a.h"\nint mmap(int x) { return x; }\n',
}


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def self_test():
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp) / 'clean'
        write_tree(root, CLEAN)
        for line in check(root):
            print('clean tree: unexpected', line)
            bad += 1
        for rule, (name, text, sentence) in VIOLATIONS.items():
            root = pathlib.Path(tmp) / re.sub(r'\W', '-', rule)
            write_tree(root, CLEAN)
            write_tree(root, {name: text})
            lines = check(root)
            if len(lines) != 1 or not lines[0].startswith(name + ':') or sentence not in lines[0]:
                print('%s: expected one line about %s with "%s", got %s' %
                      (rule, name, sentence, lines))
                bad += 1
    print('self-test: %d rules, %d wrong' % (len(VIOLATIONS), bad))
    return 1 if bad else 0


def main():
    if sys.argv[1:] == ['--self-test']:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    found = check(sys.argv[1])
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
