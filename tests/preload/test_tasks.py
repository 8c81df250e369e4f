#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""OpenMP tasks of every shape, as a program's user sees it: watched or not, they compute what they
compute without the library, and the report tells of them.

  test_tasks.py --lib LIBHYBRID --tasks PL_TASKS --plugin PL_TASKS_PLUGIN --opener PL_TASKS_OPENER
                [--tool PL_TASKS_TOOL, for LLVM's runtime]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = None
SHAPES = ('dependences', 'untied', 'at-once', 'nested', 'loops', 'detached', 'kinds', 'arguments',
          'forks', 'teams', 'tiny')
# Moves in the books only, by a thread that looks every few ms. A trace: the thread is there at once.
STEER = {'HYBRID_PM': 'emulated', 'HYBRID_POLICY': 'first-fit', 'HYBRID_DRAM': '1M',
         'HYBRID_START': '0', 'HYBRID_REGISTRY': 'none', 'HYBRID_INTERVAL': '5ms',
         'HYBRID_MIGRATE': 'lazy', 'HYBRID_COUNTERS': 'off', 'HYBRID_THREADS': 'off'}
PATIENCE_S = 240


def clean():
    return {**{k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_', 'OMP_'))},
            'OMP_NUM_THREADS': '3', 'OMP_WAIT_POLICY': 'passive'}


def heard(tasks):
    return tasks['ended'] + tasks['dropped_events']


class TasksTest(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix='hybrid-tasks-'))
        self.addCleanup(shutil.rmtree, self.work)

    def run_program(self, command, **env):
        done = subprocess.run([str(c) for c in command], env={**clean(), **env}, text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ''), (command, env, done.stdout))
        return done.stdout

    def preloaded(self, command, tasks, **env):
        """Its output and its report; 'on' is the default."""
        report = self.work / 'report.json'
        report.unlink(missing_ok=True)
        out = self.run_program(command, LD_PRELOAD=ARGS.lib, HYBRID_STATS=str(report),
                               HYBRID_TRACE=str(self.work / 'trace'),
                               **({'HYBRID_TASKS': 'off'} if tasks == 'off' else {}),
                               **{'PL_TASKS_WAIT': '3', **STEER, **env})
        return out, json.loads(report.read_text(encoding='utf-8'))

    def until(self, enough, command, tasks='on', **env):
        """Output and report of the first of some runs whose report is enough: on a busy computer who
        reads what tasks tell begins late, so that each run gives it more time than the one before."""
        for ms in (300, 600, 1200, 2400, 4800):
            out, report = self.preloaded(command, tasks, **{**env, 'PL_TASKS_MS': str(ms)})
            if enough(report['tasks']):
                break
        return out, report

    def watched(self, command, **env):
        """The report of a run of which tasks were seen to end."""
        return self.until(lambda t: any(k['ran'] for k in t['types']), command, **env)[1]

    def same(self, command, watched, **env):
        plain = self.run_program(command, **env)
        for tasks in ('off', 'on'):
            with self.subTest(command=command, tasks=tasks):
                told = watched and tasks == 'on'
                out, report = self.until(lambda t, told=told: heard(t) > 0 or not told, command,
                                         tasks, **env)
                self.assertEqual(out, plain)
                self.assertEqual(heard(report['tasks']) > 0, told, report['tasks'])

    def test_every_shape_computes_the_same(self):
        for shape in SHAPES:
            self.same([ARGS.tasks, shape], True)

    def test_loops_are_counted(self):
        self.assertEqual(self.preloaded([ARGS.tasks, 'loops'], 'off')[1]['tasks']['loops'], 0)
        # Those before watching began are not.
        _, report = self.until(lambda t: t['loops'] == 18, [ARGS.tasks, 'loops'])
        self.assertEqual(report['tasks']['loops'], 18)

    def test_names_without_a_runtime(self):
        """A program that asks whether there is a runtime finds our names: they do what is asked."""
        self.assertEqual(self.run_program([ARGS.opener]), 'task none, loops none none\n')
        self.assertEqual(self.run_program([ARGS.opener], LD_PRELOAD=ARGS.lib, HYBRID_PM='none'),
                         'task 41, loops 10 to 20 10 to 20\n')

    def test_tasks_with_dependences_are_seen(self):
        self.same([ARGS.tasks, 'dependences', 400], True)
        report = self.watched([ARGS.tasks, 'dependences', 400])
        kind = report['tasks']['types'][0]
        self.assertGreater(len(kind['build_id'].strip('0')), 8)
        self.assertGreater(kind['offset'], 0)
        # Two blocks of 256 KiB; the pages at the borders belong to neither.
        self.assertTrue(any(496 <= t['bytes'] / 1024 <= 512 for t in report['tasks']['types']),
                        report['tasks'])

    def test_a_recorded_type_is_known_from_the_first_task_on(self):
        """What a profile says of a type counts until this run has measured it, in 256 tasks."""
        profile, command = self.work / 'recorded.ini', [ARGS.tasks, 'dependences', 8]
        self.watched(command, HYBRID_RECORD=str(profile), HYBRID_POLICY='dram',
                     HYBRID_DRAM='64M', HYBRID_MIGRATE='off', PL_TASKS_WAIT='2')
        text = profile.read_text(encoding='utf-8')
        # Two dependences of 256 KiB, less the pages at the borders; no instance ran on PM.
        line = r'(task\d+ = \w+\+0x\w+ 25[26]K\+25[26]K [1-9]\d*) \d+[um]s -\n'
        self.assertRegex(text, line)
        # An hour each: what a busy computer does to the tasks of this run is nothing beside it.
        profile.write_text(re.sub(line, r'\1 1us 3600s\n', text), encoding='utf-8')
        for name, least, most in (('none', -2e10, 2e10), (str(profile), 2e10, 3.6e12)):
            report = self.watched(command, HYBRID_PROFILE=name)
            saving = max(t['saving_ns'] for t in report['tasks']['types'])
            self.assertTrue(least < saving <= most, (name, report['tasks']))

    def test_tiny_tasks_are_soon_left_alone(self):
        _, report = self.until(lambda t: heard(t) < 400000, [ARGS.tasks, 'tiny', 800000])
        self.assertLess(heard(report['tasks']), 400000)

    def test_tasks_of_libraries_that_come_and_go(self):
        self.same([ARGS.tasks, 'plugin', ARGS.plugin], True)

    def test_a_runtime_that_only_a_library_has(self):
        command = [ARGS.opener, ARGS.plugin]
        plain = self.run_program(command)
        for tasks in ('off', 'on'):
            self.assertEqual(self.preloaded(command, tasks)[0], plain)
        # Passive, too: the name is ours whatever the state.
        self.assertEqual(self.run_program(command, LD_PRELOAD=ARGS.lib, HYBRID_PM='none'), plain)

    def test_a_runtime_that_stands_in_for_another(self):
        """libomp has libgomp's names, and calls its own from them."""
        runtimes = sorted(pathlib.Path('/usr/lib').glob('llvm-*/lib/libomp.so.5'))
        if not runtimes:
            self.skipTest('no libomp')
        (self.work / 'libgomp.so.1').symlink_to(runtimes[-1])
        command, env = [ARGS.opener, ARGS.plugin], {'LD_LIBRARY_PATH': str(self.work)}
        plain = self.run_program(command, **env)
        out, report = self.until(heard, command, **env)
        self.assertEqual(out, plain)
        self.assertGreater(heard(report['tasks']), 0)

    def test_a_tool_of_somebody_else_sees_all_tasks(self):
        """The runtime has one place for a tool, and it is not ours to take."""
        if not ARGS.tool:
            return  # GCC's runtime knows no tools
        for shape in ('dependences', 'untied', 'nested', 'tiny'):
            command = [ARGS.tasks, shape]
            plain = self.run_program(command, OMP_TOOL_LIBRARIES=ARGS.tool)
            self.assertRegex(plain, r'tool: [1-9]\d* tasks')
            out, report = self.until(heard, command, OMP_TOOL_LIBRARIES=ARGS.tool)
            self.assertEqual(out, plain)
            self.assertGreater(heard(report['tasks']), 0)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ('lib', 'tasks', 'plugin', 'opener'):
        parser.add_argument('--' + name, required=True)
    parser.add_argument('--tool')
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
