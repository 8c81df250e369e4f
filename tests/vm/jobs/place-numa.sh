# SPDX-License-Identifier: BSD-2-Clause
# Memory lies where the policy says, and a program's own binding is respected.
. ./check.sh
check "plain run: node 0" ./vm_place 0
check "POLICY=pm: node 1" placed pm ./vm_place 1
check "POLICY=dram: node 0" placed dram ./vm_place 0
check "POLICY=off: node 0" placed off ./vm_place 0
pm=node:1
check "PM=node:1" placed pm ./vm_place 1
pm=auto
check "hybridctl run" ./hybridctl run --library $lib --policy pm --start 0 -- ./vm_place 1
check "numactl --membind=0 is respected" placed pm numactl --membind=0 ./vm_place 0
check "numactl --membind=1 is respected" placed dram numactl --membind=1 ./vm_place 1
check "numactl --interleave is respected" placed pm numactl --interleave=0,1 ./vm_place both
check "a block lies across the end of HYBRID_DRAM" \
    env HYBRID_DRAM=16M HYBRID_MIGRATE=off HYBRID_POLICY=first-fit HYBRID_START=0 LD_PRELOAD=$lib ./vm_place split 16
check "fork: independent memories" placed pm ./vm_fork
exit $failed
