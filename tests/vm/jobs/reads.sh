# SPDX-License-Identifier: BSD-2-Clause
# What tells of reads on a real kernel. There is no performance monitoring unit here: page faults,
# which the kernel tells in the same way, stand for loads. Debian's kernels are built without the
# idle page bitmap: a file stands for it, over this machine's frames.
. ./check.sh

unsampled() { # as Debian and others set it: nothing without privilege, which root has
    echo 3 >/proc/sys/kernel/perf_event_paranoid
    ./test_loads
}
check "accesses are sampled thread by thread" ./test_loads
check "the same under perf_event_paranoid 3" unsampled
check "pages that are touched are found by frame" ./test_idle
check "doctor tells of load samples" says "load samples" ./hybridctl doctor
check "doctor tells who tells" says "reads by nothing" ./hybridctl doctor
exit $failed
