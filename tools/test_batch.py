#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl batch: job files, the journal, and the command on jobs of all kinds.

  test_batch.py HYBRIDCTL [unittest arguments]
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + '/batch', HERE + '/report', HERE + '/../tests/preload']
import batch_journal  # noqa: E402
import batch_jobs  # noqa: E402

CTL = ''
PATIENCE = 240
ENV = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_PRELOAD'))}


# --- job files ---------------------------------------------------------------------------

class JobFiles(unittest.TestCase):
    def test_words(self):
        job, = batch_jobs.parse('''name=a class=cpu X=1 -- prog 'a  b' "c \\"d\\"" e\\ f '' # gone\n''', 'f')
        self.assertEqual(job.argv, ['prog', 'a  b', 'c "d"', 'e f', ''])
        self.assertEqual((job.name, job.options['class'], job.env), ('a', 'cpu', {'X': '1'}))

    def test_lines_go_on(self):
        jobs = batch_jobs.parse('a \\\n b\n# no \\\nc\n', 'f')
        self.assertEqual([j.argv for j in jobs], [['a', 'b'], ['c']])
        self.assertEqual([j.line for j in jobs], [1, 4])

    def test_names_and_order(self):
        jobs = batch_jobs.parse('/bin/x\n/bin/x\nname=z after=x,x-2 y\n', 'f')
        self.assertEqual([j.name for j in jobs], ['x', 'x-2', 'z'])
        self.assertEqual(jobs[2].after, [0, 1])

    def test_every_error_names_file_line_value_and_what_is_allowed(self):
        for text, says in (('class=fast x', 'f:1: class=fast: allowed is none, cpu, bandwidth or latency'),
                           ('x\nthreads=0 x', 'f:2: threads=0: allowed is a number from 1 to 4096'),
                           ('threads=4097 x', 'threads=4097: allowed'), ('dram=8Q x', 'dram=8Q: allowed is a size'),
                           ('colour=red x', "f:1: colour=: there is no such option; allowed are after, class"),
                           ('name=a x\nname=a y', 'f:2: name=a: line 1 has it already'),
                           ('after=b x\nname=b y', 'f:1: after=b: no job of that name stands before'),
                           ('name=a', 'f:1: there is no command'), ("x 'a", "f:1: a ' has no end"),
                           ('x "a', 'f:1: a " has no end'), ('x | y', "f:1: '|' is a shell's"),
                           ('x > y', "f:1: '>' is a shell's"), ('x $HOME', "f:1: '$' is a shell's"),
                           ('x "$HOME"', 'there are no variables'), ('x\\', 'f:1: a \\ at the end of the file'),
                           ('class=cpu class=cpu x', 'class= is there twice'), ('', 'f: there is no job'),
                           ('LD_PRELOAD=a.so x', 'LD_PRELOAD=a.so: hybridctl batch sets it')):
            with self.subTest(text), self.assertRaises(batch_jobs.BadJobs) as e:
                batch_jobs.parse(text, 'f')
            self.assertIn(says, str(e.exception))

    def test_all_errors_at_once(self):
        with self.assertRaises(batch_jobs.BadJobs) as e:
            batch_jobs.parse('class=x a\nb\nthreads=-1 c\n', 'f')
        self.assertEqual(len(str(e.exception).split('\n')), 2)

    def test_quoting_is_a_shells(self):
        rng = random.Random(2)
        for _ in range(500):
            words = [''.join(rng.choice('ab \'"\\$#=|\t;') for _ in range(rng.randint(0, 6))) for _ in range(3)]
            job, = batch_jobs.parse('-- x ' + ' '.join("'%s'" % w.replace("'", "'\\''") for w in words), 'f')
            self.assertEqual(job.argv[1:], words)

    def test_any_bytes_give_jobs_or_an_error(self):
        rng = random.Random(3)
        pieces = ['name=', 'a', ' ', '\n', '\\', "'", '"', '#', 'after=', ',', '=', '--', '\0', '\udcff', 'class=cpu', '\t', 'é']
        for _ in range(20000):
            text = ''.join(rng.choice(pieces) for _ in range(rng.randint(0, 20)))
            try:
                for job in batch_jobs.parse(text, 'f'):
                    self.assertTrue(job.argv and re.fullmatch(r'[A-Za-z0-9._+-]{1,40}', job.name), text)
            except batch_jobs.BadJobs as e:
                self.assertRegex(str(e), r'^f:')


