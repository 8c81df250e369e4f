#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs on the emulated machine, as the user of hybrid-emu sees them.

    test_qemu.py BUILD CASE       (CASE: a function name below, without 'case_')
"""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from harness import lies

# Instead of waiting without end: nothing here takes a tenth of it on a loaded computer.
PATIENCE_S = 600
BUILD, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
HYBRID_EMU = BUILD + '/emu/tool/hybrid-emu'
GUEST = BUILD + '/emu/test/emu_guest'
# Not a shell script that looks for one.
PYTHON = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable
PLAIN, INSTRUMENTED = BUILD + '/emu/test/emu_kernels_plain', BUILD + '/emu/test/emu_kernels'
TEAMS = BUILD + '/emu/test/emu_teams'
LIES = BUILD + '/emu/test/emu_lies_plain'
LIBHYBRID = BUILD + '/shim/libhybrid.so'
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(('HYBRID', 'LD_', 'OMP_', 'QEMU'))}


def skip(why):
    print('skipped:', why)
    sys.exit(77)


if not shutil.which('qemu-x86_64'):
    skip('no qemu-x86_64 (package qemu-user)')


def environment(settings):
    return dict(ENV, **{'HYBRID_EMU_' + k: str(v) for k, v in settings.items()})


def start(command, stdin=None, options=(), env=None, **settings):
    return subprocess.Popen([HYBRID_EMU, 'run', *options, '--', *map(str, command)], text=True,
                            env=dict(environment(settings), **(env or {})), stdin=stdin,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def running(command, **how):
    """A kernel, once its threads have begun."""
    p = start(command, env={'KERNEL_SAY': '1'}, **how)
    said = p.stderr.readline()
    assert said == 'running\n', (p.args, said)
    return p


def until(true, what):
    end = time.monotonic() + PATIENCE_S / 2
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def finish(p, want=0):
    try:
        out, err = p.communicate(timeout=PATIENCE_S)
    finally:
        if p.poll() is None:
            p.kill()
    assert p.returncode == want, (p.args, p.returncode, out, err)
    return out, err


def run(command, **how):
    return finish(start(command, **how))[0]


def native(command, **how):
    return subprocess.run(list(map(str, command)), env=ENV, text=True, check=True, timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, **how).stdout


def measured(command, program=None, **how):
    """Output and report of a command under QEMU, or of the instrumented `program` itself."""
    with tempfile.TemporaryDirectory() as d:
        if program:
            out = subprocess.run([program, *map(str, command)], text=True, check=True, timeout=PATIENCE_S,
                                 env=environment(dict(how, STATS=d + '/stats')),
                                 stdout=subprocess.PIPE).stdout
        else:
            out = run(command, STATS=d + '/stats', **how)
        with open(d + '/stats') as f:
            return out, json.loads(f.read().splitlines()[-1])


def near(what, value, want, tolerance):
    print(f'{what}: {value:.5g}, expected {want:.5g} within {tolerance:.2%}')
    assert abs(value - want) <= tolerance * want, what


def numbers(text):
    return [float(x) for x in re.findall(r'-?[0-9]+(?:\.[0-9]+)?', text)]


def machine_of(p):
    """Where the tool keeps the machine of one process."""
    return f'/dev/shm/hybrid-emu-{os.getuid()}-{p.pid}'


# --- what programs do ------------------------------------------------------------------------

def case_same():
    """Threads, locks, barriers, fork, exec, pipes, signals, longjmp: as without QEMU."""
    for part in ('threads', 'forks', 'forks_beside', 'signals'):
        got, want = run([GUEST, part]), native([GUEST, part], stderr=subprocess.DEVNULL)
        assert got == want and want, (part, got, want)


def case_status():
    """Exit status and death by a signal are the program's; nothing stays in /dev/shm. A program
    that closes its standard error before the end is reported on all the same."""
    finish(start(['sh', '-c', 'exit 3']), want=3)
    out, err = finish(start(['/bin/echo', 'hi'], options=['--stats']))
    assert out == 'hi\n' and err.startswith('pmemu[') and 'valid' in err, (out, err)
    finish(start([GUEST, 'killed']), want=-signal.SIGTERM)
    for sign in (signal.SIGKILL, signal.SIGTERM):
        p = start(['sleep', '1000000'])
        machine = machine_of(p)
        until(lambda: os.path.exists(machine), 'no machine is made')
        time.sleep(0.3)  # somewhere in its start, or in its sleep
        p.send_signal(sign)
        finish(p, want=-sign)
        until(lambda: not os.path.exists(machine), 'the machine stays in /dev/shm')


def case_errors():
    """One line that says what to do."""
    def fails(status, text, command=('true',), options=(), env=None, **settings):
        out, err = finish(start(command, options=options, env=env, **settings), want=status)
        assert out == '' and err.count('\n') == 1 and text in err, (out, err)

    fails(127, 'no such program', ['/nonexistent'])
    fails(127, 'no such program', ['no-such-program-anywhere'])
    fails(126, 'Permission denied', ['/etc/passwd'])
    fails(2, 'no option --preste', options=['--preste=cxl'])
    fails(2, 'nothing.so', options=['--preload', '/nothing.so'])
    fails(78, 'ram', options=['--preset', 'ram'])
    fails(78, 'PLACE', options=['--place', 'disk'])
    fails(125, 'qemu-user', env={'PATH': '/nonexistent'}, command=['/bin/true'])
    fails(125, 'no such program', options=['--qemu', '/nonexistent'])
    with tempfile.TemporaryDirectory() as d:
        foreign = bytearray(open('/bin/true', 'rb').read())
        foreign[18] = 0xb7  # AArch64
        for name, mode, data, text in (('foreign', 0o755, foreign, 'x86-64'),
                                       ('text', 0o755, b'hello, world', 'neither'),
                                       ('suid', 0o4755, None, 'set-user-ID')):
            path = d + '/' + name
            with open(path, 'wb') as f:
                f.write(open('/bin/true', 'rb').read() if data is None else data)
            os.chmod(path, mode)
            fails(126, text, [path])
        with open(d + '/script', 'w') as f:
            f.write('#! /bin/sh -e\necho "$0 $1"\n')
        os.chmod(d + '/script', 0o755)
        assert run([d + '/script', 'one']) == d + '/script one\n'


def case_tool():
    """presets, settings, show and help."""
    def tool(*args, status=0):
        p = subprocess.run([HYBRID_EMU, *args], text=True, env=ENV, capture_output=True)
        assert p.returncode == status, (args, p.returncode, p.stderr)
        return p.stdout or p.stderr

    assert re.search(r'optane +DRAM +\d', tool('presets'))
    assert 'HYBRID_EMU_PM_DIR=DIR' in tool('settings', 'pm_dir')
    assert 'no setting' in tool('settings', 'nonsense', status=2)
    assert '--preload' in tool('help', 'run') == tool('run', '--help')
    assert 'No such file' in tool('show', '/nonexistent', status=1)
    assert 'no command' in tool('shwo', status=2)
    with tempfile.TemporaryDirectory(dir='/dev/shm') as d:
        p = start(['sleep', '1000000'], MACHINE=d + '/m', PRESET='cxl')

        until(lambda: re.search(rf' {p.pid} sleep +1 ', subprocess.run(
            [HYBRID_EMU, 'show', d + '/m'], text=True, env=ENV, capture_output=True).stdout),
              'the tool shows no process')
        shown = tool('show', d + '/m')
        print(shown)
        assert 'machine cxl' in shown, shown
        p.kill()
        finish(p, want=-signal.SIGKILL)
        assert 'nobody' in tool('show', d + '/m')
        with open(d + '/x', 'w') as f:
            f.write('x' * 100)
        assert 'not a machine' in tool('show', d + '/x', status=1)


def case_static():
    cc = shutil.which('gcc') or shutil.which('cc')
    with tempfile.TemporaryDirectory() as d:
        with open(d + '/s.c', 'w') as f:
            f.write('#include <stdio.h>\nint main(int c, char **v) {'
                    ' printf("%s %d\\n", v[1], c); return 4; }\n')
        if not cc or subprocess.run([cc, '-static', d + '/s.c', '-o', d + '/s'],
                                    stderr=subprocess.DEVNULL).returncode:
            skip('no static libc to link with')
        out, _ = finish(start([d + '/s', 'x,y']), want=4)
        assert out == 'x,y 2\n'
        # ... and one that a shell executes
        assert run(['sh', '-c', f'{d}/s a; echo $?']) == 'a 2\n4\n'


def case_instrumented():
    """Programs linked with libpmemu are run as they are, by the tool and by what it runs."""
    native_out = native([INSTRUMENTED, 'compute', 2, 9000]).split(' virtual')[0]
    for command in ([INSTRUMENTED, 'compute', 2, 9000],
                    ['sh', '-c', f'{INSTRUMENTED} compute 2 9000; :']):
        out, err = finish(start(command, env={'PATH': '/bin'} if len(command) > 3 else {}))
        assert out.split(' virtual')[0] == native_out and err == '', (command, out, err)


def case_install():
    """From where `meson install` puts it, and from somewhere else."""
    global HYBRID_EMU
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', d],
                       check=True, stdout=subprocess.DEVNULL)
        found = {f: os.path.join(at, f) for at, _, files in os.walk(d) for f in files}
        assert 'hybrid-emu.1' in found
        HYBRID_EMU = found['hybrid-emu']
        assert run([GUEST, 'tiers']).startswith('set 0 tier 1')
        os.unlink(found['libpmemuq.so'])
        _, err = finish(start(['true']), want=125)
        assert 'libpmemuq.so' in err and err.count('\n') == 1, err


def case_side_by_side():
    """Both kinds on one machine: they take bandwidth from each other."""
    def us(p):
        return int(re.search(r'virtual_us (\d+)', finish(p)[0]).group(1))

    kernel = ['stream', 4, 8, 12000]
    with tempfile.TemporaryDirectory(dir='/dev/shm') as d:
        how = dict(MACHINE=d + '/m', PLACE='pm')
        alone = us(start([PLAIN, *kernel], **how))
        for other in (INSTRUMENTED, PLAIN):
            beside = running([other, 'stream', 4, 100000, 12000], **how)
            both = us(start([PLAIN, *kernel], **how))
            beside.kill()
            finish(beside, want=-signal.SIGKILL)
            print(f'alone {alone} us, beside {os.path.basename(other)} {both} us')
            assert both > 1.25 * alone
        near('after the kill', us(start([PLAIN, *kernel], **how)), alone, 0.05)
        assert os.listdir(d) == []


# --- time ------------------------------------------------------------------------------------

def case_sleeps():
    """A sleep or timeout has its virtual length, and is no work."""
    for line in run([GUEST, 'sleeps']).splitlines():
        name, length, *cpu = line.split()
        near(name, float(length), 100 if name == 'all' else 20, 0.005)
        if cpu:
            assert float(cpu[1]) < 2
    used = run([PYTHON, '-c', 'import resource, time; t = time.perf_counter(); '
                'x = sum(range(200000)); t = time.perf_counter() - t; '
                'u = resource.getrusage(resource.RUSAGE_SELF); '
                'print(t, u.ru_utime, time.process_time(), time.time())'])
    took, user, cpu_time, wall = numbers(used)
    print(used)
    assert 0.001 < took < user and user - 0.001 < cpu_time < 1 and abs(wall - time.time()) < 60


def case_turns():
    """Time crosses condition variables and barriers: work adds up, waiting is parallel."""
    alone, both = numbers(run([GUEST, 'turns']))
    near('two in turn', both, alone, 0.03)
    for part in ('barriers', 'processes'):
        alone, barriers = numbers(run([GUEST, part]))
        near(f'16 uneven phases of {part}', barriers, alone, 0.03)


def case_cpus():
    lines = run([GUEST, 'cpus'], CPUS=12).splitlines()
    assert lines == ['affinity 12 online 12 configured 12 cpuinfo 12', 'set 0 now 2 equal 1',
                     'runs there 1', 'beyond -1 EINVAL'], lines
    assert run(['nproc'], AFFINITY='0-3,7').strip() == '5'


def case_tiers():
    """The functions of pmemu.h, in a guest."""
    assert run([GUEST, 'tiers']) == 'set 0 tier 1 lines 1024 unmapped 0 time 1\n'


def case_lies():
    """Where pages lie, for a guest that asks."""
    lies(run([LIES], PLACE='first-touch', DRAM='16M'))
    assert run([LIES, 'limit']) == 'unlimited 1\n'


def cachegrind(command):
    with tempfile.TemporaryDirectory() as d:
        p = subprocess.run(['valgrind', '--tool=cachegrind', '--cache-sim=no',
                            f'--cachegrind-out-file={d}/out', *command], env=ENV, text=True,
                           capture_output=True, timeout=PATIENCE_S)
    return int(re.search(r'I +refs: +([0-9,]+)', p.stderr).group(1).replace(',', ''))


def case_instructions():
    """Exactly counted: cachegrind agrees on the difference of two runs (the loader and libc take
    other ways on other processors)."""
    if not shutil.which('valgrind'):
        skip('no valgrind')
    ENV['PYTHONHASHSEED'] = '0'
    loop = 'x = 0\nfor i in range(%d): x += len(str(i))'
    for command, sizes in (([PYTHON, '-c', loop], (10000, 40000)),
                           ([PLAIN, 'compute', '1', '%d'], (1000, 401000)),
                           ([PLAIN, 'stream', '1', '%d', '3000'], (1, 4)),
                           ([PLAIN, 'gups', '1', '%d', '1000'], (1000, 201000))):
        both = [[w % n if '%d' in w else w for w in command] for n in sizes]
        ours = [measured(c)[1]['instructions'] for c in both]
        theirs = [cachegrind(c) for c in both]
        near(' '.join(command[1:2]), ours[1] - ours[0], theirs[1] - theirs[0], 0.01)


# --- real programs ----------------------------------------------------------------------------

PROGRAMS = {
    'python3': [PYTHON, '-c', 'import json\n'
                'd = {str(i): [i] * 20 for i in range(2500)}\n'
                'for r in range(4): s = sum(len(v) for v in d.values())\n'
                'print(s, len(json.dumps(d)))'],
    'sort': ['sort', '--parallel=2', '-S', '8M'],
    'sqlite3': ['sqlite3', ':memory:', 'create table t(a, b);'
                'with recursive c(x) as (select 1 union all select x + 1 from c where x < 8000)'
                ' insert into t select x, x * 7919 % 8009 from c; create index i on t(b);'
                'select count(*), sum(a) from t where b < 4000;'],
}


def lines_to_sort():
    x = 1
    text = []
    for _ in range(20000):
        x = x * 1103515245 % 2147483648 + 12345
        text.append(f'{x % 1000003} line {x}')
    return '\n'.join(text) + '\n'


def program(name, d, **how):
    """(output, report) of one of PROGRAMS."""
    if not shutil.which(PROGRAMS[name][0]):
        skip('no ' + name)
    command = PROGRAMS[name]
    if name == 'sort':
        with open(d + '/in', 'w') as f:
            f.write(lines_to_sort())
        command = command + [d + '/in']
    if how.pop('plain', False):
        return native(command), None
    return measured(command, **how)


def case_programs():
    with tempfile.TemporaryDirectory() as d:
        for name in PROGRAMS:
            want = program(name, d, plain=True)[0]
            times = []
            for place in ('dram', 'pm'):
                got, report = program(name, d, PLACE=place)
                assert got == want and want, (name, got, want)
                assert report['valid'] == 'yes', report
                times.append(report['virtual_ms'])
            print(f'{name}: {times[0]:.3f} ms on DRAM, {times[1]:.3f} ms on PM')
            assert times[1] > times[0]


def case_redis():
    if not shutil.which('redis-server') or not shutil.which('redis-cli'):
        skip('no redis-server')
    times = []
    with tempfile.TemporaryDirectory() as d:
        for place in ('dram', 'pm'):
            p = start(['redis-server', '--port', 0, '--unixsocket', d + '/s', '--save', '',
                       '--appendonly', 'no', '--dir', d], PLACE=place, STATS=d + '/' + place)
            cli = ['redis-cli', '-s', d + '/s']
            try:
                until(lambda: os.path.exists(d + '/s'), 'redis-server does not listen')
                load = '\n'.join(f'SET key{i} {"v" * 500}{i}' for i in range(1500))
                subprocess.run(cli, input=load, text=True, check=True, stdout=subprocess.DEVNULL)
                load = '\n'.join(f'GET key{i * 7 % 1500}' for i in range(1500))
                got = subprocess.run(cli, input=load, text=True, check=True,
                                     stdout=subprocess.PIPE).stdout.split()
                assert got == [f'{"v" * 500}{i * 7 % 1500}' for i in range(1500)]
            finally:
                subprocess.run(cli + ['shutdown', 'nosave'], stderr=subprocess.DEVNULL)
            finish(p)
            with open(d + '/' + place) as f:
                times.append(json.load(f))
    print([t['virtual_ms'] for t in times])
    assert times[0]['llc_reads_pm'] == 0 and times[1]['llc_reads_dram'] == 0
    busy = [t['compute_ns'] + t['stall_ns'] + t['wait_ns'] for t in times]
    assert busy[1] > busy[0]


def case_libhybrid():
    """LD_PRELOAD=libhybrid.so inside the guest: its tiers are the machine's."""
    if not os.path.exists(LIBHYBRID):
        skip('no libhybrid.so in this build')
    with tempfile.TemporaryDirectory() as d:
        for name in PROGRAMS:
            want = program(name, d, plain=True)[0]
            report = {}
            for policy in ('dram', 'pm'):
                got, report[policy] = program(
                    name, d, options=['--preload', LIBHYBRID],
                    env={'HYBRID_PM': 'emulated', 'HYBRID_POLICY': policy, 'HYBRID_START': '0',
                         'HYBRID_REGISTRY': 'none', 'PYTHONMALLOC': 'malloc'},
                    # It reserves addresses for these, and QEMU looks at every page of them.
                    DRAM='1G', SET='pm_bytes=1000000000')
                assert got == want, (name, policy, got)
            t = {p: report[p]['virtual_ms'] for p in report}
            print(name, t, {p: report[p]['llc_reads_pm'] for p in report})
            assert report['dram']['llc_reads_pm'] == 0 < report['pm']['llc_reads_pm']
            assert t['pm'] > t['dram']


