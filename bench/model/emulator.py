# SPDX-License-Identifier: BSD-2-Clause
"""Runs kernels and workloads on emulated machines; times are virtual, in microseconds."""
import contextlib
import os
import re
import subprocess
import tempfile

KIB = 16384


class Failure(Exception):
    """To be told to the user in one line."""


class Emulator:
    def __init__(self, build):
        self.build = build
        self.kernels = os.path.join(build, "emu", "test", "emu_kernels")
        if not os.access(self.kernels, os.X_OK):
            raise Failure(f"{self.kernels} is missing: ninja -C {build} emu/test/emu_kernels")

    def workload(self, name):
        """Path of the instrumented program, None when it is not built."""
        path = os.path.join(self.build, "bench", "workloads", "emu-" + name)
        return path if os.access(path, os.X_OK) else None

    @staticmethod
    def _start(command, settings, say=False):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HYBRID_", "LD_"))}
        env.update({"HYBRID_EMU_" + k: str(v) for k, v in settings.items() if v is not None})
        if say:
            env["KERNEL_SAY"] = "1"
        return subprocess.Popen([str(c) for c in command], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _run(self, command, pattern, settings):
        p = self._start(command, settings)
        out, err = p.communicate(timeout=600)
        found = re.search(pattern, out)
        if p.returncode != 0 or not found:
            raise Failure(f"{' '.join(map(str, command))}: status {p.returncode}: "
                          f"{err.strip() or out.strip()}")
        return int(found.group(1)), out

    def kernel(self, kind, threads, rounds, kib=KIB, **settings):
        return self._run([self.kernels, kind, threads, rounds, kib], r"virtual_us (\d+)",
                         settings)[0]

    def program(self, name, threads, **settings):
        """Virtual us of the work alone, and its counters."""
        path = self.workload(name)
        if not path:
            raise Failure(f"bench/workloads/emu-{name} is not built")
        ns, out = self._run([path, "--emulated", "--threads", threads, "--time"],
                            r"clock=virtual .*work_ns=(\d+)", settings)
        if " ok\n" not in out:
            raise Failure(f"emu-{name}: wrong result")
        return ns / 1000, {k: int(v) for k, v in re.findall(r"([A-Z_]+)=(\d+)", out)}

    def bandwidth(self, kind, threads, **settings):
        """GB/s that the threads ask for and get; what their stores fetch is not counted."""
        lines = KIB * 1024 // 64
        rounds = 4 if kind in ("read", "write") else 2 * lines
        moved = KIB * 1024 * rounds if kind in ("read", "write") else rounds * 64
        return moved / self.kernel(kind, threads, rounds, **settings) / 1000

    @contextlib.contextmanager
    def beside(self, kind, threads, **settings):
        """Settings of a machine on which a neighbour is at it for as long as the block lasts."""
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="papers-") as folder:
            settings["MACHINE"] = os.path.join(folder, "machine")
            p = self._start([self.kernels, kind, threads, 10 ** 15, KIB], settings, say=True)
            try:
                if "running" not in p.stderr.readline():
                    raise Failure(f"neighbour {kind}: {p.stderr.read().strip()}")
                yield {k: settings.get(k) for k in ("MACHINE", "PRESET", "SET")}
                if p.poll() is not None:
                    raise Failure(f"neighbour {kind}: ended with status {p.returncode}")
            finally:
                p.kill()
                p.communicate()
