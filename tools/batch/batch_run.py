# SPDX-License-Identifier: BSD-2-Clause
"""The processes of hybridctl batch: each job is a process group of its own, whose output goes to files."""
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time

import batch_facts
from batch_order import Facts

PR_SET_PDEATHSIG = 1
PATIENCE = 5.0  # for what a killed batch has left: then SIGKILL
ADMISSION = 'HYBRID_ADMISSION'


def group_and_start(pid):
    """A process's group, and when it began, in ticks since the boot; None: there is none (any more)."""
    try:
        with open('/proc/%d/stat' % pid, 'rb') as f:
            fields = f.read().rpartition(b') ')[2].split()
    except OSError:
        return None
    return None if fields[:1] in ([b'Z'], [b'X'], []) else (int(fields[2]), int(fields[19]))


def start_time(pid):
    is_there = group_and_start(pid)
    return is_there[1] if is_there else None


def boot():
    try:
        with open('/proc/sys/kernel/random/boot_id', encoding='ascii') as f:
            return f.read().strip()
    except OSError:
        return ''


def signal_group(pid, number):
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def has_in_environment(pid, text):
    try:
        with open('/proc/%d/environ' % pid, 'rb') as f:
            return os.fsencode(text) in f.read()
    except OSError:
        return False


def is_left(pid, since, reports):
    """Does anything of the job run? A shell that was its first process ends before what it has started.
    The number may be another group's by then: what is in the environment tells."""
    if start_time(pid) == since:
        return True
    for name in os.listdir('/proc'):
        found = group_and_start(int(name)) if name.isdigit() else None
        if found and found[0] == pid and found[1] >= since and has_in_environment(int(name), reports):
            return True
    return False


def end_left_over(event, reports):
    """A job that a killed batch has left running: it is ended. True: there was one."""
    pid, since = event.get('pid'), event.get('since')
    if not isinstance(pid, int) or pid <= 1 or event.get('boot') != boot() or not isinstance(since, int):
        return False
    if not is_left(pid, since, reports):
        return False
    until = time.monotonic() + PATIENCE
    signal_group(pid, signal.SIGTERM)
    while is_left(pid, since, reports):
        if time.monotonic() > until:
            signal_group(pid, signal.SIGKILL)
        time.sleep(0.05)
    return True


class Runner:
    def __init__(self, options, folder):
        self.o, self.folder = options, os.path.abspath(folder)
        self.prctl = ctypes.CDLL(None, use_errno=True).prctl

    def path(self, job, ending):
        return os.path.join(self.folder, '%03d-%s.%s' % (job.index + 1, job.name, ending))

    def forget(self, job):
        """The output of an earlier batch: what is skipped now has none."""
        for ending in ('out', 'err'):
            try:
                os.unlink(self.path(job, ending))
            except OSError:
                pass

    def reports(self, job):
        return os.path.join(self.folder, '.reports-%03d' % (job.index + 1))

    def environment(self, job, beside):
        env = dict(os.environ)
        threads = job.options.get('threads')
        if threads:
            env.update(OMP_NUM_THREADS=threads, HYBRID_THREADS=threads)
        for name, variable in (('profile', 'HYBRID_PROFILE'), ('class', 'HYBRID_CLASS'), ('dram', 'HYBRID_DRAM'),
                               ('policy', 'HYBRID_POLICY')):
            if name in job.options:
                env[variable] = job.options[name]
        env.setdefault(ADMISSION, 'off' if beside else self.o.admission)
        env.setdefault('HYBRID_STATS', os.path.join(self.reports(job), '%p'))
        env.update(job.env)
        return env

    def command(self, job, *more):
        threads = job.options.get('threads')
        argv = [a.replace('{threads}', threads) if threads else a for a in job.argv]
        return [self.o.ctl, 'run', '--force', '--quiet', '--library', self.o.library, *more, '--', *argv]

    def check(self, job):
        """What hybridctl run finds wrong before it starts anything: a text, or None."""
        where = job.options.get('dir')
        if where is not None and not os.path.isdir(where):
            return None if job.after else 'dir=%s: there is no such directory' % where
        stdin = job.options.get('stdin')
        if stdin is not None and not job.after and not os.access(os.path.join(where or '.', stdin), os.R_OK):
            return 'stdin=%s: it cannot be read' % stdin
        p = subprocess.run(self.command(job, '--check'), env=self.environment(job, False), cwd=where,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True, errors='replace', check=False)
        if p.returncode == 0 or (p.returncode in (126, 127) and job.after):  # an earlier job may make it
            return None
        said = [t for t in p.stderr.split('\n') if t.startswith('hybridctl: ') and t != 'hybridctl: ']
        return '; '.join(t[len('hybridctl: '):] for t in said) or 'status %d of hybridctl run --check' % p.returncode

    def start(self, job, beside):
        """The process; OSError: it could not be started."""
        shutil.rmtree(self.reports(job), ignore_errors=True)  # of a batch that was killed
        os.makedirs(self.reports(job))
        parent = os.getpid()

        def child():
            os.setpgid(0, 0)
            self.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(128 + signal.SIGTERM)

        where = job.options.get('dir') or '.'
        stdin = os.path.join(where, job.options['stdin']) if 'stdin' in job.options else os.devnull
        with open(stdin, 'rb') as i, open(self.path(job, 'out'), 'wb') as o, open(self.path(job, 'err'), 'wb') as err:
            return subprocess.Popen(self.command(job), stdin=i, stdout=o, stderr=err, cwd=where,
                                    env=self.environment(job, beside), preexec_fn=child)

    def learn(self, job, seconds):
        """(Facts, seconds that it waited for admission) of a job that has ended; its reports go."""
        reports = batch_facts.read_reports(self.reports(job))
        shutil.rmtree(self.reports(job), ignore_errors=True)
        waited = max([batch_facts.number(r, 'admission', 'waited_ns') / 1e9 for r in reports] or [0.0])
        facts = batch_facts.of_reports(reports, max(0.0, seconds - waited)) or Facts(
            seconds=seconds, source='its last run', counted=False)
        cls = job.options.get('class')
        if cls in ('cpu', 'bandwidth', 'latency'):
            facts.cls = cls
        facts.pm_only = job.options.get('policy') == 'pm'
        return batch_facts.by_class(facts), waited


class Signals:
    """SIGINT, SIGTERM, SIGHUP and ends of children wake wait(); what came is in `got`."""

    def __init__(self):
        self.got = []
        self.r, self.w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or the background of a shell
                signal.signal(number, lambda n, _: self.got.append(n))
        signal.set_wakeup_fd(self.w, warn_on_full_buffer=False)

    def wait(self, seconds):
        import select
        select.select([self.r], [], [], seconds)
        try:
            while os.read(self.r, 4096):
                pass
        except BlockingIOError:
            pass


class Progress:
    """One line that changes on a terminal; elsewhere a line for each thing that happens."""

    def __init__(self, quiet):
        self.tty = sys.stderr.isatty() and not quiet
        self.quiet = quiet

    def say(self, text):
        if not self.quiet:
            self._write(('\r\033[K' if self.tty else '') + text + '\n')

    def show(self, text):
        if self.tty:
            width = shutil.get_terminal_size().columns - 1
            self._write('\r\033[K' + text[:width])

    def clear(self):
        if self.tty:
            self._write('\r\033[K')

    @staticmethod
    def _write(text):
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:  # a terminal that is gone: the jobs go on
            pass
