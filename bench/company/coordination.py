#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What it costs a program that others share the registry with it.

    bench/company/coordination.py [--build DIR] [--seconds 10] [--interval 1s] [--check]

A sleeping program under libhybrid joins a registry that this script fills with 0, 10 and 250
participants: slots with words and locks of living ones, of all classes, with curves, who hold and
wish. The processor time of the library's threads comes from the kernel (schedstat); nothing else runs
in them. One of the others is stopped, which delays nobody: its slot is read as any other."""
import fcntl
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent)]
import benchlib as lib  # noqa: E402: found by the path above

LIMITS = {0: None, 10: 0.2, 250: 1.0}  # percent of run time
SLOT, HEADER, LOCK_BASE = 512, 4096, 1 << 40
F_OFD_SETLK = 37
# Offsets in a slot, and in the header the bytes of the pages of slots in use: place/registry_file.h.
CLASS, CURVE = 80, 240
USED, USED_PAGES = 72, 32


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return int(f.read().rsplit(") ", 1)[1].split()[19])


def word(pid):
    """Owner's word with the state LIVE; the stack's place is not told."""
    return (pid & (1 << 22) - 1) << 2 | (start_time(pid) & (1 << 22) - 1) << 24 | 2


def slot(pid, number, chance):
    s = bytearray(SLOT)
    struct.pack_into("<QQQ", s, 0, word(pid), chance.randrange(1 << 20), time.monotonic_ns())
    struct.pack_into("<QQ", s, 24, 1 << 24, chance.randrange(1 << 20))  # on PM, wish
    struct.pack_into("<I", s, CLASS, 1 + number % 3)
    times = sorted((chance.randrange(1001, 9000) for _ in range(8)), reverse=True)
    struct.pack_into("<QQQQ8I", s, CURVE, 1 << 24, 1 << 20, 0, 10 ** 10, *times)
    struct.pack_into("<III", s, CURVE + 64, 3000, 100, 5000)  # as the data lie, weight, a move
    return bytes(s)


def fill(path, others, pid):
    """Slots from the last downwards; the descriptor that holds their locks."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    chance = random.Random(1)
    os.pwrite(fd, b"\1" * USED_PAGES, USED)
    for i in range(others):
        number = 255 - i
        fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, LOCK_BASE + number, 1, 0))
        os.pwrite(fd, slot(pid, number, chance), HEADER + number * SLOT)
    return fd


def cpu_ns(pid):
    """Of all threads but the first."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        if int(task) != pid:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
    return total


def seen_by(args, path):
    done = subprocess.run([os.path.join(args.build, "tools/hybridctl"), "status", "--registry", path], text=True,
                          env=lib.clean_env({}), stdout=subprocess.PIPE, check=False)
    return done.stdout


def measure(args, others, folder):
    path = f"{folder}/registry-{others}"
    env = lib.clean_env({"LD_PRELOAD": os.path.join(args.build, "shim/libhybrid.so"), "HYBRID_PM": "emulated",
                         "HYBRID_START": "0", "HYBRID_STRICT": "1", "HYBRID_REGISTRY": path,
                         "HYBRID_DRAM_SHARED": "256M", "HYBRID_INTERVAL": args.interval})
    code = "import time; keep = bytearray(64 << 20); print('up', flush=True); time.sleep(1000)"
    stopped = subprocess.Popen(["sleep", "1000"])
    stopped.send_signal(19)
    p = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        for _ in range(100):
            if os.path.exists(path) and os.path.getsize(path) >= HEADER + 256 * SLOT:
                break
            time.sleep(0.1)
        fd = fill(path, others, stopped.pid)
        time.sleep(3)
        begin, used = time.monotonic_ns(), cpu_ns(p.pid)
        time.sleep(args.seconds)
        used, elapsed = cpu_ns(p.pid) - used, time.monotonic_ns() - begin
        rows = seen_by(args, path).count("\n")
        if rows < others:
            raise lib.BenchError(f"only {rows} lines of status for {others} others: they are not believed to live")
        os.close(fd)
    finally:
        for child in (p, stopped):
            child.kill()
            child.wait()
    return 100 * used / elapsed


def main():
    p = lib.script_parser(__doc__, "bench-coordination")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--interval", default="1s", help="HYBRID_INTERVAL (1s, the default)")
    p.add_argument("--check", action="store_true")
    args = lib.script_folders(p.parse_args())
    with tempfile.TemporaryDirectory() as folder:
        found = {n: measure(args, n, folder) for n in LIMITS}
    rows = [[n, f"{percent:.3f} %", f"{percent - found[0]:+.3f} %", f"{LIMITS[n]} %" if LIMITS[n] else ""]
            for n, percent in found.items()]
    print(lib.table(["others", "of a core", "by the others", "limit"], rows))
    os.makedirs(args.out, exist_ok=True)
    lib.write_json(os.path.join(args.out, "coordination.json"), {"percent": found, "interval": args.interval})
    bad = [n for n, percent in found.items() if LIMITS[n] and percent > LIMITS[n]]
    for n in bad:
        print(f"{n} others cost {found[n]:.3f} % of a core, more than {LIMITS[n]} %")
    return 1 if args.check and bad else 0


if __name__ == "__main__":
    lib.main_guard(main)
