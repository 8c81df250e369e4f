#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bad input: the program runs as if nothing were wrong, one clear line tells what is.

    badinput.py --lib build/shim/libhybrid.so --bin build/tests/preload [NAME...]

The options come from shim/settings/rules/options.def, so that a new one is tried as well.
"""
import os
import random
import re
import resource
import shutil
import stat
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import harness # noqa: E402
from harness import OUR_LINE, STEER, Setting, Skip # noqa: E402

STRICT_STATUS = 78
BYTES = os.fsdecode(b'caf\xe9\xff\xfe') # no UTF-8
SHELL = ['/bin/sh', '-c', 'echo output; exit 3']
NOT_A_SIZE = ['', 'x', '-1', '12X', '1e3', '0x10', '+5', '1.5G', '9' * 40, '9999999T', '5 M', BYTES, 'A' * 100000, '\x1b[31m5']
NOT_A_WORD = ['', 'bogus', '-1', '9' * 40, 'auto,dram', BYTES, 'A' * 100000, '%n%s%n', 'a\nb']
BAD = {
    'choice': NOT_A_WORD, 'flag': NOT_A_WORD + ['2'],
    'size': NOT_A_SIZE, 'amount': NOT_A_SIZE + ['101%', '-5%', '%', '5%%', '50.5%', '9' * 40 + '%'],
    'memory': NOT_A_WORD + ['node:', 'node:x', 'node:64', 'node:-1', 'node:1,,2', 'node:' + '9' * 40, 'file:', 'file:relative',
                        'file:/' + 'A' * 5000, 'emulated:', 'emulated:x', 'emulated:-1', 'emulated:4K', 'emulated:' + '9' * 40],
    'report': ['', '-1', '2', '/tmp/', 'A' * 5000, 'a\nb'],
    'name': ['', 'A' * 5000, '/tmp/', 'a\nb', 'no-such-profile', BYTES, '/no/such/profile.ini'],
    'time': ['', 'x', '-1', '1', '1e3s', '0x10s', '1.5s', 's', '9' * 40 + 's', '5 s', '0ms', '1000h', BYTES, 'A' * 5000],
    'threads': NOT_A_WORD + ['0', '1.5', '0x10'],
    'wait': NOT_A_WORD + ['wait', 'wait:', 'wait:0', 'wait:-1', 'wait:1s', 'wait:86401', 'wait:' + '9' * 40],
    'number': ['', 'x', '-1', '1e3', '0x10', '1,5', '.5', '2.', '9' * 40, BYTES, 'A' * 5000, 'a\nb'],
    'source': NOT_A_WORD[:4] + ['replay:', 'replay:relative', 'group:', 'group:relative', BYTES, 'a\nb'],
    'machine': ['', 'bogus', 'relative/file', '/tmp/', 'A' * 5000, 'a\nb', BYTES],
    'directories': ['', 'relative', '/ok:relative', 'A' * 5000, '/a\nb'],
    'path': ['', 'relative', 'A' * 5000, '/' + 'A' * 5000, '/a\nb'],
}


def options():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, '..', '..', 'shim', 'settings', 'rules', 'options.def'), encoding='utf-8') as f:
        text = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
    found = re.findall(r'HY_OPT\(\s*(\w+)\s*,\s*\w+\s*,\s*\w+\s*,\s*(\w+)\s*,', text)
    if len(found) < 15 or {t for _, t in found} - set(BAD):
        raise harness.Broken(f'options.def is not understood, or has a new type: {found}')
    return found


def lines_of(err):
    return OUR_LINE.findall(err.decode('utf-8', 'backslashreplace'))


def short(text):
    return repr(text if len(text) < 60 else text[:40] + f'... ({len(text)} characters)')


def cpu_seconds():
    """Of all programs that have ended: other work of the computer does not count."""
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def try_it(ctx, env, what, argv=None, want=1, names='', limit=8.0, **kw):
    """Run with bad input: as plain, and the wanted number of lines (int or range) that hold `names`."""
    begin = cpu_seconds()
    got = ctx.run(argv or SHELL, env=env if ctx.setting.preload else {}, record=None, label='sh', **kw)
    spent = cpu_seconds() - begin
    ctx.record(what, f'status {got.status}, stdout {got.out!r}')
    rest = OUR_LINE.sub('', got.err.decode('utf-8', 'backslashreplace')).strip()
    ctx.record(what, f'stderr {rest}')
    if not ctx.setting.preload:
        return
    lines = lines_of(got.err)
    allowed = range(want, want + 1) if isinstance(want, int) else want
    problem = None
    if len(lines) not in allowed:
        problem = f'{len(lines)} lines where {allowed.start} to {allowed.stop - 1} are wanted'
    elif names and not all(re.search(names, ln) for ln in lines):
        problem = f'a line does not say {names}'
    elif not all(len(ln) <= 520 and ln.isascii() and ln.isprintable() for ln in lines):
        problem = 'a line is not one printable line of at most 512 characters'
    elif spent > limit * harness.SCALE / 4:
        problem = f'it took {spent:.1f} s of CPU time'
    if problem:
        ctx.faults.append(f'{what}: {problem}\n  ' + '\n  '.join(ln[:600] for ln in lines))


class Case:
    def __init__(self, fn, bin_dir):
        self.fn, self.bin = fn, bin_dir

    def run(self, ctx):
        ctx.bin, ctx.faults, ctx.expect_ours = self.bin, [], r'.'
        self.fn(ctx)
        if ctx.faults:
            raise harness.Broken(f'{len(ctx.faults)} faults:\n' + '\n'.join(ctx.faults[:40]))


def each_option(ctx):
    for name, kind in options():
        for value in BAD[kind]:
            try_it(ctx, {'HYBRID_' + name: value}, f'HYBRID_{name}={short(value)}', names='HYBRID_' + name)


def strict(ctx):
    """HYBRID_STRICT=1: the same ends the program before it says a word."""
    if not ctx.setting.preload:
        return
    for name, kind in options():
        if name == 'STRICT':
            continue
        for value in BAD[kind][:3]:
            got = ctx.run(SHELL, env={'HYBRID_' + name: value, 'HYBRID_STRICT': '1'}, record=None, label='sh')
            if got.status != STRICT_STATUS or got.out or not lines_of(got.err):
                ctx.faults.append(f'HYBRID_{name}={short(value)}, strict: status {got.status}, stdout {got.out!r}, {lines_of(got.err)}')
    got = ctx.run(SHELL, env={'HYBRID_DRAMM': '1G', 'HYBRID_STRICT': '1'}, record=None, label='sh')
    if got.status != STRICT_STATUS or got.out or b'did you mean HYBRID_DRAM?' not in got.err:
        ctx.faults.append(f'a name that is not known, strict: status {got.status}, stdout {got.out!r}, {lines_of(got.err)}')
    for env in ({}, {'HYBRID_POLICY': 'pm'}, {'HYBRID_PM': 'emulated', 'HYBRID_START': '0'}, {'HYBRID_POLICY': 'off'}):
        got = ctx.run(SHELL, env=dict(env, HYBRID_STRICT='1'), record=None, label='sh')
        if got.status != 3:
            ctx.faults.append(f'{env} is no error, yet strict: status {got.status}, {lines_of(got.err)}')


def together(ctx):
    """Every option wrong at once: a line for each, no more."""
    bad = {'HYBRID_' + n: BAD[k][2] for n, k in options()}
    try_it(ctx, bad, 'all wrong', want=len(bad))
    try_it(ctx, {'HYBRID_NO_SUCH_OPTION': '1'}, 'unknown option', names='HYBRID_NO_SUCH_OPTION')
    try_it(ctx, {'HYBRID_POLICI': 'pm'}, 'mistyped option', names='HYBRID_POLICI.*HYBRID_POLICY')
    try_it(ctx, {f'HYBRID_X{i}': 'A' * 1000 for i in range(80)}, 'eighty unknown options', want=range(1, 81))
    try_it(ctx, {'HYBRID_' + BYTES: '1'}, 'name in bytes')


def unavailable(ctx):
    """Well-formed values for things that are not there."""
    grow = [os.path.join(ctx.bin, 'hz_grow'), '30']
    with open(ctx.path('file'), 'w', encoding='ascii') as f:
        f.write('x')
    os.mkdir(ctx.path('noentry'), 0)
    now = {'HYBRID_START': '0'}
    for pm in ('node:63', 'node:5,6', 'file:/no/such/directory', 'file:' + ctx.path('file'), 'file:/proc', 'file:/dev/null'):
        try_it(ctx, dict(now, HYBRID_POLICY='pm', HYBRID_PM=pm), f'PM={pm.replace(ctx.dir, "")}', argv=grow, names='HYBRID_PM|PM')
    for report in ('/no/such/directory/report', ctx.path('file') + '/report', '/proc/report'):
        try_it(ctx, {'HYBRID_STATS': report}, f'STATS={report.replace(ctx.dir, "")}', argv=grow, names='HYBRID_STATS')
    try_it(ctx, dict(now, HYBRID_PM='emulated:1048576T'), 'PM larger than any address space', argv=grow, want=range(0, 2))
    try_it(ctx, dict(now, HYBRID_PM='emulated', HYBRID_DRAM='0', HYBRID_POLICY='dram'), 'no DRAM', argv=grow, want=range(0, 2))
    try_it(ctx, dict(now, HYBRID_PM='emulated', HYBRID_MMAP_MIN='4096', HYBRID_SITES='on', HYBRID_SITE_MIN='32K', HYBRID_SITE_SAMPLE='1K',
                     HYBRID_STATS=ctx.path('report')), 'every limit at its lowest', argv=grow, want=0, limit=60)
    try_it(ctx, dict(now, HYBRID_PM='emulated', HYBRID_START='1024T', HYBRID_MMAP_MIN='1024T', HYBRID_DRAM='1024T'), 'limits at their highest',
           argv=grow, want=range(0, 2))
    if ctx.setting.preload:
        got = ctx.run(SHELL, env=dict(now, HYBRID_STRICT='1', HYBRID_PM='file:/no/such/directory', HYBRID_POLICY='pm'), record=None, label='sh')
        ctx.check(got.status == STRICT_STATUS and not got.out, f'strict and no PM directory: status {got.status}, {got.out!r}')


GOOD_PROFILE = '''[app]
exe = sh
class = bandwidth
slowdown = 1.5
[options]
policy = first-fit
start = 0
[site a]
frame0 = 0123456789abcdef0123456789abcdef01234567+0x1234
tier = pm
bytes = 1000000
'''


def hostile_profiles(ctx):
    rng = random.Random(5)
    yield 'empty', b''
    yield 'random bytes', rng.randbytes(200000)
    yield 'random text', bytes(rng.choice(b'[]=;# \n\tabcx019%-') for _ in range(200000))
    for cut in (1, 5, 30, 70, 120, 160):
        yield f'cut after {cut}', GOOD_PROFILE.encode()[:cut]
    yield 'NUL inside', GOOD_PROFILE.encode().replace(b'class', b'cl\0ss')
    yield 'a million sections', b''.join(b'[site s%d]\n' % i for i in range(600000))
    yield 'one line of a megabyte', b'[app]\nexe = ' + b'x' * 1000000 + b'\n'
    yield 'a megabyte of [', b'[' * 1000000
    yield 'format strings', b'[%s%n]\n%n = %s%s%s%n\n[app]\nexe = %n%n%s\nclass = %s%n\n[options]\npm = %s%n\n'
    yield 'escapes', b'[app]\nexe = \x1b[2J\x07\n\x1b]0;x\x07 = 1\n'
    yield 'huge numbers', b'[app]\nslowdown = 1' + b'0' * 150 + b'\nfootprint = 9' + b'9' * 150 + b'\n[site a]\nframe0 = ab+0x' + b'f' * 100 + b'\n'
    yield 'options it may not set', b'[app]\nexe = sh\n[options]\nstats = /etc/evil\nregistry = /etc/evil\nprofile = x\nstrict = 1\nverbose = 2\n'
    yield 'bad values', b'[app]\nexe = sh\nclass = no\n[options]\n' + b''.join(b'%s = ~~\n' % n.lower().encode() for n, _ in options())
    yield 'the same key again and again', b'[app]\n' + b'exe = sh\n' * 100000
    yield 'sites in plenty', b''.join(b'[site s%d]\nframe0 = %040x+0x%x\ntier = pm\n' % (i, i, i) for i in range(20000))
    yield 'carriage returns and a mark', b'\xef\xbb\xbf' + GOOD_PROFILE.replace('\n', '\r\n').encode()


def profiles(ctx):
    quiet = {'empty', 'carriage returns and a mark', 'cut after 30'}
    for what, data in hostile_profiles(ctx):
        with open(ctx.path('p.ini'), 'wb') as f:
            f.write(data)
        env = {'HYBRID_PROFILE': ctx.path('p.ini')}
        try_it(ctx, env, what, want=range(0 if what in quiet or what.startswith('cut') or what == 'sites in plenty' else 1, 25), names='p.ini|HYBRID')
        if ctx.setting.preload and os.path.exists('/etc/evil'):
            ctx.faults.append(f'{what}: a profile made a file')


def big_profiles(ctx):
    """100 MB of everything; a folder; things that block or never end when they are opened."""
    with open(ctx.path('zeros.ini'), 'wb') as f:
        f.truncate(100 << 20)
    with open(ctx.path('text.ini'), 'wb') as f:
        for _ in range(100):
            f.write(b'[site a]\nframe0 = ab+0x1\n' * 41000)
    os.mkdir(ctx.path('folder.ini'))
    os.mkfifo(ctx.path('fifo.ini'))
    os.symlink('loop.ini', ctx.path('loop.ini'))
    with open(ctx.path('closed.ini'), 'w', encoding='ascii') as f:
        f.write(GOOD_PROFILE)
    os.chmod(ctx.path('closed.ini'), 0)
    for name in ('zeros', 'text', 'folder', 'fifo', 'loop', 'missing') + (() if os.getuid() == 0 else ('closed',)):
        try_it(ctx, {'HYBRID_PROFILE': ctx.path(name + '.ini')}, name, names=name)
        try_it(ctx, {'HYBRID_PROFILE_PATH': ctx.dir, 'HYBRID_PROFILE': name}, name + ' by name', names=name)
    for device in ('/dev/zero', '/dev/full', '/proc/self/mem', '/dev/tty'):
        try_it(ctx, {'HYBRID_PROFILE': device}, device, names=device)


def registry_env(path, **more):
    return dict(STEER['tiny'], HYBRID_PM='emulated', HYBRID_DRAM_SHARED='64M', HYBRID_REGISTRY=path, **more)


def contents(path):
    with open(path, 'rb') as f:
        return f.read()


def registries(ctx):
    grow = [os.path.join(ctx.bin, 'hz_grow'), '12']
    good = ctx.path('good')
    try_it(ctx, registry_env(good), 'a new registry', argv=grow, want=0)
    if ctx.setting.preload:
        ctx.check(os.path.getsize(good) > 4096, 'no registry has been made: the cases below would show nothing')
        template = contents(good)
    else:
        template = b'\0' * 65536
    rng = random.Random(9)
    for what, data in (('random bytes', rng.randbytes(len(template))), ('other magic', b'NOPE' + template[4:]),
                       ('other version', template[:8] + b'\x63\0\0\0' + template[12:]), ('truncated', template[:len(template) // 2]),
                       ('one byte', b'x'), ('longer', template + b'\0' * 4096), ('text', b'hello\n' * 20000)):
        path = ctx.path('r')
        with open(path, 'wb') as f:
            f.write(data)
        os.chmod(path, 0o600)
        try_it(ctx, registry_env(path), what, argv=grow, names='registry|REGISTRY')
        ctx.check(contents(path) == data, f'{what}: a file that is no registry of ours was written to')
    # Valid header, slots of rubbish: to be read as what it is, input.
    path = ctx.path('rubbish')
    with open(path, 'wb') as f:
        f.write(template[:256] + rng.randbytes(max(0, len(template) - 256)))
    os.chmod(path, 0o600)
    try_it(ctx, registry_env(path), 'slots of rubbish', argv=grow, want=range(0, 2))
    with open(path, 'wb') as f:
        f.write(template[:256] + b'\xff' * max(0, len(template) - 256))
    try_it(ctx, registry_env(path), 'slots of ones', argv=grow, want=range(0, 2))
    os.mkdir(ctx.path('folder'))
    os.mkfifo(ctx.path('fifo'))
    os.symlink(good, ctx.path('link'))
    os.symlink('/no/such/target', ctx.path('dangling'))
    for name in ('folder', 'fifo', 'link', 'dangling'):
        try_it(ctx, registry_env(ctx.path(name)), name, argv=grow, names='registry|REGISTRY')
    for path in ('/no/such/folder/registry', '/proc/registry', '/dev/null', '/dev/full', '/'):
        try_it(ctx, registry_env(path), path, argv=grow, names='registry|REGISTRY')
    ctx.check(not os.path.exists('/no/such/target'), 'a dangling link was followed')
    try_it(ctx, registry_env(good), 'the good one is still good', argv=grow, want=0)


def foreign_registry(ctx):
    """A registry of another user, and one that cannot be written."""
    if os.getuid() != 0:
        raise Skip('running as another user needs root')
    grow = [os.path.join(ctx.bin, 'hz_grow'), '12']
    probe = subprocess.run(['cat', ctx.lib, grow[0]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                           preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))
    if probe.returncode:
        raise Skip('nobody cannot read the library where it has been built')
    os.chmod(ctx.dir, 0o755)
    roots, open_ = ctx.path('roots'), ctx.path('open')
    try_it(ctx, registry_env(roots), 'made by root', argv=grow, want=0)
    if not ctx.setting.preload:
        for f in (roots, open_):
            with open(f, 'wb'):
                pass
    else:
        ctx.check(stat.S_IMODE(os.stat(roots).st_mode) == 0o600, f'mode {os.stat(roots).st_mode:o}')
        shutil.copy(roots, open_)
    os.chmod(open_, 0o666)

    def nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try_it(ctx, registry_env(roots), "root's, seen by nobody", argv=grow, names='registry|REGISTRY', preexec_fn=nobody)
    try_it(ctx, registry_env(open_), "root's, open to all, seen by nobody", argv=grow, names='registry|REGISTRY', preexec_fn=nobody)
    try_it(ctx, registry_env(ctx.path('new')), 'a folder that nobody may write', argv=grow, names='registry|REGISTRY', preexec_fn=nobody)
    group_registry(ctx, grow)


def as_user(uid, group):
    def become():
        os.setgroups([group])
        os.setgid(uid)
        os.setuid(uid)
    return become


def group_registry(ctx, grow):
    """docs/libhybrid.7, Sharing among users: two users of a group meet in a file that root made."""
    path, own, group = ctx.path('of-group'), ctx.path('of-user'), 47110
    for f, uid in ((path, 0), (own, 47111)):
        with open(f, 'wb'):
            pass
        os.chown(f, uid, group)
        os.chmod(f, 0o660)
    for uid in (47111, 47112):
        try_it(ctx, registry_env(path), f'a group registry, user {uid}', argv=grow, want=0, preexec_fn=as_user(uid, group))
    # Nobody accepts one that a user made for a group: not root, not the group, not the user.
    for uid in (0, 47111, 47112):
        try_it(ctx, registry_env(own), f"a user's group registry, user {uid}", argv=grow, names='registry|REGISTRY',
               preexec_fn=as_user(uid, group) if uid else None)
    if ctx.setting.preload:
        sleepers = [ctx.popen(['/bin/sleep', '60'], env=registry_env(path), preexec_fn=as_user(uid, group)) for uid in (47111, 47112)]
        ctx.wait_for(lambda: joined_in(path) == 2, 'both users in one registry')
        for p in sleepers:
            p.kill()
            p.wait()


def joined_in(path):
    """Slots of living participants (registry_file.h)."""
    data = contents(path) if os.path.exists(path) else b''
    return sum(word & 3 == 2 for word, in struct.iter_unpack('<Q504x', data[4096:]))


def full_registry(ctx):
    """More living participants than slots: the last comers go on alone, with one line each."""
    if not ctx.setting.preload:
        try_it(ctx, {}, 'beside a full registry', argv=['/bin/echo', 'x'])
        try_it(ctx, {}, 'when they have gone', argv=['/bin/echo', 'x'])
        return
    env = registry_env(ctx.path('registry'))
    many = [ctx.popen(['/bin/sleep', '600'], env=env) for _ in range(256)]
    deadline = time.monotonic() + 300 * harness.SCALE

    def joined():
        return joined_in(ctx.path('registry'))
    while joined() < len(many) and time.monotonic() < deadline:
        time.sleep(0.2)
    ctx.check(joined() == len(many), f'only {joined()} of {len(many)} participants are in the registry: ' + said(ctx))
    try_it(ctx, env, 'beside a full registry', argv=['/bin/echo', 'x'], names='registry|REGISTRY')
    for p in many:
        p.kill()
    for p in many:
        p.wait()
    try_it(ctx, env, 'when they have gone', argv=['/bin/echo', 'x'], want=0)


def said(ctx):
    out = []
    for f in ctx.stderr:
        f.seek(0)
        out += lines_of(f.read())
    return '\n'.join(out[:20])


def registry_pulled_away(ctx):
    """The file is removed, filled with rubbish, or cut short, while programs use it."""
    for what, act in (('removed', os.unlink), ('overwritten', lambda p: rubbish(p, os.path.getsize(p))),
                      ('emptied', lambda p: os.truncate(p, 0)), ('cut and mended', cut_and_mend)):
        path = ctx.path('reg-' + what)
        proc = ctx.popen([os.path.join(ctx.bin, 'fn_stress'), '4000'], env=registry_env(path) if ctx.setting.preload else {})
        if ctx.setting.preload:
            ctx.wait_for(lambda p=path: os.path.getsize(p) > 0, 'a registry')
            time.sleep(0.15)
            act(path)
        ctx.record(what, proc.wait(120 * harness.SCALE))


def planted_outputs(ctx):
    """Somebody has put a symbolic link, or a device, where the results go: one line, and nothing is written."""
    kept = ctx.path('kept')
    with open(kept, 'wb') as f:
        f.write(b'kept')
    link = ctx.path('link')
    os.symlink(kept, link)
    places = [link, '/dev/zero']
    if os.getuid() == 0:
        try:
            os.mknod(ctx.path('block'), stat.S_IFBLK | 0o600, os.makedev(7, 250))
            places.append(ctx.path('block'))
        except OSError:
            pass # containers without the right: the unit test has devices that exist
    for name in ('STATS', 'TRACE', 'RECORD'):
        for path in places:
            try_it(ctx, dict(STEER['tiny'], HYBRID_PM='emulated', HYBRID_REGISTRY='none', **{'HYBRID_' + name: path}),
                   f'HYBRID_{name}={os.path.basename(path)}', argv=[os.path.join(ctx.bin, 'hz_grow'), '12'],
                   names=f'HYBRID_{name}=.*(symbolic link|device)')
    ctx.check(contents(kept) == b'kept' and os.path.islink(link), 'what the link leads to was written')


def cut_and_mend(path):
    whole = os.path.getsize(path)
    for i in range(2000):
        os.truncate(path, i * 4099 % whole)
        os.truncate(path, whole)


def rubbish(path, size):
    with open(path, 'r+b') as f:
        f.seek(64)
        f.write(random.Random(3).randbytes(max(0, size - 64)))


CASES = {'options': each_option, 'strict': strict, 'together': together, 'unavailable': unavailable, 'profiles': profiles,
         'big-profiles': big_profiles, 'registries': registries, 'foreign-registry': foreign_registry, 'full-registry': full_registry,
         'registry-pulled-away': registry_pulled_away, 'planted-outputs': planted_outputs}


def main():
    args, extra = harness.victims_arguments(__doc__, CASES)
    worst = 0
    for name in args.names or CASES:
        if name not in CASES:
            sys.exit(f'no case {name}; there are: {" ".join(CASES)}')
        got = harness.run_case(name, Case(CASES[name], args.bin), args.lib, [Setting('library')], args.cache, extra, args.keep)
        worst = max(worst, got, key=lambda v: (v == harness.FAIL, v))
    return worst


if __name__ == '__main__':
    sys.exit(main())
