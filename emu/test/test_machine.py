#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""CPUs, waits, ends and misfortunes of programs on the emulated machine.

    test_machine.py DIRECTORY CASE     (where the test programs are)
"""
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

from harness import PATIENCE_S, end, finish, lies, main, near, reports, run, running, start, virtual

DIR = sys.argv[1]
KERNELS, CPUS, OPENMP, WAITS, MISFORTUNE, LIES = (
    f'{DIR}/emu_{n}' for n in ('kernels', 'ask_cpus', 'openmp', 'waits', 'misfortune',
                           'lies'))


def cpu_answers(env=None, **settings):
    answers = {}
    for line in run([CPUS], env, **settings).splitlines():
        answers.setdefault(line.split()[0], []).append(line.split(maxsplit=1)[1])
    return answers


def case_cpu_answers():
    a = cpu_answers()
    everywhere = ','.join(str(i) for i in range(20))
    want = {'start': [everywhere, everywhere], 'counts': ['20 20 20 20 20 20'],
            'page': [str(os.sysconf('SC_PAGESIZE'))], 'getcpu': ['0 1 node 0'],
            'errors': ['-1 1 -1 1 -1 1'], 'nobody': ['-1 1'], 'pthread': ['1'], 'places': ['8'],
            'created': ['15 cpu 15'], 'attribute': ['1'], 'set': ['0'], 'get': ['0 17,19'],
            'moved': ['17,19'], 'child': ['2,3'], 'parent': ['2,3']}
    for name, lines in want.items():
        assert a[name] == lines, (name, a[name], lines)
    assert re.fullmatch('2,3 cpu [23]', a['thread'][0]), a['thread']
    a = cpu_answers(CPUS=24, AFFINITY='0-3,22')
    assert a['start'][0] == '0,1,2,3,22' and a['counts'] == ['24 24 24 24 24 5'], a
    # libgomp's own ways to bind threads.
    for env in ({'OMP_PROC_BIND': 'true'}, {'OMP_PLACES': 'cores', 'OMP_PROC_BIND': 'spread'},
                {'GOMP_CPU_AFFINITY': '4-11'}):
        assert cpu_answers(env)['places'] == ['8'], env


def case_cpu_turns():
    alone = virtual([KERNELS, 'compute', 1, 1000000])
    for threads, cpus in ((20, 20), (20, 4), (8, 1), (20, 19)):
        t = virtual([KERNELS, 'compute', threads, threads * 1000000], CPUS=cpus)
        near(f'{threads} on {cpus}', t / alone, threads / cpus, 0.02)
        t = virtual([KERNELS, 'compute', threads, threads * 1000000], AFFINITY=f'0-{cpus - 1}')
        near(f'{threads} confined to {cpus}', t / alone, threads / cpus, 0.02)
    # What is bound by memory demands the bandwidth of its CPUs, not of its threads.
    for place in ('dram', 'pm'):
        four = virtual([KERNELS, 'stream', 4, 6], PLACE=place)
        sixteen = virtual([KERNELS, 'stream', 16, 6], PLACE=place, AFFINITY='8-11')
        near(f'stream on {place}, 16 threads on 4 CPUs', sixteen, four, 0.02)
    _, (r,) = reports([KERNELS, 'compute', 2, 4000000], AFFINITY='7')
    near('waited for the CPU', r['cpu_wait_ns'], r['compute_ns'] / 2, 0.25)
    assert r['unseen_blocks'] == 0 and r['valid'] == 'yes', r


def case_cpus_of_two():
    """Processes of one machine share its CPUs fairly."""
    with tempfile.TemporaryDirectory(dir='/dev/shm') as d:
        alone = virtual([KERNELS, 'compute', 2, 20000000], MACHINE=d + '/m', CPUS=2)
        other = running([KERNELS, 'compute', 2, 10 ** 12], MACHINE=d + '/m', CPUS=2)
        near('beside as many', virtual([KERNELS, 'compute', 2, 20000000], MACHINE=d + '/m',
                                       CPUS=2), 2 * alone, 0.03)
        end(other)
        near('after a kill', virtual([KERNELS, 'compute', 2, 20000000], MACHINE=d + '/m',
                                     CPUS=2), alone, 0.03)


def case_openmp():
    tasks = {'tasks': [], 'taskwait': [], 'taskloop': []}

    def shared():
        return all(t and min(t) < 0.75 for t in tasks.values())

    for attempt in range(30):
        if attempt >= 3 and shared():
            break
        out, (r,) = reports([OPENMP])
        assert r['valid'] == 'yes', r
        assert out.splitlines()[:4] == [
            'constructs 66 order 676908 copied 4 critical 4 depends 676908',
            'tasks fib 377 taskloop 2016 group 2016 reduction 499500', 'nested 192',
            'locks 2016'], out
        t = dict((name, int(ns)) for name, ns in re.findall(r'time (\S+) (\d+)', out))
        print(t)
        near('static', t['static'], t['serial'] / 4, 0.02)
        near('dynamic', t['dynamic'], t['serial'] / 4, 0.07)  # an end of one piece in 16
        for name in ('critical', 'named', 'ordered'):
            near(name, t[name], t['serial'], 0.02)
        # Who gets a task is up to libgomp and the real computer: in the end two threads' worth at
        # least, never more than one after the other.
        for name in tasks:
            tasks[name].append(t[name] / t['serial'])
            assert 0.9 / 4 < tasks[name][-1] < 1.05, (name, tasks[name])
    assert shared(), tasks
    out = run([OPENMP], CPUS=1)
    t = dict((name, int(ns)) for name, ns in re.findall(r'time (\S+) (\d+)', out))
    near('on one CPU', t['static'], t['serial'], 0.05)  # two turns


def case_waits():
    for _ in range(3):
        out, rs = reports([WAITS])
        t = dict((name, int(us)) for name, us in re.findall(r'took (\S+) (\d+)', out))
        print(t)
        for name in ('latch', 'semaphore', 'atomic', 'future', 'sem', 'condition', 'spin',
                     'beside_sleep', 'child'):
            assert 99 <= t[name] <= 145, name  # a lookahead and a batch
        # Nobody sees who writes into the pipe: it may have worked on before we were back.
        assert 99 <= t['poll'] <= 320
        for name, us in (('sleep', 3000), ('usleep', 2000), ('wait_for', 2000),
                         ('poll_timeout', 3000)):
            near(name, t[name], us, 0.02)
        near('barrier', t['barrier'], 500, 0.1)
        assert 'canceled 1 1\nmutex free 1\n' in out, out
        assert [r['valid'] for r in rs] == ['yes', 'yes'] and len(rs) == 2, rs


def case_lies():
    """Where pages lie, for who asks."""
    lies(run([LIES], PLACE='first-touch', DRAM='16M'))
    assert run([LIES, 'limit']) == 'unlimited 1\n'


def busy_loops(n):
    return [subprocess.Popen([sys.executable, '-c', 'while 1: pass']) for _ in range(n)]


def case_spread():
    """Ratios repeat, alone and beside four busy loops, and the run knows that it is valid."""
    kinds = [('stream', 1, 3), ('stream', 8, 6), ('gups', 1, 100000), ('gups', 8, 600000),
             ('chase', 1, 100000), ('chase', 8, 400000)]
    ratios = {k: [] for k in kinds}
    load = []
    try:
        # Alone and beside the loops; with scripts/test --long twice each.
        times = 2 if os.environ.get('HYBRID_TEST_LONG') == '1' else 1
        for i in range(2 * times):
            if i == times:
                load = busy_loops(4)
            for k in kinds:
                t = []
                for place in ('dram', 'pm'):
                    out, (r,) = reports([KERNELS, *k], PLACE=place)
                    assert r['valid'] == 'yes' and 'reason' not in r, r
                    t.append(int(re.search(r'virtual_us (\d+)', out).group(1)))
                ratios[k].append(t[1] / t[0])
    finally:
        for p in load:
            p.kill()
            p.wait()
    for k, rs in ratios.items():
        print(k, [round(r, 3) for r in rs], f'{max(rs) / min(rs) - 1:.2%}')
    for k, rs in ratios.items():
        assert max(rs) < 1.02 * min(rs), k


def case_ends():
    """However a process ends, its counts are not lost, except when it is killed."""
    for how, end, status in (('exit', 'exit', 3), ('_exit', 'exit', 4), ('quick_exit', 'exit', 5),
                             ('_Exit', 'exit', 6), ('exit_group', 'exit', 7)):
        with tempfile.TemporaryDirectory() as d:
            finish(start([MISFORTUNE, how, status], STATS=d + '/s'), status)
            with open(d + '/s') as f:
                r = json.loads(f.read())
            assert r['end'] == end and r['accesses'] > 100000, (how, r)
    for how in ('execv', 'execle', 'vfork'):
        out, rs = reports([MISFORTUNE, how])
        assert out == 'again\n', (how, out)
        # With vfork it is the child's program that comes first.
        assert [r['end'] for r in rs] == {'vfork': ['exit', 'exit']}.get(how, ['exec', 'exit']), rs
        assert rs[how == 'vfork']['accesses'] > 100000, rs
    out, rs = reports([MISFORTUNE, 'exec_fails'])
    assert out == 'still here\n' and [r['end'] for r in rs] == ['exec', 'exit'], (out, rs)
    assert all(r['accesses'] > 100000 for r in rs), rs


def case_not_valid():
    """Times that can be wrong are called so."""
    out, (r,) = reports([MISFORTUNE, 'threads', 1100])
    assert out == 'sum 1100\n' and r['lost_threads'] > 50 and r['valid'] == 'no', (out, r)
    assert 'slots' in r['reason'], r
    out, (r,) = reports([MISFORTUNE, 'threads', 200])
    assert out == 'sum 200\n' and r['lost_threads'] == 0 and r['valid'] == 'yes', (out, r)
    _, (r,) = reports([MISFORTUNE, 'unseen'])
    assert r['valid'] == 'no' and 'call-out' in r['reason'] and r['lost_runs'] > 0, r
    _, err = finish(start([MISFORTUNE, 'unseen'], STATS=1))
    assert re.search(r'valid +no\n +not valid: ', err), err
    # To be stopped for a while is no fault.
    p = running([KERNELS, 'stream', 4, 100], STATS=1)
    p.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    p.send_signal(signal.SIGCONT)
    assert re.search(r'valid +yes', finish(p)[1])


def refused(text, preexec_fn=None, **settings):
    env = dict(os.environ, **{'HYBRID_EMU_' + k: str(v) for k, v in settings.items()})
    p = subprocess.run([KERNELS, 'compute', '1', '10'], env=env, text=True, timeout=PATIENCE_S,
                       capture_output=True, restore_signals=preexec_fn is None,
                       preexec_fn=preexec_fn)
    assert p.returncode == 78 and p.stdout == '' and text in p.stderr, (text, p)
    assert p.stderr.count('\n') == 1 and p.stderr.startswith('pmemu['), p.stderr


def little_space():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))


def case_refused():
    refused('ram: no such machine', PRESET='ram')
    refused('PLACES: no such setting', PLACES='pm')
    for cpus in ('0', '257', 'all', '-1', '1e3'):
        refused('from 1 to 256 CPUs', CPUS=cpus)
    for cpus in ('20', '3-1', 'x', '1,,2'):
        refused('a list of', AFFINITY=cpus)
    refused('No such file', MACHINE='/nonexistent/machine')
    with tempfile.TemporaryDirectory() as d:
        refused('File too large', preexec_fn=little_space, MACHINE=d + '/big')
        refused('Is a directory', MACHINE=d)
        os.symlink('/dev/null', d + '/link')
        refused('link', MACHINE=d + '/link')
        os.mkfifo(d + '/fifo')
        refused('version', MACHINE=d + '/fifo')
        # A machine that is there, and what can have happened to its file.
        p = running([KERNELS, 'compute', 1, 10 ** 12], MACHINE=d + '/m')
        with open(d + '/m', 'rb') as f:
            whole = f.read()
        end(p)
        for n in (1, 4096, len(whole) // 2, len(whole) - 1):
            with open(d + '/cut', 'wb') as f:
                f.write(whole[:n])
            refused('version', MACHINE=d + '/cut')
        for at in (0, 8):
            with open(d + '/other', 'wb') as f:
                f.write(whole[:at] + b'\x7f' + whole[at + 1:])
            refused('version', MACHINE=d + '/other')
        refused('other parameters', MACHINE=d + '/m', CPUS=8)
        assert virtual([KERNELS, 'compute', 1, 1000], MACHINE=d + '/m') > 0
        assert not os.path.exists(d + '/m')


def case_kills():
    """Programs on one machine are killed at every stage; the others end with the right time."""
    seed = random.randrange(10 ** 6)
    rng = random.Random(seed)
    print('seed', seed)
    args = [KERNELS, 'chase', 2, 40000, 4096]
    with tempfile.TemporaryDirectory(dir='/dev/shm') as d:
        alone = virtual(args, MACHINE=d + '/m')
        victims = []
        for i in range(100):
            kind = rng.choice([('stream', 4, 10 ** 6), ('compute', 3, 10 ** 12),
                               ('chase', 2, 10 ** 9)])
            victims.append(start([KERNELS, *kind, 2048], MACHINE=d + '/m'))
            time.sleep(rng.choice((0, 0.001, 0.005, 0.02, 0.05)))
            if i % 20 == 10:
                beside = start(args, MACHINE=d + '/m')
            if len(victims) > 2:
                end(victims.pop(rng.randrange(len(victims))))
            if i % 20 == 19:
                for v in victims:
                    end(v)
                victims = []
                out, _ = finish(beside)
                t = int(re.search(r'virtual_us (\d+)', out).group(1))
                # A chase waits for latency, which neighbours lengthen by queueing.
                print('beside killed ones', t, 'alone', alone)
                assert alone * 0.98 < t < alone * 1.6
        near('afterwards', virtual(args, MACHINE=d + '/m'), alone, 0.02)
        assert os.listdir(d) == [], os.listdir(d)


main(globals())
