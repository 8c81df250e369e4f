#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The victims: small self-checking programs, one for each function and hazard.

    victims.py --lib build/shim/libhybrid.so --bin build/tests/preload [NAME...]

Each runs plainly and in every setting; status and stdout must be the same. Some
need a place or a right of their own (see the functions below).
"""
import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import harness # noqa: E402
from harness import Setting, Skip, STEER # noqa: E402

NOBODY = 65534


def program(ctx, name, *args, **kw):
    ctx.run([os.path.join(ctx.bin, name), *args], label=name, **kw)


def simple(*names_and_args):
    name, args = names_and_args[0], names_and_args[1:]
    return lambda ctx: program(ctx, name, *args, timeout=90)


def stdio(ctx):
    for cap in ('512', '65536', '2000000'):
        program(ctx, 'hz_stdio', cap)
        with open(ctx.path('written-at-exit'), encoding='ascii') as f:
            ctx.record(f'file {cap}', str(hash_of(f.read())))


def hash_of(text):
    import zlib
    return f'{len(text)} bytes, crc {zlib.crc32(text.encode())}'


def late(ctx):
    program(ctx, 'hz_late')
    if ctx.setting.preload: # other libraries preloaded before and after
        early = os.path.join(ctx.bin, 'liblate_early.so')
        for order in (f'{early}:{ctx.lib}', f'{ctx.lib}:{early}'):
            ctx.run([os.path.join(ctx.bin, 'hz_late')], env={'LD_PRELOAD': order}, label='hz_late')
            ctx.run(['/bin/true'], env={'LD_PRELOAD': order}, label='true')
    else:
        for _ in range(2):
            program(ctx, 'hz_late')
            ctx.run(['/bin/true'], label='true')


def limits(ctx):
    """Where the last bytes are refused depends on the limit: an arena of libc, a record of memkind, a block."""
    program(ctx, 'hz_limits', 'one')
    program(ctx, 'hz_limits', 'fill')
    for mib in (400, 401, 384):
        program(ctx, 'hz_limits', str((mib << 10) + mib), timeout=90)


def data_limit(ctx):
    """memkind's fork handlers crashed; and PM took what it could not use."""
    for mib in ('40', '60', '100', '250'):
        program(ctx, 'hz_data_limit', mib, timeout=90)
    program(ctx, 'hz_data_limit')
    # Where placement begins under the limit; and of a limit that others set.
    ctx.expect_ours = r'registry .* cannot be used \(ENOMEM\)|fork: memory at .* cannot become private'
    for resource in ('data', 'as'):
        for by in 'lpLPo' + ('O' if os.path.exists('/usr/bin/prlimit') else ''):
            program(ctx, 'hz_data_limit', 'lowered', resource, by)


def places(ctx):
    """p, P: a PID namespace, at once or once memory is placed; c, C: a root without /proc; l: main leaves."""
    if os.getuid() != 0:
        raise Skip('namespaces and chroot need root')
    ctx.expect_ours = r'libmemkind cannot|registry .* cannot|no file can be made' # as the folders are gone
    for mode in ('p', 'P', 'c', 'C', 'pC', 'PC', 'Cl', 'pl', 'PCl'):
        program(ctx, 'hz_places', mode, timeout=60)
        said = lines_of_ours(ctx)
        ctx.check(len(said) <= (2 if 'c' in mode.lower() else 0), f'each helper speaks: {said}')


def mlocked(ctx):
    if os.getuid() != 0:
        raise Skip('so much may be locked by root only')
    for mode in ('future', 'both'):
        program(ctx, 'hz_mlockall', mode, timeout=60)
    # PAPI allocates in the control thread, and the libc reserves 64 MiB for that; memkind had a stock of 32 MiB.
    little = ctx.setting.pm_on is None and not ctx.setting.name.startswith('tiny')
    if little and not os.path.exists('/sys/bus/event_source/devices/cpu'):
        got = ctx.run([os.path.join(ctx.bin, 'hz_mlockall'), 'reserved'], record=None)
        ctx.check((got.status, got.out.strip()) == (0, b'ok'), f'reserved: status {got.status}, {got.out}')


def double_free(ctx):
    """libc ends who frees twice; where our heap serves the block is kept, and one line says so."""
    if not ctx.setting.preload or ctx.setting.name in ('passive', 'default'):
        ctx.record('hz_double_free', 'ok')
        return
    ctx.expect_ours = r'freed .* ignored'
    got = ctx.run([os.path.join(ctx.bin, 'hz_double_free')], label='hz_double_free', record=None)
    ctx.record('hz_double_free', got.out.decode().strip())