# --- the two front ends -----------------------------------------------------------------------

KERNELS = [('stream', 1, 2), ('stream', 8, 4), ('chase', 1, 60000), ('chase', 8, 160000),
           ('gups', 1, 60000), ('gups', 8, 200000), ('compute', 1, 300000),
           ('compute', 8, 2400000)]


def compare(name, plain, instrumented, args, less):
    """`less`: the same with next to nothing to do. The instrumented program only estimates its
    instructions: it is told how many percent of the estimate are right (HYBRID_EMU_COMPUTE)."""
    def compute_ns(a, *program):
        return measured(a, *program)[1]['compute_ns']

    def virtual(*a, **how):
        # One thread is the same each time; what several do together depends a little on who is first.
        return statistics.median(int(measured(*a, **how)[0].rsplit('virtual_us ')[1])
                                 for _ in range(1 if name.endswith(' 1') else 3))

    percent = 100 * ((compute_ns([plain, *args]) - compute_ns([plain, *less])) /
                     (compute_ns(args, instrumented) - compute_ns(less, instrumented)))
    ours = [virtual([plain, *args], PLACE=p) for p in ('dram', 'pm')]
    theirs = [virtual(args, instrumented, PLACE=p, COMPUTE=f'{percent:.3f}')
              for p in ('dram', 'pm')]
    for i, place in enumerate(('DRAM', 'PM')):
        near(f'{name} {place} us', ours[i], theirs[i], 0.02)
    near(f'{name} PM/DRAM', ours[1] / ours[0], theirs[1] / theirs[0], 0.02)


