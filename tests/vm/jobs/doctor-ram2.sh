# SPDX-License-Identifier: BSD-2-Clause
# A node without CPUs that is ordinary memory to the kernel, but slower.
. ./check.sh
check "doctor: can place" status 0 ./hybridctl doctor
check "doctor names node 1" says "NUMA node 1, " ./hybridctl doctor
check "run --check tells the node" says "PM        NUMA node 1" \
    ./hybridctl run --library $lib --check -- ./vm_place 0
exit $failed
