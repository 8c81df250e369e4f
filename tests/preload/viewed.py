# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of hybridctl top, of traces and of hybridctl report share: programs under the
library that hold memory, and the command line.

    test_NAME.py --ctl FILE --lib libhybrid.so --tools DIR [unittest arguments]
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

OPTIONS = argparse.Namespace()  # paths, from the command line
# Instead of waiting without end: nothing here takes a tenth of it on a loaded computer.
PATIENCE_S = 400
NOTHING_OF_OURS = {
    k: v
    for k, v in os.environ.items() if not k.startswith(('HYBRID', 'LD_PRELOAD'))
}
HOLD = ("import sys\nb = [bytearray(1 << 20) for _ in range(%d)]\nprint('up', flush=True)\n"
        "sys.stdin.readline()\n")


def ctl(*args, **kw):
    return subprocess.run([OPTIONS.ctl, *args], env=NOTHING_OF_OURS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S,
                          check=False, **kw)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='hybrid-view-')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.registry = self.dir + '/registry'

    def env(self, **more):
        return {
            **NOTHING_OF_OURS, 'LD_PRELOAD': OPTIONS.lib, 'HYBRID_PM': 'emulated',
            'HYBRID_START': '0', 'HYBRID_REGISTRY': self.registry, 'HYBRID_POLICY': 'first-fit',
            'HYBRID_DRAM': '16M', 'HYBRID_INTERVAL': '50ms', **more
        }

    def start(self, code, program=sys.executable, **more):
        """A program under the library, once it says that it is up."""
        return self.run_until_up([program, '-c', code], self.env(**more))

    def run_until_up(self, command, env):
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=env, cwd=self.dir)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.addCleanup(p.stdin.close)
        self.assertEqual(p.stdout.readline(), 'up\n')
        return p

    def hold(self, mib, **more):
        """One that holds memory, once the registry tells of all its PM (it publishes now and then)."""
        p = self.start(HOLD % mib, **more)
        self.until(
            lambda: any(e['pid'] == p.pid and e['pm_bytes'] >= (mib - 16) << 20 for e in json.loads(
                ctl('status', '--json', '--registry', self.registry).stdout)['participants']),
            'never told')
        return p

    def until(self, true, what):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if true():
                return
            time.sleep(0.05)
        self.fail(what)

    def ends(self, done, status, said):
        self.assertEqual(done.returncode, status, done.stdout[:500] + done.stderr)
        self.assertIn(said, done.stderr + done.stdout[:500])


def main(*more):
    """`more`: names of options with other paths."""
    p = argparse.ArgumentParser()
    for name in ('ctl', 'lib', 'tools', *more):
        p.add_argument('--' + name, required=True, type=os.path.abspath)
    _, rest = p.parse_known_args(namespace=OPTIONS)
    sys.path.insert(0, OPTIONS.tools)
    unittest.main(argv=sys.argv[:1] + rest)
