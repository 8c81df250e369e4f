# SPDX-License-Identifier: BSD-2-Clause
"""Runs a program plainly and under the preload in every setting, and compares.

What a case tells (ctx.record, ctx.run) in the plain run is what it must tell in
every other run; ctx.check states what must hold in all of them, the plain one
included. Standard error may hold no line of the library unless the case says so.
"""
import argparse
import concurrent.futures
import difflib
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PASS, FAIL, SKIP = 0, 1, 77
# Slow machines and sanitizers: every time limit is multiplied by this. Limits are there for what
# hangs; a computer with four times as much to do as it has CPUs is no reason to fail.
SCALE = 4 * float(os.environ.get('HYBRID_TEST_SCALE', '1'))
# scripts/test --long: every program and victim in every setting.
LONG = os.environ.get('HYBRID_TEST_LONG') == '1'
STEER = {
    'dram': {'HYBRID_POLICY': 'dram', 'HYBRID_START': '0'},
    'pm': {'HYBRID_POLICY': 'pm', 'HYBRID_START': '0'},
    'tiny': {'HYBRID_POLICY': 'first-fit', 'HYBRID_DRAM': '4M', 'HYBRID_START': '0'},
}
LD_SO_COMPLAINT = re.compile(r'ERROR: ld\.so: object .* cannot be preloaded')
OUR_LINE = re.compile(r'^.*hybrid\[.*$', re.M)


class Skip(Exception):
    """What the case needs is not here; the text says what."""


class Broken(Exception):
    """Something that must hold in every run does not."""


class Setting:
    """One way to run: environment on top of the clean one; pm_dir '@' names are made per run."""

    def __init__(self, name, env=None, preload=True, pm_on=None):
        self.name, self.env, self.preload, self.pm_on = name, dict(env or {}), preload, pm_on


def all_settings():
    """passive, untouched defaults, and {dram, pm, tiny} on each backend; one on a disk; and
    heaps that begin to serve while the program runs; and confined to one CPU."""
    out = [Setting('passive', {'HYBRID_PM': 'none'}), Setting('default')]
    out.append(Setting('late-emulated', {'HYBRID_POLICY': 'pm', 'HYBRID_START': '1M', 'HYBRID_PM': 'emulated'}))
    for name, env in STEER.items():
        out.append(Setting(name + '-emulated', dict(env, HYBRID_PM='emulated')))
    for name, env in STEER.items():
        out.append(Setting(name + '-shm', env, pm_on='/dev/shm'))
    out.append(Setting('pm-disk', STEER['pm'], pm_on=tempfile.gettempdir()))
    out.append(Setting('pm-capped', dict(STEER['pm'], HYBRID_PM='emulated', HYBRID_THREADS='1')))
    return out


# Of the settings in their order, distant ones, which differ in policy and in medium. Each setting has a quarter
# of the programs and of the victims.
SOME = (0, 4, 8)


def some_of(settings, at):
    """Of the program of this number, where not all settings are wanted (scripts/test --long)."""
    return [settings[i] for i in sorted((at + n) % len(settings) for n in SOME)]


def clean_env(home):
    """The environment of the test minus everything that could steer an allocator."""
    drop = re.compile(r'^(HYBRID_|LD_|MALLOC_|GLIBC_|MEMKIND_|JEMK_|PYTHON|PERL|NODE_|JAVA_|_JAVA|GO|OMP_|GIT_)')
    env = {k: v for k, v in os.environ.items() if not drop.match(k)}
    env.update(PATH='/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME=home, TMPDIR=home,
               LC_ALL='C.UTF-8', TZ='UTC', TERM='dumb')
    return env


def which(name):
    """A program of the plain machine: version managers' wrappers are scripts that need $HOME."""
    path = '/usr/bin:/bin:/usr/sbin:/sbin:' + os.environ.get('PATH', '')
    return shutil.which(name, path=path)


def need(*names):
    missing = [n for n in names if not which(n)]
    if missing:
        raise Skip('not installed: ' + ', '.join(missing))


