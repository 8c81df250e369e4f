#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the loader looks up for the library. Every process pays for that at its start, so it must
be little; and it must not happen inside malloc, in a thread of the program (shim/sys/bound.c)."""
import os
import re
import subprocess
import sys

# The heaps' slow path begins the control thread, once; dlsym is for the hook of pthread_create.
BEGINS_A_THREAD = {"dlsym",
                   "pthread_create", "pthread_attr_init", "pthread_attr_setdetachstate",
                   "pthread_attr_setstacksize", "pthread_attr_destroy", "pthread_sigmask", "sigfillset", "sigemptyset"}
MOST_AT_START = 26  # of 68 that the library imports


def bindings(lib, argv):
    """[(phase, symbol)] that the loader bound for the library; phase: start, program or end."""
    env = {**os.environ, "LD_PRELOAD": lib, "LD_DEBUG": "bindings", "HYBRID_PM": "emulated", "HYBRID_START": "1M"}
    env.pop("LD_BIND_NOW", None)
    run = subprocess.run(argv, env=env, stderr=subprocess.PIPE, check=True, timeout=120)
    phase, found = "start", []
    # The loader writes a line in two parts, so two threads' lines may come as one.
    name = re.compile(re.escape(f"binding file {lib} ") + "[^`]*`([^']*)'")
    for line in run.stderr.decode("utf-8", "replace").splitlines():
        if "transferring control:" in line:
            phase = "program"
        elif "calling fini" in line:
            phase = "end"
        else:
            found += [(phase, symbol) for symbol in name.findall(line)]
    return found


def main(lib, calls):
    found = bindings(lib, [calls])
    bad = sorted({name for phase, name in found if phase == "program"} - BEGINS_A_THREAD)
    if bad:
        print("bound while the program runs (add them to shim/sys/bound.c):", *bad)
    if "malloc" not in {name for phase, name in found}:
        print("LD_DEBUG=bindings tells nothing of the library")
        return 1
    start = [name for phase, name in bindings(lib, ["/bin/true"]) if phase == "start"]
    if len(start) > MOST_AT_START:
        print(f"{len(start)} names are looked up at each start, at most {MOST_AT_START} should be:", *start)
    return 1 if bad or len(start) > MOST_AT_START else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: bindings.py libhybrid.so fn_stress")
    sys.exit(main(*sys.argv[1:]))