class Journals(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='hybrid-batch-')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.jobs = batch_jobs.parse('a\nb\n', 'f')
        self.path = self.dir + '/journal'
        self.begin = dict(version=batch_journal.VERSION, time=1.0, jobs=batch_journal.fingerprint(self.jobs))

    def test_cut_anywhere_it_tells_what_is_whole(self):
        j = batch_journal.Journal(self.path)
        j.add('begin', **self.begin)
        j.add('start', job=0, time=1.0)
        j.add('end', job=0, time=2.0, status=0, seconds=1.0)
        j.add('start', job=1, time=2.0)
        j.close()
        with open(self.path, 'rb') as f:
            data = f.read()
        whole = data.index(b'"end"')
        whole = data.index(b'\n', whole)
        for cut in range(len(data) + 1):
            with open(self.path, 'wb') as f:
                f.write(data[:cut])
            past = batch_journal.Past(batch_journal.read(self.path), self.jobs)
            self.assertEqual(0 in past.ended, cut >= whole, cut)
            again = batch_journal.Journal(self.path)  # and what is added then is whole
            again.add('end', job=1, time=3.0, status=4)
            again.close()
            self.assertEqual(batch_journal.Past(batch_journal.read(self.path), self.jobs).ended[1]['status'], 4, cut)

    def test_one_batch_at_a_time(self):
        j = batch_journal.Journal(self.path)
        with self.assertRaises(batch_journal.Busy):
            batch_journal.Journal(self.path)
        j.close()

    def test_of_other_jobs(self):
        with self.assertRaises(batch_journal.Stranger):
            batch_journal.Past([dict(self.begin, event='begin', jobs='x')], self.jobs)

    def test_nonsense_is_passed_over(self):
        past = batch_journal.Past([{'event': 'end', 'job': 9, 'status': 0, 'time': 1}, {'event': 'end', 'job': True},
                                   {'event': 'start', 'job': 0}, {'event': 'end', 'job': 0, 'status': 'x'}], self.jobs)
        self.assertEqual((past.ended, past.started), ({}, {}))


# --- the command ----------------------------------------------------------------------------