def as_nobody(ctx):
    """For ctx.run and ctx.popen: programs that do not run as root, or not with their sandbox."""
    if os.getuid() != 0:
        return {}
    os.chmod(ctx.dir, 0o777)
    if ctx.pm_dir:
        os.chmod(ctx.pm_dir, 0o777)
    return {'user': 65534, 'group': 65534, 'extra_groups': []}


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Context:
    """One run of one case in one setting."""

    def __init__(self, setting, lib, workdir, cache, extra_env=None):
        self.setting, self.lib, self.dir, self.cache = setting, lib, workdir, cache
        self.observed, self.stderr, self.procs, self.notes = [], [], [], []
        self.expect_ours = None # regex of lines of ours that may appear
        self.pm_dir = None
        self.env = clean_env(workdir)
        if setting.preload:
            self.env.update(setting.env)
            if setting.pm_on:
                self.pm_dir = tempfile.mkdtemp(prefix='hybrid-pm-', dir=setting.pm_on)
                self.env['HYBRID_PM'] = 'file:' + self.pm_dir
            if setting.env:
                self.env['HYBRID_REGISTRY'] = os.path.join(workdir, 'registry')
            self.env['LD_PRELOAD'] = lib
            self.env.update(extra_env or {})

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def canonical(self, data):
        text = data.decode('utf-8', 'backslashreplace') if isinstance(data, bytes) else str(data)
        return text.replace(self.dir, '@DIR@')

    def record(self, label, value):
        self.observed.append(f'{label}: {self.canonical(value)}')

    def check(self, ok, what):
        if not ok:
            raise Broken(what)

    def popen(self, argv, env=None, cwd=None, name=None, **kw):
        """A server: its stderr goes to a file that is looked at in the end."""
        err = open(self.path(f'stderr-{len(self.stderr)}-{name or os.path.basename(argv[0])}'), 'wb+')
        self.stderr.append(err)
        kw.setdefault('stdout', err)
        kw.setdefault('stdin', subprocess.DEVNULL)
        proc = subprocess.Popen(argv, stderr=err, cwd=cwd or self.dir, start_new_session=True,
                                env=dict(self.env, **(env or {})), **kw)
        self.procs.append(proc)
        return proc

    def run(self, argv, env=None, cwd=None, stdin=None, timeout=120, record='all', label=None,
            keep_stderr=True, **kw):
        """Run to the end. record: 'all' = status, stdout and stderr are observations;
        'status' = status only; None = nothing."""
        out = tempfile.TemporaryFile(dir=self.dir)
        inp = tempfile.TemporaryFile(dir=self.dir)
        inp.write(stdin or b'')
        inp.seek(0)
        proc = self.popen(argv, env=env, cwd=cwd, stdout=out, stdin=inp, name=label, **kw)
        try:
            status = proc.wait(timeout * SCALE)
        except subprocess.TimeoutExpired:
            where = self.where_is(proc.pid)
            self.kill(proc)
            raise Broken(f'{str(argv)[:200]}: no end within {timeout * SCALE:.0f} s\n{where}')
        errf = self.stderr[-1]
        errf.seek(0)
        err = errf.read()
        out.seek(0)
        res = Result(status, out.read(), err)
        if record:
            name = label or os.path.basename(argv[0])
            self.record(f'{name} status', status)
            if record == 'all':
                self.record(f'{name} stdout', res.out)
                if keep_stderr:
                    self.record(f'{name} stderr', OUR_LINE.sub('', self.canonical(err)).strip())
        if record != 'all':
            self.notes.append(f'{argv[:4]}: status {status}\n{self.canonical(res.out)[-3000:]}'
                              f'\n{self.canonical(err)[-3000:]}')
        return res

    @staticmethod
    def where_is(pid):
        """Stacks of a process that hangs: the first thing a reader of the failure needs."""
        gdb = which('gdb')
        if not gdb:
            return ''
        try:
            got = subprocess.run([gdb, '-p', str(pid), '-batch', '-nx', '-ex', 'thread apply all bt 12'],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
                                 stdin=subprocess.DEVNULL, check=False)
            return got.stdout.decode('utf-8', 'replace')[-6000:]
        except (OSError, subprocess.TimeoutExpired):
            return ''

    @staticmethod
    def kill(proc):
        try:
            os.killpg(proc.pid, signal.SIGKILL) # our own session: nobody else's processes
        except ProcessLookupError:
            pass
        proc.wait()

    def wait_for(self, probe, what, timeout=30):
        end = time.monotonic() + timeout * SCALE
        while True:
            try:
                got = probe()
                if got:
                    return got
            except (OSError, ConnectionError):
                pass
            if time.monotonic() > end:
                raise Broken(f'{what}: did not happen within {timeout * SCALE:.0f} s')
            time.sleep(0.02)

    def connect(self, sock_path, timeout=30):
        def attempt():
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(60 * SCALE)
            try:
                s.connect(sock_path)
            except OSError:
                s.close()
                raise
            return s
        return self.wait_for(attempt, f'connection to {os.path.basename(sock_path)}', timeout)

    def stop(self, proc, sig=signal.SIGTERM, label='server', timeout=30):
        proc.send_signal(sig)
        try:
            self.record(f'{label} exit', proc.wait(timeout * SCALE))
        except subprocess.TimeoutExpired:
            raise Broken(f'{label} did not end on signal {sig}\n{self.where_is(proc.pid)}')

    def finish(self):
        for proc in self.procs:
            self.kill(proc)
        problems = []
        for f in self.stderr:
            f.seek(0)
            text = f.read().decode('utf-8', 'backslashreplace')
            f.close()
            if LD_SO_COMPLAINT.search(text):
                problems.append('the library was not loaded: ' + LD_SO_COMPLAINT.search(text).group(0))
            for line in OUR_LINE.findall(text):
                if not (self.expect_ours and re.search(self.expect_ours, line)):
                    problems.append('unexpected line of ours: ' + line)
        if self.pm_dir:
            shutil.rmtree(self.pm_dir, ignore_errors=True)
        return problems


