#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl record: programs of every kind, also such as end badly; merging; the profiles of
profiles/. test_record_counts.py has what profiles say.

  test_record.py --ctl HYBRIDCTL --lib LIBHYBRID [--workloads DIR] [--place bench-place.so]
                 [--profiles DIR] [--sites PL_SITES] [NAME...]
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import time

from record_case import ARGS, Case, environment, main, read, sites, size

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
FORKS = '''
import os
keep = bytearray(3 << 20)
pid = os.fork()
if pid == 0:
    more = bytearray(64 << 20)
    os._exit(0)
os.waitpid(pid, 0)
'''


def hang_ups():
    """Under nohup they are ignored, by the recorder and its program as well."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


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


if __name__ == '__main__':
    main()