def cancel(ctx):
    program(ctx, 'hz_cancel', timeout=90)
    if not ctx.setting.preload or ctx.setting.name in ('passive', 'default'):
        ctx.record('hz_cancel any', 'ok') # libc's heap hangs
        return
    got = ctx.run([os.path.join(ctx.bin, 'hz_cancel'), 'any'], label='hz_cancel any', record=None, timeout=60)
    ctx.record('hz_cancel any', got.out.decode().strip())


def altered(ctx):
    """Blocks that libc's heap does not outlive, only where ours serves."""
    program(ctx, 'hz_altered', timeout=120)
    got = ctx.run([os.path.join(ctx.bin, 'hz_altered'), 'numbers'], label='hz_altered numbers', record=None, timeout=120)
    ctx.record('hz_altered numbers', got.out.decode().strip())
    if not ctx.setting.preload or ctx.setting.name in ('passive', 'default'):
        ctx.record('hz_altered small', 'ok')
        return
    got = ctx.run([os.path.join(ctx.bin, 'hz_altered'), 'small'], label='hz_altered small', record=None, timeout=120)
    ctx.record('hz_altered small', got.out.decode().strip())


def unusual(ctx):
    """One thing that libc's heap does not outlive, only where ours serves."""
    serves = ctx.setting.preload and ctx.setting.name not in ('passive', 'default')
    ctx.run([os.path.join(ctx.bin, 'hz_unusual'), *(['ours'] if serves else [])], label='hz_unusual', timeout=250)


def sanitized(ctx):
    """A race is told by the status, too."""
    argv = ['setarch', '-R', os.path.join(ctx.bin, 'hz_sanitized')]
    if subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        raise Skip('the thread sanitizer is not there, or does not run here')
    ctx.run(argv, label='hz_sanitized')


def thread_churn_long(ctx):
    """Plainly it says the same after a few."""
    program(ctx, 'hz_thread_churn', '100000' if ctx.setting.preload else '1000', timeout=90)


def memcheck(ctx):
    """It is malloc itself, and sees the program's mistakes."""
    if not harness.which('valgrind'):
        raise Skip('not installed: valgrind')
    ctx.run(['valgrind', '-q', '--error-exitcode=9', 'bash', '-c', 'x=$(echo inner); echo $x; exit 3'], label='memcheck')
    mistake = [harness.which('valgrind'), '-q', '--error-exitcode=9', os.path.join(ctx.bin, 'hz_double_free')]
    ctx.run(mistake, label='mistake', record='status')


def qemu_user(ctx):
    """It keeps a record for each page of the program's, and took minutes and all memory for a range of ours."""
    qemu = harness.which('qemu-' + os.uname().machine)
    if not qemu:
        raise Skip('not installed: qemu-user')
    ctx.run([qemu, '/bin/echo', 'inner'], label='qemu', timeout=30)


def bind_now(ctx):
    for var in ({'LD_BIND_NOW': '1'}, {'GLIBC_TUNABLES': 'glibc.malloc.tcache_count=0'}, {'MALLOC_PERTURB_': '85'}):
        program(ctx, 'fn_stress', '700', env=var)


def own_malloc(ctx):
    """Linked in; and (what the libc alone would not do) every name of the family by that allocator."""
    program(ctx, 'fn_own_malloc')
    program(ctx, 'fn_own_malloc', *(['all'] if ctx.setting.preload else []))


def dlopen(ctx):
    program(ctx, 'hz_dlopen', os.path.join(ctx.bin, 'libplugin.so'), timeout=90)


def deepbind(ctx):
    program(ctx, 'hz_deepbind', os.path.join(ctx.bin, 'libdeep.so'), os.path.join(ctx.bin, 'libhop.so'))


def rights(ctx):
    """c: capset, c#: by its number, k: another user with a capability, n: no_new_privs, f: real time, o: often."""
    for mode in (('c', 'c#', 'k', 'f') if os.getuid() == 0 else ()) + ('n', 'o', 'setns'):
        program(ctx, 'hz_rights', mode, timeout=60)