class Command(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='hybrid-batch-')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = dict(ENV, HYBRID_PM='emulated', HYBRID_REGISTRY=self.dir + '/registry')

    def jobs(self, text):
        with open(self.dir + '/jobs', 'w', encoding='utf-8') as f:
            f.write(text)

    def batch(self, *args, **more):
        return subprocess.run([CTL, 'batch', *args, 'jobs'], cwd=self.dir, env=dict(self.env, **more), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)

    def begin(self, *args):
        p = subprocess.Popen([CTL, 'batch', *args, 'jobs'], cwd=self.dir, env=self.env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.communicate()))
        return p

    def await_file(self, name):
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.dir + '/' + name):
            self.assertLess(time.monotonic(), end, name)
            time.sleep(0.02)

    def read(self, name):
        with open(self.dir + '/' + name, encoding='utf-8') as f:
            return f.read()

    def await_gone(self, pid):
        end = time.monotonic() + PATIENCE
        while os.path.exists('/proc/%d' % pid) and not self.is_zombie(pid):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    @staticmethod
    def is_zombie(pid):
        try:
            with open('/proc/%d/stat' % pid, encoding='ascii', errors='replace') as f:
                return f.read().rpartition(') ')[2][0] == 'Z'
        except OSError:
            return True

    def test_runs_all_keeps_output_apart_and_passes_on_the_first_failure(self):
        self.jobs("name=a sh -c 'echo one; echo two >&2'\nname=b sh -c 'exit 7'\nname=c sh -c 'kill -9 $$'\n"
                  "name=d after=b true\nname=e dir=/ stdin=%s/jobs sh -c 'pwd; head -c 6'\n" % self.dir)
        p = self.batch()
        self.assertEqual(p.returncode, 7, p.stderr)
        self.assertEqual(self.read('jobs.batch/001-a.out'), 'one\n')
        self.assertEqual(self.read('jobs.batch/001-a.err'), 'two\n')
        self.assertEqual(self.read('jobs.batch/005-e.out'), '/\nname=a')
        self.assertRegex(p.stdout, r'(?m)^c +SIGKILL ')
        self.assertRegex(p.stdout, r'(?m)^d +125 +- +-$')
        left = sorted(f for f in os.listdir(self.dir + '/jobs.batch') if not re.match(r'00[1-5]-', f))
        self.assertEqual(left, ['batch.html', 'journal', 'learnt.json'])

    def test_what_is_skipped_has_no_output_of_an_earlier_batch(self):
        self.jobs("name=a sh -c '[ ! -e flag ]'\nname=b after=a echo result\n")
        self.assertRegex(self.batch().stdout, r'(?m)^b +0 .* jobs.batch/002-b.out$')
        with open(self.dir + '/flag', 'w', encoding='ascii'):
            pass
        self.assertRegex(self.batch().stdout, r'(?m)^b +125 +- +-$')
        self.assertFalse(os.path.exists(self.dir + '/jobs.batch/002-b.out'))

    def test_jobs_run_under_the_library_with_their_options(self):
        self.jobs("threads=3 class=cpu HYBRID_START=0 sh -c 'echo $OMP_NUM_THREADS $HYBRID_CLASS {threads} $HYBRID_ADMISSION; "
                  "grep -c libhybrid /proc/self/maps'\n")
        self.assertEqual(self.batch().returncode, 0)
        said = self.read('jobs.batch/001-sh.out').split()
        self.assertEqual(said[:4], ['3', 'cpu', '3', 'wait:30'])
        self.assertGreater(int(said[4]), 0)
        self.assertEqual(self.batch('--admission', 'off').returncode, 0)
        self.assertEqual(self.read('jobs.batch/001-sh.out').split()[3], 'off')

    def test_wrong_lines_start_nothing(self):
        self.jobs('touch begun\n\n/no/such/program\nprofile=./none.ini true\ndir=/no/such true\n')
        p = self.batch()
        self.assertEqual(p.returncode, 2)
        for line, says in ((3, '/no/such/program'), (4, 'none.ini'), (5, 'dir=/no/such')):
            self.assertRegex(p.stderr, r'jobs:%d: .*%s' % (line, re.escape(says)))
        self.assertFalse(os.path.exists(self.dir + '/begun') or os.path.exists(self.dir + '/jobs.batch'))

    def test_dry_run_starts_nothing_and_tells_why(self):
        self.jobs('touch begun\nprofile=./p.ini class=cpu name=known true\n')
        with open(self.dir + '/p.ini', 'w', encoding='utf-8') as f:
            f.write('[app]\nexe = true\nclass = bandwidth\nfootprint = 8M\n[recorded]\nmilliseconds = 100\nreads = 1000\n'
                    'writes = 10\n')
        p = self.batch('--dry-run')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stdout, r'touch begun\n +why: not known yet: learnt first\n')
        self.assertRegex(p.stdout, r'known from its profile: cpu')
        self.assertFalse(os.path.exists(self.dir + '/begun') or os.path.exists(self.dir + '/jobs.batch'))

    def test_so_many_at_a_time(self):
        self.jobs(''.join("name=j%d sh -c 'echo + >> log; sleep 0.3; echo - >> log'\n" % i for i in range(6)))
        self.assertEqual(self.batch('--slots', '3').returncode, 0)
        now, most = 0, 0
        for c in self.read('log').split():
            now += 1 if c == '+' else -1
            most = max(most, now)
        self.assertEqual((now, most), (0, 3))

    def test_the_second_time_the_order_is_learnt(self):
        self.jobs("name=big class=bandwidth sh -c 'echo big >> log; sleep 1'\nname=small class=cpu sh -c 'echo small >> log'\n")
        self.assertEqual(self.batch('--slots', '1').returncode, 0)
        p = self.batch('--slots', '1')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.read('log').split(), ['big', 'small', 'small', 'big'])
        self.assertIn('latency-sensitive', p.stderr)

    def test_interrupted_it_forwards_starts_nothing_and_resumes(self):
        self.jobs("name=done sh -c 'echo x >> done'\n"
                  "name=long sh -c 'trap \"echo told >> told; exit 9\" INT; touch up; while :; do sleep 0.1; done'\n"
                  "name=late sh -c 'touch late'\n")
        p = self.begin('--slots', '1')
        self.await_file('up')
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 130, err)
        self.assertIn('--resume goes on', err)
        self.assertEqual([line.split()[:2] for line in out.split('\n')[1:4]],
                         [['done', '0'], ['long', 'broken'], ['late', 'not']])
        self.assertEqual(self.read('told'), 'told\n')
        self.assertFalse(os.path.exists(self.dir + '/late'))
        again = self.batch()
        self.assertEqual(again.returncode, 2)
        self.assertIn('there is an interrupted batch', again.stderr)
        os.unlink(self.dir + '/up')
        p = self.begin('--slots', '1', '--resume')
        self.await_file('up')
        p.send_signal(signal.SIGTERM)  # the shell has no trap for it
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 143, err)
        self.assertEqual(self.read('done'), 'x\n')  # not run again

    def test_resume_of_other_jobs_says_what_goes(self):
        self.jobs('true\n')
        self.batch()
        self.jobs('echo\n')
        p = self.batch('--resume')
        self.assertEqual((p.returncode, p.stderr.count('ended')), (2, 1), p.stderr)
        self.assertEqual(self.batch().returncode, 0)

    def test_columns_stand_below_each_other(self):
        self.jobs('name=%s true\nname=b true\n' % ('a' * 40))
        lines = self.batch().stdout.split('\n')[:3]
        self.assertEqual({line.index(word) for line, word in zip(lines, ('output', 'jobs.batch', 'jobs.batch'))},
                         {lines[0].index('output')})

    def test_a_second_interrupt_kills(self):
        self.jobs("sh -c 'trap \"touch told\" INT; touch up; while :; do sleep 0.1; done'\n")
        p = self.begin()
        self.await_file('up')
        p.send_signal(signal.SIGINT)
        self.await_file('told')
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 130, err)
        self.assertIn('are killed', err)

    def test_killed_it_leaves_nothing_and_resumes(self):
        self.jobs("name=first sh -c 'echo x >> first'\nname=hard after=first sh -c 'trap \"\" TERM; echo $$ >> pids; "
                  "while [ ! -e go ]; do sleep 0.1; done; echo y >> hard'\nname=last after=hard sh -c 'echo z >> last'\n")
        p = self.begin()
        self.await_file('pids')
        time.sleep(0.3)
        p.kill()
        p.communicate()
        pid = int(self.read('pids').split()[0])
        self.assertFalse(self.is_zombie(pid))  # it ignores SIGTERM
        with open(self.dir + '/jobs.batch/journal', 'ab') as f:
            f.write(b'{"event": "end", "jo')  # torn
        again = self.begin('--resume')
        end = time.monotonic() + PATIENCE
        while len(self.read('pids').split()) < 2:
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(again.poll())
            time.sleep(0.02)
        self.await_gone(pid)
        with open(self.dir + '/go', 'w', encoding='ascii'):
            pass
        _, err = again.communicate(timeout=PATIENCE)
        self.assertEqual(again.returncode, 0, err)
        self.assertIn('hard was still running', err)
        self.assertEqual([self.read(n) for n in ('first', 'hard', 'last')], ['x\n', 'y\n', 'z\n'])
        self.assertIn('"finish"', self.read('jobs.batch/journal'))
        self.assertEqual(self.batch('--resume').returncode, 2)

    def test_what_a_shell_left_is_ended_before_its_job_runs_again(self):
        self.jobs("sh -c 'echo $$ >> pids; [ -e go ] || sleep 1000; echo x >> ran'\n")
        p = self.begin()
        self.await_file('pids')
        time.sleep(0.3)
        shell = int(self.read('pids'))
        with open('/proc/%d/task/%d/children' % (shell, shell), encoding='ascii') as f:
            child = int(f.read())
        p.kill()
        p.communicate()
        self.await_gone(shell)  # it dies with the batch, and what it waited for goes on
        self.assertFalse(self.is_zombie(child))
        with open(self.dir + '/go', 'w', encoding='ascii'):
            pass
        again = self.batch('--resume')
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn('sh was still running', again.stderr)
        self.await_gone(child)
        self.assertEqual(self.read('ran'), 'x\n')

    def test_jobs_die_with_a_killed_batch(self):
        self.jobs("sh -c 'echo $$ > pid; exec sleep 1000'\n")
        p = self.begin()
        self.await_file('pid')
        time.sleep(0.3)
        p.kill()
        p.communicate()
        self.await_gone(int(self.read('pid')))

    def test_daemons_and_vanished_programs_do_not_confuse_it(self):
        self.jobs("name=forks sh -c 'sleep 1000 & echo $! > daemon'\n"
                  "name=mk sh -c 'printf \"#!/no/such/interpreter\\n\" > prog; chmod +x prog'\nname=run after=mk ./prog\n"
                  "name=gone after=forks ./nothing\n")
        p = self.batch()
        os.kill(int(self.read('daemon')), signal.SIGKILL)
        self.assertEqual(p.returncode, 126, p.stderr)
        self.assertRegex(p.stdout, r'(?m)^forks +0 ')
        self.assertRegex(p.stdout, r'(?m)^gone +127 ')
        self.assertIn('./nothing', self.read('jobs.batch/004-gone.err'))

    def test_a_full_disk_is_said_and_the_jobs_go_on(self):
        os.mkdir(self.dir + '/small')
        script = ('mount -t tmpfs -o size=64k none small && exec "$0" batch -o small jobs')
        # The jobs' output fills the small disk before the second one starts.
        self.jobs("name=a sh -c 'yes | head -c 200000; true'\nname=b after=a sh -c 'echo x > %s/ran'\n" % self.dir
                  + 'after=b true\n' * 30)
        p = subprocess.run(['unshare', '-rm', 'sh', '-c', script, CTL], cwd=self.dir, env=self.env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        if 'unshare' in p.stderr or 'mount' in p.stderr:
            self.skipTest('no mounts here: ' + p.stderr.strip())
        self.assertIn('No space left on device; the jobs go on', p.stderr)
        self.assertEqual(self.read('ran'), 'x\n', p.stderr)

    def test_the_page_is_whole_and_tells_who_ran_beside_whom(self):
        from page import Checker
        self.jobs("name=left sh -c 'sleep 0.6'\nname=right sh -c 'sleep 0.6; exit 3'\nname=x<b>y true\n".replace('x<b>y', 'xy')
                  + "sh -c 'echo \"<b>&\"'\n")
        self.batch()
        page = self.read('jobs.batch/batch.html')
        checker = Checker(self)
        checker.feed(page)
        checker.close()
        self.assertEqual(checker.stack, [])
        self.assertIn('&lt;b&gt;&amp;', page)
        self.assertRegex(re.sub(r'<[^>]+>', ' ', page), r'left .* right \d')

    def test_no_two_at_once_in_one_folder(self):
        self.jobs("sh -c 'touch up; sleep 1000'\n")
        p = self.begin()
        self.await_file('up')
        other = self.batch('--resume')
        self.assertEqual(other.returncode, 2)
        self.assertIn('another batch is at work', other.stderr)
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=PATIENCE)

    def test_a_file_from_windows(self):
        with open(self.dir + '/jobs', 'wb') as f:
            f.write('\ufeffname=a echo é\r\n\r\n \t\r\n# c\r\nname=b echo x\\\r\n y\r\n'.encode())
        p = self.batch()
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual([self.read('jobs.batch/00%d-%s.out' % n) for n in ((1, 'a'), (2, 'b'))], ['é\n', 'x y\n'])

    def test_nobody_listens(self):
        self.jobs("name=a sh -c 'echo x'\nname=b sh -c 'exit 3'\n")
        for streams in ('>&- 2>&-', '<&- >&- 2>&-', '>/dev/full 2>/dev/full', '| true', '2>&1 | true'):
            with self.subTest(streams):
                shutil.rmtree(self.dir + '/jobs.batch', ignore_errors=True)
                p = subprocess.run(['bash', '-c', 'set -o pipefail; "$0" batch jobs ' + streams, CTL], cwd=self.dir, env=self.env,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
                self.assertEqual(p.returncode, 3, p.stderr)
                self.assertNotIn('Traceback', p.stderr)
                self.assertEqual(self.read('jobs.batch/001-a.out'), 'x\n')
                self.assertIn('"finish"', self.read('jobs.batch/journal'))
                self.assertTrue(os.path.exists(self.dir + '/jobs.batch/batch.html'))

    def test_an_interrupt_at_any_moment_has_no_traceback_and_resumes(self):
        self.jobs('sleep 0.2\nsleep 0.3\n')
        for ms in range(0, 600, 40):
            p = self.begin('--fresh')
            time.sleep(ms / 1000)
            p.send_signal(signal.SIGINT)
            _, err = p.communicate(timeout=PATIENCE)
            self.assertNotIn('Traceback', err)
            self.assertIn(p.returncode, (0, 1, 130, -signal.SIGINT))
        again = self.batch('--fresh')
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_options_name_what_is_allowed(self):
        self.jobs('true\n')
        for args, says in ((('--slots', '0'), '--slots=0: 1 to 256'), (('--alpha', '2'), '--alpha=2: 0 to 1'),
                           (('--admission', 'never'), '--admission=never: off, or wait:SECONDS'),
                           (('--resume', '--fresh'), 'exclude each other')):
            p = self.batch(*args)
            self.assertEqual(p.returncode, 2)
            self.assertIn(says, p.stderr)


if __name__ == '__main__':
    CTL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