def case_agree():
    for kind, threads, rounds in KERNELS:
        args, less = ([kind, threads, r, 8192] for r in (rounds, 8 if rounds > 8 else 1))
        compare(f'{kind} {threads}', PLAIN, INSTRUMENTED, args, less)


def case_agree_openmp():
    """libgomp's barriers are futexes to QEMU and functions to the instrumented program."""
    for threads in (1, 8):
        ENV['OMP_NUM_THREADS'] = str(threads)
        compare(f'OpenMP {threads}', TEAMS + '_plain', TEAMS, [6, 8192], [1, 8192])


def case_pages():
    """The same memory is in use on both; under QEMU libc's, the loader's and the stacks' as well."""
    ENV['OMP_NUM_THREADS'] = '8'
    guest = measured([TEAMS + '_plain', 1, 8192], PLACE='pm')[1]
    instrumented = measured([1, 8192], TEAMS, PLACE='pm')[1]
    print(guest['pm_pages'], instrumented['pm_pages'])
    assert 2048 <= instrumented['pm_pages'] <= 2048 + 60, instrumented['pm_pages']
    assert instrumented['pm_pages'] <= guest['pm_pages'] <= instrumented['pm_pages'] + 250
    assert guest['dram_pages'] == instrumented['dram_pages'] == 0


globals()['case_' + CASE]()
