#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs in a virtual machine with two kinds of memory.

    vm.py fetch
    vm.py selftest --vm-exit FILE
    vm.py run --topology kmem --vm-exit FILE [--file NAME=PATH]... [--lib SONAME]...
              [--set NAME=VALUE]... [--other-pair PAIR] [--long JOB]... JOB...

JOB is a shell script, run as root in /job beside the files; status 0 is success.
Status: 0 all jobs succeeded, 77 the machine cannot be had here, 1 otherwise.
docs/vm.md describes the machine.
"""
import argparse
import hashlib
import os
import signal
import sys
import tempfile
import time

import vm_fetch
import vm_image
import vm_machine

HERE = os.path.dirname(os.path.abspath(__file__))


def say(text):
    print("vm: " + text, flush=True)


def base_image(folder, vm_exit):
    """Built once for each version of the scripts that make it."""
    init = HERE + "/init.sh"
    key = hashlib.sha256()
    for path in (init, HERE + "/vm_image.py", vm_exit, folder + "/pair.json"):
        with open(path, "rb") as f:
            key.update(f.read())
    cached = "%s/base-%s" % (folder, key.hexdigest()[:16])
    if not os.path.exists(cached):
        temporary = "%s.%d" % (cached, os.getpid())
        with open(temporary, "wb") as f:
            f.write(vm_image.build_base(folder, init, vm_exit))
        os.rename(temporary, cached)
    with open(cached, "rb") as f:
        return f.read()


def report(result, jobs, seconds):
    print(result.output)
    say("%.1f s, QEMU status %s" % (seconds, result.qemu_status))
    if result.status is None:
        say("the machine did not end as it should" if result.qemu_status is not None
            else "the time was up")
        print("--- console\n" + result.console[-4000:] + "--- qemu\n" + result.qemu_log[-2000:])
        return 1
    done = result.output.count("VM-JOB ")
    if result.status == 0 and done != jobs:
        say("%d of %d jobs ran" % (done, jobs))
        return 1
    return 1 if result.status else 0


# While the kernel patches its own code another CPU may meet the breakpoint that it puts there for
# the moment. QEMU's emulation of several CPUs can show it too late, when the kernel has taken it
# for done and knows of none: it oopses. Seen on a computer with a load of 30. And QEMU itself has ended
# while the kernel looked at its devices (an assertion of msix_table_mmio_write). No job can cause these.
KERNEL_ASTRAY = "Oops: int3"
QEMU_CRASHES = {-signal.SIGABRT, -signal.SIGSEGV}
BOOTS = 3


def emulator_fault(result):
    """What QEMU did wrong, "" if nothing."""
    if result.status is not None:
        return ""
    if result.qemu_status in QEMU_CRASHES:
        return "QEMU crashed: " + (result.qemu_log.strip().splitlines() or ["without a word"])[-1]
    return "QEMU led the kernel astray: " + KERNEL_ASTRAY if KERNEL_ASTRAY in result.console else ""


def run(args):
    folder = vm_fetch.fetch(say, [args.other_pair] if args.other_pair else None)
    if args.other_pair and folder == vm_fetch.fetch(say):
        raise vm_fetch.CannotHave("the other machines have this kernel, too")
    files = [f.split("=", 1) for f in args.file]
    if os.environ.get("HYBRID_TEST_LONG") == "1":
        args.jobs += args.long
        args.set = ["long=1", "seconds=20"] + args.set
    job = vm_image.build_job(args.jobs, files, args.lib, args.set)
    base = base_image(folder, args.vm_exit)
    started = time.monotonic()
    for left in reversed(range(BOOTS)):
        result = vm_machine.boot(folder, [base, job], args.topology, args.cpus, args.seconds)
        fault = emulator_fault(result)
        if not left or not fault:
            break
        say(fault + "; all jobs once more")
    return report(result, len(args.jobs), time.monotonic() - started)


# What must never be taken for success: script, time allowed.
BAD_ENDS = {
    "a job that fails": ("exit 3", 600),
    "a power-off": ("poweroff -f; sleep 60", 600),
    "a panic": ("echo c >/proc/sysrq-trigger; sleep 60", 600),
    "a hang": ("sleep 600", 5),
}
# The same of ends that need no machine: QEMU's status, output.
BAD_RESULTS = {
    "an end without a result": (1, "VM-READY 5 s\n"),
    "a result that the status contradicts": (11, "VM-RESULT rc=0\n"),
    "a result of a machine that had to be ended": (None, "VM-RESULT rc=0\n"),
}


def selftest(args):
    folder = vm_fetch.fetch(say)
    base = base_image(folder, args.vm_exit)
    wrong = 0
    for what, (status, output) in BAD_RESULTS.items():
        good = vm_machine.Result(status, output, "", "").status != 0
        wrong += not good
        say("%s %s" % ("ok  " if good else "FAIL", what))
    for what, status, output, console, again in (
            ("QEMU's own fault", 0, "VM-READY 5 s\n", "[ 18.3] Oops: int3: 0000 [#1]\n", True),
            ("a crash of QEMU", -signal.SIGABRT, "", "", True),
            ("an end of QEMU by somebody's kill", -signal.SIGKILL, "", "", False),
            ("a panic of the kernel", 0, "VM-READY 5 s\n", "[ 18.3] Oops: 0000 [#1]\n", False)):
        good = bool(emulator_fault(vm_machine.Result(status, output, console, ""))) == again
        wrong += not good
        say("%s %s is %stried again" % ("ok  " if good else "FAIL", what, "" if again else "not "))
    for what, (script, seconds) in BAD_ENDS.items():
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as job:
            job.write(script + "\n")
            job.flush()
            image = vm_image.build_job([job.name], [], [])
            result = vm_machine.boot(folder, [base, image], "ram2", 1, seconds)
        good = result.status != 0 # success is what all other tests here need
        wrong += not good
        say("%s %s: status %s, QEMU %s" % ("ok  " if good else "FAIL", what, result.status,
                                           result.qemu_status))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="download kernel and QEMU into the cache")
    r = commands.add_parser("run", help="boot a machine and run jobs")
    r.add_argument("--topology", choices=sorted(vm_machine.TOPOLOGIES), required=True)
    r.add_argument("--vm-exit", required=True, help="the program vm_exit (static)")
    r.add_argument("--file", action="append", default=[], metavar="NAME=PATH")
    r.add_argument("--lib", action="append", default=[], metavar="SONAME")
    r.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                   help="a shell variable for the jobs")
    r.add_argument("--cpus", type=int, default=2)
    # A machine that hangs is ended; a busy computer is no reason to end one.
    r.add_argument("--seconds", type=int, default=4000)
    r.add_argument("--other-pair", choices=vm_fetch.PAIRS,
                   help="this kernel; skipped where it is the default here (docs/vm.md)")
    r.add_argument("--long", action="append", default=[], metavar="JOB",
                   help="run with HYBRID_TEST_LONG=1 (scripts/test --long) only, after the others")
    r.add_argument("jobs", nargs="+", metavar="JOB")
    t = commands.add_parser("selftest", help="machines that end badly are noticed")
    t.add_argument("--vm-exit", required=True)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # not without ending QEMU
    try:
        if args.command == "fetch":
            say(vm_fetch.fetch(say))
            return 0
        return selftest(args) if args.command == "selftest" else run(args)
    except vm_fetch.CannotHave as reason:
        say("SKIPPED, the machine cannot be had here: %s" % reason)
        return 77


if __name__ == "__main__":
    sys.exit(main())
