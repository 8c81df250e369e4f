#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl record: what its profiles say, against the emulated machine's own counts; that
they place the next run; programs that end badly; merging; --offline.

  test_record.py --ctl HYBRIDCTL --lib LIBHYBRID [--workloads DIR] [--place bench-place.so]
                 [--profiles DIR] [--sites PL_SITES] [NAME...]
"""
import argparse
import configparser
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = None
# Loops until its profile was written once, then ends by SIGKILL.
KILLED = '''
import glob, os, signal, time
keep = [bytearray(1 << 20) for _ in range(8)]
end = time.monotonic() + 300
while not os.path.exists(os.environ['HYBRID_RECORD'].replace('%p', str(os.getpid()))):
    assert time.monotonic() < end
    keep[0][::4096] = b'x' * 256
os.kill(os.getpid(), signal.SIGKILL)
'''
KEYS = ('count', 'live-bytes', 'reads', 'writes')
FORKS = '''
import os
keep = bytearray(3 << 20)
pid = os.fork()
if pid == 0:
    more = bytearray(64 << 20)
    os._exit(0)
os.waitpid(pid, 0)
'''


def environment(**settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_'))}
    env.update(HYBRID_REGISTRY='none', HYBRIDCTL_LIBRARY=ARGS.lib)
    env.update({'HYBRID_' + k: str(v) for k, v in settings.items()})
    return env


def read(path):
    ini = configparser.ConfigParser(interpolation=None, delimiters=('=',))
    ini.read(path)
    return ini


def sites(ini):
    return {name[5:]: s for name, s in ini.items() if name.startswith('site ')}


def size(text):
    m = re.fullmatch(r'(\d+)([KMGT]?)', text)
    return int(m[1]) << {'': 0, 'K': 10, 'M': 20, 'G': 30, 'T': 40}[m[2]]


def hang_ups():
    """Under nohup they are ignored, by the recorder and its program as well."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='hybrid-test-')
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def ctl(self, *words, status=0, env=None, timeout=600):
        got = subprocess.run([ARGS.ctl, *map(str, words)], env=environment(**(env or {})),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=self.dir, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(got.returncode, status, got.stdout + got.stderr)
        return got

    def emulated(self, name, *words):
        if not ARGS.workloads or not os.path.exists(ARGS.workloads + '/emu-' + name):
            self.skipTest('the emulated workloads are not built')
        return [ARGS.workloads + '/emu-' + name, *words]

    def no_message(self, profile):
        """The library has nothing to say of it."""
        got = self.ctl('run', '--check', '--pm', 'emulated', '--profile', './' + profile, '--',
                       sys.executable)
        lines = [ln for ln in got.stderr.split('\n')
                 if ln.startswith('hybridctl') and 'another program' not in ln]
        self.assertEqual(lines, [], got.stderr)


class Workload(Case):
    """kv: a table of 16 equal parts, an index, and two smaller blocks, on 8 threads."""

    def record(self, *extra):
        program = self.emulated('kv', '--emulated', '--threads', '8')
        self.ctl('record', '-o', 'kv.ini', *extra, '--', *program,
                 env={'EMU_STATS': self.path('stats'), 'EMU_PRESET': 'pram'})
        with open(self.path('stats'), encoding='utf-8') as f:
            return read(self.path('kv.ini')), json.loads(f.readlines()[-1])

    def test_facts(self):
        ini, stats = self.record()
        app, rec = ini['app'], ini['recorded']
        self.assertEqual(app['exe'], 'emu-kv')
        self.assertEqual(app['class'], 'latency')
        self.assertEqual(ini['threads']['seen'], '8')
        self.assertEqual(ini['machine']['figures'], 'pram')
        self.assertTrue(31 << 20 < size(app['footprint']) < 36 << 20, app['footprint'])
        # Virtual time on PM over that on DRAM is 2.41 for the whole program.
        self.assertTrue(2.1 < float(app['slowdown']) < 2.7, app['slowdown'])
        phases = [v.split() for k, v in ini['phases'].items()]
        self.assertEqual(phases[0][0], '0')
        self.assertIn('latency', [p[1] for p in phases])
        self.assertGreater(float(rec['known']), 99)
        # The counters open a moment after the start.
        reads, windows = sum(int(s['reads']) for s in sites(ini).values()), int(rec['reads'])
        self.assertLess(abs(reads / stats['llc_reads_dram'] - 1), 0.05, (reads, stats))
        self.assertLess(abs(windows / stats['llc_reads_dram'] - 1), 0.15)
        writes = sum(int(s['writes']) for s in sites(ini).values())
        self.assertLess(abs(writes / stats['writebacks_dram'] - 1), 0.05, (writes, stats))
        self.no_message('kv.ini')

    def test_classes(self):
        for name, cls, writes in (('stream', 'bandwidth', '1'), ('pricing', 'cpu', '0')):
            program = self.emulated(name, '--emulated', '--threads', '4')
            self.ctl('record', '-o', name + '.ini', '--', *program, env={'EMU_PRESET': 'pram'})
            app = read(self.path(name + '.ini'))['app']
            self.assertEqual((app['class'], app['write-intensive']), (cls, writes))
            self.assertEqual(float(app['slowdown']) < 1.5, cls == 'cpu', app['slowdown'])

    def test_sites(self):
        """Lines by site, against those that the machine counts for each block."""
        if not ARGS.place or not os.path.exists(ARGS.place):
            self.skipTest('bench-place.so is not built')
        ini, _ = self.record()
        env = environment(PLACE='0', PLACE_LIST=self.path('blocks'), EMU_PAGE_COUNTS=1,
                          EMU_PRESET='pram')
        subprocess.run(self.emulated('kv', '--emulated', '--threads', '8'), check=True,
                       stdout=subprocess.DEVNULL, env=dict(env, LD_PRELOAD=ARGS.place))
        counted = {}
        with open(self.path('blocks'), encoding='ascii') as f:
            for line in f:
                if not line.startswith('#'):
                    _, size_, _, r, w = map(int, line.split()[:5])
                    old = counted.get(size_, (0, 0, 0))
                    counted[size_] = (old[0] + 1, old[1] + r, old[2] + w)
        found = {}
        for s in sites(ini).values():  # all parts of the table come from one place
            self.assertEqual(s['min-size'], s['max-size'])
            sums = found.setdefault(size(s['max-size']), dict.fromkeys(KEYS, 0))
            for key in sums:
                sums[key] += size(s[key])
        self.assertEqual(sorted(found), sorted(counted))
        for n, (count, reads, writes) in counted.items():
            s = found[n]
            self.assertEqual(s['count'], count)
            self.assertEqual(s['live-bytes'], count * n)
            for got, want in ((s['reads'], reads), (s['writes'], writes)):
                # One line in 64 is seen: 4 standard deviations, and 3 % for another layout.
                error = 4 * (want / 64 + 4) ** 0.5 * 64 + 0.03 * want
                self.assertLess(abs(got - want), error, (n, got, want))

    def test_next_run(self):
        """With room for one of them, the part used most for each byte goes to DRAM."""
        ini, _ = self.record()
        per_byte = {n: (int(s['reads']) + int(s['writes'])) / size(s['live-bytes'])
                    for n, s in sites(ini).items()}
        best = max(per_byte, key=per_byte.get)
        env = environment(PROFILE='./kv.ini', PM='emulated', START='0', DRAM='4M', MIGRATE='off',
                          STATS=self.path('report.json'), EMU_PRESET='pram')
        got = subprocess.run(self.emulated('kv', '--emulated', '--threads', '8'), cwd=self.dir,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
                             env=dict(env, LD_PRELOAD=ARGS.lib))
        self.assertNotIn('profile', got.stderr)
        with open(self.path('report.json'), encoding='utf-8') as f:
            report = json.load(f)

        def tier(name):
            frames = [sites(ini)[name].get('frame%d' % i) for i in range(8)]
            for s in report['sites']:
                mine = ['%s+0x%x' % (f['build_id'], f['offset']) for f in s['frames']]
                nth = int(sites(ini)[name].get('nth', 0))
                if mine == [f for f in frames if f] and s['nth'] == nth:
                    return s['tier']
            return None

        self.assertEqual(tier(best), 'dram', per_byte)
        self.assertLessEqual(report['tiers']['dram']['peak'], 4 << 20)
        self.assertGreater(report['tiers']['pm']['peak'], 27 << 20)

    def test_recording(self):
        """Windows of counts become the facts that the library finds itself."""
        ini, _ = self.record()
        program = self.emulated('kv', '--emulated', '--threads', '8')
        env = environment(RECORD=self.path('kv.rec'), PM='emulated', START='0', POLICY='dram',
                          CLASS_PERIOD='1ms', EMU_PRESET='pram')
        subprocess.run(program, env=dict(env, LD_PRELOAD=ARGS.lib), check=True,
                       stdout=subprocess.DEVNULL)
        self.ctl('record', '--merge', '--machine', 'pram', 'kv.rec', '-o', 'facts.ini')
        facts = read(self.path('facts.ini'))
        self.assertEqual(facts['app']['class'], ini['app']['class'])
        again, first = float(facts['app']['slowdown']), float(ini['app']['slowdown'])
        self.assertLess(abs(again / first - 1), 0.1)


class Programs(Case):
    def record(self, *command, status=0, options=()):
        got = self.ctl('record', '-o', 'p.ini', *options, '--', *command, status=status)
        return got, read(self.path('p.ini'))

    def test_no_counters(self):
        code = 'b = [bytearray(300000) for _ in range(64)]; print(len(b))'
        got, ini = self.record('/usr/bin/python3', '-c', code)
        self.assertEqual(got.stdout, '64\n')
        self.assertRegex(ini['app']['exe'], r'^python3')
        self.assertGreaterEqual(size(ini['app']['footprint']), 19200000)
        best = max(sites(ini).values(), key=lambda s: size(s['bytes']))
        self.assertGreaterEqual(int(best['count']), 64)
        self.assertGreaterEqual(size(best['live-bytes']), 19200000)
        self.assertNotIn('reads', best)
        self.assertNotIn('class', ini['app'])  # hints are no class
        names = list(sites(ini))
        self.assertTrue(all(re.search(r'\+0x[0-9a-f]+(#\d+)?(~\d+)?$', n) for n in names), names)
        self.assertRegex(' '.join(names), r'Py|bytearray')
        self.no_message('p.ini')

    def test_status_and_output_are_the_programs(self):
        got, _ = self.record('sh', '-c', 'cat; echo out; echo err >&2; exit 7', status=7)
        self.assertEqual(got.stdout, 'out\n')
        self.assertIn('err\n', got.stderr)
        self.assertIn('ended by status 7', got.stderr)

    def test_killed(self):
        got, ini = self.record('/usr/bin/python3', '-c', KILLED, status=137,
                               options=('--period', '1ms'))
        self.assertIn('signal 9', got.stderr)
        self.assertGreaterEqual(int(ini['recorded']['windows']), 16)
        self.assertTrue(sites(ini))

    def test_terminated(self):
        code = 'import signal; print("ready", flush=True); signal.pause()'
        command = [ARGS.ctl, 'record', '-o', 'p.ini', '--', '/usr/bin/python3', '-c', code]
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=self.dir, env=environment())
        self.assertEqual(p.stdout.readline(), 'ready\n')
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=400)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM, err)

    def test_terminal_gone(self):
        """A hang-up reaches the program, too, and leaves a profile and no folder."""
        code = ('import signal, sys, time\nsignal.signal(signal.SIGHUP, lambda *_: sys.exit(5))\n'
                'print("ready", flush=True)\n'
                'while True:\n  time.sleep(0.1)')  # pause() could begin after the signal has come
        command = [ARGS.ctl, 'record', '-o', 'p.ini', '--', '/usr/bin/python3', '-c', code]
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=self.dir, env=dict(environment(), TMPDIR=self.dir),
                             preexec_fn=hang_ups)
        self.assertEqual(p.stdout.readline(), 'ready\n')
        p.stderr.close()  # whatever is said
        p.send_signal(signal.SIGHUP)
        p.stdout.close()
        self.assertEqual(p.wait(400), 5)
        self.assertEqual(os.listdir(self.dir), ['p.ini'])

    def test_interrupted_at_any_moment(self):
        """No traceback, nothing left, and the program does not go on alone."""
        for ms in range(0, 200, 20):
            p = subprocess.Popen([ARGS.ctl, 'record', '-o', 'p.ini', '--', 'sleep', '100'],
                                 stderr=subprocess.PIPE, text=True, cwd=self.dir,
                                 env=dict(environment(), TMPDIR=self.dir), start_new_session=True)
            while p.poll() is None and not glob.glob(self.path('hybrid-record-*')):
                time.sleep(0.001)
            time.sleep(ms / 1000)
            os.killpg(p.pid, signal.SIGINT)  # as a terminal does
            _, err = p.communicate(timeout=400)
            self.assertEqual(p.returncode, 130, err)
            self.assertNotIn('Traceback', err)
            self.assertEqual(set(os.listdir(self.dir)) - {'p.ini'}, set())

    def test_the_programs_own_options(self):
        """--merge and record's other words behind the program's name are the program's."""
        got = self.ctl('record', '-o', 'p.ini', 'sort', '--merge', '/dev/null', '/dev/null')
        self.assertIn('p.ini: ', got.stderr)
        words = 'echo --note x --tool y --library z'
        self.ctl('record', '-o', 'p.ini', '--note', 'mine', '--', *words.split())
        with open(self.path('p.ini'), encoding='utf-8') as f:
            self.assertEqual(f.read().splitlines()[:2], [
                '# Made by: hybridctl record -o p.ini -- ' + words, '# mine'])

    def test_nothing_is_promised(self):
        got = self.ctl('record', '--', 'sh', '-c', 'kill -9 $$', status=137)
        self.assertIn('ended by signal 9', got.stderr)
        self.assertIn('left no profile', got.stderr)
        self.assertNotIn('the profile has', got.stderr)

    def test_fork_without_exec(self):
        _, ini = self.record('/usr/bin/python3', '-c', FORKS)
        self.assertLess(size(ini['app']['footprint']), 40 << 20)  # the parent's

    def test_several_programs(self):
        big = '/usr/bin/python3 -c "b = bytearray(50000000)"'
        got, ini = self.record('sh', '-c', big + '; echo a | sort')
        self.assertRegex(ini['app']['exe'], '^python3')
        self.assertIn('also recorded: ', got.stderr)
        got, ini = self.record('sh', '-c', big + '; echo a | sort', options=('--exe', 'sort'))
        self.assertEqual(ini['app']['exe'], 'sort')
        self.assertEqual(got.stdout, 'a\n')
        got = self.ctl('record', '--exe', 'nothing', '--', 'sort', '/dev/null', status=125)
        self.assertIn('no such process was recorded, but sort', got.stderr)

    def test_ranks(self):
        """%p is the tool's own process, so that ranks of one run do not meet."""
        command = [ARGS.ctl, 'record', '-o', 'r.%p.ini', '--', 'sort', '/dev/null']
        ranks = [subprocess.Popen(command, cwd=self.dir, env=environment(),
                                  stderr=subprocess.DEVNULL) for _ in range(2)]
        self.assertEqual([r.wait(400) for r in ranks], [0, 0])
        files = sorted(glob.glob(self.path('r.*.ini')))
        self.assertEqual(len(files), 2)
        self.ctl('record', '--merge', '-o', 'all.ini', *files)
        all_, one = read(self.path('all.ini')), read(files[0])
        self.assertEqual(all_['recorded']['runs'], '2')
        self.assertEqual(sites(all_).keys(), sites(one).keys())
        for name, s in sites(one).items():
            self.assertEqual(sites(all_)[name]['bytes'], s['bytes'])

    def test_merge_conflicts(self):
        self.record('sort', '/dev/null')
        with open(self.path('text'), 'w', encoding='ascii') as f:
            f.write('no profile\n')
        got = self.ctl('record', '--merge', '-o', 'm.ini', 'p.ini', 'text', status=1)
        self.assertIn('no section of a profile', got.stderr)
        self.assertFalse(os.path.exists(self.path('m.ini')))
        with open(self.path('other.ini'), 'w', encoding='ascii') as f:
            f.write('[app]\nexe = other\n')
        got = self.ctl('record', '--merge', '-o', 'm.ini', 'p.ini', 'other.ini')
        self.assertIn('it is of other, the others are of sort', got.stderr)
        self.assertIn('1 of 2 files', got.stdout)
        self.ctl('record', '--merge', 'p.ini', status=2)
        self.ctl('record', '--merge', '-o', 'm.ini', '--keep', 'x', 'p.ini', status=2)
        got = self.ctl('record', '--merge', '-o', 'm.ini', '--machine', 'z80', 'p.ini', status=2)
        self.assertIn('z80', got.stderr)
        self.ctl('record', '--merge', '-o', 'm.ini', 'nowhere.ini', status=1)
        with open(self.path('bad.rec'), 'w', encoding='ascii') as f:
            f.write('hybrid-recording 1\nsource x\nw nonsense=1\n')
        got = self.ctl('record', '--merge', '-o', 'm.ini', 'p.ini', 'bad.rec', status=1)
        self.assertIn('nonsense', got.stderr)
        self.assertIn('bad.rec', got.stderr)  # which of the files

    def test_refused(self):
        touched = self.path('touched')
        for out, why in (('no/such/p.ini', 'no folder'), ('.', 'directory')):
            got = self.ctl('record', '-o', out, '--', 'touch', touched, status=125)
            self.assertIn(why, got.stderr)
            self.assertFalse(os.path.exists(touched), 'it ran although nothing could be written')
        self.ctl('record', status=2)
        self.ctl('record', '--llc', '1M', '--', 'true', status=2)
        self.ctl('record', '--keep', '101', '--', 'true', status=2)
        self.ctl('record', '--offline', '--llc', '1T', '--', 'true', status=2)
        with open(self.path('bad.ini'), 'w', encoding='ascii') as f:
            f.write('a = 1\n')
        for machine, why in (('./none.ini', 'No such file'), ('z80', 'allowed: auto, optane'),
                             ('./bad.ini', 'no machine file')):
            for words in (['--', 'touch', touched], ['--merge', '-o', 'm.ini', 'bad.ini']):
                got = self.ctl('record', '--machine', machine, *words, status=2)
                self.assertIn(why, got.stderr)
                self.assertNotIn('is used instead', got.stderr)
        self.assertFalse(os.path.exists(touched))
        for name, value in (('PM', 'none'), ('POLICY', 'off')):
            got = self.ctl('record', '--', 'touch', touched, status=125, env={name: value})
            self.assertIn('HYBRID_%s=%s is set' % (name, value), got.stderr)
        self.assertFalse(os.path.exists(touched))
        got = self.ctl('record', '--', './no-such-program', status=125)
        self.assertIn('no-such-program', got.stderr)

    def test_variable(self):
        """HYBRID_RECORD itself: one line of warning, and the program's own end."""
        env = environment(RECORD=self.path('no/such/%p.ini'), PM='emulated', START='0')
        got = subprocess.run(['/usr/bin/python3', '-c', ''], text=True,
                             env=dict(env, LD_PRELOAD=ARGS.lib), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=False)
        self.assertEqual((got.returncode, got.stdout), (0, ''))
        self.assertEqual(len(got.stderr.splitlines()), 1, got.stderr)
        self.assertIn('cannot be written (ENOENT)', got.stderr)

    def test_variable_without_standard_error(self):
        """Also of a program that closes it, and at once, not after a long run."""
        code = 'import os; os.close(2); print(1, flush=True); input()'
        os.mkdir(self.path('late'))
        for folder in 'no', 'late':
            env = environment(RECORD=self.path(folder + '/x.ini'), PM='emulated', START='0')
            p = subprocess.Popen(['/usr/bin/python3', '-c', code], text=True,
                                 env=dict(env, LD_PRELOAD=ARGS.lib), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            p.stdout.readline()
            if folder == 'no':
                self.assertIn('cannot be written (ENOENT)', p.stderr.readline())
            else:
                os.rename(self.path('late'), self.path('gone'))  # while it runs
            _, err = p.communicate('\n', timeout=600)
            self.assertEqual(p.returncode, 0)
            self.assertEqual('cannot be written (ENOENT)' in err, folder == 'late', err)


class Offline(Case):
    def test_plain_program(self):
        if not shutil.which('valgrind'):
            self.skipTest('valgrind is not installed')
        plain = ARGS.workloads and ARGS.workloads + '/wl-gups'
        if not plain or not os.path.exists(plain):
            self.skipTest('the workloads are not built')
        got = self.ctl('record', '--offline', '--llc', '128K', '-o', 'g.ini', '--', plain,
                       '--size', 1, '--rounds', 1)
        self.assertIn('runs the program twice', got.stderr)
        ini = read(self.path('g.ini'))
        self.assertEqual(ini['app']['class'], 'bandwidth')
        total = int(re.search(r'lines read (\d+)', got.stderr)[1])
        if 'known of' not in got.stderr:
            self.skipTest('no emulated machine here: the rest is not known')
        reads = sum(int(s['reads']) for s in sites(ini).values())
        # Two simulations of one program; code, stacks and libraries are read as well.
        self.assertTrue(0.8 < reads / total < 1.05, (reads, total))
        self.no_message('g.ini')

    def test_mappings(self):
        """What a program maps itself has sites with their lines, also where it unmaps it."""
        if not shutil.which('valgrind') or not ARGS.sites:
            self.skipTest('valgrind is not installed, or pl_sites not built')
        with open(self.path('in'), 'w', encoding='ascii') as f:
            f.write('e 2048\nf 4096\ndrop f\na 1024\n')
        with open(self.path('in'), encoding='ascii') as f:
            got = subprocess.run([ARGS.ctl, 'record', '--offline', '--llc', '64K', '-o', 'm.ini',
                                  '--', ARGS.sites], stdin=f, cwd=self.dir, env=environment(),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 check=False, timeout=600)
        self.assertEqual((got.returncode, got.stdout), (0, 2 * 4 * 'ok\n'), got.stderr)
        ini = read(self.path('m.ini'))
        if 'known of' not in got.stderr:
            self.skipTest('no emulated machine here: the lines are not known')
        found = {size(s['max-size']): s for s in sites(ini).values()}
        for mib in 2, 4, 1:
            lines = mib << 14
            s = found[mib << 20]
            error = 4 * (lines / 64) ** 0.5 * 64 + 0.1 * lines  # one in 64 is seen
            self.assertLess(abs(int(s['writes']) - lines), error, s)
        # In shares of the 7 MiB: the second came after 2 of them and went after 6.
        self.assertEqual([(s.get('from'), s.get('until')) for s in (found[2 << 20], found[4 << 20], found[1 << 20])],
                         [(None, None), ('0.286', '0.857'), ('0.857', None)])
        self.assertLess(float(ini['recorded']['mapped']), 1)

    def test_input_and_status(self):
        if not shutil.which('valgrind'):
            self.skipTest('valgrind is not installed')
        with open(self.path('in'), 'w', encoding='ascii') as f:
            f.write('skipped\nb\na\n')
        with open(self.path('in'), encoding='ascii') as f:
            os.lseek(f.fileno(), 8, os.SEEK_SET)  # both runs begin where the first one did
            got = subprocess.run([ARGS.ctl, 'record', '--offline', '-o', 's.ini', '--', 'sort'],
                                 stdin=f, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 cwd=self.dir, env=environment(), check=False, timeout=600)
        self.assertEqual((got.returncode, got.stdout), (0, 2 * 'a\nb\n'), got.stderr)
        self.assertNotIn('pipe', got.stderr)
        got = self.ctl('record', '--offline', '--', 'sh', '-c', 'exit 3', status=3)
        self.assertIn('nothing is written', got.stderr)


class Shipped(Case):
    """profiles/: each fits its program, and says so when it is another build."""

    def test_all(self):
        files = sorted(glob.glob(ARGS.profiles + '/*.ini')) if ARGS.profiles else []
        if not files:
            self.skipTest('no profiles')
        self.assertGreaterEqual(len(files), 6)
        for path in files:
            with self.subTest(os.path.basename(path)):
                with open(path, encoding='utf-8') as f:
                    text = f.read()
                self.assertIn('\n# Made by: hybridctl record', text)
                exe = read(path)['app']['exe']
                program = self.path(exe)
                shutil.copy('/bin/true', program)  # of that name, and another build
                got = self.ctl('run', '--check', '--pm', 'emulated', '--profile', path, '--',
                               program)
                lines = [ln for ln in got.stderr.split('\n') if ln.startswith('hybridctl')]
                self.assertEqual(len(lines), 1, got.stderr)
                self.assertIn('another build', lines[0])
                os.remove(program)
                self.assertTrue(sites(read(path)))
                for s in sites(read(path)).values():
                    self.assertIn('live-bytes', s)
                    self.assertIn('max-size', s)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument('--ctl', required=True)
    parser.add_argument('--lib', required=True)
    parser.add_argument('--workloads')
    parser.add_argument('--place')
    parser.add_argument('--profiles')
    parser.add_argument('--sites')
    parser.add_argument('names', nargs='*')
    ARGS = parser.parse_args()
    for name in ('ctl', 'lib', 'workloads', 'place', 'profiles', 'sites'):
        if getattr(ARGS, name):
            setattr(ARGS, name, os.path.abspath(getattr(ARGS, name)))
    result = unittest.main(argv=[sys.argv[0], *ARGS.names], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped and len(result.skipped) == result.testsRun else 0)


if __name__ == '__main__':
    main()
