# SPDX-License-Identifier: BSD-2-Clause
# Memory itself is refused (vm.overcommit_memory 2, as on many database servers): malloc says NULL, the
# program frees and goes on, as plainly.
. ./check.sh
used=$(sed -n 's/^Committed_AS: *\([0-9]*\) kB/\1/p' /proc/meminfo)
for mib in 300 ${long:+302}; do
    echo 2 >/proc/sys/vm/overcommit_memory
    echo $((used + mib * 1025)) >/proc/sys/vm/overcommit_kbytes
    check "$mib MiB, plainly" ./hz_limits limited
    for policy in pm dram; do
        check "$mib MiB, $policy" placed $policy ./hz_limits limited
    done
    echo 0 >/proc/sys/vm/overcommit_memory
done
exit $failed
