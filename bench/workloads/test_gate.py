#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A group of programs at a gate: they begin together, in virtual time where it is emulated,
nobody is held up by one that is killed, and mistakes are told.

    test_gate.py FOLDER emulated|real      (FOLDER: where the workloads are built)
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

FOLDER, KIND = pathlib.Path(sys.argv[1]), sys.argv[2]
PREFIX = "emu-" if KIND == "emulated" else "wl-"
ENV = {k: v for k, v in os.environ.items() if not k.startswith("HYBRID_EMU")}


class Group:
    """Programs on one machine and at one gate, in a folder of their own."""

    def __init__(self, count):
        self.count = count
        # Shared memory if there is: the machine is written to all the time.
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.TemporaryDirectory(dir=shared)
        self.gate = pathlib.Path(self.folder.name) / "a,gate"
        self.machine = pathlib.Path(self.folder.name) / "machine"
        self.env = dict(ENV, HYBRID_EMU_MACHINE=str(self.machine))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def start(self, name, *args):
        return subprocess.Popen([FOLDER / (PREFIX + name), "--gate", f"{self.gate},{self.count}",
                                 "--time", "--size", "2", *map(str, args)], env=self.env,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def word(self, index):
        return struct.unpack_from("Q", self.gate.read_bytes(), 8 * index)[0]

    def wait_for(self, index, value):
        """Word 0: arrived, 2: finished."""
        end = time.time() + 400
        while not self.gate.exists() or len(self.gate.read_bytes()) < 24 or \
                self.word(index) < value:
            assert time.time() < end, (index, value)
            time.sleep(0.01)


def finish(program):
    out, err = program.communicate(timeout=600)
    assert program.returncode == 0 and " ok\n" in out and not err, (program.args, out, err)
    begin, end = map(int, re.search(r"begin_ns=(\d+) end_ns=(\d+)", out).groups())
    return begin, end


def test_together():
    """However late one is started, and whatever the others would have done meanwhile."""
    with Group(3) as group:
        programs = [group.start("stream", "--threads", 4)]
        group.wait_for(0, 1)
        time.sleep(0.3)
        programs.append(group.start("pricing", "--threads", 2))
        group.wait_for(0, 2)
        time.sleep(0.3)
        programs.append(group.start("chase", "--rounds", 4))
        spans = [finish(program) for program in programs]
        begins = [begin for begin, _ in spans]
        print("begin", begins, "length", [end - begin for begin, end in spans])
        if KIND == "emulated":
            # Within what threads of the machine may run apart (20 us), and no real time in it.
            assert max(begins) - min(begins) <= 20000, begins
            assert not group.machine.exists()
        # Really together: all have begun before the first has ended its waiting for the gate.
        assert group.word(0) == group.word(1) == group.word(2) == 3


def test_killed():
    """At the gate, at work, and before it comes: the others end."""
    for at_work in (False, True):
        with Group(2) as group:
            victim = group.start("pricing", "--rounds", 1000000)
            group.wait_for(0, 1)
            if at_work:
                other = group.start("chase")
                group.wait_for(2, 1)
                victim.kill()
            else:
                victim.kill()
                other = group.start("chase")
            finish(other)
            victim.communicate()


def test_given_up():
    """The runner knows that one will never come."""
    with Group(2) as group:
        program = group.start("chase")
        group.wait_for(0, 1)
        assert program.poll() is None
        with open(group.gate, "r+b") as file:
            file.seek(8)
            file.write(struct.pack("Q", 1))
        finish(program)


def test_mistakes():
    with Group(1) as group:
        finish(group.start("chase"))
        late = group.start("chase")
        _, err = late.communicate(timeout=400)
        assert late.returncode == 1 and "come already" in err and err.count("\n") == 1, err
        for value, status, word in (("x", 2, "--gate wants"), (f"{group.gate},0", 2, "wants"),
                                    ("/nonexistent/gate,2", 1, "No such file")):
            done = subprocess.run([FOLDER / (PREFIX + "chase"), "--gate", value], env=ENV,
                                  capture_output=True, text=True, timeout=400)
            assert done.returncode == status and word in done.stderr, done


for test in (test_together, test_killed, test_given_up, test_mistakes):
    print(test.__name__, flush=True)
    test()