def descriptors(ctx):
    program(ctx, 'hz_descriptors', '700', env={'VICTIM_FILE': '1'} if ctx.pm_dir else {})
    got = ctx.run(['prlimit', '--nofile=24', os.path.join(ctx.bin, 'hz_descriptors'), '100'], label='hz_descriptors few', record=None,
                  env={'VICTIM_FILE': '1'} if ctx.pm_dir else {})
    ctx.record('hz_descriptors few', got.out.decode().strip())
    # With a thread that looks at pages, and both as busy as they get.
    busy = {'HYBRID_POLICY': 'first-fit', 'HYBRID_DRAM': '4M', 'HYBRID_START': '0', 'HYBRID_PM': 'emulated', 'HYBRID_MIGRATE': 'eager',
            'HYBRID_INTERVAL': '100ms', 'HYBRID_CLASS_PERIOD': '10ms'}
    program(ctx, 'hz_descriptors', '1500', env=busy if ctx.setting.preload else {})


def setlocale(ctx):
    """Programs that ask for their language at once, in setlocale's lock: ours waits for no such lock while they wait
    for ours. Each of these took 0.6 s."""
    env = dict(STEER['tiny'], HYBRID_PM='emulated') if ctx.setting.preload else {}
    begin = time.monotonic()
    ctx.run(['/bin/bash', '-c', 'for i in {1..40}; do bash -c :; done'], env=env, label='setlocale')
    took = time.monotonic() - begin
    ctx.check(took < 12, f'40 starts of a shell took {took:.1f} s')


def remap(ctx):
    program(ctx, 'hz_remap', env=dict(BUSY, HYBRID_MMAP_MIN='4M') if ctx.setting.preload else {})


def sandbox(ctx):
    for mode in ('threads', 'one', 'strict', 'counter'):
        program(ctx, 'hz_sandbox', mode)


BUSY = {'HYBRID_POLICY': 'first-fit', 'HYBRID_DRAM': '4M', 'HYBRID_START': '0', 'HYBRID_PM': 'emulated', 'HYBRID_MIGRATE': 'eager',
        'HYBRID_INTERVAL': '20ms', 'HYBRID_MMAP_MIN': '1M', 'HYBRID_MIGRATE_INTERVAL': '40ms', 'HYBRID_MIGRATE_CORE': '100'}


def filter_moment(ctx):
    """With a report to be written in the end; then with all that the library can do at once."""
    rounds = '5' if not ctx.setting.preload else '100' if harness.LONG else '15'
    told = {'HYBRID_STATS': ctx.path('stats'), 'HYBRID_TRACE': ctx.path('trace')}
    for env in ({}, told, dict(told, **BUSY)):
        program(ctx, 'hz_filter_moment', rounds, env=env if ctx.setting.preload else {}, timeout=300)


def born_confined(ctx):
    """The filter is there before the library is; reports and messages are asked for, and none may be tried."""
    env = {'HYBRID_STATS': '1'} if ctx.setting.preload else {}
    program(ctx, 'hz_born_confined', 'alone', 'outside', env=env)
    program(ctx, 'hz_born_confined', 'threads', 'outside')


def steered(ctx):
    """The memory really lies where the setting says (a matrix of passive runs would prove nothing)."""
    report = ctx.path('report.json')
    program(ctx, 'hz_grow', '48', env={'HYBRID_STATS': report} if ctx.setting.preload else {})
    if not ctx.setting.preload:
        return
    with open(report, encoding='utf-8') as f:
        told = json.load(f)
    mib = {t: told['tiers'][t]['peak'] / 2 ** 20 for t in ('dram', 'pm')}
    kind = ctx.setting.name.split('-')[0]
    # 48 MiB of blocks and a mapping of 24; a file backend leaves mappings alone.
    least = 30
    good = {'passive': told['state'] == 'passive', 'default': told['state'] in ('passive', 'serving'),
            'dram': mib['dram'] > least and mib['pm'] < 8, 'pm': mib['pm'] > least and mib['dram'] < 30,
            'tiny': mib['pm'] > least and mib['dram'] < 12,
            # A short program may be over before the heaps are there.
            'late': told['state'] in ('serving', 'steering')}[kind]
    ctx.check(good, f'setting {ctx.setting.name}: state {told["state"]}, peaks in MiB {mib}')


def full_pm(ctx):
    """A PM of 8 MiB for 48 MiB of blocks; a DRAM of 4 MiB beside it; both for a thread storm."""
    for pm in ('emulated:8M', 'emulated:1M'):
        for extra in ({'HYBRID_POLICY': 'pm'}, {'HYBRID_POLICY': 'pm', 'HYBRID_DRAM': '4M'}, {'HYBRID_POLICY': 'first-fit', 'HYBRID_DRAM': '1M'}):
            env = dict(extra, HYBRID_START='0', HYBRID_PM=pm) if ctx.setting.preload else {}
            program(ctx, 'hz_grow', '48', env=env, timeout=90)


