#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The calibration in emulated.txt is right for this build.

    test_calibrate.py BUILD COMPILER OPTIMIZATION NAME ...
"""
import pathlib
import shutil
import subprocess
import sys

BUILD, COMPILER, OPTIMIZATION, *NAMES = sys.argv[1:]
if not shutil.which("valgrind"):
    print("skipped: no valgrind")
    sys.exit(77)
if not COMPILER.startswith("gcc 12.") or OPTIMIZATION != "2":
    print(f"skipped: the table is for gcc 12 -O2, this is {COMPILER} -O{OPTIMIZATION}")
    sys.exit(77)
sys.exit(subprocess.run([sys.executable, pathlib.Path(__file__).with_name("calibrate.py"),
                         "--build", BUILD, "--check", *NAMES]).returncode)
