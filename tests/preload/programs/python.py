# SPDX-License-Identifier: BSD-2-Clause
"""python3: threads, subprocess, multiprocessing by fork and by spawn, mmap, ctypes."""
import os

import harness

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'python_job.py')
ENV = {'PYTHONHASHSEED': '0', 'PYTHONDONTWRITEBYTECODE': '1'}


def run(ctx, env=None):
    py = harness.which('python3')
    ctx.run(['/usr/bin/python3' if os.path.exists('/usr/bin/python3') else py, JOB],
            env=dict(ENV, **(env or {})), timeout=300)