def run_once(case, setting, lib, cache, extra_env=None, keep=False):
    """(observations, problems) of one run."""
    workdir = tempfile.mkdtemp(prefix='hyp-')
    ctx = Context(setting, lib, workdir, cache, extra_env)
    problems = []
    try:
        case.run(ctx)
    except Broken as e:
        problems.append(str(e) + ''.join('\n--- ' + n for n in ctx.notes[-3:]))
    except (OSError, subprocess.SubprocessError, EOFError) as e:
        problems.append(f'{type(e).__name__}: {e}')
    finally:
        problems += ctx.finish()
        if keep and problems:
            print(f'    kept {workdir}')
        else:
            shutil.rmtree(workdir, ignore_errors=True)
    return ctx.observed, problems


def compare(plain, got):
    a = '\n'.join(plain).splitlines()
    b = '\n'.join(got).splitlines()
    return '\n'.join(difflib.unified_diff(a, b, 'plain', 'preloaded', lineterm='', n=2))


def run_case(name, case, lib, settings, cache, extra_env=None, keep=False, out=sys.stdout, together=1):
    """Plain first, then each setting, so many at a time. PASS, FAIL or SKIP; every difference is printed."""
    os.makedirs(cache, exist_ok=True)
    try:
        if hasattr(case, 'prepare'):
            case.prepare(cache)
        begin = time.monotonic()
        plain, problems = run_once(case, Setting('plain', preload=False), lib, cache, keep=keep)
    except Skip as e:
        print(f'SKIP {name}: {e}', file=out, flush=True)
        return SKIP
    except Broken as e:
        print(f'FAIL {name}: {e}', file=out, flush=True)
        return FAIL
    if problems:
        print(f'FAIL {name}: the plain run is not in order\n' + '\n'.join(problems), file=out, flush=True)
        return FAIL
    print(f'     {name} plain {time.monotonic() - begin:.1f} s, {len(plain)} observations', file=out, flush=True)
    if os.environ.get('HYBRID_TEST_SHOW'):
        print('\n'.join(plain), file=out, flush=True)
    def judge(setting):
        said = io.StringIO()
        return judge_setting(name, case, setting, plain, lib, cache, extra_env, keep, said), said.getvalue()

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(together) as pool:
        for is_bad, said in pool.map(judge, settings):
            print(said, end='', file=out, flush=True)
            bad += is_bad
    return FAIL if bad else PASS