def full_file_system(ctx):
    """A PM directory on a file system of 8 MiB: stores must not meet SIGBUS."""
    need_root_mount(ctx)
    inner = f'mount -t tmpfs -o size=8m none {ctx.path("small")} && exec "$@"'
    os.mkdir(ctx.path('small'))
    env = {'HYBRID_POLICY': 'pm', 'HYBRID_START': '0', 'HYBRID_PM': 'file:' + ctx.path('small')} if ctx.setting.preload else {}
    ctx.expect_ours = r'PM|small|space|file:' # that the directory is full may be told
    # The wrapper runs plainly; env gives the preload to the victim alone.
    pre = {k: v for k, v in ctx.env.items() if k == 'LD_PRELOAD' or k.startswith('HYBRID_')}
    pre.update(env)
    pairs = [f'{k}={v}' for k, v in pre.items()]
    for args in (('hz_grow', '48'), ('hz_fork_memory',), ('fn_stress', '3000')):
        ctx.run(['unshare', '-m', 'sh', '-c', inner, 'sh', '/usr/bin/env', *pairs, os.path.join(ctx.bin, args[0]), *args[1:]],
                env={'LD_PRELOAD': ''}, label=args[0], timeout=90)


def need_root_mount(ctx):
    if os.getuid() != 0:
        raise Skip('mount namespaces need root')
    got = subprocess.run(['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /mnt'], check=False,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if got.returncode:
        raise Skip('this container allows no mount namespaces')


def gone_before(ctx):
    """A PM directory that is not there, is a file, or may not be entered."""
    with open(ctx.path('a-file'), 'w', encoding='ascii'):
        pass
    ctx.expect_ours = r'HYBRID_PM|file:|PM'
    for where in ('no/such/directory', 'a-file', 'x' * 300):
        env = dict(STEER['pm'], HYBRID_PM='file:' + ctx.path(where)) if ctx.setting.preload else {}
        ctx.run([os.path.join(ctx.bin, 'hz_grow'), '24'], env=env, label='hz_grow')
        if ctx.setting.preload:
            lines = lines_of_ours(ctx)
            ctx.check(len(lines) == 1 and where[:20] in lines[0], f'one line about {where[:40]} wanted: {lines}')


def lines_of_ours(ctx):
    """Lines of ours of the last run."""
    ctx.stderr[-1].seek(0)
    return harness.OUR_LINE.findall(ctx.stderr[-1].read().decode('utf-8', 'backslashreplace'))


def gone_while_running(ctx):
    os.mkdir(ctx.path('pm'))
    env = {}
    if ctx.setting.preload:
        env = dict(STEER['pm'], HYBRID_PM='file:' + ctx.path('pm'), VICTIM_REMOVE=ctx.path('pm'))
    ctx.expect_ours = r'PM|file:|director'
    program(ctx, 'hz_grow', '48', 'rm', env=env, timeout=90)


def no_shm(ctx):
    """/dev/shm read-only, and not there at all: no registry, nothing else changes."""
    need_root_mount(ctx)
    pre = [f'{k}={v}' for k, v in ctx.env.items() if k == 'LD_PRELOAD' or (k.startswith('HYBRID_') and k != 'HYBRID_REGISTRY')]
    if ctx.setting.preload:
        pre += ['HYBRID_REGISTRY=auto']
    ctx.expect_ours = r'registry|REGISTRY|shm|file:|PM'
    for how in ('mount -t tmpfs -o ro none /dev/shm', 'mount -t tmpfs -o size=4k,nr_inodes=1 none /dev/shm'):
        ctx.run(['unshare', '-m', 'sh', '-c', how + ' && exec "$@"', 'sh', '/usr/bin/env', *pre, os.path.join(ctx.bin, 'hz_grow'), '24'],
                env={'LD_PRELOAD': ''}, label='hz_grow')


def daemon(ctx):
    """With every report switched on, none may land in a file of the program's."""
    env = {'HYBRID_STATS': '1', 'HYBRID_VERBOSE': '1'} if ctx.setting.preload else {}
    ctx.expect_ours = r'.'
    program(ctx, 'hz_daemon', env=env, keep_stderr=False)
    for name in sorted(n for n in os.listdir(ctx.dir) if n.startswith('data-') or n == 'stderr-data'):
        with open(ctx.path(name), encoding='utf-8', errors='replace') as f:
            ctx.record(name, f.read())


def secure(ctx):
    """A set-uid copy, linked with the library, run by nobody: no variable of ours is obeyed."""
    if os.getuid() != 0:
        raise Skip('a set-uid copy needs root')
    linked = os.path.join(ctx.bin, 'hz_secure_linked')
    if not os.path.exists(linked):
        raise Skip('hz_secure_linked has not been built (no libhybrid target)')
    if os.statvfs(ctx.dir).f_flag & os.ST_NOSUID:
        raise Skip('the temporary folder is mounted nosuid')
    os.chmod(ctx.dir, 0o777)
    copy = ctx.path('copy')
    shutil.copy(linked, copy)
    os.chmod(copy, 0o755 | stat.S_ISUID)
    reports = ctx.path('reports')
    os.mkdir(reports, 0o777)
    os.chmod(reports, 0o777)
    env = {'LD_PRELOAD': ''}
    if ctx.setting.preload:
        env.update(HYBRID_STATS=reports + '/stats', HYBRID_REGISTRY=reports + '/registry', HYBRID_VERBOSE='1', HYBRID_STRICT='1',
                   HYBRID_DRAM='nonsense', HYBRID_POLICY='pm', HYBRID_PM='file:' + reports, HYBRID_START='0')

    def as_nobody():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if not library_readable(ctx):
        raise Skip('nobody cannot read the library where it has been built')
    ctx.run([copy], env=env, preexec_fn=as_nobody, label='copy')
    ctx.check(b'secure 1' in output_of(ctx), 'the kernel did not treat the copy as secure')
    ctx.check(os.listdir(reports) == [], f'files of ours: {os.listdir(reports)}')


def output_of(ctx):
    return ctx.observed[-2].encode()


def library_readable(ctx):
    got = subprocess.run(['cat', ctx.lib], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                         preexec_fn=lambda: (os.setgid(NOBODY), os.setuid(NOBODY)))
    return got.returncode == 0


def subreaper(ctx):
    """The daemon's second child must have ended before the folder goes."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    daemon(ctx)


def ends(ctx):
    """Bound at once as well, which is how the library learns less of itself; opened by a program that runs without it."""
    modes = ('plain', 'handler', 'signal', 'signal_exit', 'thread', 'outlive', 'early', 'early-fork', 'early_exit', 'early-exec',
             'destructor', 'destructor-exit', 'quick', 'abrupt', 'exec', 'child')
    for mode in modes:
        program(ctx, 'hz_ends', mode)
        program(ctx, 'hz_ends', mode, env={'LD_BIND_NOW': '1'})
    program(ctx, 'hz_ends', 'opened', *([ctx.lib] if ctx.setting.preload else []), env={'LD_PRELOAD': ''})


CASES = {name: simple(name) for name in (
    'fn_malloc', 'fn_calloc', 'fn_realloc', 'fn_reallocarray', 'fn_free', 'fn_aligned', 'fn_usable', 'fn_libc', 'fn_libc_names', 'fn_new',
    'fn_mmap', 'fn_mremap', 'fn_pthread', 'fn_edges', 'fn_refused', 'hz_signals', 'hz_longjmp', 'hz_exceptions', 'hz_spawn',
    'hz_exit_race', 'hz_policy', 'hz_madvise', 'hz_stacks', 'hz_reserve', 'hz_syscalls', 'hz_fork_memory', 'hz_cross_free', 'hz_copies', 'hz_alignment', 'hz_shared_child', 'hz_atfork', 'hz_fork_load', 'fn_half_malloc', 'fn_lone_malloc')}
CASES.update({
    'fn_stress': simple('fn_stress', '6000'), 'hz_exit_growth': simple('hz_exit_growth', '100'), 'hz_limits_inherited': simple('hz_limits', 'inherit'),
    'hz_signal_exit': simple('hz_signal_calls', 'exit'), 'hz_signal_fork': simple('hz_signal_calls', 'fork'),
    'hz_signal_map': simple('hz_signal_calls', 'map'), 'hz_double_free': double_free,
    'hz_fork_threads': simple('hz_fork_threads', '60'), 'hz_thread_churn': simple('hz_thread_churn', '12000'),
    'hz_cancel': cancel, 'hz_altered': altered, 'hz_unusual': unusual, 'hz_sanitized': sanitized, 'hz_memcheck': memcheck, 'hz_qemu_user': qemu_user, 'hz_limits': limits, 'hz_data_limit': data_limit, 'hz_places': places, 'hz_mlockall': mlocked, 'hz_steered': steered, 'hz_stdio': stdio, 'hz_late': late, 'hz_ends': ends, 'hz_environment': bind_now, 'hz_dlopen': dlopen, 'hz_rights': rights, 'hz_descriptors': descriptors, 'hz_sandbox': sandbox, 'hz_born_confined': born_confined, 'hz_filter_moment': filter_moment, 'hz_remap': remap, 'hz_setlocale': setlocale, 'hz_deepbind': deepbind, 'fn_own_malloc': own_malloc, 'hz_full_pm': full_pm,
    'hz_full_file_system': full_file_system, 'hz_pm_gone_before': gone_before, 'hz_pm_gone_while_running': gone_while_running,
    'hz_no_shm': no_shm, 'hz_daemon': subreaper, 'hz_secure': secure, 'hz_thread_churn_long': thread_churn_long,
})
# Cases that bring settings of their own, or are too long for all.
ONE = [Setting('library')]
# Those that mostly wait: these settings at the same time, unless all are wanted (scripts/test --long).
WAITING = ('hz_rights', 'hz_sandbox', 'hz_descriptors', 'hz_born_confined', 'hz_places')
CHOSEN = ('default', 'late-emulated', 'tiny-emulated', 'pm-shm', 'pm-capped')
OWN_SETTINGS = {'hz_atfork': [s for s in harness.all_settings() if s.name in CHOSEN], 
                'hz_unusual': [s for s in harness.all_settings() if s.name in CHOSEN],
                'hz_fork_load': [s for s in harness.all_settings() if s.name in CHOSEN],
                'hz_filter_moment': [s for s in harness.all_settings() if s.name in ('default', 'late-emulated', 'dram-emulated', 'pm-shm')],
                'hz_shared_child': [s for s in harness.all_settings() if s.name in CHOSEN],
                'fn_half_malloc': [s for s in harness.all_settings() if s.name in CHOSEN],
                'fn_lone_malloc': [s for s in harness.all_settings() if s.name in ('default', 'late-emulated', 'pm-emulated', 'tiny-shm')],
                'hz_remap': ONE, 'hz_setlocale': [s for s in harness.all_settings() if s.name == 'tiny-emulated'], 'hz_full_pm': ONE, 'hz_full_file_system': ONE, 'hz_pm_gone_before': ONE, 'hz_pm_gone_while_running': ONE, 'hz_secure': ONE,
                'hz_thread_churn_long': [s for s in harness.all_settings() if s.name in ('passive', 'pm-emulated', 'tiny-shm')]}


def settings_of(name, settings):
    chosen = OWN_SETTINGS.get(name, settings)
    if harness.LONG:
        return chosen
    if name == 'hz_thread_churn_long':
        return chosen[-1:]
    if name in WAITING:
        return [s for s in chosen if s.name in CHOSEN]
    if name in OWN_SETTINGS:
        return chosen
    return harness.some_of(settings, list(CASES).index(name))


class Case:
    def __init__(self, fn, bin_dir):
        self.fn, self.bin = fn, bin_dir

    def run(self, ctx):
        ctx.bin = self.bin
        self.fn(ctx)


def main():
    args, extra = harness.victims_arguments(__doc__, CASES)
    settings = harness.chosen_settings(args)
    verdicts = {}
    for name in list(args.names or CASES) * args.repeat:
        if name not in CASES:
            sys.exit(f'no victim {name}; there are: {" ".join(CASES)}')
        chosen = settings if args.settings else settings_of(name, settings)
        got = harness.run_case(name, Case(CASES[name], args.bin), args.lib, chosen, args.cache, extra, args.keep,
                               together=len(chosen) if name in WAITING else 1)
        verdicts[name] = max(verdicts.get(name, 0), got, key=lambda v: (v == harness.FAIL, v))
    failed = sorted(n for n, v in verdicts.items() if v == harness.FAIL)
    skipped = sorted(n for n, v in verdicts.items() if v == harness.SKIP)
    print(f'{len(verdicts) - len(failed) - len(skipped)} of {len(verdicts)} victims in order'
          + (f'; broken: {" ".join(failed)}' if failed else '') + (f'; skipped: {" ".join(skipped)}' if skipped else ''))
    return harness.FAIL if failed else harness.SKIP if len(skipped) == len(verdicts) else harness.PASS


if __name__ == '__main__':
    sys.exit(main())
