#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A block that a profile's plan has partly on DRAM, as another comes later that is worth more there, on
the emulated machine.

    test_parts.py --ctl hybridctl --lib libhybrid.so --lines pl_lines
"""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest

ARGS = None


def run(command, words, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_'))}
    env.update({'HYBRID_' + k: v for k, v in settings.items()})
    # It ends when its standard input does.
    with subprocess.Popen([*command, ARGS.lines, '4', *words], env=env, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        out = p.stdout.read()
    if p.returncode:
        raise AssertionError(f'{command}: status {p.returncode}: {out}')
    return out


class PartsTest(unittest.TestCase):
    def eighths(self, dram_kib, *words):
        """Pages, and how many of them lie on DRAM, with a profile of the same; the profile."""
        short = {'PM': 'emulated', 'REGISTRY': 'none', 'START': '0', 'INTERVAL': '1ms', 'CLASS_PERIOD': '1ms',
                 'MIGRATE': 'off', 'EMU_PRESET': 'optane'}
        machine = {'EMU_PLACE': 'first-touch', 'EMU_DRAM': f'{dram_kib}K'}
        with tempfile.TemporaryDirectory() as d:
            run([ARGS.ctl, 'record', '-o', d + '/lines.ini', '--'], words, **short)
            out = run(['env', 'LD_PRELOAD=' + ARGS.lib], words, **short, **machine, STRICT='1',
                      PROFILE=d + '/lines.ini')
            with open(d + '/lines.ini', encoding='utf-8') as f:
                profile = f.read()
        eighths = [[int(n) for n in line.split()] for line in out.splitlines()[1:]]
        self.assertEqual(len(eighths), 8)
        return eighths, profile

    def test_each_eighth_has_its_share_of_dram(self):
        eighths, _ = self.eighths(3072, '8192', '20', '1024')
        on_dram = sum(dram for _, dram in eighths)
        # Most of the DRAM that the other one leaves, and the same everywhere, but for what stacks and the like
        # have taken of it when the last pages are touched: a sixteenth of it.
        self.assertGreater(on_dram, 0.8 * (3072 - 1024) / 4, eighths)
        for _, dram in eighths:
            self.assertLess(abs(dram / (on_dram / 8) - 1), 0.25, eighths)

    def test_the_hot_eighth_is_on_dram(self):
        eighths, profile = self.eighths(3072, '16384', '20', '2048', '5')
        self.assertIn('heat =', profile)
        pages, dram = eighths[5]
        self.assertGreater(dram, 0.95 * pages, eighths)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--ctl', required=True)
    parser.add_argument('--lib', required=True)
    parser.add_argument('--lines', required=True)
    ARGS, left = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + left, verbosity=2)
