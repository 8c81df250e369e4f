# SPDX-License-Identifier: BSD-2-Clause
"""Test programs under the preload that are driven line by line: a command, the answer 'ok'."""
import argparse
import json
import os
import subprocess
import tempfile
import time
import unittest


# Instead of waiting without end: nothing here takes a tenth of it on a loaded computer.
PATIENCE_S = 400

# Installs a seccomp filter and becomes a program: NUMBER ANSWER PROGRAM [ARGUMENT]...
FILTER = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number, answer = int(sys.argv[1]), int(sys.argv[2], 16)
code = b''.join(struct.pack('HBBI', *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, answer), (6, 0, 0, 0x7fff0000)))
data = ctypes.create_string_buffer(code)
prog = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(data)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, prog, 0, 0):
    sys.exit(77)
os.execv(sys.argv[3], sys.argv[3:])
"""
KILL, REFUSE = '80000000', '00050001'
# Numbers of calls on x86-64.
USERFAULTFD, PERF_EVENT_OPEN, KEXEC_LOAD = 323, 298, 246


def filtered(number, answer):
    """What to put before a command so that it runs under this filter; None: not possible here."""
    words = ['/usr/bin/python3', '-c', FILTER, str(number), answer]
    if os.uname().machine != 'x86_64' or subprocess.run([*words, '/bin/true'],
                                                           check=False).returncode:
        return None
    return words


class Driven:
    """One such program. Settings are names without HYBRID_; `wrap`: what starts it, with the
    library."""

    def __init__(self, lib, program, work, wrap=(), **settings):
        self.report = os.path.join(work, 'report-%d.json' % time.monotonic_ns())
        env = {k: v for k, v in os.environ.items() if not k.startswith('HYBRID_')}
        env['HYBRIDCTL_LIBRARY' if wrap else 'LD_PRELOAD'] = lib
        env.update({'HYBRID_PM': 'emulated', 'HYBRID_START': '0',
                    'HYBRID_REGISTRY': os.path.join(work, 'registry'), 'HYBRID_STATS': self.report})
        env.update({'HYBRID_' + k: v for k, v in settings.items() if v is not None})
        self.proc = subprocess.Popen([*wrap, program], env=env, stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pid = self.proc.pid

    def do(self, *commands):
        for command in commands:
            self.proc.stdin.write(command + '\n')
            self.proc.stdin.flush()
            answer = self.proc.stdout.readline().strip()
            if answer != 'ok':
                self.proc.kill()  # else it holds its standard error open
                raise AssertionError('%s: %r, %s' % (command, answer, self.proc.stderr.read()))
        return self

    def end(self, confined=False):
        """Ends well and silently; its report. confined: in a sandbox, where none is written."""
        _, err = self.proc.communicate(timeout=PATIENCE_S)
        if self.proc.returncode or err:
            raise AssertionError('exit %s: %s' % (self.proc.returncode, err))
        if confined:
            if os.path.exists(self.report):
                raise AssertionError('a report in a sandbox')
            return None
        with open(self.report) as f:
            return json.load(f)


class DrivenCase(unittest.TestCase):
    """A folder of its own, and no program outlives the test. Set once: the library, hybridctl,
    the program."""
    lib = ctl = program = None

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix='hybrid-driven-')
        self.work = self.dir.name
        self.open = []

    def tearDown(self):
        for h in self.open:
            if h.proc.poll() is None:
                h.proc.kill()
            h.proc.wait()
            for f in (h.proc.stdin, h.proc.stdout, h.proc.stderr):
                f.close()
        self.dir.cleanup()

    def hold(self, **settings):
        h = Driven(self.lib, self.program, self.work, **settings)
        self.open.append(h)
        return h

    def status(self):
        """hybridctl status by pid; {} without a registry."""
        path = os.path.join(self.work, 'registry')
        if not os.path.exists(path):
            return {}
        out = subprocess.run([self.ctl, 'status', '--json', '--registry', path], check=True,
                             text=True, stdout=subprocess.PIPE).stdout
        return {p['pid']: p for p in json.loads(out)['participants']}

    def wait_for(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.1)
        self.fail('not within %d s: %s; status %s' % (PATIENCE_S, what, self.status()))


def arguments(*names):
    """--lib, --ctl and `names` (the first is the program that is driven), the rest for unittest."""
    parser = argparse.ArgumentParser()
    for name in ('lib', 'ctl') + names:
        parser.add_argument('--' + name, required=True, type=os.path.abspath)
    args, rest = parser.parse_known_args()
    DrivenCase.lib, DrivenCase.ctl = args.lib, args.ctl
    DrivenCase.program = getattr(args, names[0])
    return args, rest
