#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl tune: its rules on the kinds of curves there are, and the command on a program
that prints made-up times.

  test_tune.py HYBRIDCTL
"""
import configparser
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tune  # noqa: E402

CTL = ''
MOST = 20


def saturating(knee, drop):
    return lambda n: 1 / (n if n <= knee else knee * (1 - drop * (n - knee)))


def amdahl(serial):
    return lambda n: serial + (1 - serial) / n


def explore(curve, most=MOST):
    times = {}
    while True:
        n = tune.next_count(times, most)
        if n is None:
            return times
        assert n not in times and 1 <= n <= most, (n, times)
        times[n] = curve(n)


class Rules(unittest.TestCase):
    def test_within_five_percent_of_trying_all(self):
        curves = [saturating(k / 2, d / 100) for k in range(2, 2 * MOST + 1) for d in (0, 1, 3)]
        curves += [amdahl(s / 100) for s in (0, 1, 2, 5, 10, 30, 60, 100)]
        for i, curve in enumerate(curves):
            for most in (1, 2, 3, 7, MOST):
                times = explore(curve, most)
                best = min(curve(n) for n in range(1, most + 1))
                self.assertLess(curve(tune.choose(times)), 1.05 * best, (i, most, times))

    def test_saturated_early_needs_few_runs(self):
        self.assertLessEqual(len(explore(saturating(3, 0))), 7)
        self.assertEqual(tune.choose(explore(saturating(3, 0))), 3)

    def test_the_paper_to_the_letter(self):
        times = {n: saturating(4, 0)(n) for n in range(1, MOST + 1)}
        self.assertEqual(tune.algorithm2(times), 4)
        self.assertIn(tune.algorithm2({n: 1 / n for n in range(1, MOST + 1)}), (10, 11))

    def test_noise(self):
        self.assertFalse(tune.is_noisy([1.0]))
        self.assertFalse(tune.is_noisy([1.0, 1.04]))
        self.assertTrue(tune.is_noisy([1.0, 1.2]))
        self.assertFalse(tune.is_noisy([1.0, 1.01, 1.02, 9.0]))


# Prints the time that `threads` would take on the medium of HYBRID_POLICY; a line for each
# run goes to a file.
APP = '''
import os, sys, time
n, log = int(sys.argv[1]), sys.argv[2]
knee = 3 if os.environ['HYBRID_POLICY'] == 'pm' else 8
with open(log, 'a') as f:
    f.write('%s %d\\n' % (os.environ['HYBRID_POLICY'], n))
if os.path.exists(log + '.slow') and n == 3:
    time.sleep(1000)
if os.path.exists(log + '.fail') and n == 2:
    sys.exit('no luck')
print('work took %.3f s' % (10 / min(n, knee)))
'''


class Command(unittest.TestCase):
    def setUp(self):
        os.environ['HYBRID_PM'] = 'emulated'
        os.environ['HYBRID_REGISTRY'] = 'none'
        self.dir = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.dir.name, 'log')
        self.ini = os.path.join(self.dir.name, 'app.ini')

    def tearDown(self):
        self.dir.cleanup()

    def command(self, *options):
        return [CTL, 'tune', '--max', '10', '-o', self.ini, '--metric', 'took ([0-9.]+)', *options, '--',
                '/usr/bin/python3', '-c', APP, '{threads}', self.log]

    def run_it(self, *options):
        return subprocess.run(self.command(*options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=600)

    def runs(self):
        with open(self.log, encoding='utf-8') as f:
            return f.read().split('\n')[:-1]

    def text(self):
        with open(self.ini, encoding='utf-8') as f:
            return f.read()

    def threads(self):
        parser = configparser.ConfigParser()
        parser.read(self.ini)
        return dict(parser['threads'])

    def test_writes_the_profile(self):
        p = self.run_it()
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.threads(), {'dram': '8', 'pm': '3'})
        self.assertIn('pm: 3 threads', p.stdout)
        self.assertIn('[app]\nexe = python3\n', self.text())
        self.assertEqual(sorted(os.listdir(self.dir.name)), ['app.ini', 'app.threads.png', 'log'])

    def test_which_memory_is_pm(self):
        """--pm as of `hybridctl run`: with none nothing can be placed there."""
        p = self.run_it('--medium', 'pm', '--pm', 'none')
        self.assertNotEqual(p.returncode, 0)
        self.assertNotIn('unrecognized', p.stderr)
        p = self.run_it('--medium', 'pm', '--pm', 'emulated')
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_keeps_the_rest_of_a_profile(self):
        with open(self.ini, 'w', encoding='utf-8') as f:
            f.write('# mine\n[app]\nexe = x\n[threads]\ndram = 7\npm = 9\n[site a]\ntier = pm\n')
        p = self.run_it('--medium', 'pm')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.threads(), {'dram': '7', 'pm': '3'})
        text = self.text()
        self.assertTrue(text.startswith('# mine\n[app]\nexe = x\n[site a]\ntier = pm\n'), text)

    def test_goes_on_after_an_interruption(self):
        open(self.log + '.slow', 'w').close()
        p = subprocess.Popen(self.command('--medium', 'pm'), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 400
        while not os.path.exists(self.log) or 'pm 3' not in self.runs():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=400)
        self.assertEqual(p.returncode, 130, err)
        self.assertIn('goes on from here', err)
        self.assertIn('pm: 2 threads', out)
        os.remove(self.log + '.slow')
        before = self.runs()
        p = self.run_it('--medium', 'pm')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.threads(), {'pm': '3'})
        self.assertNotIn('pm 1', self.runs()[len(before):])

    def test_says_what_failed(self):
        open(self.log + '.fail', 'w').close()
        p = self.run_it('--medium', 'dram')
        self.assertEqual(p.returncode, 1)
        self.assertIn('exit status 1 with 2 threads on dram', p.stderr)
        self.assertIn('no luck', p.stderr)
        self.assertFalse(os.path.exists(self.ini))

    def test_without_pm_there_is_no_number_for_it(self):
        os.environ['HYBRID_PM'] = 'none'
        os.environ['HYBRID_DRAM'] = '1G'
        self.addCleanup(os.environ.pop, 'HYBRID_DRAM')
        p = self.run_it('--medium', 'pm')
        self.assertEqual(p.returncode, 1)
        self.assertIn('had nothing on PM (HYBRID_PM=none)', p.stderr)
        self.assertFalse(os.path.exists(self.ini))
        p = self.run_it('--medium', 'dram')
        self.assertEqual((p.returncode, self.threads()), (0, {'dram': '8'}), p.stderr)

    def test_openmp_and_confinement_without_a_placeholder(self):
        app = ("import os; n = len(os.sched_getaffinity(0)); assert os.environ['OMP_NUM_THREADS'] == str(n); "
               "print('took %d s' % (10 // n))")
        p = subprocess.run([CTL, 'tune', '-o', self.ini, '--metric', 'took ([0-9]+)', '--', '/usr/bin/python3', '-c', app],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
        self.assertEqual(p.returncode, 0, p.stderr)
        most = min(len(os.sched_getaffinity(0)), 10)
        best = min(n for n in range(1, most + 1) if 10 // n == 10 // most)
        self.assertEqual(self.threads(), {'dram': str(best), 'pm': str(best)})

    def test_bad_arguments(self):
        for extra, text in ((['--max', '0'], '1 to 1024'), (['--repeats', '9'], '1 to 5'),
                            (['--metric', 'x'], 'one group'), (['--metric', '('], 'metric'),
                            (['--medium', 'disk'], 'invalid choice')):
            p = subprocess.run([CTL, 'tune', *extra, '--', 'true'], stderr=subprocess.PIPE, text=True)
            self.assertEqual(p.returncode, 2, extra)
            self.assertIn(text, p.stderr)
        p = subprocess.run([CTL, 'tune'], stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, 2)


class Formats(unittest.TestCase):
    def test_a_torn_journal_is_read(self):
        with tempfile.TemporaryDirectory() as d:
            j = tune.Journal(d + '/j', 'k')
            j.add('pm', 1, 2.5)
            with open(d + '/j', 'a', encoding='utf-8') as f:
                f.write(json.dumps({'version': 1, 'key': 'other', 'medium': 'pm', 'threads': 1, 'seconds': 9}) + '\n')
                f.write('{"version": 1, "ke')
            self.assertEqual(tune.Journal(d + '/j', 'k').get('pm', 1), [2.5])


if __name__ == '__main__':
    CTL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