def judge_setting(name, case, setting, plain, lib, cache, extra_env, keep, out):
    """Does the case tell something else in this setting, or break what must hold?"""
    begin = time.monotonic()
    try:
        got, problems = run_once(case, setting, lib, cache, extra_env, keep)
    except Skip as e:
        print(f'     {name} {setting.name}: left out, {e}', file=out)
        return False
    diff = compare(plain, got)
    verdict = 'FAIL' if problems or diff else 'ok  '
    print(f'{verdict} {name} {setting.name} {time.monotonic() - begin:.1f} s', file=out)
    if problems:
        print('\n'.join('     | ' + ln for p in problems for ln in p.splitlines()), file=out)
    if diff:
        print('\n'.join('     ' + ln for ln in diff.splitlines()), file=out)
    return bool(problems or diff)


def check_library(lib):
    """The loader must find the library, else every comparison is void (and nothing would tell)."""
    got = subprocess.run(['/bin/true'], env={'LD_PRELOAD': lib, 'LD_TRACE_LOADED_OBJECTS': '1'}, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if lib.encode() not in got.stdout:
        print(f'{lib} cannot be preloaded: {(got.stdout + got.stderr).decode()}')
        sys.exit(FAIL)


def common_arguments(parser):
    parser.add_argument('--lib', required=True, help='the library to preload (path or soname)')
    parser.add_argument('--cache', default=os.path.join(tempfile.gettempdir(), 'hybrid-preload-cache'),
                        help='folder for compiled test programs')
    parser.add_argument('--settings', help='comma-separated names; default all; "peer" = no variable of ours')
    parser.add_argument('--setenv', action='append', default=[], metavar='K=V')
    parser.add_argument('--keep', action='store_true', help='keep the work folder of a failing run')
    parser.add_argument('--repeat', type=int, default=1)
    parser.add_argument('names', nargs='*')


def victims_arguments(description, cases):
    """(arguments, environment) of a command that runs compiled victims; --list ends it."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--bin', required=True, help='folder of the compiled victims')
    common_arguments(p)
    if '--list' in sys.argv:
        print('\n'.join(cases))
        sys.exit(0)
    args = p.parse_args()
    extra = prepare_arguments(args)
    args.bin = os.path.abspath(args.bin)
    check_library(args.lib)
    return args, extra


def chosen_settings(args):
    known = all_settings() + [Setting('peer')]
    if not args.settings:
        return known[:-1]
    names = args.settings.split(',')
    unknown = set(names) - {s.name for s in known}
    if unknown:
        sys.exit(f'unknown settings {sorted(unknown)}; known: {[s.name for s in known]}')
    return [s for s in known if s.name in names]


def prepare_arguments(args):
    if '/' in args.lib:
        args.lib = os.path.abspath(args.lib)
    args.cache = os.path.abspath(args.cache)
    return dict(kv.split('=', 1) for kv in args.setenv)


def built(cache, source, argv_of, suffix='', timeout=600, env=None):
    """Compile `source` (text) once; the name holds the hash of source and command."""
    import hashlib
    name, text = source
    key = hashlib.sha256((text + repr(argv_of('IN', 'OUT'))).encode()).hexdigest()[:16]
    final = os.path.join(cache, f'{name.rsplit(".", 1)[0]}-{key}{suffix}')
    if os.path.exists(final):
        return final
    work = tempfile.mkdtemp(dir=cache)
    try:
        src, out = os.path.join(work, name), os.path.join(work, 'out' + suffix)
        with open(src, 'w', encoding='utf-8') as f:
            f.write(text)
        got = subprocess.run(argv_of(src, out), cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             timeout=timeout * SCALE, env=env, check=False)
        if got.returncode:
            raise Broken(f'{name} does not compile: {got.stdout.decode("utf-8", "replace")[-2000:]}')
        os.rename(out, final) # complete or not there: tests run side by side
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final


def source_of(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs', name)
    with open(path, encoding='utf-8') as f:
        return os.path.basename(name), f.read()
