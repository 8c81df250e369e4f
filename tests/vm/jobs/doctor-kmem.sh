# SPDX-License-Identifier: BSD-2-Clause
# The doctor finds the memory that the kmem driver gave to the system.
. ./check.sh
check "doctor: can place" status 0 ./hybridctl doctor
check "doctor names node 1" says "NUMA node 1, 512 MiB: given to the system by the kmem driver" \
    ./hybridctl doctor
check "doctor tells the firmware's latency" says "HMAT: read 300 ns 10240 MB/s" ./hybridctl doctor
check "memkind agrees" says "available by memkind's own detection" ./hybridctl doctor
check "JSON" says '"can_steer": true' ./hybridctl doctor --json
check "run --check tells the node" says "PM        NUMA node 1" \
    ./hybridctl run --library $lib --check -- ./vm_place 0
check "a node that is not there" status 2 ./hybridctl run --library $lib --pm node:5 -- ./vm_place 0
exit $failed
