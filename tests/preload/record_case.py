# SPDX-License-Identifier: BSD-2-Clause
"""For the tests of hybridctl record: its options, a folder of the test's own, profiles read."""
import argparse
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace()


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ctl', required=True)
    parser.add_argument('--lib', required=True)
    parser.add_argument('--workloads')
    parser.add_argument('--place')
    parser.add_argument('--profiles')
    parser.add_argument('--sites')
    parser.add_argument('names', nargs='*')
    parser.parse_args(namespace=ARGS)
    for name in ('ctl', 'lib', 'workloads', 'place', 'profiles', 'sites'):
        if getattr(ARGS, name):
            setattr(ARGS, name, os.path.abspath(getattr(ARGS, name)))
    result = unittest.main(argv=[sys.argv[0], *ARGS.names], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped and len(result.skipped) == result.testsRun else 0)
